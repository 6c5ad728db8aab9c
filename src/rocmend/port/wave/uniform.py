"""Whether all lanes of a warp, or all threads of a block, decide the same: what a condition's tokens show, no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from rocmend.port.cuda.constants import constant
from rocmend.port.cuda.declarations import Declaration
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import Argument, call_at
from rocmend.port.wave.asked import ask
from rocmend.port.wave.blocks import warps_are_rows
from rocmend.port.wave.statements import Statement, hides_its_condition, statements, walk
from rocmend.port.wave.template_names import of_a_template, template_parameter
from rocmend.port.wave.tokens import text_at
from rocmend.port.wave.variables import changed

__all__ = ["same_in_a_block", "same_in_a_warp", "same_in_a_wavefront"]

_WORDS = frozenset(
    b"true false nullptr const constexpr int unsigned long short char float double bool auto static_cast sizeof "
    b"uint32_t int32_t uint64_t int64_t size_t and or not min max blockIdx blockDim gridDim std if else while for "
    b"switch".split()
)
_VOTES = frozenset(
    b"__any_sync __all_sync __uni_sync __any __all __ballot_sync __ballot __reduce_add_sync __reduce_max_sync "
    b"__reduce_min_sync __reduce_or_sync __reduce_and_sync __reduce_xor_sync warp32_any_sync warp32_all_sync "
    b"warp32_uni_sync warp32_any warp32_all warp32_ballot_sync warp32_ballot".split()
)
_BROADCASTS = frozenset(b"__shfl_sync __shfl warp32_shfl_sync warp32_shfl".split())
"""Shuffles that give all lanes the value of one, where that is the same one for all of them."""
_BLOCK_VOTES = frozenset((b"__syncthreads_or", b"__syncthreads_and", b"__syncthreads_count"))
_JUMPS = (b"break", b"continue", b"goto")
_MACRO = re.compile(rb"[A-Z][A-Z0-9_]{2,}")
_CONSTANT = re.compile(rb"[A-Z][A-Z0-9_]*|k[A-Z]\w*")
_OF_A_LANE = re.compile(
    rb"LANE|TID|RANK|IDX|INDEX|LEADER|MASTER|ELECT|(?:^|_)(?:ID|THREAD|ACTIVE)(?:_|$)|^T?[IJXYZ]$|LID|GID",
    re.IGNORECASE,
)
_WIDTHS = re.compile(rb"k?(WARP|Warp|warp)_?(SIZE|Size|size|THREADS|Threads|threads)|warpSize")
_WIDTH = re.compile(rb"(?:32|0[xX]20)[uUlL]*")
_BEFORE_VALUE = frozenset((b"(", b",", b"&&", b"||", b"and", b"or", b"==", b"!=", b"?", b":", b"=", b"return", b"not"))
_BEFORE_QUOTIENT = _BEFORE_VALUE | {b"<", b">", b"<=", b">="}
_BINDS_TIGHTER = frozenset((b"*", b"/", b"%", b"+", b"-", b"<<", b">>", b".", b"["))
_THREAD = frozenset(
    (
        b"threadIdx.x",
        b"(int)threadIdx.x",
        b"int(threadIdx.x)",
        *(
            form % (one, other)
            for form in (b"%s*%s+threadIdx.x", b"threadIdx.x+%s*%s", b"(%s*%s)+threadIdx.x", b"threadIdx.x+(%s*%s)")
            for one, other in ((b"blockIdx.x", b"blockDim.x"), (b"blockDim.x", b"blockIdx.x"))
        ),
    )
)
_SIGNS = frozenset((b"=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"<<=", b">>="))
_STEPS = frozenset((b"++", b"--"))
_MOST_ASKED = 512
"""Questions about variables that change, in one file: each may lead to others."""
_DEEPEST = 6


def same_in_a_warp(file: CudaFile, function: Function, first: int, last: int) -> bool:
    """Tell whether an expression has the same value in all lanes of a warp, as far as its tokens show it.

    Args:
        file: The source.
        function: The function that the expression stands in.
        first: Index of its first token.
        last: Index after its last one.
    """
    return _same(file, function, (first, last), lanes=32, depth=0)


def same_in_a_wavefront(file: CudaFile, function: Function, first: int, last: int) -> bool:
    """Tell the same of 64 lanes: of a wavefront of any size."""
    return _same(file, function, (first, last), lanes=64, depth=0) or same_in_a_block(file, function, first, last)


def same_in_a_block(file: CudaFile, function: Function, first: int, last: int) -> bool:
    """Tell the same of all threads of a block."""
    return _same(file, function, (first, last), lanes=0, depth=0)


def _same(  # noqa: PLR0913  a question has as many parts as it has
    file: CudaFile,
    function: Function,
    where: tuple[int, int],
    *,
    lanes: int,
    depth: int,
    but: frozenset[bytes] = frozenset(),
) -> bool:
    tokens = file.tokens
    at, last = where
    while at < last:
        token = tokens[at]
        if token.kind != Kind.NAME or token.text in _WORDS or token.text in but:
            at += 1
        elif at > where[0] and tokens[at - 1].text in (b".", b"->"):
            if text_at(file, at + 1) in (b"(", b"<"):
                return False  # a method may ask which lane it is
            at += 1
        elif _voted(file, function, at, lanes, depth) or _expands_alike(file, function, at, lanes, depth):
            at = file.partner[at + 1] + 1
        elif token.text != b"threadIdx" and _known(file, function, at, lanes, depth):
            at += 1
        else:
            after = _warp_number(file, at, where, lanes) if lanes else -1
            number = _thread_number(file, function, at) if after >= 0 else b""
            if not number or not warps_are_rows(file, function, lanes, of_grid=b"blockIdx" in number):
                return False
            at = after
    return True


def _voted(file: CudaFile, function: Function, at: int, lanes: int, depth: int) -> bool:
    """Tell whether a vote of the block stands there, or one of all lanes of a warp that are there.

    The latter has no mask, or one that is the same for all: each part of a warp with its own mask has its own result.
    """
    name = file.tokens[at].text
    wanted = name in _BLOCK_VOTES or (lanes == 32 and name in _VOTES | _BROADCASTS)
    call = call_at(file.tokens, file.partner, at) if wanted else None
    if call is None or depth >= _DEEPEST:
        return False
    if name in _BLOCK_VOTES:
        return True
    masked = name.endswith(b"_sync")
    asked = list(call.args[:1] if masked else ())
    if name in _BROADCASTS:
        lane = call.args[1 + masked : 2 + masked]
        if not lane or len(call.args) > 2 + masked:
            return False
        asked += lane
    elif masked and not asked:
        return False
    return all(_same(file, function, (one.first, one.last), lanes=lanes, depth=depth + 1) for one in asked)


def _expands_alike(file: CudaFile, function: Function, at: int, lanes: int, depth: int) -> bool:
    """Tell whether a macro with arguments stands there that is the same for all lanes, as its arguments are."""
    macros = file.macros.get(file.tokens[at].text, ())
    opened = at + 1
    if not macros or depth >= _DEEPEST or text_at(file, opened) != b"(" or opened not in file.partner:
        return False
    given = (opened + 1, file.partner[opened])
    return _same(file, function, given, lanes=lanes, depth=depth + 1) and all(
        one.parameters is not None
        and _same(file, function, (one.first, one.last), lanes=lanes, depth=depth + 1, but=frozenset(one.parameters))
        for one in macros
    )


def _warp_number(file: CudaFile, at: int, where: tuple[int, int], lanes: int) -> int:
    """Return the index after ``threadIdx.x / 32``, ``threadIdx.x >> 5`` or ``threadIdx.x < 64``; -1 for other things.

    What stands around it must not bind tighter: ``2 * threadIdx.x / 32`` and ``threadIdx.x < 32 - 1`` are not.

    Args:
        file: The source.
        at: Index of ``threadIdx`` or of a variable that stands for it.
        where: The expression around it.
        lanes: How many lanes are to have the same value: 32 or 64.
    """
    tokens = file.tokens
    sign = at + 3 if tokens[at].text == b"threadIdx" else at + 1
    if sign + 1 >= len(tokens) or (sign == at + 3 and tokens[at + 2].text != b"x"):
        return -1
    before = tokens[at - 1].text if at > where[0] else b"("
    after = tokens[sign + 2].text if sign + 2 < where[1] else b")"
    if tokens[sign].text == b"/":
        fits = (
            _is_whole(file, sign + 1, lanes)
            and (before in _BEFORE_QUOTIENT or _adds(file, at - 1, where[0]))
            and after != b"."
        )
    elif tokens[sign].text == b">>":
        fits = (
            tokens[sign + 1].text == (b"5" if lanes == 32 else b"6")
            and before in _BEFORE_QUOTIENT
            and after not in _BINDS_TIGHTER - {b">>"}
        )
    else:
        whole = _is_whole(file, sign + 1, lanes)
        fits = tokens[sign].text in (b"<", b">=") and whole and before in _BEFORE_VALUE and after not in _BINDS_TIGHTER
    return sign + 2 if fits else -1


def _adds(file: CudaFile, sign: int, first: int) -> bool:
    """Tell whether a ``+`` adds to what stands before it."""
    if sign <= first or text_at(file, sign) != b"+":
        return False
    before = file.tokens[sign - 1]
    return before.kind in (Kind.NAME, Kind.NUMBER) or before.text in (b")", b"]")


def _is_whole(file: CudaFile, at: int, lanes: int) -> bool:
    """Tell whether a token is a multiple of a number of lanes: a number, a constant of the file, or a warp's size."""
    if lanes == 32 and _is_32(file, at):
        return True
    name = file.tokens[at]
    if name.kind == Kind.NUMBER:
        return _whole_warps(name.text, lanes)
    value = constant(file, Argument(name.start, name.end, at, at + 1), name.start)
    if value is None:
        ask(file, name.text)
    return value is not None and value > 0 and value % lanes == 0


