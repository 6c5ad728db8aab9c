"""A pause of rocmend itself is no hang of what it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.store.store import Store

EXPERIMENT = """\
[experiment]
id = "paused"
title = "A program that rocmend is paused over"
question = "Is a pause of rocmend a hang?"
command = ["python3", "-u", "{here}/talk.py"]

[limits]
total_s = 30
silence_s = 1.5
grace_s = 0.2

[[factor]]
name = "mode"
kind = "env"
variable = "MODE"
values = ["unset", "hang"]
baseline = "unset"

[[strategy]]
id = "hang"
hypothesis = "It hangs."
sets = { mode = "hang" }

[oracle]
kind = "output-matches"
pattern = "^(done)$"
"""

TALK = """\
import os, pathlib, time
begin = time.monotonic()
place = pathlib.Path(__file__).with_name("pid")
for number in range(16):
    print("still here", number)
    if number == 2:
        place.with_suffix(".new").write_text(str(os.getpid()))
        place.with_suffix(".new").rename(place)
        if "MODE" in os.environ:
            time.sleep(600)
    time.sleep(0.2)
print("done")
"""


def paused_run(tmp_path: Path, trial: str, *, together: bool, pause_s: float = 2.2) -> Evidence:
    """Run a trial with the program, stop rocmend in the middle of it, and return what it kept."""
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT)
    (tmp_path / "talk.py").write_text(TALK)
    store_path = tmp_path / "store" / "evidence.sqlite"
    command = [sys.executable, "-m", "rocmend", "lab", "run", str(path), "--only", trial, "--store", str(store_path)]
    mark = tmp_path / "pid"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as rocmend:
        deadline = time.monotonic() + 30
        while not mark.exists():
            assert time.monotonic() < deadline
            assert rocmend.poll() is None
            time.sleep(0.02)
        frozen = [rocmend.pid, *([int(mark.read_text())] if together else [])]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(pause_s)
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        rocmend.wait(30)
    with Store.open(store_path) as store:
        (record,) = store.query(kind="trial")
    return record.evidence


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Evidence]:
    """Return what was kept of each paused run; they are paused side by side, to save time."""
    runs = {"alone": ("baseline", False), "with its child": ("baseline", True), "hang": ("hang", False)}
    with ThreadPoolExecutor(len(runs)) as pool:
        futures = {
            name: pool.submit(paused_run, tmp_path_factory.mktemp("paused"), trial, together=together)
            for name, (trial, together) in runs.items()
        }
        return {name: future.result() for name, future in futures.items()}


@pytest.mark.slow
@pytest.mark.parametrize("who", ["alone", "with its child"])
def test_a_pause_of_rocmend_is_no_hang(kept: dict[str, Evidence], who: str) -> None:
    evidence = kept[who]
    assert evidence.verdict is Verdict.PASS, evidence.reason
    assert any("rocmend itself was stopped for" in note for note in evidence.detail["notes"])
    assert 1.5 < evidence.detail["stalled_s"] < 5


@pytest.mark.slow
def test_a_hang_that_goes_on_after_a_pause_is_found(kept: dict[str, Evidence]) -> None:
    evidence = kept["hang"]
    assert evidence.verdict is Verdict.HANG, evidence.reason
    assert 1.4 < evidence.detail["silent_s"] < 2.0  # the pause is no part of it
    assert any("rocmend itself was stopped for" in note for note in evidence.detail["notes"])
