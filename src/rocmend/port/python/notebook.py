"""A Jupyter notebook as rules for Python read it: its code cells as one module, with the way back to each cell.

What a cell binds is known in those behind it, as where they are executed in order. Notebooks are read, not rewritten: a
flag that one cell defines is missing where another is executed alone, on CUDA too.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from rocmend.core.errors import DataError
from rocmend.port.python.file import PythonFile
from rocmend.port.python.syntax import why_not
from rocmend.port.records import Issue, Outcome

__all__ = ["Notebook"]

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)
_SIGN = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]")
_TIMED = re.compile(r"([ \t]*)(%time(?:it)?[ \t]+)(?![-\s])")
_GIVEN = re.compile(r"([ \t]*[\w.,\[\] \t]+=[ \t]*)[!%]")
_MAGIC = re.compile(r"[ \t]*(?:[%!?]|[\w.]+\?)")
_OF_PYTHON = re.compile(r"%%(?:time|timeit|capture|prun)\b")


class _Text(NamedTuple):
    """A string of the file that is a cell's source or a part of it: where it begins and ends, quotes included."""

    start: int
    end: int


class _Cell(NamedTuple):
    """A code cell: its number among all cells, from 1, and the strings that its source is in."""

    number: int
    texts: list[_Text]


class _Line(NamedTuple):
    """A line of the module: where it begins, in characters, and the same place in its cell.

    Attributes:
        start: Its first character in the module.
        cell: The cell, as an index.
        line: The line in the cell, from 1.
        at: Its first character in the cell.
        shift: How many characters the cell has there that the module has not.
    """

    start: int
    cell: int
    line: int
    at: int
    shift: int


class Notebook(PythonFile):
    """A parsed notebook of format 4.

    Args:
        path: Relative to the project, with forward slashes.
        data: Its bytes.

    Raises:
        DataError: It is no such notebook, or a cell is no Python that this interpreter can parse.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self._file = data
        self._cells = list(_code_cells(path, data))
        self._places: list[_Line] = []
        module = ["\n\n"]  # the first two lines could name an encoding
        at = 2
        for index, cell in enumerate(self._cells):
            for line in _lines(path, cell, _source(path, data, cell)):
                self._places.append(_Line(at, index, line.number, line.at, line.shift))
                module.append(line.text + "\n")
                at += len(line.text) + 1
        super().__init__(path, "".join(module).encode())

    def placed(self, issues: Iterable[Issue]) -> list[Issue]:
        """Return issues of the module as issues of the file: with its places, their cells, and nothing to rewrite."""
        return [self._placed(issue) for issue in issues]

    def _placed(self, issue: Issue) -> Issue:
        start, _, line = self._place(issue.start)
        end = self._place(max(issue.start, issue.end - 1))[1]
        head = self._file.rfind(b"\n", 0, start) + 1
        rewritten = issue.outcome in {Outcome.AUTO, Outcome.SUGGEST}
        number = self._file.count(b"\n", 0, start) + 1
        return msgspec.structs.replace(
            issue,
            line=number,
            column=len(self._file[head:start].decode("utf-8", "replace")) + 1,
            end_line=number + self._file.count(b"\n", start, end - 1),
            start=start,
            end=end,
            message=f"cell {self._cells[line.cell].number}, line {line.line}: {issue.message}",
            outcome=Outcome.MANUAL if rewritten else issue.outcome,
            edits=(),
            needs=(),
        )

    def _place(self, offset: int) -> tuple[int, int, _Line]:
        """Return where the character at a byte of the module begins and ends in the file, and its line."""
        at = len(self.data[:offset].decode(errors="ignore"))
        line = self._places[max(0, bisect_right(self._places, at, key=lambda one: one.start) - 1)]
        inside = line.at + at - line.start + line.shift
        for text in self._cells[line.cell].texts:
            inner = self._file[text.start + 1 : text.end - 1]
            signs = [sign.start() for sign in _SIGN.finditer(inner) if inner[sign.start()] & 0xC0 != 0x80]
            if inside < len(signs):
                start, end = [*signs, len(inner)][inside : inside + 2]
                return text.start + 1 + start, text.start + 1 + end, line
            inside -= len(signs)
        end = self._cells[line.cell].texts[-1].end
        return end - 1, end, line


class _Made(NamedTuple):
    text: str
    number: int
    at: int
    shift: int


def _lines(path: str, cell: _Cell, source: str) -> Iterator[_Made]:
    """Yield a cell's lines as Python; magics and commands of the shell as a statement that does nothing."""
    lines = source.split("\n")
    foreign = source.startswith("%%") and not _OF_PYTHON.match(source)
    plain = _parses(source)
    made: list[_Made] = []
    at = 0
    goes_on = False  # a command of the shell that the line before did not end
    for number, text in enumerate(lines, 1):
        shift = 0
        written = text
        if foreign or goes_on:
            written = ""
        elif isinstance(plain, Exception):
            timed = _TIMED.match(text)
            given = _GIVEN.match(text)
            if timed:
                shift = len(timed[2])
                written = timed[1] + text[timed.end() :]
            elif given:
                written = f"{given[1]}None"
            elif _MAGIC.match(text) or (text.rstrip().endswith("?") and "#" not in text):
                written = f"{text[: len(text) - len(text.lstrip())]}pass"
        goes_on = written != text and not shift and text.rstrip().endswith("\\")
        made.append(_Made(written.rstrip("\r"), number, at, shift))
        at += len(text) + 1
    if isinstance(plain, Exception) and not foreign:
        text = "\n".join(line.text for line in made)
        error = _parses(text)
        if isinstance(error, Exception):
            raise DataError(path, f"cell {cell.number}: {why_not(text, error)}")
    yield from made


