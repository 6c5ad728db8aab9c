"""How an error reaches the user: on stderr in words, or in the JSON envelope where JSON was asked for."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rocmend.cli.streams import silence_stdout, write_data
from rocmend.core.errors import RocmendError, UsageError
from rocmend.report.envelope import FAILED, error_outcome, to_json
from rocmend.report.visible import visible

if TYPE_CHECKING:
    from rocmend.core.redact import Redactor


_EXTRA = re.compile(r"unexpected extra arguments? \((.*)\)", re.DOTALL)


def print_error(error: RocmendError, arguments: Sequence[str]) -> int:
    """Print the error where its reader looks, and return the exit code.

    Args:
        error: What went wrong.
        arguments: The command line, which says whether JSON was asked for.
    """
    if _wants_json(arguments):
        try:
            write_data(to_json(error_outcome(command_name(arguments), error), redactor=_redactor(arguments)))
            sys.stdout.flush()
        except OSError:  # stdout itself is what failed: a full disk
            silence_stdout()
        else:
            return FAILED
    say_error(error)
    return FAILED


def say_error(error: RocmendError) -> None:
    """Say an error in words, on stderr."""
    click.echo(visible(f"rocmend: [{error.subject}] {error.message}"), err=True)
    for line in (error.why, error.next_step):
        if line:
            click.echo(visible(f"  {line}"), err=True)


def print_usage_error(error: click.ClickException, arguments: Sequence[str]) -> int:
    """Print a mistake in the command line, as every error is, and return the exit code."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "rocmend"
    message = " ".join(error.format_message().split())
    subject = path.partition(" ")[2] or "command line"
    step = f"`{path} --help` explains it."
    extra = _EXTRA.search(message)
    if (
        extra
        and not os.path.lexists(extra[1])
        and context is not None
        and any(one.name in {"target", "targets"} for one in context.command.params)
    ):
        step = f"A GPU follows an option: `--target {shlex.quote(extra[1])}`. {step}"
    return print_error(UsageError(subject, message, next_step=step), arguments)


def command_name(arguments: Sequence[str]) -> str:
    """Return the command that a command line calls, as its result would name it; what was typed where it is none."""
    from rocmend.cli.main import command_modules, with_default

    first, *rest = [*arguments, ""]
    while first.startswith("-") and rest:
        first, *rest = rest
    second = next(iter(with_default(first, rest[:-1])), "") if rest else ""
    path = f"{first} {second}"
    return path if path in command_modules() else first


def _redactor(arguments: Sequence[str]) -> Redactor | None:
    if "--no-redact" in arguments:
        return None
    from rocmend.cli.redaction import command_redactor

    return command_redactor()


def _wants_json(arguments: Sequence[str]) -> bool:
    pairs = itertools.pairwise((*arguments, ""))
    return any(word in {"--json", "--format=json"} or (word == "--format" and value == "json") for word, value in pairs)
