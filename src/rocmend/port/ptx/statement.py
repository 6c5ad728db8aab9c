"""``asm`` statements of a CUDA C++ source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import Argument, arguments

__all__ = ["AsmStatement", "Operand", "statements"]


class Operand(NamedTuple):
    """An operand: its constraint (``=r``, ``+f``, ``l``) and its expression."""

    constraint: str
    expression: str


class AsmStatement(NamedTuple):
    """One statement.

    Attributes:
        start: Offset of ``asm``.
        end: Offset after the closing bracket; the semicolon is not part of it.
        directive: Number of the directive that it stands in (a macro's body); -1 in code.
        template: The text that the strings make together.
        others: What else it may be, where the file defines a macro in it in several ways.
        outputs: The output operands.
        inputs: The input operands.
        clobbers: What else it changes, as written.
        volatile: Whether it is volatile.
        problem: Why the parts above are not all there; empty where they are.
    """

    start: int
    end: int
    directive: int
    template: str
    outputs: tuple[Operand, ...]
    inputs: tuple[Operand, ...]
    clobbers: tuple[str, ...]
    volatile: bool
    problem: str
    others: tuple[str, ...] = ()

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Return outputs and inputs, as ``%0``, ``%1`` … number them."""
        return self.outputs + self.inputs


_QUALIFIERS = frozenset((b"volatile", b"__volatile__", b"inline", b"__inline__", b"goto"))
_RAW = re.compile(rb'(?:u8|u|U|L)?R"([^()\\\s]{0,16})\((.*)\)\1"', re.DOTALL)
_MOST_TEXTS = 8
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "'": "'", "r": "\r", "v": "\v", "f": "\f", "0": "\0"}


def statements(file: CudaFile) -> Iterator[AsmStatement]:
    """Yield the statements in code that both sides compile, in order."""
    for index in file.names(b"asm", b"__asm__", b"__asm"):
        opened = index + 1
        volatile = False
        while opened < len(file.tokens) and file.tokens[opened].text in _QUALIFIERS:
            volatile |= b"volatile" in file.tokens[opened].text
            opened += 1
        if opened >= len(file.tokens) or file.tokens[opened].text != b"(" or opened not in file.partner:
            continue
        yield _read(file, index, opened, volatile)


def _read(file: CudaFile, index: int, opened: int, volatile: bool) -> AsmStatement:
    closed = file.partner[opened]
    sections = _sections(file, opened, closed)
    problem = "" if len(sections) <= 4 else "it has labels"
    templates, told = _strings(file, *sections[0])
    problem = problem or told
    operands: list[tuple[Operand, ...]] = []
    for first, last in sections[1:3]:
        found, told = _operands(file, first, last)
        operands.append(found)
        problem = problem or told
    operands += [()] * (2 - len(operands))
    clobbers: tuple[str, ...] = ()
    if len(sections) > 3:
        clobbers = tuple(
            _literal(file.data[token.start : token.end]) or ""
            for token in file.tokens[sections[3][0] : sections[3][1]]
            if token.kind == Kind.STRING
        )
    name = file.tokens[index]
    return AsmStatement(
        name.start,
        file.tokens[closed].end,
        name.directive,
        templates[0],
        operands[0],
        operands[1],
        clobbers,
        volatile,
        problem,
        tuple(templates[1:]),
    )


def _sections(file: CudaFile, opened: int, closed: int) -> list[tuple[int, int]]:
    """Return the ranges of tokens between the colons; ``::`` is two of them."""
    found = []
    first = at = opened + 1
    while at < closed:
        text = file.tokens[at].text
        if text in (b"(", b"[", b"{") and at in file.partner:
            at = file.partner[at] + 1
            continue
        if text in (b":", b"::") and (text == b":" or not _qualifies(file, at)):
            found.append((first, at))
            if text == b"::":
                found.append((at, at))
            first = at + 1
        at += 1
    found.append((first, closed))
    return found


