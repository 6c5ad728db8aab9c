from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from rocmend.runner.events import Event
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Limits

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., AttemptResult]


def load_benchmark(name: str) -> ModuleType:
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"benchmarks.{name}")


@pytest.fixture(scope="session")
def limits() -> Limits:
    return Limits(total_s=60, silence_s=1.5, grace_s=0.3)


@pytest.fixture
def run_python(limits: Limits) -> Run:
    """Run a piece of Python as an attempt; keyword arguments go to the spec."""

    def run(source: str, *, on_event: Callable[[Event], None] | None = None, **spec: object) -> AttemptResult:
        attempt = AttemptSpec("test", Command((sys.executable, "-u", "-c", source)), **{"limits": limits, **spec})  # type: ignore[arg-type]
        return run_attempt(attempt, on_event=on_event)

    return run


@pytest.fixture
def run_shell(limits: Limits) -> Run:
    """Run a shell line as an attempt."""

    def run(source: str, *, on_event: Callable[[Event], None] | None = None, **spec: object) -> AttemptResult:
        attempt = AttemptSpec("test", Command(("sh", "-c", source)), **{"limits": limits, **spec})  # type: ignore[arg-type]
        return run_attempt(attempt, on_event=on_event)

    return run
