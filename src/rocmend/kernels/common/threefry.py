"""Threefry 2x32 with 20 rounds, the counter-based generator that MLX (and JAX) draw from.

Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _rounds(a, b, R0: tl.constexpr, R1: tl.constexpr, R2: tl.constexpr, R3: tl.constexpr):
    a += b
    b = ((b << R0) | (b >> (32 - R0))) ^ a
    a += b
    b = ((b << R1) | (b >> (32 - R1))) ^ a
    a += b
    b = ((b << R2) | (b >> (32 - R2))) ^ a
    a += b
    b = ((b << R3) | (b >> (32 - R3))) ^ a
    return a, b


@triton.jit
def threefry(key0, key1, a, b):
    """Return two random words for the counter ``(a, b)``; all of them uint32."""
    key2 = key0 ^ key1 ^ 0x1BD11BDA
    a += key0
    b += key1
    a, b = _rounds(a, b, 13, 15, 26, 6)
    a += key1
    b += key2 + 1
    a, b = _rounds(a, b, 17, 29, 16, 24)
    a += key2
    b += key0 + 2
    a, b = _rounds(a, b, 13, 15, 26, 6)
    a += key0
    b += key1 + 3
    a, b = _rounds(a, b, 17, 29, 16, 24)
    a += key1
    b += key2 + 4
    a, b = _rounds(a, b, 13, 15, 26, 6)
    a += key2
    b += key0 + 5
    return a, b


@triton.jit
def two_words(key_ptr, number, word, half, words):
    """Return words ``word`` and ``half' + word`` of the stream of a key, as MLX orders them.

    A stream of ``words`` words is cut in halves; word i of the first and of the second come from one counter. Where it
    is odd, the one in the middle is alone with counter ``(half, 0)``.

    Args:
        key_ptr: Keys, two words each.
        number: Which key.
        word: int64 places in the first half, the middle one included.
        half: ``words // 2``.
        words: Length of the stream.
    """
    key0 = tl.load(key_ptr + number * 2).to(tl.uint32, bitcast=True)
    key1 = tl.load(key_ptr + number * 2 + 1).to(tl.uint32, bitcast=True)
    partner = tl.where(word < half, words - half + word, 0)
    return threefry(key0, key1, word.to(tl.uint32), partner.to(tl.uint32))
