"""Statements of conversions and dot products."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tests.emulate.exact import BF16, F16, F32, Number, bits_of, sums, value_of
from tests.emulate.stated import state


def saturated(x: Number, low: int, high: int) -> int:
    """Return a number cut off toward zero and kept within bounds; NaN is 0."""
    if isinstance(x, float) and not math.isfinite(x):
        return 0 if math.isnan(x) else high if x > 0 else low
    return max(low, min(high, math.trunc(Fraction(x))))


def _nearest(x: float) -> Number:
    return Fraction(round(Fraction(x))) if math.isfinite(x) else x


def _floor(x: float) -> Number:
    return Fraction(math.floor(Fraction(x))) if math.isfinite(x) else x


I32, U32, I16, U16 = (-(1 << 31), (1 << 31) - 1), (0, (1 << 32) - 1), (-(1 << 15), (1 << 15) - 1), (0, (1 << 16) - 1)

for kind in ("f32", "f64"):
    state(f"v_cvt_{kind}_i32", f"{kind} : i32", Fraction)
    state(f"v_cvt_{kind}_u32", f"{kind} : u32", Fraction)
    state(f"v_cvt_i32_{kind}", f"i32 : {kind}", lambda x: saturated(x, *I32))
    state(f"v_cvt_u32_{kind}", f"u32 : {kind}", lambda x: saturated(x, *U32))
state("v_cvt_f16_u16", "f16 : u16", Fraction)
state("v_cvt_f16_i16", "f16 : i16", Fraction)
state("v_cvt_u16_f16", "u16 : f16", lambda x: saturated(x, *U16))
state("v_cvt_i16_f16", "i16 : f16", lambda x: saturated(x, *I16))
state("v_cvt_i32_i16", "i32 : i16", lambda x: x)
state("v_cvt_u32_u16", "u32 : u16", lambda x: x)
state(
    "v_cvt_rpi_i32_f32 v_cvt_nearest_i32_f32", "i32 : f32",
    lambda x: saturated(_floor_of(Fraction(x) + Fraction(1, 2)) if math.isfinite(x) else x, *I32),
)  # fmt: skip
state("v_cvt_flr_i32_f32 v_cvt_floor_i32_f32", "i32 : f32", lambda x: saturated(_floor(x), *I32))


def _floor_of(x: Fraction) -> Fraction:
    return Fraction(math.floor(x))


state("v_cvt_f16_f32", "f16 : f32", lambda x: x)
state("v_cvt_f32_f16", "f32 : f16", lambda x: x)
state("v_cvt_f32_bf16", "f32 : bf16", lambda x: x)
state("v_cvt_f64_f32", "f64 : f32", lambda x: x)
state("v_cvt_f32_f64", "f32 : f64", lambda x: x)
for number in range(4):
    state(f"v_cvt_f32_ubyte{number}", "f32 : u32", lambda x, number=number: Fraction(x >> 8 * number & 255))
state("v_cvt_off_f32_i4", "f32 : u32", lambda x: Fraction((x & 15) - 16 if x & 8 else x & 15, 16) or 0.0)


def _two(low: int, high: int) -> int:
    return low & 65535 | (high & 65535) << 16


def _norm(low: float, scale: int) -> Callable[[float], int]:
    def compute(x: float) -> int:
        return 0 if math.isnan(x) else round(Fraction(min(max(x, low), 1.0)) * scale)

    return compute


_signed, _unsigned = _norm(-1.0, 32767), _norm(0.0, 65535)
state(
    "v_cvt_pkrtz_f16_f32 v_cvt_pk_rtz_f16_f32",
    "pkf16b32 : f32 f32",
    lambda a, b: _two(bits_of(a, F16, toward_zero=True), bits_of(b, F16, toward_zero=True)),
)
state("v_cvt_pk_f16_f32", "pkf16b32 : f32 f32", lambda a, b: _two(bits_of(a, F16), bits_of(b, F16)))
state("v_cvt_pk_bf16_f32", "pkbf16b32 : f32 f32", lambda a, b: _two(bits_of(a, BF16), bits_of(b, BF16)))
for kind, names in (("f32", ("pknorm", "pk_norm")), ("f16", ("pknorm", "pk_norm"))):
    for name in names:
        state(f"v_cvt_{name}_i16_{kind}", f"u32 : {kind} {kind}", lambda a, b: _two(_signed(a), _signed(b)))
        state(f"v_cvt_{name}_u16_{kind}", f"u32 : {kind} {kind}", lambda a, b: _two(_unsigned(a), _unsigned(b)))
state("v_cvt_norm_i16_f16", "u16 : f16", _signed)
state("v_cvt_norm_u16_f16", "u16 : f16", _unsigned)
state("v_cvt_pk_u16_u32", "u32 : u32 u32", lambda a, b: _two(saturated(a, *U16), saturated(b, *U16)))
state("v_cvt_pk_i16_i32", "u32 : i32 i32", lambda a, b: _two(saturated(a, *I16), saturated(b, *I16)))
state("v_cvt_pk_u16_f32", "u32 : f32 f32", lambda a, b: _two(saturated(a, *U16), saturated(b, *U16)))
state("v_cvt_pk_i16_f32", "u32 : f32 f32", lambda a, b: _two(saturated(a, *I16), saturated(b, *I16)))
state(
    "v_cvt_pk_u8_f32", "u32 : f32 u32 u32",
    lambda a, b, c: c & ~(255 << 8 * (b & 3)) | saturated(_nearest(a), 0, 255) << 8 * (b & 3),
)  # fmt: skip
state("v_pack_b32_f16", "u32 : rf16 rf16", _two)

# 8-bit floats: OCP's, and FNUZ's on gfx942


def _fnuz(target: str) -> bool:
    return target == "gfx942"


def fp8_value(x: int, mantissa: int, *, fnuz: bool) -> float:
    """Return the number that 8 bits stand for."""
    exponent_bits = 7 - mantissa
    field, rest = x >> mantissa & (1 << exponent_bits) - 1, x & (1 << mantissa) - 1
    top = (1 << exponent_bits) - 1
    sign = -1.0 if x & 128 else 1.0
    if fnuz:
        if x == 0x80:
            return math.nan
    elif mantissa == 3 and x & 127 == 127:
        return math.nan
    elif mantissa == 2 and field == top:
        return math.nan if rest else sign * math.inf
    bias = (8 if mantissa == 3 else 16) - (0 if fnuz else 1)
    if field == 0:
        return sign * rest * 2.0 ** (1 - bias - mantissa)
    return sign * (1 + rest / (1 << mantissa)) * 2.0 ** (field - bias)


def fp8_bits(x: float, mantissa: int, *, fnuz: bool) -> int:
    """Return the nearest number of 8 bits, by trying all; ties go to the even one."""
    sign = 128 if math.copysign(1.0, x) < 0 else 0
    infinite = sign | 0x7C if not fnuz and mantissa == 2 else 0x80 if fnuz else sign | 0x7F
    if math.isnan(x):
        return 0x80 if fnuz else sign | 0x7F if mantissa == 3 else sign | 0x7E
    if math.isinf(x):
        return infinite
    finite = [
        (Fraction(fp8_value(one, mantissa, fnuz=fnuz)), one)
        for one in range(128)
        if math.isfinite(fp8_value(one, mantissa, fnuz=fnuz))
    ]
    exact = abs(Fraction(x))
    largest, last = finite[-1]
    step = largest - finite[-2][0]
    if exact > largest + step / 2 or (exact == largest + step / 2 and last & 1):
        return overflow8(sign, mantissa, infinite, fnuz=fnuz)
    best = min(finite, key=lambda one: (abs(one[0] - exact), one[1] & 1))[1]
    return 0 if fnuz and best == 0 else sign | best


def overflow8(sign: int, mantissa: int, infinite: int, *, fnuz: bool) -> int:
    """Return what becomes of a finite number beyond the range: without clamping no number, or infinity."""
    del sign, mantissa, fnuz
    return infinite


for fnuz, where in ((True, _fnuz), (False, lambda target: not _fnuz(target))):
    for name, mantissa in (("fp8", 3), ("bf8", 2)):
        state(
            f"v_cvt_f32_{name}", "f32 : byte8",
            lambda x, mantissa=mantissa, fnuz=fnuz: fp8_value(x, mantissa, fnuz=fnuz), where=where,
        )  # fmt: skip
        state(
            f"v_cvt_pk_f32_{name}", "pkf32b64 : half16",
            lambda x, mantissa=mantissa, fnuz=fnuz: sum(
                bits_of(fp8_value(x >> at & 255, mantissa, fnuz=fnuz), F32) << 4 * at for at in (0, 8)
            ), where=where,
        )  # fmt: skip
        state(
            f"v_cvt_pk_{name}_f32", "half16 : f32 f32",
            lambda a, b, mantissa=mantissa, fnuz=fnuz: fp8_bits(a, mantissa, fnuz=fnuz)
            | fp8_bits(b, mantissa, fnuz=fnuz) << 8, where=where,
        )  # fmt: skip

# Dot products


def _parts(x: int, bits: int, *, signed: bool) -> list[int]:
    found = [x >> at & (1 << bits) - 1 for at in range(0, 32, bits)]
    return [one - (1 << bits) if signed and one >> bits - 1 else one for one in found]


def _dot(bits: int, *, signed: bool) -> Callable[[int, int, int], int]:
    def compute(a: int, b: int, c: int) -> int:
        return (
            sum(x * y for x, y in zip(_parts(a, bits, signed=signed), _parts(b, bits, signed=signed), strict=True)) + c
        )

    return compute


def _before_gfx11(target: str) -> bool:
    """Return whether the name is not LLVM's other name of the instruction whose operands are signed by a modifier."""
    return not target.startswith(("gfx11", "gfx12"))


