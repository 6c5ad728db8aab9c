"""An attempt that turns on the process that watches over it leaves nothing behind."""

from __future__ import annotations

import subprocess
import time

import msgspec
import pytest

from rocmend.core.verdict import Verdict
from rocmend.runner import leftovers
from rocmend.runner.samples import all_processes, process_of

from .conftest import Run

PARENTS = """
import os, signal, subprocess, sys, time
def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])
def strike(sig, *pids):
    for pid in pids:
        os.kill(pid, sig)
warden = os.getppid()
guard = parent_of(warden)
def leave():
    left = [subprocess.Popen(["sleep", "600"], start_new_session=new) for new in (False, True, True)]
    print(*(one.pid for one in left), flush=True)
    time.sleep(0.6)  # so that they are seen
"""


def left_of(output: str) -> list[int]:
    """Return the sleepers that still live, a little later."""
    pids = [int(word) for word in output.split() if word.isdecimal()]
    assert len(pids) == 3
    deadline = time.monotonic() + 2
    while (left := [pid for pid in pids if (seen := process_of(pid)) and seen.state not in "ZX"]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.01)
    return left


@pytest.mark.parametrize("whom", ["warden", "guard, warden"])
def test_an_attempt_that_kills_its_warden_is_told_and_ended(run_python: Run, whom: str) -> None:
    result = run_python(f"{PARENTS}leave()\nstrike(signal.SIGKILL, {whom})\ntime.sleep(600)")
    assert left_of(result.output.head) == []
    assert result.verdict is Verdict.INFRA, result.reason
    assert "by the attempt itself or by another process" in result.reason
    assert any("had to be killed" in note for note in result.notes)
    assert not result.quarantine


def test_a_daemon_that_outlives_warden_and_main_process_is_ended(run_python: Run) -> None:
    daemon = f"{PARENTS}leave()\nstrike(signal.SIGKILL, int(sys.argv[1]), int(sys.argv[2]))\ntime.sleep(600)"
    result = run_python(
        f"{PARENTS}subprocess.Popen([sys.executable, '-c', {daemon!r}, str(guard), str(warden)])\ntime.sleep(600)"
    )
    assert left_of(result.output.head) == []
    assert result.verdict is Verdict.INFRA, result.reason


@pytest.mark.parametrize("whom", ["warden", "guard, warden"])
def test_a_warden_that_is_stopped_is_continued(run_python: Run, whom: str) -> None:
    result = run_python(f"{PARENTS}strike(signal.SIGSTOP, {whom})\nprint('on')")
    assert result.verdict is Verdict.PASS, result.reason
    assert any("was stopped by a signal; it was continued" in note for note in result.notes)


def test_a_hang_under_a_warden_that_is_stopped_again_and_again_is_ended(run_python: Run) -> None:
    result = run_python(
        f"{PARENTS}leave()\nimport threading\n"
        "def stops():\n  for _ in range(200):\n    strike(signal.SIGSTOP, warden)\n    time.sleep(0.01)\n"
        "threading.Thread(target=stops, daemon=True).start()\ntime.sleep(600)"
    )
    assert left_of(result.output.head) == []
    assert result.verdict in {Verdict.HANG, Verdict.INFRA}, result.reason
    assert not result.quarantine


def test_a_number_that_another_process_has_now_is_left_alone() -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as other:
        process = process_of(other.pid)
        assert process is not None
        before = {process.pid: process.began - 1}
        assert leftovers.living(before, {process.session}, all_processes()) == []
        leftovers.kill(msgspec.structs.replace(process, began=process.began - 1))
        assert leftovers.end(before, {process.session}).count == 0
        assert other.poll() is None
        assert leftovers.end({process.pid: process.began}, ()) == leftovers.Ended(1, ())
