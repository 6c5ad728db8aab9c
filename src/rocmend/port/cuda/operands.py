"""Where operands of an expression begin, and what stands before a bracket, from tokens alone."""

from __future__ import annotations

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind

__all__ = ["call_start", "callee", "object_start", "operand_start"]

_NO_CALLS = frozenset(b"if while for switch return sizeof".split())
_MEMBERS = (b".", b"->", b"::")


def _text(file: CudaFile, at: int) -> bytes:
    return file.tokens[at].text if 0 <= at < len(file.tokens) else b""


def object_start(file: CudaFile, dot: int) -> int:
    """Return the index of the first token of the object whose member is taken."""
    at = dot - 1
    while at > 0:
        closes = _text(file, at) in (b")", b"]") and at in file.partner
        if closes:
            opened = file.partner[at]
            if file.tokens[opened - 1].kind != Kind.NAME or _text(file, opened - 1) in _NO_CALLS:
                return opened
            at = opened - 1
        if _text(file, at - 1) not in _MEMBERS:
            return at
        at -= 2 if file.tokens[at - 2].kind == Kind.NAME or _text(file, at - 2) in (b")", b"]") else 1
    return max(at, 0)


def operand_start(file: CudaFile, at: int) -> int:
    """Return the index of the first token of the operand that ends at an index."""
    if _text(file, at) in (b")", b"]") and at in file.partner:
        at = file.partner[at]
        at -= file.tokens[at - 1].kind == Kind.NAME
    while _text(file, at - 1) in _MEMBERS:
        at -= 2
    return at


def callee(file: CudaFile, opened: int) -> bytes:
    """Return the name before a bracket; nothing for brackets of an expression, ``?`` for what has no name."""
    if opened < 0:
        return b"?"
    if _text(file, opened) == b"{":
        return _text(file, opened - 1) if file.tokens[opened - 1].kind == Kind.NAME else b"?"
    before = opened - 1
    if _text(file, before) == b">":
        depth = 0
        while before > 0 and opened - before < 64:
            depth += (_text(file, before) == b">") - (_text(file, before) == b"<")
            if depth == 0:
                break
            before -= 1
        name = _text(file, before - 1)
        return b"int" if name == b"static_cast" else name
    if file.tokens[before].kind == Kind.NAME:
        return _text(file, before)
    return b"" if _text(file, before) not in (b"]", b")") else b"?"


def call_start(file: CudaFile, opened: int) -> int:
    """Return the index of the first token of a call, by its bracket; of the bracket where nothing is called."""
    at = opened
    if _text(file, at - 1) == b">":
        while at > 0 and _text(file, at) != b"<":
            at -= 1
    if file.tokens[at - 1].kind == Kind.NAME and _text(file, at - 1) not in _NO_CALLS:
        at -= 1
        while _text(file, at - 1) == b"::":
            at -= 2
    return at
