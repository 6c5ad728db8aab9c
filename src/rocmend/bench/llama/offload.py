"""Which device computed, read from what llama.cpp printed, not from what the run was called."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rocmend.bench.llama.backends import Backend, software_device
from rocmend.bench.llama.build import init_devices, target_in
from rocmend.bench.llama.rows import Row

_OFFLOADED = re.compile(r"offloaded (\d{1,5})/(\d{1,5}) layers to GPU")
_WEIGHTS = re.compile(r"load_tensors: +(\S{1,100})(?: model)? buffer size = +([\d.]+) MiB")
_COMPUTE = re.compile(r": +([\w-]+) +compute buffer size = +[\d.]+ MiB")
_USING = re.compile(r"using device (\w+) \((.{1,200}?)\)(?: \(| -|$)")
_ON_CPU = {"CPU", "BLAS", "OPENBLAS", "ACCELERATE"}


class Computed(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a run computed.

    Attributes:
        device: The device with most of the weights: ``ROCm0``, ``CPU``; empty where the output does not say.
        device_name: What it calls itself.
        gfx_target: Its target; ``cpu`` for the processor; empty where the output does not say.
        offloaded: Layers on the GPU; None where the output does not say.
        layers: Of so many.
        buffers: MiB of weights by device.
        others: Devices other than the processor that hold compute buffers.
    """

    device: str = ""
    device_name: str = ""
    gfx_target: str = ""
    offloaded: int | None = None
    layers: int = 0
    buffers: dict[str, float] = {}
    others: tuple[str, ...] = ()


def read_computed(lines: Sequence[str]) -> Computed:
    """Read where a verbose run computed."""
    offloaded: tuple[int, int] | None = None
    buffers: dict[str, float] = {}
    others: dict[str, None] = {}
    found = {device.id: device for device in init_devices(lines)}
    names = {device.id: device.name for device in found.values()}
    for line in lines:
        text = line[:500]
        if match := _OFFLOADED.search(text):
            offloaded = int(match[1]), int(match[2])
        elif match := _WEIGHTS.search(text):
            device = _device(match[1])
            buffers[device] = buffers.get(device, 0.0) + float(match[2])
        elif match := _COMPUTE.search(text):
            others[_device(match[1])] = None
        elif match := _USING.search(text):
            names.setdefault(match[1], match[2])
    device = max(buffers, key=lambda name: buffers[name]) if buffers else ""
    if device == "CPU":
        target = "cpu"
    else:
        target = found[device].gfx_target if device in found else target_in(names.get(device, ""))
    count, layers = offloaded or (None, 0)
    others.pop("CPU", None)
    return Computed(device, names.get(device, ""), target, count, layers, buffers, tuple(others))


def _device(name: str) -> str:
    """Return the device that a buffer lies on: pinned and mapped host memory is the processor's."""
    return "CPU" if name.startswith("CPU") or name.endswith(("_Host", "_Mapped", "_REPACK", "_AARCH64")) else name


def judge(backend: Backend, computed: Computed, row: Row | None) -> tuple[str, str]:
    """Compare where a run computed with what was asked for.

    Args:
        backend: What was asked for.
        computed: What a verbose run printed.
        row: A row of its results.

    Returns:
        What is wrong, and what cannot be told; both empty where all is as asked.
    """
    if backend.on_cpu:
        used = bool(computed.offloaded or computed.others)
        return (f"the CPU was asked for, but {', '.join(computed.others) or 'a GPU'} computed too" if used else "", "")
    if fault := _on_cpu(backend, computed, row):
        return f"{fault}: the CPU computed", ""
    if computed.offloaded is None and not computed.buffers:
        return "", "the output does not say which device computed"
    if computed.offloaded is not None and computed.offloaded < computed.layers:
        return "", f"only {computed.offloaded} of {computed.layers} layers were offloaded"
    return "", ""


def _on_cpu(backend: Backend, computed: Computed, row: Row | None) -> str:
    """Say from what it follows that the processor computed, where a GPU was asked for."""
    name = computed.device_name or (row.gpu if row else "")
    parts = {part.strip().upper() for part in re.split(r"[,+/]", row.backends if row else "") if part.strip()}
    options = row.options if row else {}
    all_there = set(computed.buffers) == {"CPU"} and not computed.offloaded
    faults = (
        (not backend.software and software_device(name), f"{backend.name} ran on {name}"),
        (computed.offloaded == 0, f"0 of {computed.layers} layers were offloaded to {backend.device}"),
        (all_there, "all weights are in the CPU's memory"),
        (bool(parts) and parts <= _ON_CPU, f"the build has only the back end {row.backends if row else ''}"),
        (options.get("devices") == "none", "the result says that no device was used"),
        (options.get("n_gpu_layers") == "0", "the result says that no layer was offloaded"),
    )
    return next((fault for holds, fault in faults if holds), "")
