"""The C library's heap, which keeps what tensors on the CPU have freed.

glibc takes blocks of up to 32 MiB from its heap as soon as some were freed, and gives memory back only from the heap's
end: a result behind freed values keeps all of them. A model that is quantized weight by weight would hold twice what
it needs. While values are computed for the first time, the heap is therefore asked now and then to give pages back.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["passed", "trim"]

OFTEN = 1 << 26
"""Bytes that are read and written by operations before the heap is trimmed: that takes about a millisecond."""

_since = [0]


def passed(values: Iterable[Any]) -> None:
    """Count what an operation read and wrote on the CPU, and trim the heap when it was enough."""
    for value in values:
        if type(value) is tuple:
            passed(value)
        elif value.device.type == "cpu":
            _since[0] += value.nbytes
    if _since[0] >= OFTEN:
        trim()


def trim() -> None:
    """Give back the pages that the heap holds and nobody uses, where the C library can."""
    _since[0] = 0
    _trimming()(0)


@functools.cache
def _trimming() -> Callable[[int], Any]:
    try:
        found = ctypes.CDLL(None).malloc_trim  # glibc's alone
    except (AttributeError, OSError, TypeError):
        return lambda _: 0
    found.argtypes = [ctypes.c_size_t]
    return found
