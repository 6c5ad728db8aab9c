"""Memory: what is measured with the room there is, what bounds it, what figures say, and that a wrong copy is found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.bench.calls import Torch
from rocmend.bench.case import DEFAULT, Case
from rocmend.bench.device import Device
from rocmend.bench.measure import Effort
from rocmend.bench.records import Measured
from rocmend.bench.run import run_suite
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.stats import summarize
from rocmend.bench.suites import memory
from rocmend.bench.suites.memory import SIZES, cases_of, conclusions, peer_case, stream_case, transfer_case
from rocmend.core.records import Fact
from rocmend.core.verdict import Verdict
from rocmend.machine.facts import Machine
from rocmend.runner.interpreter import importable

GIB = 1 << 30
CARD = Device("hip", "gfx1100", "Radeon RX 7900 XTX", free_bytes=24 * GIB, peers=(1,))
CPU = Device("cpu", "cpu", "EPYC")


def _sizes(device: Device, host: int, prefix: str) -> set[int]:
    return {case.parameters["bytes"] for case in cases_of(device, SIZES, host) if case.id.startswith(prefix)}


def test_every_memory_is_measured_as_far_as_it_has_room() -> None:
    cases = cases_of(CARD, SIZES, 64 * GIB)
    ids = [case.id for case in cases]
    assert len(ids) == len(set(ids)) == len(SIZES) * (4 + 4 + 2 + 1 + 4)
    assert {"memory/link/to-device/pinned/1GiB", "memory/peer/0-1/4KiB", "memory/host/triad/16MiB"} <= set(ids)
    assert max(_sizes(msgspec.structs.replace(CARD, free_bytes=3 * GIB), 64 * GIB, "memory/device")) == 256 << 20
    assert max(_sizes(CARD, 7 * GIB, "memory/link")) == 256 << 20
    shared = msgspec.structs.replace(CARD, integrated=True, peers=())
    assert max(_sizes(shared, 12 * GIB, "memory/host")) == 256 << 20
    assert {case.parameters["where"] for case in cases_of(CPU, SIZES, 64 * GIB)} == {"host"}
    assert stream_case("host", "copy", 1025 * 1024 + 4).id.endswith("/1049604B")


def test_bytes_count_as_in_stream_within_a_memory_and_once_between_two() -> None:
    assert [stream_case("device", test, 4).work for test in ("copy", "scale", "add", "triad")] == [8, 8, 12, 12]
    assert transfer_case("to-device", "pinned", 4).work == peer_case(0, 1, 4).work == 4


def _machine(**facts: Any) -> Machine:
    return Machine(
        "m", "", {f"gpu.0.{name}": Fact(f"gpu.0.{name}", value, "test") for name, value in facts.items()}, {}
    )


def test_the_product_and_its_link_are_what_bounds_it() -> None:
    card = {"gfx_target": "gfx1100", "product": "RX 7900 XTX", "bandwidth_gb_s": 960.0, "link_width": "16"}
    machine = _machine(**card, link_speed="2.5 GT/s", link_speed_max="16.0 GT/s", is_apu=False)
    suite, subject = memory.Memory(Torch(Path(), "p"), [], CARD), Subject("gfx1100", "cuda:0", "RX 7900 XTX")

    def found(case: Case, facts: Machine = machine) -> list[tuple[str, int]]:
        return [(bound.name, round(bound.figure)) for bound in suite.bounds(case, subject, facts)]

    assert found(stream_case("device", "copy", GIB)) == [(memory.PRODUCT, 960)]
    assert found(stream_case("device", "copy", 1 << 20)) == []  # caches serve it
    assert found(stream_case("host", "copy", GIB)) == []
    assert found(transfer_case("to-device", "pinned", GIB)) == [(memory.LINK, 32)]
    assert found(transfer_case("to-device", "pinned", GIB), _machine(**card, link_speed="16.0 GT/s", is_apu=True)) == []


def _result(case: Case, gb_s: float, spread: float = 1e-3) -> Measured:
    seconds = case.work / gb_s / 1e9
    blocks = tuple((seconds * (1 + spread * step),) for step in (-2, 1, 0, 2, -1, 1, -2, 0))
    detail = {"direct": False} if case.parameters["where"] == "peer" else {}
    return Measured(
        case, Verdict.PASS, "", Prepared(Verdict.PASS, detail=detail), blocks, summarize(blocks), "now", 0.0
    )  # fmt: skip


def test_what_the_largest_arrays_say() -> None:
    results = [_result(stream_case("device", "copy", size), size / 1e6) for size in (1 << 20, GIB)]
    results += [
        _result(transfer_case("to-device", kind, GIB), speed) for kind, speed in (("pinned", 25.0), ("pageable", 5.0))
    ]
    results += [_result(transfer_case("read-host", "pinned", GIB), 20.0), _result(peer_case(0, 1, GIB), 12.0)]
    texts = [said.text for said in conclusions(results)]
    assert texts == [
        "Memory of the device: 1074 GB/s (device copy 1 GiB).",
        "Host to device: 25 GB/s pinned, 5 GB/s pageable, 5 times as fast pinned.",
        "The device reads host memory where it is at 20 GB/s.",
        "GPU 0 to GPU 1, 1 GiB, through the host: 12 GB/s.",
    ]
    noisy = [
        _result(transfer_case("to-device", kind, GIB), speed, 0.1)
        for kind, speed in (("pinned", 5.1), ("pageable", 5.0))
    ]
    assert "no difference shown" in conclusions(noisy)[0].text


WRONG = """
import torch
real = torch.add
def wrong(*values, out, **more):
    result = real(*values, out=out, **more)
    result[len(result) // 2] += 1
    return result
torch.add = wrong
"""


@pytest.mark.cpu
def test_a_wrong_bit_gets_no_figure(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WRONG)
    with importable() as home:
        torch = Torch(home, sys.executable, "cpu", warm_most_s=0.01)
        cases = [*cases_of(CPU, (4096,), GIB), transfer_case("to-device", "pinned", 4096)]
        suite = memory.Memory(torch, cases, CPU)
        suite.settings = lambda: [msgspec.structs.replace(DEFAULT, env={"PYTHONPATH": str(tmp_path)})]  # type: ignore[method-assign]
        run = run_suite(suite, effort=Effort(block_s=0.0, least_blocks=2, most_blocks=2, least_runs=1))
    found = {result.case.parameters["test"]: (result.verdict.value, result.reason) for result in run.results}
    assert found == {
        "copy": ("pass", ""),
        "scale": ("pass", ""),
        "add": ("wrong-output", "1 of 1,024 elements are wrong"),
        "triad": ("wrong-output", "1 of 1,024 elements are wrong"),
        "to-device": ("unsupported", "there is no GPU to copy to or from"),
    }
    assert "torch runs on the CPU" in run.notes[0]
