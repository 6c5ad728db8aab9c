"""Sizes that a source tells: by variables that nothing changes, members of structures, template arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rocmend.port.cuda.conditions import evaluated
from rocmend.port.cuda.constants import constant, size_of
from rocmend.port.cuda.declarations import declared_at
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import Argument, Call, arguments, call_at, template_end
from rocmend.port.wave.tokens import text_at
from rocmend.port.wave.variables import assigned_again

__all__ = ["Known", "Structure", "bound", "structure_of", "template_arguments", "template_parameters", "value"]

Known = Mapping[bytes, "int | Argument"]
"""What a template's parameters are: numbers, sizes of types, and the tokens of types that are structures."""

_DEEPEST = 8
_NOTHING: Known = {}
_LONGEST_HEAD = 64
_KINDS = (b"struct", b"class", b"union", b"namespace", b"enum")
_NO_NAMES = frozenset(
    b"typename struct class union const volatile extern static __shared__ __device__ __constant__ inline".split()
)


class Structure(NamedTuple):
    """A structure, union, enumeration or namespace that the file defines.

    Attributes:
        body: Index of its ``{``.
        union: Whether it is a union.
        known: What its template's parameters are.
    """

    body: int
    union: bool
    known: Known


def value(file: CudaFile, expression: Argument, at: int, known: Known = _NOTHING, *, depth: int = 0) -> int | None:
    """Return an expression's value, also by local variables that nothing changes; None where it is not known.

    Args:
        file: The source.
        expression: Its tokens.
        at: Offset at which the names are meant.
        known: What names are, such as a template's parameters.
        depth: How many variables were followed to it.
    """
    if depth > _DEEPEST:
        return None
    words: list[bytes] = []
    index = expression.first
    while index < expression.last:
        token = file.tokens[index]
        if token.kind != Kind.NAME:
            words.append(token.text)
            index += 1
            continue
        found, index = _operand(file, index, at, known, depth)
        if found is None:
            return None
        words += [b"(", b"%d" % found, b")"] if found >= 0 else [b"(", b"-", b"%d" % -found, b")"]
    return evaluated(words, {})


def _operand(file: CudaFile, index: int, at: int, known: Known, depth: int) -> tuple[int | None, int]:
    """Return the value of the operand that begins with the name at an index, and the index after it."""
    token = file.tokens[index]
    if token.text == b"sizeof" and index + 1 in file.partner:
        last = file.partner[index + 1] + 1
        inner = known.get(file.tokens[index + 2].text) if last - index == 4 else None
        if isinstance(inner, int):  # of a template's parameter
            return inner, last
        return constant(file, Argument(token.start, file.tokens[last - 1].end, index, last), at), last
    member = _member_after(file, index)
    if member > index:
        owner = structure_of(file, index, member - 1, known, depth=depth + 1)
        found = None if owner is None else _member(file, owner, file.tokens[member].text, depth + 1)
        return found, member + 1
    call = call_at(file.tokens, file.partner, index)
    if call is not None:
        return _called(file, call, known, depth), call.closed + 1
    told = known.get(token.text)
    if told is None:
        told = constant(file, Argument(token.start, token.end, index, index + 1), at)
    if told is None:
        told = _variable(file, token.text, at, known, depth)
    return told if isinstance(told, int) else None, index + 1


def _member_after(file: CudaFile, index: int) -> int:
    """Return the index of the last name in ``a::b``, ``A<3>::b``; that of the first where nothing follows it."""
    at = index
    while True:
        after = at + 1
        if text_at(file, after) == b"<":
            after = template_end(file.tokens, file.partner, after) + 1
        if after <= 0 or text_at(file, after) != b"::" or after + 1 >= len(file.tokens):
            return at
        if file.tokens[after + 1].kind != Kind.NAME:
            return at
        at = after + 1


def structure_of(file: CudaFile, first: int, last: int, known: Known, *, depth: int = 0) -> Structure | None:
    """Return the structure that the words of a type name; None where the file has none, or several, of its name."""
    while first < last and file.tokens[first].text in _NO_NAMES:
        first += 1
    while text_at(file, first + 1) == b"::" and first + 2 < last:
        first += 2
    if first >= last or depth > _DEEPEST:
        return None
    name = file.tokens[first].text
    given = known.get(name)
    if isinstance(given, Argument):
        rest = {own: one for own, one in known.items() if own != name}
        return structure_of(file, given.first, given.last, rest, depth=depth + 1)
    aliased = [at for at in file.names(name) if text_at(file, at - 1) == b"using" and text_at(file, at + 1) == b"="]
    if len(aliased) == 1:
        end = aliased[0] + 2
        while end < len(file.tokens) and file.tokens[end].text != b";":
            end += 1
        return structure_of(file, aliased[0] + 2, end, known, depth=depth + 1)
    bodies = [(at, body) for at in file.names(name) if (body := _body(file, at)) > 0]
    if len(bodies) != 1:
        return None
    at, body = bodies[0]
    own: Known = _NOTHING
    if text_at(file, at - 2) == b">":
        parameters = template_parameters(file, _template_before(file, at - 2))
        own = bound(file, parameters, template_arguments(file, first, known))
    return Structure(body, text_at(file, at - 1) == b"union", own)


def _body(file: CudaFile, at: int) -> int:
    """Return the index of the brace that a definition of the name at an index opens; -1 where it is none."""
    if text_at(file, at - 1) not in _KINDS:
        return -1
    after = at + 1
    while after - at < _LONGEST_HEAD and text_at(file, after) not in (b"{", b";", b"<", b"(", b"=", b""):
        after += 1
    return after if text_at(file, after) == b"{" and after in file.partner else -1


