"""Sizes that a source tells: of LDS, by variables that nothing changes, structures and template arguments too."""

from __future__ import annotations

from collections.abc import Mapping

from rocmend.port.cuda.conditions import evaluated
from rocmend.port.cuda.constants import constant, size_of
from rocmend.port.cuda.declarations import Declaration, declared_at
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import Argument, Call, arguments, call_at, template_end
from rocmend.port.wave.variables import assigned_again

__all__ = ["lds_bytes", "template_names", "template_values", "value"]

_DEEPEST = 6
_NOTHING: Mapping[bytes, int] = {}


def value(
    file: CudaFile, expression: Argument, at: int, known: Mapping[bytes, int] = _NOTHING, *, depth: int = 0
) -> int | None:
    """Return an expression's value, also by local variables that nothing changes; None where it is not known.

    Args:
        file: The source.
        expression: Its tokens.
        at: Offset at which the names are meant.
        known: Values of names, such as a template's parameters.
        depth: How many variables were followed to it.
    """
    if depth > _DEEPEST:
        return None
    words: list[bytes] = []
    index = expression.first
    while index < expression.last:
        token = file.tokens[index]
        last = index + 1
        if token.text == b"sizeof" and index + 1 in file.partner:
            last = file.partner[index + 1] + 1
            if last - index == 4 and file.tokens[index + 2].text in known:  # of a template's parameter
                words.append(b"%d" % known[file.tokens[index + 2].text])
                index = last
                continue
        call = call_at(file.tokens, file.partner, index) if token.kind == Kind.NAME and last == index + 1 else None
        if call is not None:
            found = _called(file, call, known, depth)
            if found is None:
                return None
            words += _number(found)
            last = call.closed + 1
        elif token.kind == Kind.NAME:
            part = Argument(token.start, file.tokens[last - 1].end, index, last)
            found = known.get(token.text, constant(file, part, at))
            found = _variable(file, token.text, at, known, depth) if found is None else found
            if found is None:
                return None
            words += _number(found)
        else:
            words.append(token.text)
        index = last
    return evaluated(words, {})


def _number(found: int) -> list[bytes]:
    return [b"(", b"%d" % found, b")"] if found >= 0 else [b"(", b"-", b"%d" % -found, b")"]


def _called(file: CudaFile, call: Call, known: Mapping[bytes, int], depth: int) -> int | None:
    """Return what a function of the file returns that does nothing else, for known arguments."""
    for function in file.functions:
        first, last = file.token_at(function.start) + 1, file.token_at(function.end) - 1
        if function.name.text != call.name.text or len(function.parameters) != len(call.args):
            continue
        words = [token.text for token in file.tokens[first:last]]
        if words[:1] != [b"return"] or words.index(b";") != len(words) - 1:
            return None
        given = [value(file, one, call.start, known, depth=depth + 1) for one in call.args]
        own = {_name(file, one): size for one, size in zip(function.parameters, given, strict=True) if size is not None}
        result = Argument(file.tokens[first + 1].start, file.tokens[last - 2].end, first + 1, last - 1)
        return value(file, result, function.start, own, depth=depth + 1) if len(own) == len(given) else None
    return None


def _variable(file: CudaFile, name: bytes, at: int, known: Mapping[bytes, int], depth: int) -> int | None:
    function, declared = file.function_at(at), file.declaration_of(name, at)
    if function is None or declared is None or declared.value is None or declared.pointers:
        return None
    if not declared.qualifiers & {b"const", b"constexpr"} and (
        declared.name.start < function.head or assigned_again(file, function, declared)
    ):
        return None
    return value(file, declared.value, declared.name.start, known, depth=depth + 1)


def lds_bytes(file: CudaFile, declared: Declaration, known: Mapping[bytes, int]) -> int | None:
    """Return the bytes of an array or a structure, without padding; None where they are not known."""
    size = 8 if declared.pointers else size_of(declared.type) or known.get(declared.type)
    size = _of_structure(file, declared.type, known) if size is None else size
    if size is None or b"extern" in declared.qualifiers:
        return None
    for extent in declared.extents:
        count = value(file, extent, declared.name.start, known)
        if count is None:
            return None
        size *= count
    return size


def _of_structure(file: CudaFile, name: bytes, known: Mapping[bytes, int]) -> int | None:
    """Return the sum of a structure's members whose sizes are known."""
    for index in file.names(name):
        opened = index + 1
        if file.tokens[index - 1].text != b"struct" or opened not in file.partner or file.tokens[opened].text != b"{":
            continue
        found = (
            declared_at(file.outline, at)
            for at in range(opened + 1, file.partner[opened])
            if file.outline.around[at] == opened
        )
        sizes = [
            lds_bytes(file, one, known)
            for one in found
            if one is not None and one.type != name and b"static" not in one.qualifiers
        ]
        return sum(size for size in sizes if size is not None) or None
    return None


def template_names(file: CudaFile, function: Function) -> list[bytes]:
    """Return the names of a function's template parameters, in order."""
    first = file.token_at(function.head)
    if file.tokens[first].text != b"template":
        return []
    end = template_end(file.tokens, file.partner, first + 1)
    parts = arguments(file.tokens, file.partner, first + 1, end) if end > 0 else ()
    return [_name(file, part) for part in parts]


def _name(file: CudaFile, part: Argument) -> bytes:
    words = [token.text for token in file.tokens[part.first : part.last]]
    return words[words.index(b"=") - 1] if b"=" in words[1:] else words[-1] if words else b""


def template_values(file: CudaFile, kernel: Argument) -> list[int | None]:
    """Return the template arguments of a launched kernel, of types their sizes; None for what is not known."""
    opened = kernel.first + 1
    if opened >= kernel.last or file.tokens[opened].text != b"<":
        return []
    end = template_end(file.tokens, file.partner, opened)
    parts = arguments(file.tokens, file.partner, opened, end) if end > 0 else ()
    sizes = [size_of(file.data[part.start : part.end]) for part in parts]
    return [value(file, part, kernel.start) if size is None else size for part, size in zip(parts, sizes, strict=True)]
