"""Memory: of the device and of the host, and the way between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.bench.calls import CallSession, Torch
from rocmend.bench.case import Case, Setting
from rocmend.bench.comparison import compared, together, unusable
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.device import Device, limits_of
from rocmend.bench.records import Measured, subject_of
from rocmend.bench.session import Block, Prepared, Session, Stop, Subject
from rocmend.bench.stats import Comparison, Difference
from rocmend.bench.suite import Bound, Suite
from rocmend.core.units import parse_size, share_text, size_text

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30)
QUICK_SIZES = (64 << 10, 16 << 20, 256 << 20)
STREAM = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
"""Arrays that are read or written, each once, by test."""
COPIES = ("to-device", "from-device")
MAPPED = ("read-host", "write-host")
_TITLES = {
    "to-device": "host to device",
    "from-device": "device to host",
    "read-host": "device reads host memory",
    "write-host": "device writes host memory",
}
BEYOND_CACHES = 512 << 20
"""Bytes of all arrays from which on no cache of a GPU serves them."""
_ARRAYS = 4
"""Arrays of a case at most, on either side."""
PRODUCT = "specified memory bandwidth"
LINK = "PCIe link"


def stream_case(where: str, test: str, size: int) -> Case:
    """Return a case within one memory: ``device`` or ``host``."""
    parameters = {"where": where, "test": test, "bytes": size}
    title = f"{where} {test} {size_text(size)}"
    return Case(
        f"memory/{where}/{test}/{_plain(size)}", "memory", parameters, "GB/s", float(STREAM[test] * size), title
    )


def transfer_case(test: str, memory: str, size: int) -> Case:
    """Return a copy between host and device, or a kernel's access to the host's memory."""
    parameters = {"where": "link", "test": test, "bytes": size, "memory": memory}
    name = f"memory/link/{test}/{memory}/{_plain(size)}"
    return Case(name, "memory", parameters, "GB/s", float(size), f"{_TITLES[test]}, {memory}, {size_text(size)}")


def peer_case(index: int, other: int, size: int) -> Case:
    """Return a copy from a GPU to another."""
    parameters = {"where": "peer", "test": "peer", "bytes": size, "peer": other}
    name = f"memory/peer/{index}-{other}/{_plain(size)}"
    return Case(name, "memory", parameters, "GB/s", float(size), f"GPU {index} to GPU {other}, {size_text(size)}")


def _plain(size: int) -> str:
    text = size_text(size)
    return text.replace(" ", "") if parse_size(text) == size else f"{size}B"


def cases_of(device: Device | None, sizes: Sequence[int], host_bytes: int) -> list[Case]:
    """Return the cases that a device has and memory has room for.

    Args:
        device: What torch uses; None for one with everything but peers.
        sizes: Bytes of an array.
        host_bytes: Memory that is free on the host.
    """
    made: list[Case] = []
    shared = device is not None and device.integrated  # arrays of both sides are in one memory
    on_host = [size for size in sizes if _ARRAYS * size <= host_bytes // (4 if shared else 2)]
    if device is None or device.kind != "cpu":
        room = device.free_bytes // 2 if device is not None else host_bytes
        fitting = [size for size in on_host if _ARRAYS * size <= room]
        made += [stream_case("device", test, size) for test in STREAM for size in fitting]
        made += [
            transfer_case(test, kind, size) for test in COPIES for kind in ("pageable", "pinned") for size in fitting
        ]
        made += [transfer_case(test, "pinned", size) for test in MAPPED for size in fitting]
        peers = device.peers if device is not None else ()
        made += [peer_case(device.index if device else 0, other, size) for other in peers for size in fitting]
    return made + [stream_case("host", test, size) for test in STREAM for size in on_host]


class Memory(Suite):
    """Memory under torch's default setting.

    Args:
        torch: The torch that is measured.
        cases: What is measured.
        device: What it runs on; None where that is not asked.
        missing: Sizes for which there is too little memory.
    """

    name = "memory"
    title = "Memory bandwidth"

    def __init__(self, torch: Torch, cases: Sequence[Case], device: Device | None, missing: Sequence[int] = ()) -> None:
        self._torch, self._cases, self._device, self._missing = torch, list(cases), device, missing

    def cases(self) -> list[Case]:
        """Return the cases."""
        return self._cases

    def left_out(self) -> dict[str, str]:
        """Return what this machine has no GPU or too little memory for."""
        found = {}
        if self._device is not None and self._device.kind == "cpu":
            found["memory of a GPU and the way to it"] = "torch runs on the CPU here"
        sizes = ", ".join(size_text(size) for size in self._missing)
        if sizes:
            found[f"arrays of {sizes}"] = "less than twice the memory that they need is free"
        return found

    def open(self, setting: Setting, stop: Stop) -> Session:
        """Start a process for the device; another one measures the host's memory."""
        return _Session(setting, self._torch, stop)

    def bounds(self, case: Case, subject: Subject, machine: Machine | None) -> tuple[Bound, ...]:
        """Return what the product's memory, or the link, can do."""
        where, size = case.parameters["where"], int(case.parameters["bytes"])
        if where not in {"device", "link"} or subject.gfx_target == "cpu":
            return ()
        limits = limits_of(subject, machine)
        if where == "link":
            return (Bound(limits.link_gb_s, LINK, limits.link),) if limits.link_gb_s else ()
        arrays = STREAM[case.parameters["test"]]
        if not limits.bandwidth_gb_s or arrays * size < BEYOND_CACHES:
            return ()
        return (Bound(limits.bandwidth_gb_s, PRODUCT, limits.product),)

    def conclusions(self, results: Sequence[Measured]) -> list[Conclusion]:
        """Return how fast each kind of memory is with its largest arrays."""
        return conclusions(results)


