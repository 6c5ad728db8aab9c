"""What instructions do with registers: arrays of all lanes' bits, by names of types."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

KINDS: dict[str, Any] = {
    "pred": np.bool_, "u8": np.uint8, "s8": np.int8, "b8": np.uint8, "u16": np.uint16, "s16": np.int16,
    "b16": np.uint16, "u32": np.uint32, "s32": np.int32, "b32": np.uint32, "f32": np.float32, "u64": np.uint64,
    "s64": np.int64, "b64": np.uint64,
}  # fmt: skip
BITS = {np.dtype(one).itemsize: one for one in (np.uint8, np.uint16, np.uint32, np.uint64)}


def as_kind(bits: Any, kind: str) -> Any:
    """See a register's bits as numbers of a type; of a wider register, its low part."""
    wanted = np.dtype(KINDS[kind])
    if "b" in {bits.dtype.kind, wanted.kind}:
        return bits.astype(wanted)
    if bits.dtype.itemsize != wanted.itemsize:
        bits = bits.astype(BITS[wanted.itemsize])
    return bits.view(wanted)


def as_bits(numbers: Any) -> Any:
    """Return the bits of numbers."""
    numbers = np.ascontiguousarray(numbers)
    return numbers if numbers.dtype == np.bool_ else numbers.view(BITS[numbers.dtype.itemsize])


def literal(text: str, kind: str) -> Any:
    """Return a number that stands in the code."""
    if text.startswith("0f"):
        return np.uint32(int("0x" + text[2:], 0)).view(np.float32)
    wanted = np.dtype(KINDS[kind])
    if wanted.kind == "f":
        return wanted.type(float(text))
    size = 8 * wanted.itemsize
    return np.array(int(text, 0) % (1 << size), BITS[wanted.itemsize]).view(wanted)[()]


def to_bfloat16(numbers: Any) -> Any:
    """Return the bits of the nearest bfloat16; NaN stays NaN."""
    bits = np.asarray(numbers, np.float32).view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(numbers), np.uint16(0x7FFF), rounded)


