"""Who says how many lanes a warp has: CUDA's 32, or a name that means the wavefront's 32 or 64 on ROCm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.wave.sites import wave

__all__ = ["WAVE_WIDE", "Arithmetic", "arithmetic", "keeps_to_32", "names_a_width", "undecided", "wave_wide"]

WAVE_WIDE: dict[bytes, str] = {
    b"C10_WARP_SIZE": "PyTorch's number of lanes, 64 on gfx9",
    b"WARP_SHFL": "PyTorch's shuffle, as wide as a wavefront",
    b"WARP_SHFL_DOWN": "PyTorch's shuffle, as wide as a wavefront",
    b"WARP_SHFL_UP": "PyTorch's shuffle, as wide as a wavefront",
    b"WARP_SHFL_XOR": "PyTorch's shuffle, as wide as a wavefront",
    b"WARP_BALLOT": "PyTorch's ballot, 64 bits on ROCm",
    b"WARP_ACTIVE_MASK": "PyTorch's mask of active lanes, 64 bits on ROCm",
    b"WARP_ANY": "PyTorch's vote of a whole wavefront",
    b"warp_size": "PyTorch's number of lanes, 64 on gfx9",
    b"WarpReduce": "PyTorch's reduction, as wide as a wavefront",
    b"WarpReduceSum": "PyTorch's reduction, as wide as a wavefront",
    b"WarpReduceMax": "PyTorch's reduction, as wide as a wavefront",
    b"BlockReduce": "PyTorch's reduction of a block by whole wavefronts",
    b"BlockReduceSum": "PyTorch's reduction of a block by whole wavefronts",
    b"BlockReduceMax": "PyTorch's reduction of a block by whole wavefronts",
}
"""Names of libraries that mean the whole wavefront on ROCm, and what they are."""

_OWNERS = {b"warp_size": b"cuda"} | dict.fromkeys(
    (b"WarpReduce", b"WarpReduceSum", b"WarpReduceMax", b"BlockReduce", b"BlockReduceSum", b"BlockReduceMax"),
    b"cuda_utils",
)
_NOT_ENOUGH = frozenset((b"warp_size", b"WarpReduce", b"WarpReduceSum", b"WarpReduceMax"))
"""Names that need others beside them: somebody has to know which lanes a wavefront has."""
_WIDTH = re.compile(rb"32[uUlL]*|0[xX]20[uUlL]*")
_LAST = re.compile(rb"31[uUlL]*|0[xX]1[fF][uUlL]*")
_NAMED = re.compile(
    rb"(?:k|CUDA_|GPU_|HW_)?(?:WARP|Warp|warp)_?(?:SIZE|Size|size|SZ|THREADS|Threads|threads|WIDTH|Width|width)"
    rb"|(?:k|NUM_|num_|CUDA_)?(?:THREADS|Threads|threads|LANES|Lanes|lanes)_?(?:PER|Per|per)_?(?:WARP|Warp|warp)"
)
_LANES = re.compile(rb"(\w*_)?(tid|thread_?id\w*|threadId\w*|lane\w*|idx|tidx|t)", re.IGNORECASE)


class Arithmetic(NamedTuple):
    """Arithmetic with 32 on a thread's number: its lane or its warp."""

    start: int
    end: int


def wave_wide(file: CudaFile) -> Iterator[int]:
    """Yield the indices of names that mean the whole wavefront on ROCm, in code that both sides compile."""
    own = {one.name.text for one in file.functions} | file.macros.keys()
    for index in file.names(*WAVE_WIDE):
        token = file.tokens[index]
        if token.text in own:
            continue
        if token.text in _OWNERS:
            owner = file.tokens[index - 2].text if index >= 2 and file.tokens[index - 1].text == b"::" else b""
            if owner != _OWNERS[token.text]:
                continue
        yield index


def arithmetic(file: CudaFile) -> Iterator[Arithmetic]:
    """Yield where code that both sides compile makes lanes and warps of 32 from a thread's number."""
    tokens = file.tokens
    for index, token in enumerate(tokens):
        if token.text not in (b"%", b"/", b"&", b">>") or index + 1 >= len(tokens) or index < 1:
            continue
        number = tokens[index + 1]
        lanes = token.text in (b"%", b"/") and (_WIDTH.fullmatch(number.text) or _names_32(file, number.text))
        bits = (token.text == b"&" and _LAST.fullmatch(number.text)) or (token.text == b">>" and number.text == b"5")
        if not (lanes or bits) or number.directive != token.directive:
            continue
        before = tokens[index - 1]
        of_thread = before.text in (b"x", b"y") and index >= 3 and tokens[index - 3].text == b"threadIdx"
        if (of_thread or _LANES.fullmatch(before.text)) and file.shared(token.start):
            yield Arithmetic(before.start, number.end)


def _names_32(file: CudaFile, name: bytes) -> bool:
    """Tell whether a name is one of a warp's size that the file itself sets to 32."""
    if not _NAMED.fullmatch(name):
        return False
    for macro in file.macros.get(name, ()):
        if macro.last - macro.first == 1 and _WIDTH.fullmatch(file.tokens[macro.first].text):
            return True
    return any(
        one.value is not None and _WIDTH.fullmatch(file.data[one.value.start : one.value.end])
        for one in file.declarations_of(name)
    )


def names_a_width(name: bytes) -> bool:
    """Tell whether a name is one that projects give to the number of a warp's lanes."""
    return _NAMED.fullmatch(name) is not None


def keeps_to_32(file: CudaFile) -> bool:
    """Tell whether the file works with warps of 32 lanes: by operations across lanes, ``warpSize`` or arithmetic.

    Where names of a wavefront's width stand beside it, any 32 may be that of a warp: in a launch, an array, a loop.
    """
    uses = bool(wave(file).sites) or next(file.names(b"warpSize"), None) is not None
    return uses or next(arithmetic(file), None) is not None or _says_32(file)


def _says_32(file: CudaFile) -> bool:
    for index, token in enumerate(file.tokens):
        number = token.kind == Kind.NUMBER and (_WIDTH.fullmatch(token.text) or _LAST.fullmatch(token.text))
        fifth = token.text == b"5" and file.tokens[index - 1].text == b">>"
        if (number or fifth) and file.shared(token.start):
            directive = file.directives[token.directive].name if token.directive >= 0 else b"define"
            if directive == b"define":
                return True
    return False


def undecided(file: CudaFile) -> bool:
    """Tell whether a file names a wavefront's width, but nothing in it tells who works with that many lanes."""
    return {file.tokens[index].text for index in wave_wide(file)} <= _NOT_ENOUGH
