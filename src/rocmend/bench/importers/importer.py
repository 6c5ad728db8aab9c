"""What an importer is, and how the right one for a file is found."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from functools import cache

import msgspec

from rocmend.bench.llama.output import MAX_LINE_CHARS, MAX_PROBLEMS, MAX_ROWS
from rocmend.bench.llama.rows import Row
from rocmend.core.documents import MALFORMED
from rocmend.core.errors import UnitError
from rocmend.core.verdict import Verdict

_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
HEAD_CHARS = 1 << 16
"""So much of a file is looked at to tell what it is."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A result that somebody else measured, or a run that failed.

    Attributes:
        row: The figure; None where the run failed.
        model: The model, as the file or its name calls it.
        label: Under what it was measured: an environment, a back end, a build.
        verdict: ``pass``, or how the run failed.
        reason: What the file says of a failure.
        line: Line of the file; 0 where that says nothing.
        facts: What else the file says of where it comes from: image, host, kernel, source.
    """

    row: Row | None
    model: str
    label: str = ""
    verdict: Verdict = Verdict.PASS
    reason: str = ""
    line: int = 0
    facts: dict[str, str] = {}


class Document(msgspec.Struct, frozen=True):
    """A file to import.

    Attributes:
        name: Its name without folders.
        text: What it holds.
    """

    name: str
    text: str

    @property
    def head(self) -> str:
        """Its beginning."""
        return self.text[:HEAD_CHARS]

    @property
    def stem(self) -> str:
        """Its name without the last ending."""
        return self.name.rpartition(".")[0] or self.name


Read = tuple[list[Entry], list[str]]
"""Entries, and what could not be read, each with its line."""


class Importer(msgspec.Struct, frozen=True):
    """A kind of file.

    Attributes:
        id: Its name.
        title: What it is, as a person calls it.
        recognizes: Whether a document is of this kind.
        read: Read one.
        order: Importers are asked in this order; more particular ones first.
    """

    id: str
    title: str
    recognizes: Callable[[Document], bool]
    read: Callable[[Document], Read]
    order: int = 50


@cache
def importers() -> tuple[Importer, ...]:
    """Return the importers, in the order in which they are asked.

    Raises:
        UnitError: Two have one id, or one is no importer.
    """
    package = importlib.import_module("rocmend.bench.importers")
    found: dict[str, Importer] = {}
    for module in pkgutil.iter_modules(package.__path__):
        made = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "IMPORTER", None)
        if made is None:
            continue
        if made.id in found:
            raise UnitError(made.id, "two importers have this id.")
        found[made.id] = made
    return tuple(sorted(found.values(), key=lambda item: (item.order, item.id)))


def importer_of(document: Document) -> Importer | None:
    """Return the importer of a file; None where none knows it."""
    return next((item for item in importers() if item.recognizes(document)), None)


def entries_by_line(document: Document, entry: Callable[[str, int], Entry], most_chars: int = MAX_LINE_CHARS) -> Read:
    """Read a document whose lines are results; what is wrong with one is a problem of that line.

    Args:
        document: The document.
        entry: Reads a line, given its number; raises ValueError, KeyError or TypeError where it is no result.
        most_chars: Longest line.
    """
    entries: list[Entry] = []
    problems: list[str] = []
    for number, line in enumerate(document.text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            if len(line) > most_chars:
                raise ValueError(f"is longer than {most_chars:,} characters")  # noqa: TRY301  as what entry raises
            entries.append(entry(line, number))
        except (ValueError, KeyError, TypeError, *MALFORMED) as error:
            problems.append(f"line {number}: {str(error)[:200]}")
        if len(entries) >= MAX_ROWS or len(problems) >= MAX_PROBLEMS:
            problems.append(f"line {number}: the rest was not read")
            break
    return entries, problems


def entries_of(rows: list[Row], document: Document, facts: dict[str, str] | None = None) -> list[Entry]:
    """Return entries for llama-bench's rows: labelled by back end and GPU, or by the file's name."""
    return [Entry(row, _model(row), label_of(row, document), facts=facts or {}) for row in rows]


def _model(row: Row) -> str:
    return _SHARD.sub("", row.model_file.removesuffix(".gguf")) or row.model or "unknown"


def label_of(row: Row, document: Document) -> str:
    """Return under what a row was measured, as far as the row says."""
    return " ".join(part for part in (row.backends, row.gpu) if part) or document.stem