def _is_32(file: CudaFile, at: int) -> bool:
    """Tell whether a token is 32 or a name of a warp's size, which the file may say itself."""
    name = file.tokens[at]
    if name.kind == Kind.NUMBER:
        return _WIDTH.fullmatch(name.text) is not None
    if not _WIDTHS.fullmatch(name.text):
        return False
    if name.text in file.macros or file.declarations_of(name.text):
        return constant(file, Argument(name.start, name.end, at, at + 1), name.start) == 32
    ask(file, name.text)
    return not any(template_parameter(file, index) for index in file.names(name.text, shared=False))


def _whole_warps(number: bytes, lanes: int) -> bool:
    digits = number.rstrip(b"uUlL")
    return digits.isdigit() and not digits.startswith(b"0") and int(digits) % lanes == 0


def _thread_number(file: CudaFile, function: Function, at: int) -> bytes:
    """Return the thread's number in the block or the grid that a name is or stands for, and stays; else nothing."""
    name = file.tokens[at]
    if name.text == b"threadIdx":
        return name.text
    declared = file.declaration_of(name.text, name.start)
    if declared is None or declared.value is None or changed(file, function, declared):
        return b""
    text = b"".join(token.text for token in file.tokens[declared.value.first : declared.value.last])
    return text if text in _THREAD else b""