for bits, count in ((8, 4), (4, 8), (16, 2)):
    state(f"v_dot{count}_i32_i{bits}", "i32 : u32 u32 i32", _dot(bits, signed=True), clamps=True, where=_before_gfx11)
    state(f"v_dot{count}c_i32_i{bits}", "i32 : u32 u32", _dot(bits, signed=True), reads=True)
    state(f"v_dot{count}_u32_u{bits}", "u32 : u32 u32 u32", _dot(bits, signed=False), clamps=True)


def _float_dot(kind: str) -> Callable[[int, int, float], Number]:
    form = F16 if kind == "f16" else BF16

    def compute(a: int, b: int, c: float) -> Number:
        total: Number = 0.0
        for at in (0, 16):
            x, y = value_of(a >> at & 65535, form), value_of(b >> at & 65535, form)
            exact = (
                x * y if not (math.isfinite(x) and math.isfinite(y)) or not x or not y else Fraction(x) * Fraction(y)
            )
            total = sums(total, exact)
        return sums(total, c)

    return compute


for kind in ("f16", "bf16"):
    state(f"v_dot2_f32_{kind}", "f32 : dot32 dot32 f32", _float_dot(kind), ulps=2)
    state(f"v_dot2c_f32_{kind} v_dot2acc_f32_{kind}", "f32 : dot32 dot32", _float_dot(kind), reads=True, ulps=2)
