"""Experiments with a made-up workload that does what its settings say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocmend.lab.experiment import Experiment
from rocmend.lab.laboratory import Laboratory
from rocmend.lab.load import load_experiment
from rocmend.store.store import Store

WORKLOAD = """\
import os, sys, time
mode = os.environ.get("MODE", "good")
print("loading", flush=True)
if mode == "hang":
    time.sleep(600)
print("computing", flush=True)
if mode == "crash":
    os.abort()
if mode == "flaky":
    counter = os.environ["COUNTER"]
    with open(counter, "a") as file:
        file.write("x")
    if os.path.getsize(counter) % 2:
        os.abort()
if mode == "slow":
    time.sleep(0.4)
print("answer: " + ("41" if mode == "wrong" else "42"))
print("speed: " + ("1" if mode in ("slow", "wrong") else "100"))
"""

PHASES = """\
[set]
title = "workload"
[[phases]]
name = "load"
words = ["loading"]
[[phases]]
name = "compute"
words = ["computing"]
"""

EXPERIMENT = """\
[experiment]
id = "made-up"
title = "A made-up workload"
question = "Which mode works?"
command = ["python3", "{here}/workload.py"]
phases = "phases.toml"
files = ["workload.py"]
env = { COUNTER = "{here}/counter" }

[limits]
total_s = 30
silence_s = 3
grace_s = 0.2

[[factor]]
name = "mode"
kind = "env"
variable = "MODE"
values = ["good", "hang", "crash", "flaky", "slow", "wrong"]
baseline = "hang"

[[factor]]
name = "colour"
kind = "env"
variable = "COLOUR"
values = ["unset", "red"]
baseline = "unset"

[[strategy]]
id = "good"
hypothesis = "The good mode works."
sets = { mode = "good" }

[[strategy]]
id = "red"
hypothesis = "Red is faster."
sets = { mode = "good", colour = "red" }

[[strategy]]
id = "crash"
hypothesis = "It crashes."
sets = { mode = "crash" }

[[strategy]]
id = "flaky"
hypothesis = "It works sometimes."
sets = { mode = "flaky" }

[[strategy]]
id = "slow"
hypothesis = "It is slow."
sets = { mode = "slow" }

[[strategy]]
id = "wrong"
hypothesis = "It is wrong, and slow too."
sets = { mode = "wrong" }

[oracle]
kind = "output-matches"
pattern = "^answer: 42$"

[[success]]
text = "fast enough"
number = "^speed: ([0-9]+)$"
at_least = 50
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the workload and its phases."""
    place = tmp_path / "experiment"
    place.mkdir()
    (place / "workload.py").write_text(WORKLOAD)
    (place / "phases.toml").write_text(PHASES)
    return place


@pytest.fixture
def write(folder: Path) -> Callable[..., Path]:
    """Write the experiment's file, with texts replaced."""

    def make(*replaced: tuple[str, str], text: str = EXPERIMENT) -> Path:
        for before, after in replaced:
            assert before in text
            text = text.replace(before, after, 1)
        path = folder / "experiment.toml"
        path.write_text(text)
        return path

    return make


@pytest.fixture
def experiment(write: Callable[..., Path]) -> Experiment:
    return load_experiment(write())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store" / "evidence.sqlite") as opened:
        yield opened


@pytest.fixture
def lab(experiment: Experiment, store: Store) -> Laboratory:
    return Laboratory(experiment, store)