def _qualifies(file: CudaFile, at: int) -> bool:
    """Tell whether a ``::`` stands between names: outside of brackets only a template's macro could."""
    return file.tokens[at - 1].kind == Kind.NAME and at + 1 < len(file.tokens) and file.tokens[at + 1].kind == Kind.NAME


def _strings(file: CudaFile, first: int, last: int) -> tuple[list[str], str]:
    """Return what the strings make together: several texts where a macro in it has several definitions."""
    texts = [""]
    at = first
    while at < last:
        token = file.tokens[at]
        at += 1
        if token.kind == Kind.STRING:
            literal = _literal(file.data[token.start : token.end])
            choices = None if literal is None else {literal}
        else:
            after = file.partner[at] + 1 if at in file.partner and file.tokens[at].text == b"(" else at
            choices = _macro(file, token.text, at, after)
            at = after
        if not choices or len(choices) * len(texts) > _MOST_TEXTS:
            return [""], "its text is built by macros"
        texts = [text + choice for text in texts for choice in sorted(choices)]
    return (texts, "") if first < last else ([""], "it is empty")


def _macro(file: CudaFile, name: bytes, first: int, last: int) -> set[str]:
    """Return what a macro that the file defines may stand for in a text; nothing where that is not known."""
    given = [file.data[one.start : one.end].decode("latin-1") for one in _given(file, first, last)]
    found = set()
    for macro in file.macros.get(name, ()):
        parts = []
        tokens = file.tokens[macro.first : macro.last]
        names = macro.parameters or ()
        if len(names) != len(given):
            return set()
        for at, token in enumerate(tokens):
            if token.kind == Kind.STRING:
                literal = _literal(file.data[token.start : token.end])
                if literal is None:
                    return set()
                parts.append(literal)
            elif at and tokens[at - 1].text == b"#" and token.text in names:
                parts.append(given[names.index(token.text)])
            elif token.text != b"#":
                return set()
        found.add("".join(parts))
    return found


def _given(file: CudaFile, first: int, last: int) -> tuple[Argument, ...]:
    return arguments(file.tokens, file.partner, first, last - 1) if last > first else ()


def _literal(data: bytes) -> str | None:
    """Return what a string literal says; None where it says more than ASCII with plain escapes."""
    raw = _RAW.fullmatch(data)
    try:
        if raw:
            return raw.group(2).decode("ascii")
        text = data[data.index(b'"') + 1 : -1].replace(b"\\\r\n", b"").replace(b"\\\n", b"").decode("ascii")
    except (UnicodeDecodeError, ValueError):
        return None
    parts = []
    at = 0
    while at < len(text):
        if text[at] == "\\":
            known = _ESCAPES.get(text[at + 1 : at + 2])
            if known is None:
                return None
            parts.append(known)
            at += 2
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts)


def _operands(file: CudaFile, first: int, last: int) -> tuple[tuple[Operand, ...], str]:
    found: list[Operand] = []
    at = first
    if at < last and file.tokens[at].text == b"::":
        at += 1
    while at < last:
        token = file.tokens[at]
        if token.text == b",":
            at += 1
            continue
        opened = at + 1
        if (
            token.kind != Kind.STRING
            or opened >= last
            or file.tokens[opened].text != b"("
            or opened not in file.partner
        ):
            return tuple(found), "its operands are built by macros, or named"
        constraint = _literal(file.data[token.start : token.end])
        closed = file.partner[opened]
        inside = file.data[file.tokens[opened].end : file.tokens[closed].start]
        try:
            expression = " ".join(inside.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").decode().split())
        except UnicodeDecodeError:
            return tuple(found), "an operand is not UTF-8"
        if b"//" in inside or b"/*" in inside or b"#" in inside:
            return tuple(found), "there are comments or directives among its operands"
        found.append(Operand(constraint or "", expression))
        at = closed + 1
    return tuple(found), ""
