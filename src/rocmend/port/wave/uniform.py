"""Whether all lanes of a warp, or all threads of a block, decide the same: what a condition's tokens show, no more."""

from __future__ import annotations

import re

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.wave.tokens import text_at

__all__ = ["same_in_a_block", "same_in_a_warp", "template_parameter"]

_WORDS = frozenset(
    b"true false nullptr const constexpr int unsigned long short char float double bool auto static_cast sizeof "
    b"uint32_t int32_t uint64_t int64_t size_t and or not min max blockIdx blockDim gridDim x y z std".split()
)
_VOTES = frozenset(
    b"__any_sync __all_sync __uni_sync __any __all warp32_any_sync warp32_all_sync warp32_uni_sync warp32_any "
    b"warp32_all".split()
)
_BLOCK_VOTES = frozenset((b"__syncthreads_or", b"__syncthreads_and", b"__syncthreads_count"))
_CONSTANT = re.compile(rb"[A-Z][A-Z0-9_]*|k[A-Z]\w*")
_WIDTHS = re.compile(rb"32[uUlL]*|warpSize|k?[Ww]arp_?[Ss]ize|[A-Z0-9_]*WARP_?(SIZE|THREADS|WIDTH)[A-Z0-9_]*")
_CHANGES = frozenset((b"=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"<<=", b">>=", b"++", b"--"))
_DEEPEST = 6


def same_in_a_warp(file: CudaFile, function: Function, first: int, last: int) -> bool:
    """Tell whether an expression has the same value in all lanes of a warp, as far as its tokens show it.

    Args:
        file: The source.
        function: The function that the expression stands in.
        first: Index of its first token.
        last: Index after its last one.
    """
    return _same(file, function, (first, last), warp=True, depth=0)


def same_in_a_block(file: CudaFile, function: Function, first: int, last: int) -> bool:
    """Tell the same of all threads of a block."""
    return _same(file, function, (first, last), warp=False, depth=0)


def _same(file: CudaFile, function: Function, where: tuple[int, int], *, warp: bool, depth: int) -> bool:
    tokens = file.tokens
    at, last = where
    while at < last:
        token = tokens[at]
        votes = token.text in _BLOCK_VOTES or (warp and token.text in _VOTES)
        if token.kind != Kind.NAME or token.text in _WORDS:
            at += 1
        elif votes and at + 1 in file.partner:
            at = file.partner[at + 1] + 1
        elif token.text != b"threadIdx" and (
            (at > where[0] and tokens[at - 1].text in (b".", b"->")) or _known(file, function, at, warp, depth)
        ):
            at += 1
        else:
            after = _warp_number(file, at) if warp else -1
            if after < 0 or (token.text != b"threadIdx" and not _stands_for_thread(file, function, at)):
                return False
            at = after
    return True


def _warp_number(file: CudaFile, at: int) -> int:
    """Return the index after ``threadIdx.x / 32``, ``threadIdx.x >> 5`` or ``threadIdx.x < 64``; -1 for other things.

    ``at`` is the index of ``threadIdx`` or of a variable that stands for it.
    """
    tokens = file.tokens
    sign = at + 3 if tokens[at].text == b"threadIdx" else at + 1
    if sign + 1 >= len(tokens) or (sign == at + 3 and tokens[at + 2].text != b"x"):
        return -1
    number = tokens[sign + 1].text
    divides = tokens[sign].text == b"/" and _WIDTHS.fullmatch(number)
    shifts = tokens[sign].text == b">>" and number == b"5"
    whole = tokens[sign].text in (b"<", b">=") and (_WIDTHS.fullmatch(number) or _whole_warps(number))
    return sign + 2 if divides or shifts or whole else -1


def _whole_warps(number: bytes) -> bool:
    digits = number.rstrip(b"uUlL")
    return digits.isdigit() and int(digits) % 32 == 0


def _stands_for_thread(file: CudaFile, function: Function, at: int) -> bool:
    """Tell whether a variable is the thread's number in the block or the grid, and stays it."""
    name = file.tokens[at]
    declared = file.declaration_of(name.text, name.start)
    if declared is None or declared.value is None or _changed(file, function, name.text, declared.at):
        return False
    words = {
        token.text
        for token in file.tokens[declared.value.first : declared.value.last]
        if token.kind != Kind.PUNCTUATION or token.text not in (b".", b"+", b"*", b"(", b")")
    }
    return b"threadIdx" in words and words <= {b"threadIdx", b"blockIdx", b"blockDim", b"x", b"int", b"unsigned"}


def _known(file: CudaFile, function: Function, at: int, warp: bool, depth: int) -> bool:
    name = file.tokens[at]
    if text_at(file, at + 1) == b"(":
        return False
    declared = file.declaration_of(name.text, name.start)
    if declared is None:
        return bool(_CONSTANT.fullmatch(name.text)) and not _of_threads(file, name.text)
    if b"constexpr" in declared.qualifiers or template_parameter(file, declared.at):
        return True
    if _changed(file, function, name.text, declared.at):
        return False
    if any(one.start <= declared.name.start < one.end for one in function.parameters):
        return b"__global__" in function.qualifiers
    value = declared.value
    return (
        value is not None
        and depth < _DEEPEST
        and _same(file, function, (value.first, value.last), warp=warp, depth=depth + 1)
    )


def _of_threads(file: CudaFile, name: bytes) -> bool:
    """Tell whether a macro of that name is made of a lane's own numbers."""
    return any(
        file.tokens[index].text in (b"threadIdx", b"laneid")
        for macro in file.macros.get(name, ())
        for index in range(macro.first, macro.last)
    )


def template_parameter(file: CudaFile, at: int) -> bool:
    """Tell whether the name at an index is declared there as a parameter of a template."""
    while at > 0 and file.tokens[at].text not in (b";", b"{", b"}", b"(", b")", b"<"):
        at -= 1
    return file.tokens[at].text == b"<" and file.tokens[at - 1].text == b"template"


def _changed(file: CudaFile, function: Function, name: bytes, declared: int) -> bool:
    """Tell whether a variable may get another value than the one that it was declared with."""
    tokens = file.tokens
    for index in file.names(name, shared=False):
        if index == declared or not function.head <= tokens[index].start < function.end:
            continue
        after = tokens[index + 1].text if index + 1 < len(tokens) else b""
        before = tokens[index - 1].text
        if after in _CHANGES or before in (b"++", b"--"):
            return True
        if before == b"&" and tokens[index - 2].text in (b"(", b",", b"=", b"return"):
            return True
    return False
