"""Floating-point numbers computed exactly, as fractions, and rounded once to a format."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import NamedTuple

__all__ = [
    "BF16", "F16", "F32", "F64", "Format", "Number", "bits_of", "encode", "exact_fma", "flushed", "is_nan", "negative",
    "product", "quieted", "signaling", "sqrt", "sums", "value_of",
]  # fmt: skip

Number = float | Fraction
"""A float where it is infinite, not a number or a zero with a sign."""


class Format(NamedTuple):
    """A binary format with an implied leading bit, denormals, infinities and NaN.

    Args:
        bits: Of a number.
        mantissa: Stored bits of the significand.
    """

    bits: int
    mantissa: int

    @property
    def exponent_bits(self) -> int:
        return self.bits - 1 - self.mantissa

    @property
    def bias(self) -> int:
        return (1 << self.exponent_bits - 1) - 1

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa


F16, F32, F64, BF16 = Format(16, 10), Format(32, 23), Format(64, 52), Format(16, 7)


def is_nan(bits: int, form: Format) -> bool:
    return bits & ~form.sign > form.infinity


def signaling(bits: int, form: Format) -> bool:
    return is_nan(bits, form) and not bits >> form.mantissa - 1 & 1


def quieted(bits: int, form: Format) -> int:
    return bits | 1 << form.mantissa - 1 if is_nan(bits, form) else bits


def flushed(bits: int, form: Format) -> int:
    return bits if bits & form.infinity else bits & form.sign


def value_of(bits: int, form: Format) -> float:
    """Return the number; every format's fit into a double."""
    if form is F64:
        return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    if form is F32 or form is BF16:
        raw = bits << 16 if form is BF16 else bits
        return float(struct.unpack("<f", raw.to_bytes(4, "little"))[0])
    return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])


def negative(x: Number) -> bool:
    return math.copysign(1.0, x) < 0 if isinstance(x, float) else x < 0


def bits_of(x: Number, form: Format, *, toward_zero: bool = False) -> int:
    """Round once, to the nearest with ties to even or toward zero; beyond the range is infinity or the largest."""
    sign = form.sign if negative(x) else 0
    if isinstance(x, float):
        if math.isnan(x):
            return form.infinity | 1 << form.mantissa - 1
        if math.isinf(x):
            return sign | form.infinity
        if x == 0:
            return sign
    value = abs(Fraction(x))
    if not value:
        return 0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if value < Fraction(2) ** exponent:
        exponent -= 1
    return sign | encode(value, max(exponent, 1 - form.bias), form, toward_zero=toward_zero)


def encode(value: Fraction, exponent: int, form: Format, *, toward_zero: bool) -> int:
    """Return the bits of a positive number in the binade of an exponent."""
    scaled = value / Fraction(2) ** (exponent - form.mantissa)
    whole = scaled.numerator // scaled.denominator if toward_zero else round(scaled)
    made = whole + (exponent + form.bias - 1 << form.mantissa)
    if made >= form.infinity:
        return form.infinity - 1 if toward_zero else form.infinity
    return made


def product(a: float, b: float) -> Number:
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0 or b == 0:
        return a * b
    return Fraction(a) * Fraction(b)


def sums(a: Number, b: Number) -> Number:
    if isinstance(a, float) and isinstance(b, float) and not (math.isfinite(a) and math.isfinite(b)):
        return a + b
    for one in (a, b):
        if isinstance(one, float) and not math.isfinite(one):
            return one
    exact = Fraction(a) + Fraction(b)
    if exact:
        return exact
    both = negative(a) and negative(b) and a == 0
    return -0.0 if both else 0.0


def exact_fma(a: float, b: float, c: float) -> Number:
    return sums(product(a, b), c)


def sqrt(x: float, digits: int = 1200) -> Number:
    """Return a square root, exact to many more bits than a format has."""
    if math.isnan(x) or x < 0:
        return math.nan
    if x == 0 or math.isinf(x):
        return x
    exact = Fraction(x)
    return Fraction(math.isqrt((exact.numerator << 2 * digits) // exact.denominator), 1 << digits)
