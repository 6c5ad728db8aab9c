"""Statements of the instructions that compute with integers and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.emulate.stated import state

# 32 bits

state("v_mov_b32 v_accvgpr_mov_b32", "u32 : u32", lambda a: a)
state("v_mov_b16", "u16 : u16", lambda a: a)
state("v_mov_b64", "u64 : u64", lambda a: a)
state("v_cndmask_b32", "u32 : u32 u32 m", lambda a, b, m: b if m else a)
state("v_cndmask_b16", "u16 : u16 u16 m", lambda a, b, m: b if m else a)

for bits in (32, 16):
    for prefix in ("", "nc_"):
        for sign in "ui":
            kind = f"{sign}{bits}"
            state(f"v_add_{prefix}{kind}", f"{kind} : {kind} {kind}", lambda a, b: a + b, clamps=True)
            state(f"v_sub_{prefix}{kind}", f"{kind} : {kind} {kind}", lambda a, b: a - b, clamps=True)
            state(f"v_subrev_{prefix}{kind}", f"{kind} : {kind} {kind}", lambda a, b: b - a, clamps=True)
state("v_add_co_u32", "u32 : u32 u32", lambda a, b: (a + b, a + b >= 1 << 32), mask=True)
state("v_sub_co_u32", "u32 : u32 u32", lambda a, b: (a - b, a < b), mask=True)
state("v_subrev_co_u32", "u32 : u32 u32", lambda a, b: (b - a, b < a), mask=True)
state("v_addc_co_u32 v_add_co_ci_u32", "u32 : u32 u32 m", lambda a, b, c: (a + b + c, a + b + c >= 1 << 32), mask=True)
state("v_subb_co_u32 v_sub_co_ci_u32", "u32 : u32 u32 m", lambda a, b, c: (a - b - c, a - b - c < 0), mask=True)
state("v_subbrev_co_u32 v_subrev_co_ci_u32", "u32 : u32 u32 m", lambda a, b, c: (b - a - c, b - a - c < 0), mask=True)
state("v_mul_lo_u32 v_mul_lo_i32", "u32 : u32 u32", lambda a, b: a * b)
state("v_mul_hi_u32", "u32 : u32 u32", lambda a, b: a * b >> 32)
state("v_mul_hi_i32", "i32 : i32 i32", lambda a, b: a * b >> 32)


def _low24(x: int) -> int:
    return x & 0xFFFFFF


def _signed24(x: int) -> int:
    return ((x & 0xFFFFFF) ^ 0x800000) - 0x800000


state("v_mul_u32_u24", "u32 : u32 u32", lambda a, b: _low24(a) * _low24(b))
state("v_mul_hi_u32_u24", "u32 : u32 u32", lambda a, b: _low24(a) * _low24(b) >> 32)
state("v_mul_i32_i24", "i32 : u32 u32", lambda a, b: _signed24(a) * _signed24(b))
state("v_mul_hi_i32_i24", "i32 : u32 u32", lambda a, b: _signed24(a) * _signed24(b) >> 32)
state("v_mad_u32_u24", "u32 : u32 u32 u32", lambda a, b, c: _low24(a) * _low24(b) + c)
state("v_mad_i32_i24", "u32 : u32 u32 u32", lambda a, b, c: _signed24(a) * _signed24(b) + c)
state(
    "v_mad_u64_u32 v_mad_co_u64_u32", "u64 : u32 u32 u64", lambda a, b, c: (a * b + c, a * b + c >> 64 & 1), mask=True
)
state(
    "v_mad_i64_i32 v_mad_co_i64_i32", "i64 : i32 i32 i64", lambda a, b, c: (a * b + c, a * b + c >> 64 & 1), mask=True
)


def _middle(*three: int) -> int:
    return sorted(three)[1]


for bits in (32, 16):
    for sign in "ui":
        kind = f"{sign}{bits}"
        two, three = f"{kind} : {kind} {kind}", f"{kind} : {kind} {kind} {kind}"
        state(f"v_min_{kind}", two, min)
        state(f"v_max_{kind}", two, max)
        state(f"v_min3_{kind}", three, min)
        state(f"v_max3_{kind}", three, max)
        state(f"v_med3_{kind}", three, _middle)
        state(f"v_minmax_{kind}", three, lambda a, b, c: max(min(a, b), c))
        state(f"v_maxmin_{kind}", three, lambda a, b, c: min(max(a, b), c))
state("v_add3_u32", "u32 : u32 u32 u32", lambda a, b, c: a + b + c)
state("v_xad_u32", "u32 : u32 u32 u32", lambda a, b, c: (a ^ b) + c)


def _bytes(x: int) -> list[int]:
    return [x >> at & 255 for at in (0, 8, 16, 24)]


def _differences(a: int, b: int) -> list[int]:
    return [abs(x - y) for x, y in zip(_bytes(a), _bytes(b), strict=True)]


state("v_sad_u8", "u32 : u32 u32 u32", lambda a, b, c: sum(_differences(a, b)) + c)
state("v_sad_hi_u8", "u32 : u32 u32 u32", lambda a, b, c: (sum(_differences(a, b)) << 16) + c)
state(
    "v_msad_u8", "u32 : u32 u32 u32",
    lambda a, b, c: sum(d for d, y in zip(_differences(a, b), _bytes(b), strict=True) if y) + c,
)  # fmt: skip
state("v_sad_u16", "u32 : u32 u32 u32", lambda a, b, c: abs((a & 65535) - (b & 65535)) + abs((a >> 16) - (b >> 16)) + c)
state("v_sad_u32", "u32 : u32 u32 u32", lambda a, b, c: abs(a - b) + c)
state(
    "v_lerp_u8", "u32 : u32 u32 u32",
    lambda a, b, c: sum(((a >> at & 255) + (b >> at & 255) + (c >> at & 1) >> 1) << at for at in (0, 8, 16, 24)),
)  # fmt: skip

# Bits

for bits in (32, 16):
    kind = f"u{bits}"
    for op, compute in (("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b)):
        state(f"v_{op}_b{bits}", f"{kind} : {kind} {kind}", compute)
    state(f"v_not_b{bits}", f"{kind} : {kind}", lambda a: ~a)
state("v_xnor_b32", "u32 : u32 u32", lambda a, b: ~(a ^ b))
state("v_or3_b32", "u32 : u32 u32 u32", lambda a, b, c: a | b | c)
state("v_xor3_b32", "u32 : u32 u32 u32", lambda a, b, c: a ^ b ^ c)
state("v_and_or_b32", "u32 : u32 u32 u32", lambda a, b, c: a & b | c)
state("v_lshl_or_b32", "u32 : u32 u32 u32", lambda a, b, c: a << (b & 31) | c)
state("v_lshl_add_u32", "u32 : u32 u32 u32", lambda a, b, c: (a << (b & 31)) + c)
state("v_add_lshl_u32", "u32 : u32 u32 u32", lambda a, b, c: (a + b) << (c & 31))
state("v_lshl_add_u64", "u64 : u64 u32 u64", lambda a, b, c: (a << (b & 7)) + c)
for bits, amount in ((32, "u32"), (64, "u32"), (16, "u16")):
    mask = bits - 1
    state(f"v_lshlrev_b{bits}", f"u{bits} : {amount} u{bits}", lambda a, b, mask=mask: b << (a & mask))
    state(f"v_lshrrev_b{bits}", f"u{bits} : {amount} u{bits}", lambda a, b, mask=mask: b >> (a & mask))
    state(f"v_ashrrev_i{bits}", f"i{bits} : {amount} i{bits}", lambda a, b, mask=mask: b >> (a & mask))


def _field(x: int, offset: int, width: int) -> int:
    return x >> (offset & 31) & (1 << (width & 31)) - 1


def _signed_field(x: int, offset: int, width: int) -> int:
    raw = (x >> (offset & 31)) & (1 << (width & 31)) - 1
    return raw - (1 << (width & 31)) if (width & 31) and raw >> (width & 31) - 1 else raw


state("v_bfe_u32", "u32 : u32 u32 u32", _field)
state("v_bfe_i32", "i32 : i32 u32 u32", _signed_field)
state("v_bfi_b32", "u32 : u32 u32 u32", lambda a, b, c: (a & b) | (~a & c))
state("v_bfm_b32", "u32 : u32 u32", lambda a, b: (1 << (a & 31)) - 1 << (b & 31))
state("v_bfrev_b32", "u32 : u32", lambda a: int(f"{a:032b}"[::-1], 2))
state("v_ffbh_u32 v_clz_i32_u32", "i32 : u32", lambda a: 32 - a.bit_length() if a else -1)
state("v_ffbl_b32 v_ctz_i32_b32", "i32 : u32", lambda a: (a & -a).bit_length() - 1)
state("v_ffbh_i32 v_cls_i32", "i32 : i32", lambda a: -1 if a in {0, -1} else 32 - (a if a > 0 else ~a).bit_length())
state("v_bcnt_u32_b32", "u32 : u32 u32", lambda a, b: a.bit_count() + b)
state("v_alignbit_b32", "u32 : u32 u32 u32", lambda a, b, c: (a << 32 | b) >> (c & 31))
state("v_alignbyte_b32", "u32 : u32 u32 u32", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3))


def _permuted(a: int, b: int, selectors: int) -> int:
    data = b.to_bytes(4, "little") + a.to_bytes(4, "little")

    def byte(selector: int) -> int:
        if selector >= 13:
            return 255
        if selector == 12:
            return 0
        if selector >= 8:
            return 255 * (data[2 * (selector - 8) + 1] >> 7)
        return data[selector]

    return int.from_bytes(bytes(byte(one) for one in _bytes(selectors)), "little")


state("v_perm_b32", "u32 : u32 u32 perm32", _permuted)
state("v_sat_pk_u8_i16", "u16 : pki16b32", lambda a: _clip(a & 65535) | _clip(a >> 16) << 8)


def _clip(x: int) -> int:
    return 0 if x & 0x8000 else min(x, 255)


def _table(table: int) -> Callable[[int, int, int], int]:
    """Return the function of three bits that a table of eight bits states, for all bits of three numbers."""

    def compute(a: int, b: int, c: int) -> int:
        return sum((table >> ((a >> at & 1) << 2 | (b >> at & 1) << 1 | c >> at & 1) & 1) << at for at in range(32))

    return compute


BITOP3 = 0xC5
state("v_bitop3_b32", "u32 : u32 u32 u32", _table(BITOP3))
state("v_bitop3_b16", "u16 : u16 u16 u16", _table(BITOP3))

# 64 and 16 bits, packed

state("v_add_nc_u64 v_add_u64", "u64 : u64 u64", lambda a, b: a + b)
state("v_sub_nc_u64", "u64 : u64 u64", lambda a, b: a - b)
state("v_mul_u64", "u64 : u64 u64", lambda a, b: a * b)
state("v_mul_lo_u16", "u16 : u16 u16", lambda a, b: a * b)
state("v_mad_u16", "u16 : u16 u16 u16", lambda a, b, c: a * b + c, clamps=True)
state("v_mad_i16", "i16 : i16 i16 i16", lambda a, b, c: a * b + c, clamps=True)
state("v_mad_legacy_u16", "u16 : u16 u16 u16", lambda a, b, c: a * b + c)
state("v_mad_legacy_i16", "i16 : i16 i16 i16", lambda a, b, c: a * b + c)
state("v_mad_u32_u16", "u32 : u16 u16 u32", lambda a, b, c: a * b + c)
state("v_mad_i32_i16", "i32 : i16 i16 i32", lambda a, b, c: a * b + c)
for sign in "ui":
    kind = f"pk{sign}16"
    state(f"v_pk_add_{sign}16", f"{kind} : {kind} {kind}", lambda a, b: a + b, clamps=True)
    state(f"v_pk_sub_{sign}16", f"{kind} : {kind} {kind}", lambda a, b: a - b, clamps=True)
    state(f"v_pk_mad_{sign}16", f"{kind} : {kind} {kind} {kind}", lambda a, b, c: a * b + c, clamps=True)
    state(f"v_pk_min_{sign}16", f"{kind} : {kind} {kind}", min)
    state(f"v_pk_max_{sign}16", f"{kind} : {kind} {kind}", max)
state("v_pk_mul_lo_u16", "pku16 : pku16 pku16", lambda a, b: a * b)
state("v_pk_lshlrev_b16", "pku16 : pku16 pku16", lambda a, b: b << (a & 15))
state("v_pk_lshrrev_b16", "pku16 : pku16 pku16", lambda a, b: b >> (a & 15))
state("v_pk_ashrrev_i16", "pki16 : pki16 pki16", lambda a, b: b >> (a & 15))

# Comparisons

TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "f": lambda a, b: False, "t": lambda a, b: True, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
for bits in (16, 32, 64):
    for sign in "ui":
        kind = f"{sign}{bits}"
        for test, holds in TESTS.items():
            state(f"v_cmp_{test}_{kind} v_cmpx_{test}_{kind}", f"none : {kind} {kind}", holds, mask=True)