def _known(  # noqa: PLR0911  each return names one kind of variable
    file: CudaFile, function: Function, at: int, lanes: int, depth: int
) -> bool:
    name = file.tokens[at]
    if text_at(file, at + 1) == b"(" or depth >= _DEEPEST:
        ask(file, name.text)
        return False
    declared = file.declaration_of(name.text, name.start)
    if declared is None:
        return _known_name(file, function, name.text, lanes, depth)
    if b"constexpr" in declared.qualifiers or b"__shared__" in declared.qualifiers:
        return True  # of LDS, the index decides
    if declared.name.start < function.start and of_a_template(file, function, name.text, function.head):
        return True
    if changed(file, function, declared) and not _changes_alike(file, function, declared, lanes, depth):
        return False
    if any(one.start <= declared.name.start < one.end for one in function.parameters):
        return b"__global__" in function.qualifiers
    inside = function.head <= declared.name.start < function.end
    if not inside and not declared.qualifiers & {b"const", b"__constant__"}:
        return False  # others may change it
    value = declared.value
    if value is None:
        return b"__constant__" in declared.qualifiers
    return _same(file, function, (value.first, value.last), lanes=lanes, depth=depth + 1)


class _Question(NamedTuple):
    """Whether a variable is the same in so many lanes of a function's threads; ``depth`` questions led to this one."""

    function: Function
    body: Statement
    lanes: int
    depth: int


class _Asked:
    """The questions of one file that are being answered, and how many were asked."""

    def __init__(self) -> None:
        self.open: set[tuple[int, int]] = set()
        self.number = 0


_asked: WeakKeyDictionary[CudaFile, _Asked] = WeakKeyDictionary()


