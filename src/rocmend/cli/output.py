"""What the commands share: the output options, and handing a computed outcome to the renderer asked for."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from rocmend.cli.streams import STDOUT, write_data
from rocmend.core.errors import UsageError
from rocmend.core.files import naming
from rocmend.core.visible import json_safe, one_line, visible
from rocmend.report.document import Document
from rocmend.report.envelope import Outcome, to_json

F = TypeVar("F", bound=Callable[..., Any])


def output_options(*formats: str) -> Callable[[F], F]:
    """Add ``--format`` with these formats (``human`` and ``json`` always) and ``--json``; passes ``output_format``."""
    known = ("human", "json", *formats)

    def decorate(function: F) -> F:
        function = click.option(
            "--json",
            "output_format",
            flag_value="json",
            help="Short for --format json.",
        )(function)
        return click.option(
            "--format",
            "output_format",
            type=click.Choice(known),
            default="human",
            show_default=True,
            help="How to print the result; data goes to stdout, progress to stderr.",
        )(function)

    return decorate


def finish(
    outcome: Outcome,
    output_format: str,
    view: Callable[[], Document],
    *,
    details: bool = False,
    others: dict[str, Callable[[], str]] | None = None,
) -> None:
    """Print an outcome in the format asked for and leave with its exit code.

    Args:
        outcome: What was computed.
        output_format: ``human``, ``json``, ``jsonl``, ``md``, ``sarif``.
        view: Lays the data out as a document; called for human and md only.
        details: Print cards' details in the terminal too.
        others: Text of further formats, by name.
    """
    if output_format == "json":
        write_data(to_json(outcome))
    elif others and output_format in others:
        text = others[output_format]()
        write_data(text if output_format == "html" else json_safe(text))
    elif output_format == "md":
        from rocmend.report import markdown

        write_data(markdown.render(view()))
    elif output_format == "human":
        from rocmend.report import terminal

        document = view()
        with naming(STDOUT):
            terminal.render(document, sys.stdout, details=details)
    else:
        raise UsageError("output", f"this command has no {output_format} output.", next_step="Use --format json.")
    with naming(STDOUT):
        sys.stdout.flush()
    raise click.exceptions.Exit(outcome.exit_code)


def json_lines(rows: Iterable[Any]) -> str:
    """Return rows as JSON Lines."""
    import msgspec

    return "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)


def tell(text: str) -> None:
    """Say something beside the result, on stderr."""
    click.echo(visible(text), err=True)


def progress(text: str) -> None:
    """Tell on stderr what long work is doing, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{one_line(text)}")
        sys.stderr.flush()


class ProgressBar:
    """How much of long work is done, on stderr: on a terminal only, in one line of it, ten times a second at most.

    Args:
        what: What is being done: ``rocmend port: reading``.
        unit: What its parts are: ``files``.
    """

    def __init__(self, what: str, unit: str) -> None:
        self._what = what
        self._unit = unit
        self._next = 0.0

    def __call__(self, done: int, of: int) -> None:
        """Tell how many parts are done, and of how many."""
        now = time.monotonic()
        if not sys.stderr.isatty() or (now < self._next and done < of):
            return
        self._next = now + _EVERY_S
        bar = ("#" * (_BAR * done // of if of else _BAR)).ljust(_BAR, ".")
        text = f"{self._what} [{bar}] {done:,} of {of:,} {self._unit}"
        progress(text[: shutil.get_terminal_size().columns - 1])


_BAR = 20
"""Columns of a bar."""
_EVERY_S = 0.1


def progress_done() -> None:
    """Clear the progress line."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
