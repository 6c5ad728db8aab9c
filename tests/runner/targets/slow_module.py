"""Functions that the tests call in child processes."""

from __future__ import annotations

import os
import time

from rocmend.runner.child import note, phase


def compile_it() -> str:
    phase("compile", slow="torch-compile")
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        pass
    phase("run")
    note("it took its time")
    return "compiled"


def idle() -> None:
    phase("compile", slow="torch-compile")
    time.sleep(60)


def raise_error(text: str) -> None:
    raise RuntimeError(text)


def leave(status: int) -> None:
    os._exit(status)


def return_object() -> object:
    return object()


def long_text(size: int) -> str:
    phase("write")
    return "x" * size