def _changes_alike(file: CudaFile, function: Function, declared: Declaration, lanes: int, depth: int) -> bool:
    """Tell whether all lanes change a variable in the same way: by values of all, in branches that all of them take.

    Each change is a statement of its own. The variable is assumed to be the same in what it becomes and in the branches
    around the changes: it is, as long as nothing made it different.
    """
    key = declared.at, lanes
    asked = _asked.setdefault(file, _Asked())
    if key in asked.open:
        return True
    asked.number += 1
    body = statements(file, function)
    if asked.number > _MOST_ASKED or body is None or changed(file, function, declared, but=_SIGNS | _STEPS):
        return False
    uses = [at for at in file.names(declared.name.text, shared=False) if body.first <= at < body.last]
    if any(first <= at < last for first, last in _lambdas(file, body) for at in uses):
        return False  # a lambda is executed where it is called
    if any(text_at(file, at + 1) in (b".", b"->", b"[") for at in uses):
        return False  # a part of it may be set alone
    asked.open.add(key)
    question = _Question(function, body, lanes, depth + 1)
    signs = _SIGNS | _STEPS
    changes = [at for at in uses if text_at(file, at + 1) in signs or text_at(file, at - 1) in _STEPS]
    try:
        return _leaves_alike(file, question, changes) and all(
            _changes_at(file, question, index) for index in changes if index != declared.at
        )
    finally:
        asked.open.discard(key)


def _lambdas(file: CudaFile, body: Statement) -> Iterator[tuple[int, int]]:
    """Yield where lambdas begin and end that may change what is around them: those that capture all of it."""
    for at in range(body.first, body.last):
        if text_at(file, at) == b"[" and text_at(file, at + 1) in (b"&", b"="):
            opened = file.partner.get(at, body.last)
            while opened < body.last and text_at(file, opened) not in (b"{", b";"):
                opened = (
                    file.partner[opened] + 1 if text_at(file, opened) == b"(" and opened in file.partner else opened + 1
                )
            yield at, file.partner.get(opened, body.last) if text_at(file, opened) == b"{" else body.last


def _changes_at(file: CudaFile, question: _Question, index: int) -> bool:
    """Tell whether one assignment gives all lanes the same value, and all of them come to it."""
    first = index - 1 if text_at(file, index - 1) in _STEPS else index
    if text_at(file, first - 1) not in (b";", b"{", b"}", b")", b"else"):
        return False
    end = index
    while end < question.body.last and text_at(file, end) not in (b";", b")", b","):
        end = file.partner[end] + 1 if text_at(file, end) in (b"(", b"[", b"{") and end in file.partner else end + 1
    around = (one for one in walk(question.body) if one.kind != "plain" and one.first < index < one.last)
    return _alike(file, question, (min(index + 2, end), end)) and all(
        _taken_alike(file, question, one) for one in around
    )


def _leaves_alike(file: CudaFile, question: _Question, changes: list[int]) -> bool:
    """Tell whether no lane misses a change by going elsewhere: out of a loop, or past what follows in it."""
    body = question.body
    if any(_jumps(file, index) for index in range(body.first, body.last)):
        return False
    inside = [one for one in walk(body) if one.kind != "plain"]
    for end in (one for one in walk(body) if one.keyword in _JUMPS):
        around = [one for one in inside if one.first < end.first < one.last]
        if end.keyword != b"goto":
            kinds = ("loop", "switch") if end.keyword == b"break" else ("loop",)
            left = max((one for one in around if one.kind in kinds), key=lambda one: one.first, default=body)
            if not any(left.first <= at < left.last for at in changes):
                continue
            around = [one for one in around if one.first > left.first]
        if not all(_taken_alike(file, question, one) for one in around):
            return False
    return True


def _taken_alike(file: CudaFile, question: _Question, one: Statement) -> bool:
    return not hides_its_condition(file, one) and (one.condition is None or _alike(file, question, one.condition))


def _jumps(file: CudaFile, index: int) -> bool:
    """Tell whether a macro stands at an index that goes elsewhere: whether all lanes do is not looked into."""
    if _MACRO.fullmatch(file.tokens[index].text):
        ask(file, file.tokens[index].text)
    return any(
        text_at(file, at) in _JUMPS
        for one in file.macros.get(file.tokens[index].text, ())
        for at in range(one.first, one.last)
    )


def _alike(file: CudaFile, question: _Question, where: tuple[int, int]) -> bool:
    return _same(file, question.function, where, lanes=question.lanes, depth=question.depth)


def _known_name(file: CudaFile, function: Function, name: bytes, lanes: int, depth: int) -> bool:
    """Tell the same of a name that is no variable: a macro, a template's parameter, a constant of another file."""
    macros = file.macros.get(name)
    if macros:
        return all(
            one.parameters is None and _same(file, function, (one.first, one.last), lanes=lanes, depth=depth + 1)
            for one in macros
        )
    ask(file, name)
    return of_a_template(file, function, name, 0) or (bool(_CONSTANT.fullmatch(name)) and not _OF_A_LANE.search(name))
