"""What the commands share: the output options, and handing a computed outcome to the renderer asked for."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rocmend.cli.base import OneOf
from rocmend.cli.errors import say_error
from rocmend.cli.redaction import command_redactor
from rocmend.cli.streams import STDOUT, write_data
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.files import naming
from rocmend.core.outputs import check_named, try_place, write_named
from rocmend.core.visible import json_safe, visible
from rocmend.report.document import Document
from rocmend.report.envelope import FAILED, Outcome, error_outcome, to_json

if TYPE_CHECKING:
    from rocmend.core.redact import Redactor
    from rocmend.report.junit import Suite

F = TypeVar("F", bound=Callable[..., Any])

_OUTPUT = "rocmend.output"
"""Where a command's context keeps the file that its result goes to."""
_REDACTION = "rocmend.redaction"
"""Where a command's context keeps whether, and by what, its output is redacted."""


def output_options(*formats: str, private: bool = True, file: bool = True) -> Callable[[F], F]:
    """Add ``--format`` with human, json, md, html and these formats, ``--json`` and ``-o``; passes ``output_format``.

    Args:
        formats: Further formats.
        private: What is printed can hold names and numbers of a machine: it is redacted, but for ``human``, and
            ``--no-redact`` is added.
        file: Whether ``-o`` is added; a command that has an option of that name takes care of it itself.
    """
    known = ("human", "json", "md", "html", *formats)

    def decorate(function: F) -> F:
        if private:
            function = click.option(
                "--no-redact",
                is_flag=True,
                expose_value=False,
                callback=lambda context, _option, value: context.meta.update({_REDACTION: not value}),
                help="Keep names, addresses, serial numbers and secrets. By default they are replaced in every format "
                "but human, and in every file.",
            )(function)
        if file:
            function = click.option(
                "-o",
                "--output",
                "_output",
                type=click.Path(path_type=Path, dir_okay=False),
                expose_value=False,
                is_eager=True,
                callback=_keep_output_file,
                help="Write the result to this file. Without --format its name says how: .html, .md, .json or .txt.",
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
            callback=_named_by_file,
            help="Output format; data goes to stdout, progress to stderr.",
        )(function)

    return decorate


_BY_NAME = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".json": "json",
    ".txt": "human",
    ".jsonl": "jsonl",
    ".sarif": "sarif",
    ".xml": "junit",
}
"""Formats by the end of a file's name."""


