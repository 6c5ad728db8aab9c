"""A program whose output is more than we can take in is ended all the same."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from rocmend.core.verdict import Verdict
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Limits

FLOOD = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    os.write(1, b"a flood of words\\n" * (1 << 16))
"""


@pytest.mark.parametrize("work_us", [0, 20], ids=["read", "read and told"])
def test_a_flood_does_not_stop_the_clock(tmp_path: Path, work_us: int) -> None:
    def told(_event: object) -> None:
        end = time.perf_counter() + work_us / 1e6
        while time.perf_counter() < end:
            pass

    spec = AttemptSpec(
        "flood", Command((sys.executable, "-c", FLOOD)), limits=Limits(total_s=1.0, silence_s=30.0, grace_s=0.5)
    )
    begin = time.monotonic()
    result = run_attempt(spec, log=tmp_path / "log", on_event=told)
    assert result.verdict is not Verdict.PASS
    assert time.monotonic() - begin < 30
    assert result.stalled_s < 5
