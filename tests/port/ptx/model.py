"""What PTX instructions compute, from the manual's definitions, over registers as whole numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


class Format(NamedTuple):
    """A binary floating-point format: stored fraction bits and exponent bits."""

    fraction: int
    exponent: int

    @property
    def size(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def nan(self) -> int:
        return (1 << (self.size - 1)) - 1


F16, BF16, F32, F64 = Format(10, 5), Format(7, 8), Format(23, 8), Format(52, 11)
Value = Fraction | float
"""A finite number exactly, or an infinity or NaN as a float; zeros keep their sign beside it."""


def signed(word: int, size: int) -> int:
    word &= (1 << size) - 1
    return word - (1 << size) if word >> (size - 1) else word


def is_nan(word: int, form: Format) -> bool:
    return (word & ~(1 << (form.size - 1))) > form.infinity


def decoded(word: int, form: Format) -> Value:
    negative = word >> (form.size - 1)
    exponent = (word >> form.fraction) & ((1 << form.exponent) - 1)
    fraction = word & ((1 << form.fraction) - 1)
    if exponent == (1 << form.exponent) - 1:
        return math.nan if fraction else (-math.inf if negative else math.inf)
    if exponent == 0:
        size = Fraction(fraction) * Fraction(2) ** (1 - form.bias - form.fraction)
    else:
        size = Fraction((1 << form.fraction) | fraction) * Fraction(2) ** (exponent - form.bias - form.fraction)
    return -size if negative else size


def rounded(value: Value, form: Format, mode: str = "rn", *, negative_zero: bool = False) -> int:
    """The word of the nearest number (ties to even), or of the nearest one towards zero."""
    sign = 1 << (form.size - 1)
    if isinstance(value, float):
        if math.isnan(value):
            return form.nan
        return form.infinity | (sign if value < 0 else 0)
    if value == 0:
        return sign if negative_zero else 0
    negative = value < 0
    size = abs(value)
    exponent = max(_log2(size), 1 - form.bias)
    step = Fraction(2) ** (exponent - form.fraction)
    count, rest = divmod(size, step)
    if mode == "rn" and (2 * rest > step or (2 * rest == step and count % 2)):
        count += 1
    word = (exponent + form.bias - 1 << form.fraction) + int(count)
    word = min(word, form.infinity) if mode == "rn" else min(word, form.infinity - 1)
    return word | (sign if negative else 0)


def _log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    while Fraction(2) ** guess > value:
        guess -= 1
    while Fraction(2) ** (guess + 1) <= value:
        guess += 1
    return guess


def _minus(word: int, form: Format) -> bool:
    return bool(word >> (form.size - 1))


def add(a: int, b: int, form: Format) -> int:
    x, y = decoded(a, form), decoded(b, form)
    if isinstance(x, float) or isinstance(y, float):
        return rounded(float(x if isinstance(x, float) else 0) + float(y if isinstance(y, float) else 0), form)
    return rounded(x + y, form, negative_zero=_minus(a, form) and _minus(b, form))


def neg(a: int, form: Format) -> int:
    return a ^ (1 << (form.size - 1))


def mul(a: int, b: int, form: Format) -> int:
    x, y = decoded(a, form), decoded(b, form)
    if isinstance(x, float) or isinstance(y, float):
        return rounded(_product_of_extremes(x, y), form)
    return rounded(x * y, form, negative_zero=_minus(a, form) != _minus(b, form))


def _product_of_extremes(x: Value, y: Value) -> float:
    if (isinstance(x, float) and math.isnan(x)) or (isinstance(y, float) and math.isnan(y)) or x == 0 or y == 0:
        return math.nan
    return math.inf if (x > 0) == (y > 0) else -math.inf


def fma(a: int, b: int, c: int, form: Format) -> int:
    x, y, z = decoded(a, form), decoded(b, form), decoded(c, form)
    product: Value = _product_of_extremes(x, y) if isinstance(x, float) or isinstance(y, float) else x * y
    if isinstance(product, float) or isinstance(z, float):
        return rounded(
            float(product if isinstance(product, float) else 0) + float(z if isinstance(z, float) else 0), form
        )
    both_minus = (_minus(a, form) != _minus(b, form)) and _minus(c, form)
    return rounded(product + z, form, negative_zero=both_minus and product == 0 and z == 0)


def flushed(a: int, form: Format = F32) -> int:
    return a & (1 << (form.size - 1)) if not a & form.infinity else a


def saturated(a: int, form: Format) -> int:
    value = decoded(a, form)
    if (isinstance(value, float) and math.isnan(value)) or value <= 0:
        return 0
    return rounded(Fraction(1), form) if value > 1 else a


def smaller(a: int, b: int, form: Format, *, keep: bool = False) -> int:
    if is_nan(a, form) or is_nan(b, form):
        if keep or (is_nan(a, form) and is_nan(b, form)):
            return form.nan
        return b if is_nan(a, form) else a
    order = [(decoded(word, form), 0 if _minus(word, form) else 1, word) for word in (a, b)]
    return min(order)[2]


def larger(a: int, b: int, form: Format, *, keep: bool = False) -> int:
    if is_nan(a, form) or is_nan(b, form):
        return smaller(a, b, form, keep=keep)
    return neg(smaller(neg(a, form), neg(b, form), form), form)


def to_whole(a: int, form: Format, mode: str, size: int, *, is_signed: bool) -> int:
    value = decoded(a, form)
    if isinstance(value, float) and math.isnan(value):
        return 1 << (size - 1) if form == F64 or size == 64 else 0
    low, high = (-(1 << (size - 1)), (1 << (size - 1)) - 1) if is_signed else (0, (1 << size) - 1)
    if isinstance(value, float):
        number = high if value > 0 else low
    else:
        ways: dict[str, Callable[[Fraction], int]] = {
            "rzi": math.trunc,
            "rmi": math.floor,
            "rpi": math.ceil,
            "rni": round,
        }
        number = ways[mode](value)
    return max(low, min(high, number)) & ((1 << size) - 1)


def pairs(operation: Callable[..., int]) -> Callable[..., int]:
    """An operation of two halves in one register."""

    def both(*words: int) -> int:
        high = operation(*(word >> 16 for word in words))
        return high << 16 | operation(*(word & 0xFFFF for word in words))

    return both


# --- whole numbers ---


def prmt(a: int, b: int, c: int, mode: str = "") -> int:
    source = [*a.to_bytes(4, "little"), *b.to_bytes(4, "little")]
    n = c & 3
    if mode == "":
        picks = [(c >> 4 * i) & 15 for i in range(4)]
        return int.from_bytes(
            bytes((255 if source[p & 7] & 128 else 0) if p & 8 else source[p & 7] for p in picks), "little"
        )
    # The table of the manual: which byte goes to bytes 3, 2, 1, 0 of the result.
    tables = {
        "f4e": ["3210", "4321", "5432", "6543"],
        "b4e": ["5670", "6701", "7012", "0123"],
        "rc8": ["0000", "1111", "2222", "3333"],
        "ecl": ["3210", "3211", "3222", "3333"],
        "ecr": ["0000", "1110", "2210", "3210"],
        "rc16": ["1010", "3232", "1010", "3232"],
    }
    return int.from_bytes(bytes(source[int(digit)] for digit in reversed(tables[mode][n])), "little")


def lop3(a: int, b: int, c: int, table: int) -> int:
    return sum(
        ((table >> (((a >> i & 1) << 2) | ((b >> i & 1) << 1) | (c >> i & 1))) & 1) << i for i in range(32)
    )  # fmt: skip


def bfe(a: int, b: int, c: int, size: int, *, is_signed: bool) -> int:
    position, length = b & 255, c & 255
    sign = 0 if length == 0 or not is_signed else a >> min(position + length - 1, size - 1) & 1
    result = 0
    for i in range(size):
        inside = i < length and position + i < size
        result |= (a >> (position + i) & 1 if inside else sign) << i
    return result


def bfi(a: int, b: int, c: int, d: int, size: int) -> int:
    position, length = c & 255, d & 255
    result = b
    for i in range(length):
        if position + i < size:
            bit = 1 << (position + i)
            result = (result & ~bit) | ((a >> i & 1) << (position + i))
    return result


def bfind(a: int, size: int, *, is_signed: bool) -> int:
    value = signed(a, size) if is_signed else a
    if is_signed and value < 0:
        value = ~value
    return value.bit_length() - 1 & M32


def dot(a: int, b: int, c: int, kinds: tuple[bool, bool]) -> int:
    total = c
    for i in range(4):
        one, other = a >> 8 * i & 255, b >> 8 * i & 255
        total += (signed(one, 8) if kinds[0] else one) * (signed(other, 8) if kinds[1] else other)
    return total & M32


def dot2(a: int, b: int, c: int, kinds: tuple[bool, bool], *, high: bool) -> int:
    total = c
    for i in range(2):
        one, other = a >> 16 * i & 65535, b >> 8 * (i + 2 * high) & 255
        total += (signed(one, 16) if kinds[0] else one) * (signed(other, 8) if kinds[1] else other)
    return total & M32


def shifted(a: int, by: int, size: int, *, left: bool, is_signed: bool = False) -> int:
    by = min(by, size)
    if left:
        return (a << by) & ((1 << size) - 1)
    return (signed(a, size) >> by if is_signed else a >> by) & ((1 << size) - 1)


def funnel(a: int, b: int, c: int, *, left: bool, clamp: bool) -> int:
    n = min(c, 32) if clamp else c & 31
    wide = b << 32 | a
    return (wide << n >> 32 if left else wide >> n) & M32


def as_float(word: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", word))[0]
    return value