def _template_before(file: CudaFile, closed: int) -> int:
    """Return the index of the ``template`` whose parameters end at an index; -1 where there is none."""
    for at in range(closed, max(-1, closed - 4 * _LONGEST_HEAD), -1):
        if file.tokens[at].text == b"template":
            return at if _head_end(file, at + 1) == closed else -1
    return -1


def _member(file: CudaFile, owner: Structure, name: bytes, depth: int) -> int | None:
    """Return the value of a constant or an enumerator of a structure."""
    for index in file.names(name):
        around = file.outline.around[index]
        if around == owner.body:
            declared = declared_at(file.outline, index)
            if declared is not None and declared.value is not None and declared.qualifiers & {b"const", b"constexpr"}:
                return value(file, declared.value, declared.name.start, owner.known, depth=depth)
        inside = around == owner.body or (around > 0 and file.outline.around[around] == owner.body)
        if inside and (given := _enumerated(file, index)) is not None:
            return value(file, given, given.start, owner.known, depth=depth)
    return None


def _enumerated(file: CudaFile, index: int) -> Argument | None:
    """Return what the enumerator at an index is set to; None where there is none."""
    opened = file.outline.around[index]
    if b"enum" not in (text_at(file, opened - 1), text_at(file, opened - 2)) or text_at(file, index + 1) != b"=":
        return None
    parts = arguments(file.tokens, file.partner, opened, file.partner[opened])
    given = next((one for one in parts if one.first == index), None)
    return None if given is None else Argument(file.tokens[index + 2].start, given.end, index + 2, given.last)


def _called(file: CudaFile, call: Call, known: Known, depth: int) -> int | None:
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


def _variable(file: CudaFile, name: bytes, at: int, known: Known, depth: int) -> int | None:
    function, declared = file.function_at(at), file.declaration_of(name, at)
    if declared is None:
        return _enumerator(file, name, at, known, depth)
    if declared.value is None or declared.pointers:
        return None
    if not declared.qualifiers & {b"const", b"constexpr"} and (
        function is None or declared.name.start < function.head or assigned_again(file, function, declared)
    ):
        return None
    return value(file, declared.value, declared.name.start, known, depth=depth + 1)


def _enumerator(file: CudaFile, name: bytes, at: int, known: Known, depth: int) -> int | None:
    """Return the value of an enumerator that is known at an offset."""
    for index in file.names(name):
        given = _enumerated(file, index)
        around = file.outline.around[file.outline.around[index]] if given is not None else -1
        holds = around < 0 or file.tokens[around].start < at < file.tokens[file.partner[around]].end
        if given is not None and holds:
            return value(file, given, given.start, known, depth=depth + 1)
    return None


def template_parameters(file: CudaFile, first: int) -> list[tuple[bytes, Argument | None]]:
    """Return the names and defaults of the parameters of the template whose head begins at an index, in order."""
    if first < 0 or file.tokens[first].text != b"template":
        return []
    end = _head_end(file, first + 1)
    parts = arguments(file.tokens, file.partner, first + 1, end) if end > 0 else ()
    return [(_name(file, part), _default(file, part)) for part in parts]


def _head_end(file: CudaFile, opened: int) -> int:
    """Return the index of the ``>`` that ends a template's head, with its defaults; -1 where there is none."""
    depth, at = 0, opened
    while at < len(file.tokens) and at - opened < 4 * _LONGEST_HEAD:
        text = file.tokens[at].text
        if text in (b";", b"{", b"}"):
            return -1
        depth += (text == b"<") - (len(text) if text in (b">", b">>") else 0)
        if depth <= 0:
            return at
        at = file.partner[at] + 1 if text == b"(" and at in file.partner else at + 1
    return -1


def _default(file: CudaFile, part: Argument) -> Argument | None:
    sign = next((at for at in range(part.first, part.last) if file.tokens[at].text == b"="), part.last)
    if sign + 1 >= part.last:
        return None
    return Argument(file.tokens[sign + 1].start, part.end, sign + 1, part.last)


def _name(file: CudaFile, part: Argument) -> bytes:
    words = [token.text for token in file.tokens[part.first : part.last]]
    return words[words.index(b"=") - 1] if b"=" in words[1:] else words[-1] if words else b""


def template_arguments(file: CudaFile, name: int, known: Known = _NOTHING) -> list[int | Argument | None]:
    """Return the template arguments after the name at an index: of numbers the values, of types what is known.

    That is a type's size, or its tokens. None for what is not known.
    """
    opened = name + 1
    end = template_end(file.tokens, file.partner, opened) if text_at(file, opened) == b"<" else -1
    parts = arguments(file.tokens, file.partner, opened, end) if end > 0 else ()
    return list(_told(file, parts, known))


def _told(file: CudaFile, parts: Sequence[Argument], known: Known) -> Iterator[int | Argument | None]:
    for part in parts:
        size = size_of(file.data[part.start : part.end])
        size = value(file, part, part.start, known) if size is None else size
        given = known.get(file.tokens[part.first].text) if part.last - part.first == 1 else None
        yield size if size is not None else given or (part if file.tokens[part.first].kind == Kind.NAME else None)


def bound(
    file: CudaFile,
    parameters: Sequence[tuple[bytes, Argument | None]],
    given: Sequence[int | Argument | None],
) -> dict[bytes, int | Argument]:
    """Return what a template's parameters are for given arguments, by their defaults where fewer are given."""
    known: dict[bytes, int | Argument] = {}
    for number, (name, default) in enumerate(parameters):
        told = given[number] if number < len(given) else None
        if number >= len(given) and default is not None:
            told = next(_told(file, (default,), known))
        if told is not None:
            known[name] = told
    return known
