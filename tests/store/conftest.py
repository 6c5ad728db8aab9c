from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rocmend.cli.main import main
from rocmend.core.evidence import Evidence
from rocmend.core.records import Fact
from rocmend.core.verdict import Verdict
from rocmend.machine.facts import Machine
from rocmend.store.store import Store

Make = Callable[..., Any]


@pytest.fixture
def evidence() -> Callable[..., Evidence]:
    def make(**fields: Any) -> Evidence:
        given = {
            "kind": "probe",
            "subject": "matmul",
            "identity": "f00d",
            "verdict": Verdict.PASS,
            "reason": "equal within the tolerance",
            "started_at": "2026-03-01T10:20:30.456Z",
            "time_ms": 12.5,
        }
        return Evidence(**{**given, **fields})

    return make


@pytest.fixture
def machine() -> Callable[..., Machine]:
    def make(name: str = "this machine", captured_at: str = "2026-03-01T10:00:00+00:00", **values: Any) -> Machine:
        facts = {key.replace("__", "."): value for key, value in values.items()}
        return Machine(name, captured_at, {key: Fact(key, value, "/proc") for key, value in facts.items()}, {})

    return make


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "evidence.sqlite") as opened:
        yield opened


@pytest.fixture
def in_child() -> Callable[[Callable[[], None]], int]:
    """Run a function in a forked child and return the child's exit code: 0 where it returned."""

    def run(function: Callable[[], None]) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn where there are threads
            child = os.fork()
        if child == 0:
            code = 1
            try:
                function()
                code = 0
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    return run


class Done(NamedTuple):
    """What a command printed and how it left."""

    code: int
    out: str
    err: str


@pytest.fixture
def rocmend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Done]:
    """Run the program in this process at an 80-column terminal, with a store of its own and no terminal to ask on."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path / "home"))

    def run(*arguments: str | Path) -> Done:
        out = io.TextIOWrapper(io.BytesIO(), write_through=True)
        err = io.StringIO()
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        assert isinstance(stop.value.code, int)
        buffer = out.buffer
        assert isinstance(buffer, io.BytesIO)
        return Done(stop.value.code, buffer.getvalue().decode(), err.getvalue())

    return run
