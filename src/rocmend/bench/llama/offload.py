"""Which device computed, read from what llama.cpp printed, not from what the run was called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from rocmend.bench.llama.backends import Backend, software_device
from rocmend.bench.llama.build import init_devices, target_in
from rocmend.bench.llama.options import Chosen
from rocmend.bench.llama.rows import Row
from rocmend.core.verdict import Verdict

_OFFLOADED = re.compile(r"offloaded (\d{1,5})/(\d{1,5}) layers to GPU")
_WEIGHTS = re.compile(r"load_tensors: +(\S{1,100})(?: model)? buffer size = +(\d{1,12}(?:\.\d{1,6})?) MiB")
_COMPUTE = re.compile(r": +([\w-]+) +compute buffer size = +[\d.]+ MiB")
_USING = re.compile(r"using device (\w+) \((.{1,200}?)\)(?: \(| -|$)")
_SPLIT = "_Split"
"""Ending of the buffer that rows on several GPUs lie in: ``ROCm_Split``."""
_NUMBERED = re.compile(r"[A-Za-z]+\d+")
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
        used: Devices other than the processor that hold weights, or parts of rows.
        rows: Weights are spread over GPUs by rows, and the output does not say over which.
    """

    device: str = ""
    device_name: str = ""
    gfx_target: str = ""
    offloaded: int | None = None
    layers: int = 0
    buffers: dict[str, float] = {}
    others: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    rows: bool = False


class Judged(NamedTuple):
    """What came out of comparing where a run computed with what was asked for.

    Attributes:
        fault: What is wrong; empty where nothing is.
        doubt: What can't be told.
        verdict: What the fault is called.
    """

    fault: str = ""
    doubt: str = ""
    verdict: Verdict = Verdict.PASS


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
    rows = [name for name in buffers if name.endswith(_SPLIT)]
    whole = {name: size for name, size in buffers.items() if name not in rows}
    if rows and len(whole) > 1:
        whole.pop("CPU", None)  # it holds the embeddings
    device = max(whole, key=lambda name: whole[name]) if whole else ""
    if device == "CPU":
        target = "cpu"
    else:
        target = found[device].gfx_target if device in found else target_in(names.get(device, ""))
    count, layers = offloaded or (None, 0)
    others.pop("CPU", None)
    used = tuple(name for name in buffers if _NUMBERED.fullmatch(name))
    name = names.get(device, "")
    return Computed(device, name, target, count, layers, buffers, tuple(others), used, bool(rows))


def _device(name: str) -> str:
    """Return the device that a buffer lies on: pinned and mapped host memory is the processor's."""
    return "CPU" if name.startswith("CPU") or name.endswith(("_Host", "_Mapped", "_REPACK", "_AARCH64")) else name


def judge(backend: Backend, computed: Computed, row: Row | None, chosen: Chosen | None = None) -> Judged:
    """Compare where a run computed with what was asked for.

    Args:
        backend: What was asked for.
        computed: What a verbose run printed.
        row: A row of its results.
        chosen: Options; without a split one of several devices has all.
    """
    if backend.on_cpu:
        if not (computed.offloaded or computed.others):
            return Judged()
        others = ", ".join(computed.others) or "a GPU"
        return Judged(f"the CPU was asked for, but {others} computed too", verdict=Verdict.INFRA)
    if fault := _on_cpu(backend, computed, row):
        return Judged(f"{fault}: the CPU computed", verdict=Verdict.SILENT_CPU_FALLBACK)
    if fault := _elsewhere(_expected(backend, chosen), computed):
        return Judged(fault, verdict=Verdict.INFRA)
    return Judged(doubt=_doubt(backend, computed))


def _doubt(backend: Backend, computed: Computed) -> str:
    if computed.offloaded is None and not computed.buffers:
        return "the output does not say which device computed"
    if computed.offloaded is not None and computed.offloaded < computed.layers:
        return f"only {computed.offloaded} of {computed.layers} layers were offloaded"
    if computed.rows and len(backend.devices) > 1:
        return "rows of the weights are spread over GPUs; the output does not say over which"
    return ""


def _expected(backend: Backend, chosen: Chosen | None) -> tuple[str, ...]:
    """Return the devices that are to hold weights."""
    if chosen is None or chosen.split_mode != "none":
        shares = [float(share) for share in chosen.tensor_split.split("/")] if chosen and chosen.tensor_split else []
        # a GPU without a share gets none; where no share is above 0, llama.cpp takes its own
        holding = tuple(name for name, share in zip(backend.devices, shares, strict=False) if share > 0)
        return holding or backend.devices
    number = int(chosen.main_gpu or "0")
    return backend.devices[number : number + 1] or backend.devices


def _elsewhere(expected: Sequence[str], computed: Computed) -> str:
    """Say which devices computed that were not asked for, or did not and were."""
    used = computed.used
    if not used or not all(_NUMBERED.fullmatch(name) for name in expected):
        return ""
    more = [name for name in used if name not in expected]
    less = [] if computed.rows else [name for name in expected if name not in used]
    if not (more or less):
        return ""
    were = "was" if len(expected) == 1 else "were"
    return f"{' and '.join(expected)} {were} asked for, but the weights were on {' and '.join(used)}"


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
