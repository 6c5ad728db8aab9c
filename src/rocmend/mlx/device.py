"""Devices and streams.

A stream of torch's is behind each of ours: ``gpu`` is torch's ``cuda`` device (ROCm's name there too), ``cpu`` the CPU.
"""

from __future__ import annotations

import os
from typing import Any

import torch

__all__ = ["Device", "DeviceType", "Stream", "cpu", "default_device", "default_stream_of", "gpu"]


class DeviceType:
    """``cpu`` or ``gpu``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"DeviceType.{self.name}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return other == self
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)


cpu = DeviceType("cpu")
gpu = DeviceType("gpu")


class Device:
    """A device: its type and index."""

    __slots__ = ("index", "torch", "type")

    def __init__(self, type: DeviceType, index: int = 0) -> None:
        self.type = type
        self.index = index
        self.torch = torch.device("cpu") if type is cpu else torch.device("cuda", index)

    def __repr__(self) -> str:
        return f"Device({self.type.name}, {self.index})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceType):
            return self.type is other and self.index == 0
        return isinstance(other, Device) and self.type is other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type.name, self.index))


class Stream:
    """A queue of work on a device."""

    __slots__ = ("device", "index", "queue")

    def __init__(self, device: Device, index: int, queue: Any = None) -> None:
        self.device = device
        self.index = index
        self.queue = queue  # torch's stream; None: the device's default one

    def __repr__(self) -> str:
        return f"Stream({self.device!r}, {self.index})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.index == other.index and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.device, self.index))


_default: list[Device] = []
_streams: dict[Device, Stream] = {}


def _first() -> Device:
    """Return the device that a process begins with: a GPU where torch sees one."""
    asked = os.environ.get("ROCMEND_MLX_DEVICE", "")
    if asked not in ("", "cpu", "gpu"):
        raise ValueError(f"[ROCMEND_MLX_DEVICE] expected cpu or gpu, got {asked!r}.")
    if asked == "cpu" or (not asked and not torch.cuda.is_available()):
        return Device(cpu)
    return Device(gpu)


def default_device() -> Device:
    """Return the device that operations run on where none is named."""
    if not _default:
        _default.append(_first())
    return _default[0]


def default_stream_of(device: Device) -> Stream:
    """Return a device's default stream."""
    stream = _streams.get(device)
    if stream is None:
        stream = _streams[device] = Stream(device, len(_streams))
    return stream
