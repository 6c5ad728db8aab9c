"""Devices and streams.

``gpu`` is torch's ``cuda`` device (ROCm's name there too), ``cpu`` the CPU. All streams of a GPU are one stream of
torch's, the current one: what is recorded on several streams is computed in the order of its dependencies, and never
needs events between them. A stream says on which device work is done, and keeps programs apart that name their own.

Of processes that ``torchrun`` starts on one host, each has a GPU of its own: it is what each of them calls its first.
"""

from __future__ import annotations

import enum
import functools
import itertools
import os
import threading

import torch

from rocmend.mlx.environment import asked

__all__ = [
    "Device", "DeviceType", "Stream", "begin_thread", "cpu", "default_device", "default_stream_of", "gpu",
    "new_stream_of", "own_gpu",
]  # fmt: skip


class DeviceType(enum.Enum):
    """``cpu`` or ``gpu``."""

    cpu = 0
    gpu = 1

    def __repr__(self) -> str:
        return f"DeviceType.{self.name}"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return other == self
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)


cpu = DeviceType.cpu
gpu = DeviceType.gpu


class Device:
    """A device: its type and index."""

    __slots__ = ("_hash", "index", "torch", "type")

    def __init__(self, type: DeviceType, index: int = 0) -> None:
        if not isinstance(type, DeviceType):
            raise TypeError(f"[Device] expected a device type, cpu or gpu, got {type!r}.")
        self.type = type
        self.index = index
        self.torch = torch.device("cpu") if type is cpu else torch.device("cuda", _number(index))
        self._hash = hash((type.name, index))

    def __repr__(self) -> str:
        return f"Device({self.type.name}, {self.index})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceType):
            return self.type is other and self.index == 0
        return isinstance(other, Device) and self.type is other.type and self.index == other.index

    def __hash__(self) -> int:
        return self._hash

    def synchronize(self) -> None:
        """Wait for all work on this device."""
        if self.type is gpu:
            torch.cuda.current_stream(self.torch).synchronize()


class Stream:
    """A queue of work on a device.

    Attributes:
        device: where.
        index: number among all streams of this process.
        owner: the thread that alone may use it; None: any may.
    """

    __slots__ = ("_hash", "device", "index", "owner")

    def __init__(self, device: Device, index: int, owner: int | None = None) -> None:
        self.device = device
        self.index = index
        self.owner = owner
        self._hash = hash((device, index))

    def __repr__(self) -> str:
        return f"Stream({self.device!r}, {self.index})"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Stream) and self.index == other.index and self.device == other.device
        )

    def __hash__(self) -> int:
        return self._hash

    def entered(self) -> Stream:
        """Return this stream, for use by the thread that calls.

        Raises:
            RuntimeError: another thread made it for itself.
        """
        if self.owner is not None and self.owner != threading.get_ident():
            raise RuntimeError(
                f"There is no Stream({self.device.type.name}, {self.index}) in current thread: another thread made it. "
                "Make one here, or one for each thread with new_thread_local_stream."
            )
        return self


@functools.cache
def own_gpu() -> int:
    """Return torch's number of this process's first GPU: programs take streams before they look for other processes."""
    local, together = (os.environ.get(name, "") for name in ("LOCAL_RANK", "WORLD_SIZE"))
    if not local.isdecimal() or not together.isdecimal() or int(together) < 2:
        return 0
    return int(local) if int(local) < torch.cuda.device_count() else 0


def _number(index: int) -> int:
    """Return torch's number of a GPU: counted from this process's own, round to those before it."""
    own = own_gpu()
    count = torch.cuda.device_count() if own else 0
    return (own + index) % count if index < count else index


_default: list[Device] = []
_streams: dict[Device, Stream] = {}
_there: set[Device] = set()
_numbers = itertools.count()


def _first() -> Device:
    """Return the device that a process begins with: a GPU where torch sees one."""
    wanted = asked("ROCMEND_MLX_DEVICE")
    if wanted == "cpu" or (not wanted and not torch.cuda.is_available()):
        return Device(cpu)
    return Device(gpu)


def default_device() -> Device:
    """Return the device that a thread begins with."""
    if not _default:
        _default.append(_first())
    return _default[0]


def begin_thread() -> Device:
    """Return the device that a thread begins with, and make the process's own GPU this thread's for torch too."""
    device = default_device()
    if device.type is gpu and own_gpu():
        torch.cuda.set_device(own_gpu())
    return device


def set_default(device: Device) -> None:
    """Set the device that a thread begins with."""
    _default[:] = [device]


def available(device: Device) -> bool:
    """Return whether torch can compute on a device."""
    return device.type is cpu or (torch.cuda.is_available() and device.index < torch.cuda.device_count())


def require(op: str, device: Device) -> Device:
    """Return a device that is there.

    Raises:
        ValueError: it is not.
    """
    if device not in _there:
        if not available(device):
            raise ValueError(
                f"[{op}] Cannot use {device}: torch {torch.__version__} sees no such device. `rocmend doctor` says why."
            )
        _there.add(device)
    return device


def default_stream_of(device: Device) -> Stream:
    """Return a device's default stream.

    Raises:
        ValueError: there is no such device.
    """
    stream = _streams.get(device)
    if stream is None:
        require("default_stream", device)
        stream = _streams.setdefault(device, Stream(device, next(_numbers)))
    return stream


def new_stream_of(device: Device, *, shared: bool = False) -> Stream:
    """Return a new stream, which only the thread that calls may use, or any where it is shared.

    Raises:
        ValueError: there is no such device.
    """
    return Stream(require("new_stream", device), next(_numbers), None if shared else threading.get_ident())
