from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from rocmend.cli.main import main

MACHINES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "machines"


class Done(NamedTuple):
    """What a command printed and how it left."""

    code: int
    out: str
    err: str


@pytest.fixture
def rocmend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run the program in this process, as a person at an 80-column terminal without colours would."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("ROCMEND_KB", raising=False)

    def run(*arguments: str | Path) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        code = stop.value.code
        assert isinstance(code, int)
        sys.stdout.flush()
        return Done(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def machines() -> Path:
    return MACHINES