class _Session(Session):
    """Two processes: on the device, and on the CPU for the host's memory."""

    def __init__(self, setting: Setting, torch: Torch, stop: Stop) -> None:
        self._device = CallSession("memory", setting, torch, stop)
        self._host = CallSession("memory", setting, msgspec.structs.replace(torch, device="cpu"), stop)

    def prepare(self, case: Case) -> Prepared:
        """Make a case ready."""
        return self._of(case).prepare(case)

    def block(self, case: Case, time_s: float, least: int = 1) -> Block:
        """Run the prepared case."""
        return self._of(case).block(case, time_s, least)

    def close(self) -> None:
        """End both."""
        self._device.close()
        self._host.close()

    def _of(self, case: Case) -> CallSession:
        return self._host if case.parameters["where"] == "host" else self._device


def conclusions(results: Iterable[Measured]) -> list[Conclusion]:
    """Return how fast each kind of memory is with its largest arrays, and what pinned memory gains."""
    largest: dict[tuple[Any, ...], Measured] = {}
    for result in results:
        values = result.case.parameters
        key = tuple(values.get(name) for name in ("where", "test", "memory", "peer"))
        if result.figure is not None and (
            key not in largest or int(values["bytes"]) > int(largest[key].case.parameters["bytes"])
        ):
            largest[key] = result
    # a smaller array is in a cache: it says nothing in place of a large one that can't be relied on
    largest = {key: result for key, result in largest.items() if not unusable(result)}
    made = []
    for where in ("device", "host"):
        tests = [result for (place, *_), result in largest.items() if place == where]
        if tests:
            low, high = (choose(tests, key=lambda result: result.figure or 0.0) for choose in (min, max))
            named = f"{_figure(high)} ({high.case.title}){_of_bound(high)}"
            text = f"Memory of the {where}: {named}" + (f", at least {_figure(low)}." if low is not high else ".")
            made.append(_made(text, tests))
    pairs = [(largest.get(("link", test, "pinned", None)), largest.get(("link", test, "pageable", None)), test)
             for test in COPIES]  # fmt: skip
    both = [(pinned, pageable, test) for pinned, pageable, test in pairs if pinned is not None and pageable is not None]
    seen = together([compared(pageable, pinned, apart=("memory",)) for pinned, pageable, _ in both])
    made += [_pinned(test, pinned, pageable, one) for (pinned, pageable, test), one in zip(both, seen, strict=True)]
    mapped = [one for test in MAPPED if (one := largest.get(("link", test, "pinned", None))) is not None]
    made += [
        _made(f"The {_TITLES[one.case.parameters['test']]} where it is at {_figure(one)}{_of_bound(one)}.", [one])
        for one in mapped
    ]
    for (where, *_), result in largest.items():
        if where == "peer":
            way = "directly" if result.prepared.detail.get("direct") else "through the host"
            made.append(_made(f"{result.case.title}, {way}: {_figure(result)}.", [result]))
    return made


def _made(text: str, results: Sequence[Measured]) -> Conclusion:
    return Conclusion("memory", text, tuple(subject_of(result.case, result.setting) for result in results))


def _figure(result: Measured) -> str:
    return f"{result.figure or 0.0:.4g} GB/s"


def _of_bound(result: Measured) -> str:
    bound = next(iter(result.bounds), None)
    return f", {share_text((result.figure or 0.0) / bound.figure)} of the {bound.name}" if bound else ""


def _pinned(test: str, pinned: Measured, pageable: Measured, seen: Comparison) -> Conclusion:
    shown = seen.difference in {Difference.FASTER, Difference.SLOWER}
    text = f"{_TITLES[test].capitalize()}: {_figure(pinned)} pinned{_of_bound(pinned)}, {_figure(pageable)} pageable"
    text += f", {seen.ratio:.2g} times as fast pinned." if shown else f"; {seen.reason or 'no difference shown'}."
    evidence = tuple(subject_of(result.case, result.setting) for result in (pinned, pageable))
    return Conclusion("memory", text, evidence, shown=shown)
