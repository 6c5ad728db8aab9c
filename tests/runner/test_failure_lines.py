"""How well lines that say what went wrong are told from those that only sound so."""

from __future__ import annotations

import time

import pytest
from tests.runner.failure_lines import BENIGN, FAILING

from rocmend.core.verdict import Verdict
from rocmend.runner.executor import Exit
from rocmend.runner.failures import FailureScanner
from rocmend.runner.output import LineScanner
from rocmend.runner.phases import PhaseTracker, known_sets, load_phases
from rocmend.runner.verdict import Outcome, decide


def judged(line: str, code: int) -> Verdict:
    scanner = FailureScanner()
    scanner.feed(line.encode() + b"\n")
    return decide(Outcome(exit=Exit(code=code), failures=scanner.seen()))[0]


def test_the_tables_are_large_enough_and_sourced() -> None:
    assert len({line for line, *_ in FAILING}) == len(FAILING) >= 60
    assert len(set(BENIGN)) == len(BENIGN) >= 60
    assert all(source.startswith("https://") for *_, source in FAILING)


def test_precision_and_recall() -> None:
    """Every line is judged as it should be; what is printed is shown with `pytest -rP`."""
    alarms = [line for line in BENIGN if judged(line, 0) is not Verdict.PASS]
    missed = [(line, judged(line, 1), wanted) for line, wanted, _ in FAILING if judged(line, 1) is not wanted]
    unseen = []
    for line, _, _ in FAILING:
        scanner = FailureScanner()
        scanner.feed(line.encode() + b"\n")
        unseen += [] if scanner.seen() else [line]
    found = len(FAILING) - len(unseen)
    print(f"precision {found / (found + len(alarms)):.3f}, recall {found / len(FAILING):.3f}")  # noqa: T201
    assert not alarms
    assert not unseen
    assert not missed


@pytest.mark.parametrize("line", [line for line, wanted, _ in FAILING if wanted is Verdict.UNSUPPORTED])
def test_no_kernels_for_the_target_counts_whatever_the_status(line: str) -> None:
    assert judged(line, 0) is Verdict.UNSUPPORTED
    assert judged(line, 134) is Verdict.UNSUPPORTED


@pytest.mark.parametrize("unit", [b"a", b" ", b"0", b"(", b"[", b"FAILED ", b"HIP error", b": ", b"ROCm error: "])
def test_a_line_of_two_million_characters_takes_no_time(unit: bytes) -> None:
    line = unit * (2_000_000 // len(unit))
    before = time.process_time()
    lines, scanner = LineScanner(), FailureScanner()
    trackers = [PhaseTracker(load_phases(name)) for name in known_sets()]
    for start in range(0, len(line), 1 << 16):
        for block in (lines.feed(line[start : start + (1 << 16)]),):
            scanner.feed(block)
            for tracker in trackers:
                tracker.feed(block)
    scanner.feed(lines.rest())
    assert time.process_time() - before < 5
