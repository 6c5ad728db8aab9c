"""Statements of the instructions that compute with floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.emulate.exact import (
    F32,
    F64,
    Format,
    Number,
    bits_of,
    exact_fma,
    is_nan,
    product,
    quieted,
    signaling,
    sqrt,
    sums,
    value_of,
)  # fmt: skip
from tests.emulate.stated import FORMATS, state

KINDS = ("f16", "f32", "f64")


def _gfx12(target: str) -> bool:
    return target.startswith("gfx12")


def _earlier(target: str) -> bool:
    return not target.startswith("gfx12")


def _negated(x: float) -> float:
    return -x


# Sums and products

for kind in KINDS:
    state(f"v_add_{kind}", f"{kind} : {kind} {kind}", sums)
    state(f"v_mul_{kind}", f"{kind} : {kind} {kind}", product)
    state(f"v_fma_{kind}", f"{kind} : {kind} {kind} {kind}", exact_fma)
    state(f"v_fmac_{kind}", f"{kind} : {kind} {kind}", exact_fma, reads=True)
    state(f"v_sub_{kind}", f"{kind} : {kind} {kind}", lambda a, b: sums(a, -b))
    state(f"v_subrev_{kind}", f"{kind} : {kind} {kind}", lambda a, b: sums(b, -a))
    state(f"v_fmaak_{kind} v_fmamk_{kind}", f"{kind} : {kind} {kind} {kind}", exact_fma)


def _legacy_product(a: float, b: float) -> Number:
    return 0.0 if a == 0 or b == 0 else product(a, b)


state("v_mul_legacy_f32 v_mul_dx9_zero_f32", "f32 : f32 f32", _legacy_product)
state("v_fma_legacy_f32 v_fma_dx9_zero_f32", "f32 : f32 f32 f32", lambda a, b, c: sums(_legacy_product(a, b), c))
state(
    "v_fmac_legacy_f32 v_fmac_dx9_zero_f32", "f32 : f32 f32", lambda a, b, c: sums(_legacy_product(a, b), c), reads=True
)


def _twice_rounded(kind: str) -> Callable[[float, float, float], Number]:
    """Return a product that is rounded before it is added to."""
    form = FORMATS[kind]

    def compute(a: float, b: float, c: float) -> Number:
        first = bits_of(product(a, b), form)
        if kind == "f32":  # without denormals, whatever the mode is
            first = first if first & form.infinity else first & form.sign
            a, b, c = (0 * x if abs(x) < 2.0**-126 else x for x in (a, b, c))
            first = bits_of(product(a, b), form)
            first = first if first & form.infinity else first & form.sign
            last = bits_of(sums(value_of(first, form), c), form)
            return value_of(last if last & form.infinity else last & form.sign, form)
        return sums(value_of(first, form), c)

    return compute


for kind in ("f16", "f32"):
    state(f"v_mad_{kind} v_madak_{kind} v_madmk_{kind}", f"{kind} : {kind} {kind} {kind}", _twice_rounded(kind))
    state(f"v_mac_{kind}", f"{kind} : {kind} {kind}", _twice_rounded(kind), reads=True)
state("v_mad_legacy_f16", "f16 : f16 f16 f16", _twice_rounded("f16"))
state("v_fma_legacy_f16", "f16 : f16 f16 f16", exact_fma)

# Minima and maxima, of which the bits are selected


def _before(a: float, b: float) -> bool:
    """Return whether a is less; -0 is less than +0."""
    return a < b or (a == 0 and b == 0 and math.copysign(1, a) < math.copysign(1, b))


def lesser(form: Format, *, most: bool = False) -> Callable[[int, int], int]:
    def compute(a: int, b: int) -> int:
        for one in (a, b):
            if signaling(one, form):
                return quieted(one, form)
        if is_nan(b, form):
            return a
        if is_nan(a, form):
            return b
        first = _before(value_of(a, form), value_of(b, form))
        return a if first != most else b

    return compute


def lesser_number(form: Format, *, most: bool = False) -> Callable[[int, int], int]:
    def compute(a: int, b: int) -> int:
        if is_nan(a, form):
            return quieted(a, form) if is_nan(b, form) else b
        return a if is_nan(b, form) else lesser(form, most=most)(a, b)

    return compute


def lesser_or_nan(form: Format, *, most: bool = False) -> Callable[[int, int], int]:
    def compute(a: int, b: int) -> int:
        for one in (a, b):
            if signaling(one, form):
                return quieted(one, form)
        for one in (a, b):
            if is_nan(one, form):
                return one
        return lesser(form, most=most)(a, b)

    return compute


def _median(
    form: Format, least: Callable[[int, int], int], most: Callable[[int, int], int]
) -> Callable[[int, int, int], int]:
    def compute(a: int, b: int, c: int) -> int:
        if any(is_nan(one, form) for one in (a, b, c)):
            return least(least(a, b), c)
        top = value_of(most(most(a, b), c), form)
        if top == value_of(a, form):
            return most(b, c)
        return most(a, c) if top == value_of(b, form) else most(a, b)

    return compute


Two = Callable[[int, int], int]


def _then(first: Two, second: Two) -> Callable[[int, int, int], int]:
    return lambda a, b, c: second(first(a, b), c)


for kind in KINDS:
    form = FORMATS[kind]
    two, three = f"r{kind} : r{kind} r{kind}", f"r{kind} : r{kind} r{kind} r{kind}"
    for where, least, most in (
        (_earlier, lesser(form), lesser(form, most=True)),
        (_gfx12, lesser_number(form), lesser_number(form, most=True)),
    ):
        state(f"v_min_{kind} v_min_num_{kind}", two, least, where=where)
        state(f"v_max_{kind} v_max_num_{kind}", two, most, where=where)
        if kind != "f64":
            state(f"v_min3_{kind} v_min3_num_{kind}", three, _then(least, least), where=where)
            state(f"v_max3_{kind} v_max3_num_{kind}", three, _then(most, most), where=where)
            state(f"v_med3_{kind} v_med3_num_{kind}", three, _median(form, least, most), where=where)
            state(f"v_minmax_{kind} v_minmax_num_{kind}", three, _then(least, most), where=where)
            state(f"v_maxmin_{kind} v_maxmin_num_{kind}", three, _then(most, least), where=where)
    low, high = lesser_or_nan(form), lesser_or_nan(form, most=True)
    state(f"v_minimum_{kind}", two, low)
    state(f"v_maximum_{kind}", two, high)
    state(f"v_minimum3_{kind}", three, _then(low, low))
    state(f"v_maximum3_{kind}", three, _then(high, high))
    state(f"v_minimummaximum_{kind}", three, _then(low, high))
    state(f"v_maximumminimum_{kind}", three, _then(high, low))

# Rounding to whole numbers, exponents


def _whole(rounded: Callable[[Fraction], int]) -> Callable[[float], Number]:
    def compute(x: float) -> Number:
        if not math.isfinite(x):
            return x
        made = rounded(Fraction(x))
        return Fraction(made) if made else math.copysign(0.0, x)

    return compute


def _fraction(kind: str) -> Callable[[float], Number]:
    form = FORMATS[kind]
    largest = value_of(bits_of(1.0, form) - 1, form)

    def compute(x: float) -> Number:
        if not math.isfinite(x):
            return math.nan
        part = Fraction(x) - math.floor(Fraction(x))
        return min(part, Fraction(largest)) if part else 0.0

    return compute


def _scaled(x: float, by: int) -> Number:
    return x if x == 0 or not math.isfinite(x) else Fraction(x) * Fraction(2) ** max(-4000, min(4000, by))


def _mantissa(x: float) -> Number:
    return math.frexp(x)[0] if math.isfinite(x) else x


def _exponent(x: float) -> int:
    return math.frexp(x)[1] if math.isfinite(x) and x else 0


for kind in KINDS:
    state(f"v_floor_{kind}", f"{kind} : {kind}", _whole(math.floor))
    state(f"v_ceil_{kind}", f"{kind} : {kind}", _whole(math.ceil))
    state(f"v_trunc_{kind}", f"{kind} : {kind}", _whole(math.trunc))
    state(f"v_rndne_{kind}", f"{kind} : {kind}", _whole(round))
    state(f"v_fract_{kind}", f"{kind} : {kind}", _fraction(kind))
    state(f"v_ldexp_{kind}", f"{kind} : {kind} {'i16' if kind == 'f16' else 'i32'}", _scaled)
    state(f"v_frexp_mant_{kind}", f"{kind} : {kind}", _mantissa)
    state(
        f"v_frexp_exp_{'i16' if kind == 'f16' else 'i32'}_{kind}",
        f"{'i16' if kind == 'f16' else 'i32'} : {kind}",
        _exponent,
    )

# Units that approximate: a unit in the last place, and without denormals of single precision


def _reciprocal(x: float) -> Number:
    if x == 0:
        return math.copysign(math.inf, x)
    return 1 / Fraction(x) if math.isfinite(x) else 1 / x


def _root_reciprocal(x: float) -> Number:
    root = sqrt(x)
    if isinstance(root, Fraction):
        return 1 / root
    return math.copysign(math.inf, x) if root == 0 else 1 / root


def _power(x: float) -> Number:
    if math.isnan(x) or x > 1e5:
        return math.inf if x > 0 else x
    if x < -1e5:
        return 0.0
    whole = math.floor(x)
    return Fraction(2.0 ** (x - whole)) * Fraction(2) ** whole


def _logarithm(x: float) -> Number:
    if x == 0:
        return -math.inf
    return math.nan if x < 0 or math.isnan(x) else math.log2(x)


DOMAIN = 256
"""Of sines and cosines: what they are of larger numbers no document says."""


def _turned(function: Callable[[float], float]) -> Callable[[float], Number | None]:
    def compute(x: float) -> Number | None:
        if not math.isfinite(x):
            return math.nan
        if abs(x) > DOMAIN:
            return None
        part = float(Fraction(x) - round(Fraction(x)))
        return function(part * 2 * math.pi)

    return compute


def without_denormals(compute: Callable[[float], Number]) -> Callable[[float], Number]:
    """Return a single-precision function whose argument and result lose denormals."""

    def flushing(x: float) -> Number:
        made = compute(0 * x if abs(x) < 2.0**-126 else x)
        small = not isinstance(made, float) or math.isfinite(made)
        return math.copysign(0.0, made) if small and abs(Fraction(made)) < Fraction(2) ** -126 else made

    return flushing


for kind, wrapped in (("f16", lambda one: one), ("f32", without_denormals)):
    for name, one in (
        ("exp", _power),
        ("log", _logarithm),
        ("rcp", _reciprocal),
        ("rsq", _root_reciprocal),
        ("sqrt", sqrt),
    ):
        state(f"v_{name}_{kind}", f"{kind} : {kind}", wrapped(one), ulps=1)
state("v_rcp_iflag_f32", "f32 : f32", without_denormals(_reciprocal), ulps=1)
for name, turn in (("sin", math.sin), ("cos", math.cos)):
    state(f"v_{name}_f32", "f32 : f32", _turned(turn), ulps=1, absolute=2.0**-20)
    state(f"v_{name}_f16", "f16 : f16", _turned(turn), ulps=1, absolute=2.0**-10)
state("v_rcp_f64", "f64 : f64", _reciprocal, ulps=1 << 29)
state("v_rsq_f64", "f64 : f64", _root_reciprocal, ulps=1 << 29)
state("v_sqrt_f64", "f64 : f64", sqrt, ulps=1 << 29)
state("v_exp_legacy_f32", "f32 : f32", without_denormals(_power), ulps=1)
state("v_log_legacy_f32", "f32 : f32", without_denormals(_logarithm), ulps=1)

# The last step of a division, and the cube's four


def _fixed(form: Format, gap: int | None) -> Callable[[int, int, int], int]:
    def compute(quotient: int, divisor: int, dividend: int) -> int:
        sign = (divisor ^ dividend) & form.sign
        for one in (dividend, divisor):
            if is_nan(one, form):
                return quieted(one, form)
        d, n = value_of(divisor, form), value_of(dividend, form)
        if (d == 0 and n == 0) or (math.isinf(d) and math.isinf(n)):
            return form.sign | form.infinity | 1 << form.mantissa - 1
        if d == 0 or math.isinf(n):
            return sign | form.infinity
        if math.isinf(d) or n == 0:
            return sign
        fields = [(one & form.infinity) >> form.mantissa for one in (dividend, divisor)]
        if gap is not None and fields[0] - fields[1] < gap:
            return sign  # the smallest denormal halved, to the nearest even
        if gap is not None and is_nan(quotient, form):
            return sign | form.infinity  # a division that overflows comes here as no number, and is infinite
        return quotient & ~form.sign | sign

    return compute


state("v_div_fixup_f32", "rf32 : rf32 rf32 rf32", _fixed(F32, -150))
state("v_div_fixup_f64", "rf64 : rf64 rf64 rf64", _fixed(F64, -1075))
state("v_div_fixup_f16 v_div_fixup_legacy_f16", "rf16 : rf16 rf16 rf16", _fixed(FORMATS["f16"], None))


def _face(x: float, y: float, z: float) -> int:
    if abs(z) >= abs(x) and abs(z) >= abs(y):
        return 2
    return 1 if abs(y) >= abs(x) else 0


state("v_cubeid_f32", "f32 : f32 f32 f32", lambda x, y, z: 2.0 * (face := _face(x, y, z)) + ((x, y, z)[face] < 0))
state("v_cubema_f32", "f32 : f32 f32 f32", lambda x, y, z: product((x, y, z)[_face(x, y, z)], 2.0))
state("v_cubesc_f32", "f32 : f32 f32 f32", lambda x, y, z: (z if x < 0 else -z, x, -x if z < 0 else x)[_face(x, y, z)])
state("v_cubetc_f32", "f32 : f32 f32 f32", lambda x, y, z: (-y, -z if y < 0 else z, -y)[_face(x, y, z)])

# Packed and mixed precision

for op, compute in (("add", sums), ("mul", product), ("fma", exact_fma)):
    count = 3 if op == "fma" else 2
    for kind in ("f16", "f32"):
        state(f"v_pk_{op}_{kind}", f"pk{kind} : {' '.join([f'pk{kind}'] * count)}", compute)
state("v_pk_fmac_f16", "pkf16 : pkf16 pkf16", exact_fma, reads=True)
HALF = FORMATS["f16"]
for where, least, most in (
    (_earlier, lesser(HALF), lesser(HALF, most=True)),
    (_gfx12, lesser_number(HALF), lesser_number(HALF, most=True)),
):
    state("v_pk_min_f16 v_pk_min_num_f16", "pkrf16 : pkrf16 pkrf16", least, where=where)
    state("v_pk_max_f16 v_pk_max_num_f16", "pkrf16 : pkrf16 pkrf16", most, where=where)
state("v_pk_minimum_f16", "pkrf16 : pkrf16 pkrf16", lesser_or_nan(HALF))
state("v_pk_maximum_f16", "pkrf16 : pkrf16 pkrf16", lesser_or_nan(HALF, most=True))
state("v_pk_minimum3_f16", "pkrf16 : pkrf16 pkrf16 pkrf16", _then(lesser_or_nan(HALF), lesser_or_nan(HALF)))
state("v_pk_maximum3_f16", "pkrf16 : pkrf16 pkrf16 pkrf16", _then(*[lesser_or_nan(HALF, most=True)] * 2))
for name, result in (("mix_f32", "f32"), ("mixlo_f16", "f16"), ("mixhi_f16", "hif16")):
    for op in ("fma", "mad"):
        state(f"v_{op}_{name}", f"{result} : mix mix mix", exact_fma)

# Comparisons

TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "f": lambda a, b: False, "lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "lg": lambda a, b: a < b or a > b, "ge": lambda a, b: a >= b,
    "o": lambda a, b: not (math.isnan(a) or math.isnan(b)), "u": lambda a, b: math.isnan(a) or math.isnan(b),
    "nge": lambda a, b: not a >= b, "nlg": lambda a, b: not (a < b or a > b), "ngt": lambda a, b: not a > b,
    "nle": lambda a, b: not a <= b, "neq": lambda a, b: a != b, "nlt": lambda a, b: not a < b,
    "tru": lambda a, b: True, "t": lambda a, b: True,
}  # fmt: skip
for kind in KINDS:
    for test, holds in TESTS.items():
        state(f"v_cmp_{test}_{kind} v_cmpx_{test}_{kind}", f"none : {kind} {kind}", holds, mask=True)


def _class(form: Format) -> Callable[[int, int], bool]:
    def compute(x: int, wanted: int) -> bool:
        sign, rest = bool(x & form.sign), x & ~form.sign
        if rest > form.infinity:
            kind = 0 if signaling(x, form) else 1
        elif rest == form.infinity:
            kind = 2 if sign else 9
        elif rest == 0:
            kind = 5 if sign else 6
        elif rest < 1 << form.mantissa:
            kind = 4 if sign else 7
        else:
            kind = 3 if sign else 8
        return bool(wanted >> kind & 1)

    return compute


for kind in KINDS:
    state(
        f"v_cmp_class_{kind} v_cmpx_class_{kind}",
        f"none : r{kind} u{'16' if kind == 'f16' else '32'}",
        _class(FORMATS[kind]),
        mask=True,
    )
