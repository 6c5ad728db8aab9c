"""The device that is measured: what torch says of it, and what the tables know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.bench.calls import Torch, not_started
from rocmend.bench.session import Subject
from rocmend.core import host_memory
from rocmend.core.gfx import find
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, PythonCall

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine


class Device(msgspec.Struct, frozen=True):
    """A device that torch uses.

    Attributes:
        kind: ``hip``, ``cuda`` or ``cpu``.
        gfx_target: ``gfx1151``, ``sm_90``, ``cpu``.
        device_name: What it calls itself.
        index: Its number among torch's GPUs.
        free_bytes: Memory that is free on it.
        compute_units: Compute units (streaming multiprocessors); 0 for a CPU.
        integrated: It shares the processor's memory.
        peers: Numbers of the other GPUs.
    """

    kind: str
    gfx_target: str
    device_name: str
    index: int = 0
    free_bytes: int = 0
    compute_units: int = 0
    integrated: bool = False
    peers: tuple[int, ...] = ()


def describe(torch: Torch) -> Device:
    """Ask a process of its own what torch's device is.

    Raises:
        NotStartedError: There is no torch, or no such device.
    """
    arguments = {"device": torch.device}
    call = PythonCall("rocmend.bench.torch_facts:facts", arguments, cwd=str(torch.home), python=torch.python)
    result = run_attempt(AttemptSpec("the device", call, limits=torch.limits))
    found = result.python_result if isinstance(result.python_result, dict) else {}
    if found.get("error", "x") or "kind" not in found:
        error = result.python_error
        reason = found.get("error") or (f"{error.type}: {error.message}" if error else result.reason)
        raise not_started(torch.python, str(reason))
    values: dict[str, Any] = {"free_bytes": host_memory.available_bytes(), **found}
    return msgspec.convert(values, Device)


class Limits(msgspec.Struct, frozen=True):
    """What a GPU of this machine can do by the tables.

    Attributes:
        peaks_tflops: Dense peaks by the table's dtypes: ``fp16``, ``int8``.
        peaks_source: What they are computed from.
        bandwidth_gb_s: Of its memory; None where no table has it.
        product: What it is sold as; empty where that can't be told.
        link_gb_s: Of its PCIe link, one way; None where that is not known, and for an APU.
        link: The link in words: ``PCIe 16.0 GT/s x16``.
    """

    peaks_tflops: dict[str, float] = {}
    peaks_source: str = ""
    bandwidth_gb_s: float | None = None
    product: str = ""
    link_gb_s: float | None = None
    link: str = ""


def limits_of(subject: Subject | Device, machine: Machine | None) -> Limits:
    """Return what the GPU that something ran on can do at most; nothing where it can't be told which one it was."""
    number = _number_of(subject, machine)
    if machine is None or number is None:
        return Limits()
    own = f"gpu.{number}."
    peaks = machine.value(f"{own}peaks_tflops")
    product = str(machine.value(f"{own}product") or "")
    bandwidth = machine.value(f"{own}bandwidth_gb_s")
    clock = machine.value(f"{own}max_clock_mhz") or machine.value(f"{own}sclk_max_mhz")
    units = machine.value(f"{own}compute_units")
    link_gb_s, link = _link(machine, own)
    return Limits(
        {str(name): float(value) for name, value in peaks.items()} if isinstance(peaks, dict) else {},
        f"{product or subject.gfx_target}, {units} compute units at {clock} MHz",
        float(bandwidth) if bandwidth else None,
        product,
        link_gb_s,
        link,
    )


def _number_of(subject: Subject | Device, machine: Machine | None) -> int | None:
    """Return the number of the machine's GPU that it ran on; of several alike, one of them."""
    if machine is None or find(subject.gfx_target) is None:
        return None
    alike = [
        number for number in machine.indices("gpu") if machine.value(f"gpu.{number}.gfx_target") == subject.gfx_target
    ]
    kinds = {str(machine.value(f"gpu.{number}.product")) for number in alike}
    named = [number for number in alike if machine.value(f"gpu.{number}.name") == subject.device_name]
    return named[0] if named else alike[0] if len(kinds) == 1 else None


_CODING = ((6.0, 8 / 10), (63.0, 128 / 130), (65.0, 242 / 256))
"""Payload of the line coding by transfer rate: 8b/10b to PCIe 2, 128b/130b to PCIe 5, FLITs from PCIe 6 on."""


def link_gb_s(transfers: str, lanes: int) -> float | None:
    """Return what a PCIe link can carry one way in GB/s; packet headers take some 5 to 15 % of it.

    Args:
        transfers: ``16.0 GT/s``.
        lanes: Its width.
    """
    try:
        rate = float(transfers.removesuffix("GT/s"))
    except ValueError:
        return None
    coding = next((part for most, part in _CODING if rate < most), None)
    return None if coding is None or lanes <= 0 else rate * lanes * coding / 8


def _link(machine: Machine, own: str) -> tuple[float | None, str]:
    if machine.value(f"{own}is_apu"):
        return None, ""
    # a link that saves power is slower while nothing is asked of it: the most it can do is what bounds a copy
    transfers = machine.value(f"{own}link_speed_max") or machine.value(f"{own}link_speed")
    lanes = machine.value(f"{own}link_width") or machine.value(f"{own}link_width_max")
    if not transfers or not lanes:
        return None, ""
    return link_gb_s(str(transfers), int(lanes)), f"PCIe {transfers} x{lanes}"
