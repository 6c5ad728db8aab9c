"""``rocmend report``: what was measured, as one document."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from rocmend.bench.case import Case, Setting
from rocmend.bench.records import Measured, evidence_of
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.stats import summarize
from rocmend.core.verdict import Verdict
from rocmend.store.store import Store

from .conftest import Done

Run = Callable[..., Done]
SPEEDS = {
    ("rocm", "prompt"): {0: 900.0, 8192: 700.0, 32768: 400.0},
    ("rocm", "generate"): {0: 48.0, 8192: 43.0, 32768: 36.0},
    ("vulkan", "prompt"): {0: 1100.0, 8192: 690.0, 32768: 200.0},
    ("vulkan", "generate"): {0: 53.0, 8192: 43.1, 32768: 31.0},
}


def _results() -> Iterator[Measured]:
    noise = random.Random(1)  # noqa: S311  noise
    subject = Subject("gfx1151", "ROCm0", "Radeon 8060S Graphics", {"llama.cpp": "b10434"})
    for (setting, test), depths in SPEEDS.items():
        for depth, speed in depths.items():
            parameters = {"model": "7B Q4_0", "prompt": 0, "generate": 0, test: 100, "depth": depth}
            case = Case(f"llama/7B/{test}/{depth}", "llama", parameters, "tok/s", 100.0)
            blocks = tuple(tuple(100 / speed * noise.lognormvariate(0, 0.01) for _ in range(5)) for _ in range(8))
            started = f"2026-01-31T12:00:{depth // 1000:02d}+00:00"
            prepared = Prepared(Verdict.PASS, subject=subject)
            yield Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), started, 1.0, Setting(setting))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "evidence.sqlite"
    with Store.open(path) as made:
        for result in _results():
            made.add(evidence_of(result, "bench-llama-20260131-120000-1a2b"))
    return path


def test_what_the_figures_say_comes_first(rocmend: Run, store: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = rocmend("report", "--store", store, "-o", page)
    assert done.code == 0, done.err
    text = page.read_text()
    said = text.index("vulkan is the fastest")
    assert "Measured on Radeon 8060S Graphics (gfx1151)" in text
    assert said < text.index("<svg", said)
    assert "rocm overtakes vulkan between" in text
    assert "is not the best one for generation" not in text  # vulkan is best for both
    data = json.loads(rocmend("report", "llama", "--store", store, "--json").out)["data"]
    topics = [one["topic"] for one in data["conclusions"]]
    assert {"best", "crossing", "decay"} <= set(topics)
    assert all(one["evidence"] for one in data["conclusions"])
    assert len(data["runs"][0]["results"]) == 12
    assert rocmend("report", "--store", store, "--format", "junit").out.count("<testcase") == 12


def test_figures_of_a_busy_machine_are_no_answer_and_the_report_warns(installed: Run, tmp_path: Path) -> None:
    path = tmp_path / "busy.sqlite"
    subject = Subject("", "cpu", "A processor")
    with Store.open(path) as made:
        for number, size in enumerate((1 << 20, 1 << 24)):
            parameters = {"where": "host", "test": "copy", "bytes": size}
            case = Case(f"memory/host/copy/{size}", "memory", parameters, "GB/s", float(size))
            blocks = ((1e-3,) * 5,) * 8
            kept = Measured(case, Verdict.PASS, "", Prepared(Verdict.PASS, subject=subject), blocks, summarize(blocks),
                            "2026-01-31T12:00:00+00:00", 1.0, waited=(0.69 + 0.24 * number,) * 8)  # fmt: skip
            made.add(evidence_of(kept, "bench-memory-20260131-120000-aaaa"))
    page = tmp_path / "report.html"
    shown = installed("report", "--store", str(path), "-o", str(page))
    text = page.read_text()
    assert "69 to 93\N{NO-BREAK SPACE}% of the time" in text
    assert "None of these figures can be relied on" in text
    assert "Memory of the host:" not in text
    assert 'class="card good' not in text
    data = json.loads(installed("report", "--store", str(path), "--json").out)["data"]
    assert (shown.code, data["conclusions"]) == (0, [])
    with Store.open(path) as made:
        idle = msgspec.structs.replace(kept, waited=(), case=msgspec.structs.replace(
            case, id="memory/host/copy/1024", parameters={**case.parameters, "bytes": 1024}))  # fmt: skip
        made.add(evidence_of(idle, "bench-memory-20260131-120000-aaaa"))
    some = " ".join(installed("report", "--store", str(path), "--no-redact").out.split())
    assert "2 of 3 figures can't be relied on" in some
    assert "Memory of the host:" not in some, "an array in a cache says nothing of memory"


def test_two_runs_are_not_compared_block_by_block(installed: Run, tmp_path: Path) -> None:
    """Their blocks drift alike and are as many: in turn this is a difference of 3 %, from run to run it is not."""
    path = tmp_path / "two.sqlite"
    groups = ["bench-llama-20260131-120000-aaaa", "bench-llama-20260201-120000-bbbb"]
    subject = Subject("gfx1151", "ROCm0", "Radeon 8060S Graphics")
    case = Case("llama/7B/tg", "llama", {"model": "7B", "prompt": 0, "generate": 100, "depth": 0}, "tok/s", 100.0)
    prepared = Prepared(Verdict.PASS, subject=subject)
    busy = {"waited": (0.5,) * 8, "started_at": "2026-02-01T12:00:00+00:00", "setting": Setting("busy")}
    with Store.open(path) as made:
        for day, (group, factor) in enumerate(zip(groups, (1.0, 1.03), strict=True)):
            blocks = tuple((2.0 * factor * (1 + 0.02 * number),) * 5 for number in (0, 3, 1, 5, 2, 4, 1, 3))
            setting, started = Setting(("radv", "rocm")[day]), f"2026-0{day + 1}-01T12:00:00+00:00"
            one = Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), started, 1.0, setting)
            made.add(evidence_of(one, group))
            if day:
                made.add(evidence_of(msgspec.structs.replace(one, **busy), group))
    done = installed("report", *groups, "--store", path, "--json")
    said = {one["topic"]: one["text"] for one in json.loads(done.out)["data"]["conclusions"]}
    assert "no difference is shown between radv and rocm" in said["best"]
    assert "busy" not in said["best"]  # half of its time went by waiting for a processor


@pytest.mark.parametrize(("words", "said"), [(("gemm",), "bench gemm"), (("bench-llama-2025",), "bench-llama-2026013")])
def test_what_is_not_there_is_said(rocmend: Run, store: Path, words: tuple[str, ...], said: str) -> None:
    done = rocmend("report", *words, "--store", store)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_nothing_measured_yet(rocmend: Run) -> None:
    done = rocmend("report")
    assert (done.code, done.out) == (2, "")
    assert "rocmend bench gemm --quick" in done.err


@pytest.mark.parametrize(
    ("suite", "parameters"),
    [("gemm", {"m": 1, "n": 2, "k": 3, "batch": 1}), ("gemm", {"m": 1, "n": 2, "k": 3, "batch": 1, "dtype": "fp3"}),
     ("memory", {"test": "copy", "where": "device"}), ("llama", {"prompt": 512})],
)  # fmt: skip
def test_a_record_without_what_a_report_reads_is_left_out(
    rocmend: Run, store: Path, suite: str, parameters: dict[str, object]
) -> None:
    blocks = ((1.0, 1.1),) * 8
    prepared = Prepared(Verdict.PASS, subject=Subject("gfx1151", "cuda:0", "Radeon"))
    for name, group in (("odd", "bench-odd"), ("7B", "bench-llama-20260131-120000-1a2b")):
        case = Case(f"{suite}/{name}", suite, parameters, "tok/s", 1.0)
        odd = Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), "2026-01-31", 1.0, Setting("rocm"))
        with Store.open(store) as made:
            made.add(evidence_of(odd, group))
    done = rocmend("report", "--store", store, "bench-odd")
    assert (done.code, "holds no results that can be read" in done.err) == (2, True)
    done = rocmend("report", "--store", store, "llama")
    assert done.code == 0, done.err