def _parses(source: str) -> Exception | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error
    return None


def _source(path: str, data: bytes, cell: _Cell) -> str:
    try:
        return "".join(json.loads(data[text.start : text.end]) for text in cell.texts)
    except ValueError as error:
        raise DataError(path, f"cell {cell.number} is not a JSON string: {error}.") from error


def _code_cells(path: str, data: bytes) -> Iterator[_Cell]:
    """Yield the code cells of a notebook whose language is Python, or not told."""
    cells: dict[int, list[_Text]] = {}
    kinds: dict[int, str] = {}
    language = "python"
    known = False
    for where, start, end in _strings(path, data):
        match where:
            case ["cells", int(number), "source"] | ["cells", int(number), "source", int()]:
                cells.setdefault(number, []).append(_Text(start, end))
            case ["cells", int(number), "cell_type"]:
                kinds[number] = data[start + 1 : end - 1].decode("utf-8", "replace")
            case ["metadata", "kernelspec", "language"] | ["metadata", "language_info", "name"]:
                language = data[start + 1 : end - 1].decode("utf-8", "replace").lower()
            case _:
                pass
        known = known or where[:1] == ["cells"]
    if not known and re.search(rb'"worksheets"', data):
        raise DataError(path, "it is a notebook of format 3. Jupyter converts it: jupyter nbconvert --to notebook.")
    if language.startswith(("python", "ipython")):
        yield from (_Cell(number + 1, texts) for number, texts in sorted(cells.items()) if kinds.get(number) == "code")


def _strings(path: str, data: bytes) -> Iterator[tuple[list[Any], int, int]]:
    """Yield the strings of a JSON document that are values, each with the keys and numbers that lead to it.

    Raises:
        DataError: It is no JSON.
    """
    where: list[Any] = []
    kinds: list[bytes] = []
    wants_key = False
    for token in _TOKEN.finditer(data):
        sign = token[0]
        if sign in {b"{", b"["}:
            kinds.append(sign)
            where.append(0 if sign == b"[" else None)
            wants_key = sign == b"{"
        elif sign in {b"}", b"]"}:
            if not kinds or kinds.pop() != {b"}": b"{", b"]": b"["}[sign]:
                raise DataError(path, f"it is not JSON: unmatched bracket at byte {token.start()}.")
            where.pop()
            wants_key = False
        elif sign == b",":
            wants_key = bool(kinds) and kinds[-1] == b"{"
            if kinds and kinds[-1] == b"[":
                where[-1] += 1
        elif sign.startswith(b'"') and wants_key:
            where[-1] = sign[1:-1].decode("utf-8", "replace")
            wants_key = False
        elif sign.startswith(b'"'):
            yield where, token.start(), token.end()
    if kinds:
        raise DataError(path, "it is not JSON: it ends inside a value.")
