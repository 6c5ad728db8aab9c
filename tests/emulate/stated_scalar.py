"""Statements of scalar instructions: result and condition (SCC) from the operands."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from tests.emulate.exact import F16, F32, bits_of, exact_fma, product, sums, value_of
from tests.emulate.stated import STATEMENTS
from tests.emulate.stated_conversions import I32, U32, saturated
from tests.emulate.stated_floats import TESTS as FLOAT_TESTS
from tests.emulate.stated_floats import lesser_number, lesser_or_nan
from tests.emulate.stated_integers import TESTS

__all__ = ["SCALARS", "Scalar", "state_scalar"]


class Scalar(NamedTuple):
    """A scalar instruction.

    Args:
        name: LLVM's mnemonic.
        result: Type; ``none`` where only the condition is written.
        operands: Types; ``k`` is the 16-bit field.
        compute: From the operands, then the old result where ``reads`` and the condition where ``given`` says so, to
            the result; with ``condition``, to the result and the condition.
        condition: Whether the condition is written.
        reads: Whether the old result is read.
        given: Whether the condition is read.
    """

    name: str
    result: str
    operands: tuple[str, ...]
    compute: Callable[..., Any]
    condition: bool = False
    reads: bool = False
    given: bool = False


SCALARS: dict[str, Scalar] = {}


def state_scalar(names: str, types: str, compute: Callable[..., Any], **more: bool) -> None:
    result, _, operands = types.partition(":")
    for name in names.split():
        assert name not in SCALARS, name
        SCALARS[name] = Scalar(name, result.strip(), tuple(operands.split()), compute, **more)


def nonzero(bits: int, compute: Callable[..., int]) -> Callable[..., tuple[int, bool]]:
    """Return a function whose condition is whether the result is not zero."""

    def both(*values: int) -> tuple[int, bool]:
        made = compute(*values)
        return made, bool(made & (1 << bits) - 1)

    return both


s = state_scalar
for bits in (32, 64):
    u = f"u{bits}"
    s(f"s_mov_b{bits}", f"{u} : {u}", lambda a: a)
    s(f"s_cmov_b{bits}", f"{u} : {u}", lambda a, d, c: a if c else d, reads=True, given=True)
    s(f"s_cselect_b{bits}", f"{u} : {u} {u}", lambda a, b, c: a if c else b, given=True)
    s(f"s_not_b{bits}", f"{u} : {u}", nonzero(bits, lambda a: ~a), condition=True)
    for names, op in (
        ("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b),
        ("nand", lambda a, b: ~(a & b)), ("nor", lambda a, b: ~(a | b)), ("xnor", lambda a, b: ~(a ^ b)),
        ("andn2 and_not1", lambda a, b: a & ~b), ("orn2 or_not1", lambda a, b: a | ~b),
    ):  # fmt: skip
        s(" ".join(f"s_{one}_b{bits}" for one in names.split()), f"{u} : {u} {u}", nonzero(bits, op), condition=True)
    s(f"s_lshl_b{bits}", f"{u} : {u} u32", nonzero(bits, lambda a, b, m=bits - 1: a << (b & m)), condition=True)
    s(f"s_lshr_b{bits}", f"{u} : {u} u32", nonzero(bits, lambda a, b, m=bits - 1: a >> (b & m)), condition=True)
    s(f"s_ashr_i{bits}", f"i{bits} : i{bits} u32", nonzero(bits, lambda a, b, m=bits - 1: a >> (b & m)), condition=True)
    s(f"s_bfm_b{bits}", f"{u} : u32 u32", lambda a, b, m=bits - 1: (1 << (a & m)) - 1 << (b & m))
    s(f"s_brev_b{bits}", f"{u} : {u}", lambda a, n=bits: int(f"{a:0{n}b}"[::-1], 2))
    s(f"s_bcnt0_i32_b{bits}", f"u32 : {u}", nonzero(32, lambda a, n=bits: n - a.bit_count()), condition=True)
    s(f"s_bcnt1_i32_b{bits}", f"u32 : {u}", nonzero(32, int.bit_count), condition=True)
    s(f"s_ff0_i32_b{bits}", f"i32 : {u}", lambda a, n=bits: _first(~a & (1 << n) - 1))
    s(f"s_ff1_i32_b{bits} s_ctz_i32_b{bits}", f"i32 : {u}", lambda a: _first(a))
    s(f"s_flbit_i32_b{bits} s_clz_i32_u{bits}", f"i32 : {u}", lambda a, n=bits: n - a.bit_length() if a else -1)
    names = "s_flbit_i32 s_cls_i32" if bits == 32 else "s_flbit_i32_i64 s_cls_i32_i64"
    s(names, f"i32 : i{bits}", lambda a, n=bits: -1 if a in {0, -1} else n - (a if a > 0 else ~a).bit_length())
    s(f"s_bitset0_b{bits}", f"{u} : u32", lambda a, d, m=bits - 1: d & ~(1 << (a & m)), reads=True)
    s(f"s_bitset1_b{bits}", f"{u} : u32", lambda a, d, m=bits - 1: d | 1 << (a & m), reads=True)
    s(f"s_bitcmp0_b{bits}", f"none : {u} u32", lambda a, b, m=bits - 1: (0, not a >> (b & m) & 1), condition=True)
    s(f"s_bitcmp1_b{bits}", f"none : {u} u32", lambda a, b, m=bits - 1: (0, a >> (b & m) & 1), condition=True)
    s(f"s_quadmask_b{bits}", f"{u} : {u}", nonzero(bits, lambda a, n=bits: _quads(a, n)), condition=True)
    s(
        f"s_wqm_b{bits}",
        f"{u} : {u}",
        nonzero(bits, lambda a, n=bits: sum(15 << 4 * q for q in range(n // 4) if a >> 4 * q & 15)),
        condition=True,
    )


def _first(a: int) -> int:
    return (a & -a).bit_length() - 1


def _quads(a: int, bits: int) -> int:
    return sum(1 << q for q in range(bits // 4) if a >> 4 * q & 15)


def _field(bits: int) -> Callable[[int, int], int]:
    def compute(a: int, b: int) -> int:
        return a >> (b & bits - 1) & (1 << (b >> 16 & 127)) - 1

    return compute


def _signed_field(bits: int) -> Callable[[int, int], int]:
    def compute(a: int, b: int) -> int:
        width = min(b >> 16 & 127, bits)
        raw = a >> (b & bits - 1) & (1 << width) - 1
        return raw - (1 << width) if width and raw >> width - 1 else raw

    return compute


s("s_bfe_u32", "u32 : u32 u32", nonzero(32, _field(32)), condition=True)
s("s_bfe_u64", "u64 : u64 u32", nonzero(64, _field(64)), condition=True)
s("s_bfe_i32", "i32 : i32 u32", nonzero(32, _signed_field(32)), condition=True)
s("s_bfe_i64", "i64 : i64 u32", nonzero(64, _signed_field(64)), condition=True)
s("s_movk_i32", "i32 : k", lambda k: k)
s("s_cmovk_i32", "i32 : k", lambda k, d, c: k if c else d, reads=True, given=True)
s("s_sext_i32_i8", "i32 : u32", lambda a: (a & 255 ^ 128) - 128)
s("s_sext_i32_i16", "i32 : u32", lambda a: (a & 65535 ^ 32768) - 32768)
s("s_abs_i32", "i32 : i32", nonzero(32, abs), condition=True)
s("s_bitreplicate_b64_b32", "u64 : u32", lambda a: sum(3 << 2 * at for at in range(32) if a >> at & 1))
s("s_add_u32 s_add_co_u32", "u32 : u32 u32", lambda a, b: (a + b, a + b > U32[1]), condition=True)
s("s_sub_u32 s_sub_co_u32", "u32 : u32 u32", lambda a, b: (a - b, b > a), condition=True)
s(
    "s_addc_u32 s_add_co_ci_u32",
    "u32 : u32 u32",
    lambda a, b, c: (a + b + c, a + b + c > U32[1]),
    condition=True,
    given=True,
)
s("s_subb_u32 s_sub_co_ci_u32", "u32 : u32 u32", lambda a, b, c: (a - b - c, b + c > a), condition=True, given=True)


def _beyond(x: int) -> bool:
    return not I32[0] <= x <= I32[1]


s("s_add_i32 s_add_co_i32", "i32 : i32 i32", lambda a, b: (a + b, _beyond(a + b)), condition=True)
s("s_sub_i32 s_sub_co_i32", "i32 : i32 i32", lambda a, b: (a - b, _beyond(a - b)), condition=True)
s("s_addk_i32 s_addk_co_i32", "i32 : k", lambda k, d: (d + k, _beyond(d + k)), condition=True, reads=True)
s("s_mulk_i32", "i32 : k", lambda k, d: d * k, reads=True)
s("s_add_nc_u64 s_add_u64", "u64 : u64 u64", lambda a, b: a + b)
s("s_sub_nc_u64 s_sub_u64", "u64 : u64 u64", lambda a, b: a - b)
s("s_mul_u64", "u64 : u64 u64", lambda a, b: a * b)
s("s_mul_i32", "i32 : i32 i32", lambda a, b: a * b)
s("s_mul_hi_u32", "u32 : u32 u32", lambda a, b: a * b >> 32)
s("s_mul_hi_i32", "i32 : i32 i32", lambda a, b: a * b >> 32)
for kind in ("i32", "u32"):
    s(f"s_min_{kind}", f"{kind} : {kind} {kind}", lambda a, b: (min(a, b), a < b), condition=True)
    s(f"s_max_{kind}", f"{kind} : {kind} {kind}", lambda a, b: (max(a, b), a >= b), condition=True)
    for test in ("eq", "ne", "gt", "ge", "lt", "le"):
        name = "lg" if test == "ne" else test
        s(f"s_cmp_{name}_{kind}", f"none : {kind} {kind}", lambda a, b, t=TESTS[test]: (0, t(a, b)), condition=True)
        s(
            f"s_cmpk_{name}_{kind}",
            f"none : {kind} {'k' if kind == 'i32' else 'uk'}",
            lambda a, b, t=TESTS[test]: (0, t(a, b)),
            condition=True,
        )
s("s_cmp_eq_u64", "none : u64 u64", lambda a, b: (0, a == b), condition=True)
s("s_cmp_lg_u64", "none : u64 u64", lambda a, b: (0, a != b), condition=True)


def _wrapped(x: int) -> int:
    return (x & U32[1] ^ 1 << 31) - (1 << 31)


s("s_absdiff_i32", "i32 : i32 i32", nonzero(32, lambda a, b: abs(_wrapped(a - b))), condition=True)
for by in range(1, 5):
    s(f"s_lshl{by}_add_u32", "u32 : u32 u32", lambda a, b, n=by: ((a << n) + b, (a << n) + b > U32[1]), condition=True)
s("s_pack_ll_b32_b16", "u32 : u32 u32", lambda a, b: a & 65535 | b << 16)
s("s_pack_lh_b32_b16", "u32 : u32 u32", lambda a, b: a & 65535 | b >> 16 << 16)
s("s_pack_hh_b32_b16", "u32 : u32 u32", lambda a, b: a >> 16 | b >> 16 << 16)
s("s_pack_hl_b32_b16", "u32 : u32 u32", lambda a, b: a >> 16 | b << 16)

# Floats of RDNA3.5 and later


s("s_add_f32", "f32 : f32 f32", sums)
s("s_sub_f32", "f32 : f32 f32", lambda a, b: sums(a, -b))
s("s_mul_f32", "f32 : f32 f32", product)
s("s_fmac_f32", "f32 : f32 f32", exact_fma, reads=True)
s("s_min_f32 s_min_num_f32", "rf32 : rf32 rf32", lesser_number(F32))
s("s_max_f32 s_max_num_f32", "rf32 : rf32 rf32", lesser_number(F32, most=True))
s("s_minimum_f32", "rf32 : rf32 rf32", lesser_or_nan(F32))
s("s_maximum_f32", "rf32 : rf32 rf32", lesser_or_nan(F32, most=True))
for one in ("ceil", "floor", "trunc", "rndne"):
    s(f"s_{one}_f32", "f32 : f32", STATEMENTS[f"v_{one}_f32"][0].compute)
for test, holds in FLOAT_TESTS.items():
    if test not in {"f", "tru", "t"}:
        s(f"s_cmp_{test}_f32", "none : f32 f32", lambda a, b, t=holds: (0, t(a, b)), condition=True)
s("s_cvt_f32_i32", "f32 : i32", Fraction)
s("s_cvt_f32_u32", "f32 : u32", Fraction)
s("s_cvt_i32_f32", "i32 : f32", lambda x: saturated(x, *I32))
s("s_cvt_u32_f32", "u32 : f32", lambda x: saturated(x, *U32))
s("s_cvt_f16_f32", "f16 : f32", lambda x: x)
s("s_cvt_f32_f16", "f32 : f16", lambda x: x)
s("s_cvt_hi_f32_f16", "f32 : u32", lambda x: value_of(x >> 16, F16))
s(
    "s_cvt_pk_rtz_f16_f32",
    "pkf16b32 : f32 f32",
    lambda a, b: bits_of(a, F16, toward_zero=True) | bits_of(b, F16, toward_zero=True) << 16,
)
