"""Every known fault comes out as what it is, and leaves nothing behind."""

from __future__ import annotations

import random

import msgspec
import pytest

from rocmend.core.verdict import Verdict
from rocmend.runner.run import run_attempt

from .conftest import load_benchmark

FAULTS = {fault.name: fault for fault in load_benchmark("faults").FAULTS}

CHANCE = random.Random(0)  # noqa: S311  reproducible, not secret


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_for_what_it_is(name: str) -> None:
    fault = FAULTS[name]
    result = run_attempt(fault.make(CHANCE))
    assert (result.verdict, result.silence) == (fault.verdict, fault.silence), result.reason
    assert result.reason
    assert not result.quarantine


def test_faults_cover_the_verdicts_that_the_runner_decides() -> None:
    wanted = set(Verdict) - {Verdict.WRONG_OUTPUT, Verdict.SILENT_CPU_FALLBACK, Verdict.SKIPPED}
    assert {fault.verdict for fault in FAULTS.values()} == wanted
    assert all(msgspec.to_builtins(fault.make(CHANCE)) for fault in FAULTS.values())