def _keep_output_file(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    if path is not None:
        context.meta[_OUTPUT] = OutputFile(path, "result")


def _named_by_file(context: click.Context, option: click.Parameter, value: str) -> str:
    """Return the format that was asked for; where none was, the one that the file's name says, if it does."""
    file: OutputFile | None = context.meta.get(_OUTPUT)
    if file is None or context.get_parameter_source("output_format") is not click.core.ParameterSource.DEFAULT:
        return value
    suffix = file.path.suffix.lower()
    named = _BY_NAME.get(suffix, "" if suffix else value)
    if suffix == ".sh" and any(one.name == "script" for one in context.command.params):
        named = value  # the script of --plan
    if isinstance(option.type, click.Choice) and named not in option.type.choices:
        known = ", ".join(end for end, name in _BY_NAME.items() if name in option.type.choices)
        raise UsageError(
            "-o",
            f"{file.path.name}: the ending of the name is of no known format.",
            next_step=f"End it with one of {known}, or name the format with --format.",
        )
    return named


def no_output_file(what: str) -> None:
    """Refuse ``-o`` where the result is no document.

    Raises:
        UsageError: It was given.
    """
    if _OUTPUT in click.get_current_context().meta:
        raise UsageError("-o", f"{what} is written to standard output.", next_step="Redirect it: > FILE.")


def finish(
    outcome: Outcome,
    output_format: str,
    view: Callable[[], Document],
    *,
    details: bool = False,
    advise: bool = False,
    others: Mapping[str, Callable[[], str | Document | Suite]] | None = None,
    unwritten: RocmendError | None = None,
) -> None:
    """Print an outcome in the format asked for, or write it to the file asked for, and leave with its exit code.

    Args:
        outcome: What was computed.
        output_format: ``human``, ``json``, ``md``, ``html``, or one of the others.
        view: Lays the data out as a document.
        details: Print cards' details in the terminal too.
        advise: Say in the terminal how to share it, where it holds something that would be redacted.
        others: What further formats are made from, by name: their text, or the document that ``md`` or ``html`` shows.
        unwritten: Why a file beside the result could not be written: an error, said when the result is printed.
    """
    if unwritten is not None:
        outcome = error_outcome(outcome.command, unwritten, outcome.data)
    made = (others or {}).get(output_format, view)
    if output_format == "human" and _OUTPUT not in click.get_current_context().meta:
        _print(view(), details=details, advise=advise)
    else:

        def printed(error: RocmendError) -> str:
            nonlocal outcome
            outcome = error_outcome(outcome.command, error, outcome.data)
            return shown(view(), "human") if output_format == "html" else _text(outcome, output_format, made)

        unwritten = write_result(_text(outcome, output_format, made), printed) or unwritten
    leave(outcome.exit_code, unwritten)


def write_result(text: str, printed: Callable[[RocmendError], str] | None = None) -> RocmendError | None:
    """Write a result to the file that ``-o`` named, or to standard output.

    A result whose file cannot be written is printed all the same.

    Args:
        text: The result.
        printed: Returns what is printed in place of the file, told why; None for the text itself.

    Returns:
        Why the file could not be written.
    """
    file: OutputFile | None = click.get_current_context().meta.get(_OUTPUT)
    if file is None:
        write_data(text)
        return None
    unwritten = file.tried(text)
    if unwritten is None:
        tell(f"Written: {file.path}")
    else:
        write_data(printed(unwritten) if printed is not None else text)
    return unwritten


def leave(exit_code: int, unwritten: RocmendError | None = None) -> None:
    """Leave a command whose result is printed; with an error where a file of it could not be written."""
    with naming(STDOUT):
        sys.stdout.flush()
    if unwritten is not None:
        say_error(unwritten)
    raise click.exceptions.Exit(exit_code if unwritten is None else FAILED)


def _text(outcome: Outcome, output_format: str, made: Callable[[], str | Document | Suite]) -> str:
    if output_format == "json":
        return to_json(outcome, redactor=redactor())
    text = _shown(made(), output_format)
    return text if output_format in {"html", "md", "human"} else json_safe(text)


def _print(document: Document, *, details: bool, advise: bool) -> None:
    from rocmend.report import terminal

    if advise:
        from rocmend.report.redacted import advised

        document = advised(document, command_redactor())
    with naming(STDOUT):
        terminal.render(document, sys.stdout, details=details)


def redactor() -> Redactor | None:
    """Return what redacts the running command's output, one for all of it; None where nothing is to be redacted."""
    context = click.get_current_context()
    asked: Redactor | bool = context.meta.get(_REDACTION, False)
    if asked is True:
        asked = context.meta[_REDACTION] = command_redactor()
    return None if isinstance(asked, bool) else asked


def shown(document: Document, output_format: str) -> str:
    """Return a document as text that is redacted, unless it was asked not to be, and says which.

    Args:
        document: What to show.
        output_format: ``md``, ``html``, or ``human`` for what a terminal would show.
    """
    from rocmend.report import html, markdown, terminal
    from rocmend.report.redacted import redacted

    private = _REDACTION in click.get_current_context().meta
    made = redacted(document, redactor()) if private else document
    if output_format == "human":
        plain = io.StringIO()
        terminal.render(made, plain, width=_FILE_COLUMNS, details=True)
        return plain.getvalue()
    return html.render(made) if output_format == "html" else markdown.render(made)


_FILE_COLUMNS = 100
"""Width of a text file."""


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
            try_place(path)

    def write(self, data: bytes | str) -> None:
        """Write it, all or nothing."""
        with self._told():
            write_named(self.path, data, project=self._project, only=self._only)

    def tried(self, data: bytes | str) -> RocmendError | None:
        """Write it beside a result that is printed in any case; return why it could not be written."""
        try:
            self.write(data)
        except RocmendError as error:
            return error
        return None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RocmendError(
                str(self.path), f"The {self._what} can't be written: {error.strerror}.", next_step="Name another place."
            ) from error


def file_option(help_text: str) -> Callable[[F], F]:
    """Add ``-o FILE``, which writes nothing where it is not given; passes ``output``."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        metavar="FILE",
        help=help_text,
    )


def report_option(function: F) -> F:
    """Add ``-o FILE`` for the HTML report of a machine; passes ``output``, None where it is not given."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        help="Where the HTML report goes. The default is rocmend-report.html, with --machine NAME or --target NAME "
        "rocmend-report-NAME.html; it replaces an earlier report only, and follows no links.",
    )(function)


def report_file(path: Path | None, *, about: str = "", project: Path | None = None) -> OutputFile:
    """Return where an HTML report goes; the name that nobody gave replaces only an earlier report.

    Args:
        path: What was named with ``-o``.
        about: Another machine or GPU than this one: part of the name that nobody gave.
        project: A stranger's folder that the command works on.

    Raises:
        UsageError: It is not to be written there.
    """
    from rocmend.report.html import MARK

    if path is None:
        name = "-".join(part for part in ("rocmend-report", _UNFIT.sub("-", about).strip("-.")) if part)
        return OutputFile(Path(f"{name}.html"), "report", project=project, only=MARK)
    must_end(path, (".html", ".htm"), "The report is HTML.")
    return OutputFile(path, "report", project=project)


_UNFIT = re.compile(r"[^\w.+-]+")
"""What does not belong into a file's name."""


def must_end(path: Path, suffixes: tuple[str, ...], why: str, *, option: str = "-o") -> None:
    """Refuse a file whose name promises another format than the one it would hold.

    Args:
        path: The file; a stream such as /dev/stdout has no suffix and may have any format.
        suffixes: What its name may end with.
        why: Which format it would hold.
        option: What named it.

    Raises:
        UsageError: It ends otherwise.
    """
    if path.suffix and path.suffix.lower() not in suffixes:
        raise UsageError(option, f"{path.name}: {why}", next_step=f"End the name with {' or '.join(suffixes)}.")


def json_lines(rows: Iterable[Any]) -> str:
    """Return rows as JSON Lines."""
    import msgspec

    return "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)


def tell(text: str) -> None:
    """Say something beside the result, on stderr."""
    click.echo(visible(text), err=True)
