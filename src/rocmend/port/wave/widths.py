"""Who says how many lanes a warp has: CUDA's 32, or a name that means the wavefront's 32 or 64 on ROCm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.wave.sites import wave

__all__ = ["WAVE_WIDE", "Arithmetic", "arithmetic", "keeps_to_32", "wave_wide"]

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
}
"""Names of libraries that mean the whole wavefront on ROCm, and what they are."""

_QUALIFIED = frozenset((b"warp_size",))
_OWNERS = frozenset((b"cuda",))
_WIDTH = re.compile(rb"32[uUlL]*|0[xX]20[uUlL]*")
_LAST = re.compile(rb"31[uUlL]*|0[xX]1[fF][uUlL]*")
_NAMED = re.compile(rb"k?(WARP|Warp|warp)_?(SIZE|Size|size|THREADS|Threads|threads)")
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
        if token.text in _QUALIFIED:
            owner = file.tokens[index - 2].text if index >= 2 and file.tokens[index - 1].text == b"::" else b""
            if owner not in _OWNERS:
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


def keeps_to_32(file: CudaFile) -> bool:
    """Tell whether the file works with warps of 32 lanes: by operations across lanes, ``warpSize`` or arithmetic."""
    uses = bool(wave(file).sites) or next(file.names(b"warpSize"), None) is not None
    return uses or next(arithmetic(file), None) is not None
