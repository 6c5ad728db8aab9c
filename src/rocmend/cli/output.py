"""What the commands share: the output options, and handing a computed outcome to the renderer asked for."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rocmend.cli.base import OneOf
from rocmend.cli.streams import STDOUT, write_data
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.files import naming
from rocmend.core.outputs import check_named, write_named
from rocmend.core.visible import json_safe, one_line, visible
from rocmend.report.document import Document
from rocmend.report.envelope import Outcome, to_json

if TYPE_CHECKING:
    from rocmend.core.redact import Redactor
    from rocmend.report.junit import Suite

F = TypeVar("F", bound=Callable[..., Any])

_REDACTION = "rocmend.redaction"
"""Where a command's context keeps whether, and by what, its output is redacted."""


def output_options(*formats: str, private: bool = True) -> Callable[[F], F]:
    """Add ``--format`` with these formats (``human`` and ``json`` always) and ``--json``; passes ``output_format``.

    Args:
        formats: Further formats.
        private: What is printed can hold names and numbers of a machine: it is redacted, but for ``human``, and
            ``--no-redact`` is added.
    """
    known = ("human", "json", *formats)

    def decorate(function: F) -> F:
        if private:
            function = click.option(
                "--no-redact",
                is_flag=True,
                expose_value=False,
                callback=lambda context, _option, value: context.meta.update({_REDACTION: not value}),
                help="Leave names, addresses, serial numbers and secrets in. They are replaced in every format but "
                "human, and in every file.",
            )(function)
        function = click.option(
            "--json",
            "output_format",
            flag_value="json",
            help="Short for --format json.",
        )(function)
        return click.option(
            "--format",
            "output_format",
            type=OneOf(known),
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
    advise: bool = False,
    others: Mapping[str, Callable[[], str | Document | Suite]] | None = None,
) -> None:
    """Print an outcome in the format asked for and leave with its exit code.

    Args:
        outcome: What was computed.
        output_format: ``human``, ``json``, ``jsonl``, ``md``, ``sarif``.
        view: Lays the data out as a document; called for human and md only.
        details: Print cards' details in the terminal too.
        advise: Say in the terminal how to share it, where it holds something that would be redacted.
        others: What further formats are made from, by name: their text, or the document that ``md`` or ``html`` shows.
    """
    if output_format == "json":
        write_data(to_json(outcome, redactor=redactor()))
    elif others and output_format in others:
        text = _shown(others[output_format](), output_format)
        write_data(text if output_format in {"html", "md"} else json_safe(text))
    elif output_format == "md":
        write_data(_shown(view(), output_format))
    elif output_format == "human":
        from rocmend.report import terminal

        document = view()
        if advise:
            from rocmend.report.redacted import advised

            document = advised(document, _redactor_here())
        with naming(STDOUT):
            terminal.render(document, sys.stdout, details=details)
    else:
        raise UsageError("output", f"this command has no {output_format} output.", next_step="Use --format json.")
    with naming(STDOUT):
        sys.stdout.flush()
    raise click.exceptions.Exit(outcome.exit_code)


def redactor() -> Redactor | None:
    """Return what redacts the running command's output, one for all of it; None where nothing is to be redacted."""
    context = click.get_current_context()
    asked: Redactor | bool = context.meta.get(_REDACTION, False)
    if asked is True:
        asked = context.meta[_REDACTION] = _redactor_here()
    return None if isinstance(asked, bool) else asked


def _redactor_here() -> Redactor:
    from rocmend.cli.vocabulary import vocabulary
    from rocmend.core.redact import redactor_here

    return redactor_here(kept=vocabulary())


def shown(document: Document, output_format: str) -> str:
    """Return a document as ``md`` or ``html`` text that is redacted, unless it was asked not to be, and says which."""
    from rocmend.report import html, markdown
    from rocmend.report.redacted import redacted

    private = _REDACTION in click.get_current_context().meta
    made = redacted(document, redactor()) if private else document
    return html.render(made) if output_format == "html" else markdown.render(made)


def _shown(made: str | Document | Suite, output_format: str) -> str:
    if isinstance(made, Document):
        return shown(made, output_format)
    if isinstance(made, str) and _REDACTION not in click.get_current_context().meta:
        return made
    from rocmend.report.redacted import OTHER_FORMATS, junit

    if isinstance(made, tuple):
        return junit(made, redactor())
    return OTHER_FORMATS[output_format](made, redactor())


class OutputFile:
    """A file that a command writes for its user: checked at once, before the work, and written when that is done.

    Args:
        path: Where the user wants it.
        what: What it is: ``report``.
        project: A stranger's folder that the command works on; no link in it is followed.
        only: What a file that it replaces has to hold; see ``rocmend.core.outputs``.

    Raises:
        UsageError: It is not to be written: a link, a pipe, a folder that is not there.
        RocmendError: It cannot be looked at; by ``write``: it cannot be written.
    """

    def __init__(self, path: Path, what: str, *, project: Path | None = None, only: bytes = b"") -> None:
        self.path = path
        self._what = what
        self._project = project
        self._only = only
        with self._told():
            check_named(path, project=project, only=only)

    def write(self, data: bytes | str) -> None:
        """Write it, all or nothing."""
        with self._told():
            write_named(self.path, data, project=self._project, only=self._only)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RocmendError(
                str(self.path), f"The {self._what} can't be written: {error.strerror}.", next_step="Name another place."
            ) from error


def report_file(path: Path, *, project: Path | None = None) -> OutputFile:
    """Return where an HTML report goes; the option's default replaces only an earlier report.

    Raises:
        UsageError: It is not to be written there.
    """
    from rocmend.report.html import MARK

    source = click.get_current_context().get_parameter_source("output")
    default = source is click.core.ParameterSource.DEFAULT
    return OutputFile(path, "report", project=project, only=MARK if default else b"")


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