def from_bfloat16(bits: Any) -> Any:
    """Return bfloat16, given as bits, as float32."""
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _wide(what: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def of(kind: str, one: Any, other: Any, *more: Any) -> Any:
        double = {"s": np.int64, "u": np.uint64}[kind[0]]
        found = what(one.astype(double), other.astype(double))
        return found + more[0].view(double) if more else found

    return of


def _halves(what: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def of(one: Any, other: Any) -> Any:
        parts = [what(one >> np.uint32(by) & 0xFFFF, other >> np.uint32(by) & 0xFFFF) for by in (0, 16)]
        return parts[0].astype(np.uint32) | parts[1].astype(np.uint32) << np.uint32(16)

    return of


def _shift(one: Any, by: Any, left: bool) -> Any:
    by = np.broadcast_to(by, np.shape(one))
    size = 8 * one.dtype.itemsize
    held = np.minimum(by, size - 1).astype(one.dtype)
    shifted = one << held if left else one >> held
    gone = np.where(one < 0, -1, 0).astype(one.dtype) if one.dtype.kind == "i" and not left else one.dtype.type(0)
    return np.where(by >= size, gone, shifted)


def _picked(one: Any, other: Any, selector: Any) -> Any:
    both = one.astype(np.uint64) | other.astype(np.uint64) << np.uint64(32)
    out = np.zeros_like(both)
    for at in range(4):
        nibble = selector.astype(np.uint64) >> np.uint64(4 * at)
        assert not (nibble & 8).any(), "copies of signs are not here"
        out |= (both >> ((nibble & np.uint64(7)) * np.uint64(8)) & np.uint64(0xFF)) << np.uint64(8 * at)
    return out.astype(np.uint32)


def _logic(one: Any, two: Any, three: Any, table: Any) -> Any:
    out = np.zeros_like(one)
    for at in range(8):
        if int(table.flat[0]) >> at & 1:
            out |= (one if at & 4 else ~one) & (two if at & 2 else ~two) & (three if at & 1 else ~three)
    return out


def _funnel(low: Any, high: Any, by: Any) -> Any:
    both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    return (both >> (by & np.uint32(31)).astype(np.uint64)).astype(np.uint32)


def _field(one: Any, start: Any, size: Any) -> Any:
    # Of a signed type the field's highest bit is its sign.
    rest = one.dtype.type(32) - size
    return (one.view(np.uint32) << (rest - start).view(np.uint32)).view(one.dtype) >> rest


def _divided(one: Any, other: Any) -> tuple[Any, Any]:
    quotient = (np.abs(one) // np.abs(other)).astype(one.dtype) * (np.sign(one) * np.sign(other)).astype(one.dtype)
    return quotient, one - quotient * other


def _fused(one: Any, two: Any, more: Any) -> Any:
    return (one.astype(np.float64) * two + more).astype(np.float32)


def _converted(one: Any, to: str, of: str) -> Any:
    return as_kind(one, of).astype(KINDS[to])


def _or_unordered(what: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    return what(one, other) | np.isnan(one) | np.isnan(other)


_ORDERED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
COMPARED: dict[str, Callable[..., Any]] = {
    **_ORDERED,
    # True of what is no number, too.
    **{f"{name}u": functools.partial(_or_unordered, what) for name, what in _ORDERED.items()},
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
SAME: dict[str, Callable[..., Any]] = {
    "mov": lambda one: one,
    "add": lambda one, other: one + other,
    "sub": lambda one, other: one - other,
    "mul": lambda one, other: one * other,
    "mul.lo": lambda one, other: one * other,
    "mad.lo": lambda one, other, more: one * other + more,
    "fma.rn": _fused,
    "neg": lambda one: -one,
    "min": np.fmin,
    "min.NaN": np.minimum,
    "max": np.fmax,
    "max.NaN": np.maximum,
    "and": lambda one, other: one & other,
    "or": lambda one, other: one | other,
    "xor": lambda one, other: one ^ other,
    "not": lambda one: ~one,
    "popc": lambda one: np.array([int(each).bit_count() for each in one], np.uint32),
    "div.full": lambda one, other: one / other,
    "div": lambda one, other: _divided(one, other)[0],
    "rem": lambda one, other: _divided(one, other)[1],
    "ex2.approx": np.exp2,
    "abs": np.abs,
    "lop3": _logic,
    "prmt": _picked,
    "shf.r.wrap": _funnel,
    "bfe": _field,
}
"""By name without its type, which all operands and the result have."""
OF_HALVES: dict[str, Callable[[Any, Any], Any]] = {
    "max.u16x2": _halves(np.maximum),
    "min.u16x2": _halves(np.minimum),
    "cvt.rn.bf16x2.f32": lambda high, low: to_bfloat16(low) | to_bfloat16(high).astype(np.uint32) << np.uint32(16),
    "mul.rn.bf16x2": _halves(lambda one, other: to_bfloat16(from_bfloat16(one) * from_bfloat16(other))),
}
WIDE: dict[str, Callable[..., Any]] = {name: _wide(lambda one, other: one * other) for name in ("mul.wide", "mad.wide")}
SHIFTED: dict[str, Callable[..., Any]] = {
    "shl": lambda one, by: _shift(one, by, left=True),
    "shr": lambda one, by: _shift(one, by, left=False),
}
"""Whose second operand is a u32."""
CONVERTED: dict[str, Callable[[Any], Any]] = {
    "cvt.rn.bf16.f32": lambda one: to_bfloat16(as_kind(one, "f32")),
    "cvt.rn.f32.s32": lambda one: as_kind(one, "s32").astype(np.float32),
    "cvt.f32.bf16": lambda one: from_bfloat16(as_kind(one, "b16")),
    **{
        f"cvt.{to}.{of}": functools.partial(_converted, to=to, of=of)
        for to in KINDS if to[0] in "us" for of in KINDS if of[0] in "us"
    },
}  # fmt: skip


def multiplied(name: str, a: list[Any], b: list[Any], c: list[Any]) -> list[Any]:
    """Carry out a matrix instruction of one wavefront, whose registers are given, and return its sums' registers."""
    kind = re.search(r"m16n8k(\d+)\.row\.col\.\w+\.(\w+)\.(\w+)\.(\w+)$", name)
    assert kind, name
    lane = np.arange(32)
    row, quarter = lane // 4, lane % 4
    depth, each = int(kind.group(1)), 2 if kind.group(2) == "bf16" else 4
    whole = np.int64 if each == 4 else np.float64
    left, right, sums = np.zeros((16, depth), whole), np.zeros((depth, 8), whole), np.zeros((16, 8), whole)
    for part in range(each):
        for at, word in enumerate(a):
            left[row + at % 2 * 8, quarter * each + part + at // 2 * (depth // 2)] = _part(word, part, kind.group(2))
        for at, word in enumerate(b):
            right[quarter * each + part + at * (depth // 2), row] = _part(word, part, kind.group(3))
    of = "s32" if each == 4 else "f32"
    for at, word in enumerate(c):
        sums[row + at // 2 * 8, quarter * 2 + at % 2] = as_kind(word, of)
    with np.errstate(all="ignore"):
        sums = (sums + left @ right).astype(KINDS[of])
    return [as_bits(sums[row + at // 2 * 8, quarter * 2 + at % 2]) for at in range(4)]


def _part(word: Any, part: int, kind: str) -> Any:
    if kind == "bf16":
        return from_bfloat16(word >> np.uint32(16 * part) & 0xFFFF)
    return (word >> np.uint32(8 * part) & 0xFF).astype(np.uint8).view(KINDS[kind])
