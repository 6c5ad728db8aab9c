"""Integer constants of a source, as far as the source itself tells them."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.port.cuda.conditions import evaluated
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind, Token
from rocmend.port.cuda.structure import Argument

__all__ = ["SIZES", "constant", "size_of"]

SIZES: dict[bytes, int] = {
    b"char": 1,
    b"signed char": 1,
    b"unsigned char": 1,
    b"bool": 1,
    b"int8_t": 1,
    b"uint8_t": 1,
    b"short": 2,
    b"unsigned short": 2,
    b"int16_t": 2,
    b"uint16_t": 2,
    b"half": 2,
    b"__half": 2,
    b"__nv_bfloat16": 2,
    b"nv_bfloat16": 2,
    b"int": 4,
    b"unsigned": 4,
    b"unsigned int": 4,
    b"int32_t": 4,
    b"uint32_t": 4,
    b"float": 4,
    b"half2": 4,
    b"__half2": 4,
    b"__nv_bfloat162": 4,
    b"long long": 8,
    b"unsigned long long": 8,
    b"long long int": 8,
    b"unsigned long long int": 8,
    b"int64_t": 8,
    b"uint64_t": 8,
    b"size_t": 8,
    b"double": 8,
    b"float2": 8,
    b"int2": 8,
    b"uint2": 8,
    b"float3": 12,
    b"int3": 12,
    b"float4": 16,
    b"int4": 16,
    b"uint4": 16,
    b"double2": 16,
    b"double4": 32,
}
"""Bytes of types whose size is the same on both sides; ``long`` is not among them, it differs by host."""
_DEEPEST = 12
_MOST_NAMES = 256


def size_of(words: bytes) -> int | None:
    """Return the size of a type from its words; None where it is not known here."""
    return SIZES.get(b" ".join(word for word in words.split() if word not in (b"const", b"volatile")))


def constant(file: CudaFile, expression: Argument, at: int) -> int | None:
    """Return the value of an expression; None where the file does not tell it for certain.

    Names of macros with one definition, of ``const`` and ``constexpr`` variables, and ``sizeof`` are followed.
    Expressions with floating-point numbers, calls and casts are not known.

    Args:
        file: The source.
        expression: Its tokens.
        at: Offset at which the names are meant.
    """
    return _value(file, expression, at, 0, iter(range(_MOST_NAMES)))


def _value(file: CudaFile, expression: Argument, at: int, depth: int, left: Iterator[int]) -> int | None:
    """Return the value of an expression.

    Args:
        file: The source.
        expression: Its tokens.
        at: Offset at which the names are meant.
        depth: How many names were followed to it.
        left: Has an item for each name that may still be followed: names of names of names are exponentially many.
    """
    words: list[bytes] = []
    index = expression.first
    while index < expression.last:
        token = file.tokens[index]
        if token.text == b"sizeof":
            size, index = _sizeof(file, index, at)
            if size is None:
                return None
            words.append(b"%d" % size)
            continue
        if token.kind == Kind.NAME:
            value = _named(file, token, at, depth, left)
            if value is None:
                return None
            words += [b"(", b"%d" % value, b")"] if value >= 0 else [b"(", b"-", b"%d" % -value, b")"]
        elif token.kind in (Kind.NUMBER, Kind.PUNCTUATION) and b"." not in token.text:
            words.append(token.text)
        else:
            return None
        index += 1
    return evaluated(words, {})


def _sizeof(file: CudaFile, index: int, at: int) -> tuple[int | None, int]:
    tokens, partner = file.tokens, file.partner
    if tokens[index + 1].text != b"(" or index + 1 not in partner:
        return None, index + 1
    closed = partner[index + 1]
    inner = tokens[index + 2 : closed]
    if inner and inner[-1].text == b"*":
        return 8, closed + 1
    size = size_of(b" ".join(one.text for one in inner))
    if size is None and len(inner) == 1:
        declared = file.declaration_of(inner[0].text, at)
        if declared is not None and not declared.extents:
            size = 8 if declared.pointers else size_of(declared.type)
    return size, closed + 1


def _named(file: CudaFile, token: Token, at: int, depth: int, left: Iterator[int]) -> int | None:
    if depth > _DEEPEST or next(left, None) is None:
        return None
    macros = file.macros.get(token.text)
    if macros:
        if len(macros) > 1 or macros[0].parameters is not None or macros[0].first == macros[0].last:
            return None
        macro = macros[0]
        return _value(file, Argument(macro.start, macro.end, macro.first, macro.last), at, depth + 1, left)
    declared = file.declaration_of(token.text, at)
    if declared is None or declared.value is None or not declared.qualifiers & {b"const", b"constexpr"}:
        return None
    return _value(file, declared.value, at, depth + 1, left)
