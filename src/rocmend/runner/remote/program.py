"""What is to be run where our own package may not be installed."""

from __future__ import annotations

import secrets

from rocmend.runner import child
from rocmend.runner.executor import NotStartedError
from rocmend.runner.local import request_of
from rocmend.runner.spec import AttemptSpec, PythonCall


def attempt_id() -> str:
    """Return a name for one run that no other has."""
    return secrets.token_hex(6)


def slug(text: str, limit: int = 30) -> str:
    """Return a name as RFC 1123 allows it in host names: lower case, digits and dashes."""
    kept = "".join(char if char.isascii() and char.isalnum() else "-" for char in text.lower())
    return "-".join(part for part in kept.split("-") if part)[:limit].strip("-") or "attempt"


def program_of(spec: AttemptSpec, python: str = "python3") -> tuple[tuple[str, ...], bytes]:
    """Return the command line of an attempt and what it reads from standard input.

    A Python call becomes a run of the child's source text, which needs nothing but an interpreter; its messages come
    by standard output.

    Args:
        spec: The attempt.
        python: The interpreter over there, where the call names none.

    Raises:
        NotStartedError: The command is empty, or holds what no command line can.
    """
    command = spec.command
    if isinstance(command, PythonCall):
        return (command.python or python, "-u", "-c", _child_source(), "-"), request_of(command)
    argv = command.argv
    if not argv or not argv[0]:
        raise NotStartedError(spec.name, "the command is empty.", next_step="Pass a program to run.")
    texts = (*argv, command.cwd, *spec.env, *(value or "" for value in spec.env.values()))
    if any("\0" in text for text in texts):
        raise NotStartedError(spec.name, "an argument, folder or variable contains a NUL byte.")
    if any(not name or "=" in name for name in spec.env):
        raise NotStartedError(spec.name, "a variable's name is empty or holds '='.")
    return argv, command.stdin.encode()


def _child_source() -> str:
    from pathlib import Path

    return Path(child.__file__).read_text(encoding="utf-8")
