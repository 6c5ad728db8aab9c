"""Time that we were paused ourselves is nobody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from rocmend.core import stall
from rocmend.core.stall import BEAT_S, StallClock


class FakeTime:
    """Monotonic time that only moves when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = 100.0
        self.asleep = 0.0
        self.used = 0.0
        monkeypatch.setattr(stall, "_used_s", lambda: self.used)
        monkeypatch.setattr(time, "monotonic", lambda: self.at)
        monkeypatch.setattr(stall, "_asleep_s", lambda: self.asleep)

    def waits(self, *seconds: float) -> list[float]:
        """Return a function's calls; each call takes its share of the seconds."""
        asked: list[float] = []
        taken = list(seconds)

        def wait(limit: float) -> float:
            asked.append(limit)
            self.at += taken.pop(0) if taken else 0.0
            return limit

        self.wait = wait
        return asked


def test_a_pause_in_a_wait_moves_the_deadline_and_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTime(monkeypatch)
    clock = StallClock()
    deadline = clock.now() + 0.3
    asked = fake.waits(6.0)
    assert clock.wait(fake.wait, 0.3) == 0.0  # what came in during the pause is asked for
    assert asked == [0.3, 0.0]
    assert deadline - clock.now() == pytest.approx(0.3)  # all of the time that was left is left
    assert clock.news() == ("rocmend itself was stopped for 6.0 s; deadlines moved",)
    assert clock.news() == ()


def test_our_own_work_is_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTime(monkeypatch)
    clock = StallClock()
    begin = clock.now()
    for _ in range(10):
        fake.at += 0.5
        fake.used += 0.45
    assert clock.now() - begin == pytest.approx(4.5)  # and half a second of it was lost
    assert clock.lost_s == pytest.approx(0.5)


def test_a_pause_between_waits_counts_too_and_a_wait_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTime(monkeypatch)
    clock = StallClock()
    begin = clock.now()
    fake.waits(BEAT_S + 0.1)
    clock.wait(fake.wait, 60.0)  # no wait is longer than a beat, and a little late is no pause
    assert clock.now() - begin == pytest.approx(BEAT_S + 0.1)
    fake.at += 9.0
    assert clock.now() - begin == pytest.approx(BEAT_S + 0.1)
    assert clock.lost_s == pytest.approx(9.0)


def test_on_a_machine_that_is_always_late_a_deadline_is_still_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTime(monkeypatch)
    clock = StallClock()
    deadline = clock.now() + 3.0
    turns = 0
    while clock.now() < deadline:
        fake.waits(1.0)
        clock.wait(fake.wait, deadline - clock.now())
        turns += 1
        assert turns < 10


def test_suspend_is_told_of_and_uses_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTime(monkeypatch)
    clock = StallClock()
    begin = clock.now()
    fake.asleep = 3600.0  # CLOCK_MONOTONIC stands still
    assert clock.news() == ("the machine was suspended for 3600 s; that counts towards no deadline",)
    assert clock.now() == begin


def test_a_tool_that_was_frozen_with_us_has_its_time(tmp_path: Path) -> None:
    source = """
        import sys
        from rocmend.core.supervise import run_command
        tool = "echo $$ > pid.new; mv pid.new pid; for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done"
        said = run_command(["sh", "-c", tool], time_limit_s=1.5)
        print(said.ending.value, said.stalled_s > 1, flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as us:
        assert us.stdout is not None
        mark = tmp_path / "pid"
        deadline = time.monotonic() + 10
        while not mark.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.1)  # we are in our wait by now
        tool = int(mark.read_text())
        for pid in (us.pid, tool):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1.8)
        for pid in (tool, us.pid):
            os.kill(pid, signal.SIGCONT)
        assert us.stdout.readline() == "exited True\n"
