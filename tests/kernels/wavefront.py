"""What PTX does with the registers of a wavefront of 32 lanes, on NumPy: the instructions that kernels' blocks have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

LANE = np.arange(32)
ROW, QUARTER = LANE // 4, LANE % 4


def wide(halves: Any) -> Any:
    """Return bfloat16, given as their bits, as float32."""
    return (np.asarray(halves).astype(np.uint32) << 16).view(np.float32)


def narrow(numbers: Any) -> Any:
    """Return the bits of the nearest bfloat16."""
    bits = np.asarray(numbers, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint32)


def bits_of(numbers: Any) -> Any:
    """Return the bits of numbers as float32."""
    return np.asarray(numbers, np.float32).view(np.uint32)


def packed(halves: Any) -> Any:
    """Return neighbours in one word."""
    return halves[..., 0::2] | (halves[..., 1::2] << 16)


def code_words(codes: Any, bits: int = 4) -> Any:
    """Return codes in words, the first one lowest."""
    each = 32 // bits
    words = np.zeros((*codes.shape[:-1], codes.shape[-1] // each), np.uint32)
    for place in range(each):
        words |= codes[..., place::each].astype(np.uint32) << np.uint32(bits * place)
    return words


def _picked(one: Any, other: Any, selector: Any) -> Any:
    both = [(word >> np.uint32(8 * at)) & 0xFF for word in (one, other) for at in range(4)]
    picked = [both[int(selector[0]) >> (4 * at) & 7] << np.uint32(8 * at) for at in range(4)]
    return picked[0] | picked[1] | picked[2] | picked[3]


def _logic(one: Any, two: Any, three: Any, table: Any) -> Any:
    assert int(table[0]) == 0xEA
    return (one & two) | three


def _other_lane(one: Any, mask: Any, clamp: Any, members: Any) -> Any:
    assert (int(clamp[0]), int(members[0])) == (0x1F, 0xFFFFFFFF)
    return one[LANE ^ mask]


def _of_lane(one: Any, lane: Any, clamp: Any, members: Any) -> Any:
    # Lanes in segments of four, or all of them.
    segments = {0x1C1F: LANE // 4 * 4, 0x1F: 0}
    assert int(members[0]) == 0xFFFFFFFF
    return one[segments[int(clamp[0])] + lane]


def _f32(number: Any) -> Any:
    return number.view(np.float32)


def _twice(one: Any, other: Any) -> Any:
    low, high = (narrow(wide(one >> np.uint32(by) & 0xFFFF) * wide(other >> np.uint32(by) & 0xFFFF)) for by in (0, 16))
    return low | (high << 16)


def _signed(what: Callable[..., Any], one: Any, other: Any) -> Any:
    return what(one.view(np.int32), other.view(np.int32)).view(np.uint32)


INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "mov.b32": lambda one: one,
    "mov.f32": lambda one: one,
    "shr.u32": lambda one, by: one >> by,
    "shl.b32": lambda one, by: one << by,
    "and.b32": lambda one, other: one & other,
    "lop3.b32": _logic,
    "prmt.b32": _picked,
    "selp.b32": lambda one, other, which: np.where(which != 0, one, other),
    "setp.ne.b32": lambda one, other: (one != other).astype(np.uint32),
    "shfl.sync.bfly.b32": _other_lane,
    "shfl.sync.idx.b32": _of_lane,
    "cvt.rn.bf16x2.f32": lambda high, low: (narrow(_f32(high)) << 16) | narrow(_f32(low)),
    "add.f32": lambda one, other: bits_of(_f32(one) + _f32(other)),
    "sub.f32": lambda one, other: bits_of(_f32(one) - _f32(other)),
    "mul.f32": lambda one, other: bits_of(_f32(one) * _f32(other)),
    "mul.rn.bf16x2": _twice,
    "abs.f32": lambda one: one & np.uint32(0x7FFFFFFF),
    "max.NaN.f32": lambda one, other: bits_of(np.maximum(_f32(one), _f32(other))),
    "setp.geu.f32": lambda one, other: (~(_f32(one) < _f32(other))).astype(np.uint32),
    "setp.lt.u32": lambda one, other: (one < other).astype(np.uint32),
    "or.b32": lambda one, other: one | other,
    "xor.b32": lambda one, other: one ^ other,
    "mov.u32": lambda one: one,
    "add.u32": lambda one, other: one + other,
    "sub.u32": lambda one, other: one - other,
    "min.u32": np.minimum,
    "max.u32": np.maximum,
    "mul.lo.u32": lambda one, other: one * other,
    "add.s32": lambda one, other: one + other,
    "sub.s32": lambda one, other: one - other,
    "min.s32": lambda one, other: _signed(np.minimum, one, other),
    "max.s32": lambda one, other: _signed(np.maximum, one, other),
    "shr.s32": lambda one, by: (one.view(np.int32) >> by.view(np.int32)).view(np.uint32),
    "fma.rn.f32": lambda one, two, more: bits_of(_f32(one).astype(np.float64) * _f32(two) + _f32(more)),
}


class Wavefront:
    """Registers of 32 lanes.

    Args:
        operands: What a block takes, ``[32]`` each.
        first: The number of the first one, behind those that it gives.
        shared: Words of shared memory, which blocks read and write.
    """

    def __init__(self, operands: list[Any], first: int = 4, shared: Any = None) -> None:
        self.shared = shared
        self.held: dict[str, Any] = {f"${first + at}": np.asarray(one, np.uint32) for at, one in enumerate(operands)}

    def run(self, block: str, results: int = 4) -> list[Any]:
        """Run a block, and return the registers that it gives, which are the first ones."""
        for statement in re.split(r";\s*", block.strip().strip("{}").strip()):
            if statement and not statement.startswith(".reg"):
                name, _, rest = statement.partition(" ")
                self._step(name, rest)
        return [self.held[f"${at}"] for at in range(results)]

    def _value(self, name: str) -> Any:
        if name in self.held:
            return self.held[name]
        if name == "global_smem":
            return np.zeros(32, np.uint32)
        number = int(f"0x{name[2:]}" if name.startswith("0f") else name, 0)
        return np.full(32, number & 0xFFFFFFFF, np.uint32)

    def _step(self, name: str, rest: str) -> None:
        lanes = np.ones(32, bool)
        if name.startswith("@"):
            lanes = self._value(name[1:]) != 0
            name, _, rest = rest.partition(" ")
        if name == "bar.sync":  # nothing else runs
            return
        if name.startswith("mma"):
            self._multiply(*(re.split(r",\s*", part) for part in re.findall(r"\{([^}]*)\}", rest)))
            return
        if ".shared" in name:
            self._memory(name, rest, lanes)
            return
        to, *of = re.split(r",\s*", rest)
        self.held[to] = INSTRUCTIONS[name](*(self._value(one) for one in of))

    def _memory(self, name: str, rest: str, lanes: Any) -> None:
        """Load from shared memory, store to it, or join with what is there."""
        what, *_, kind = name.split(".")
        names = re.split(r",\s*", re.sub(r"\[[^\]]*\]|[{}]", "", rest).strip(", "))
        register, by = re.findall(r"\[([^\]+]*)\+?(\d*)\]", rest)[0]
        address = self._value(register) + np.uint32(by or 0)
        assert not (address % (int(kind[1:]) // 8 * len(names))).any()
        held = self.shared.view({"u8": np.uint8}.get(kind, np.uint32))
        place = address // held.itemsize
        for at, one in enumerate(names):
            if what == "ld":
                self.held[one] = held[place + at]
            elif what == "st":
                held[place[lanes] + at] = self._value(one)[lanes]
            else:
                assert name == "red.shared.max.u32"
                np.maximum.at(held, place, self._value(one))

    def _multiply(self, d: list[str], a: list[str], b: list[str], c: list[str]) -> None:
        left, right, sums = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
        for half in range(2):
            for at in range(4):
                terms = 2 * QUARTER + at // 2 * 8 + half
                left[ROW + at % 2 * 8, terms] = wide(self._value(a[at]) >> 16 * half & 0xFFFF)
            for at in range(2):
                right[2 * QUARTER + 8 * at + half, ROW] = wide(self._value(b[at]) >> 16 * half & 0xFFFF)
        for at in range(4):
            sums[ROW + at // 2 * 8, 2 * QUARTER + at % 2] = _f32(self._value(c[at]))
        sums += left @ right
        for at in range(4):
            self.held[d[at]] = bits_of(sums[ROW + at // 2 * 8, 2 * QUARTER + at % 2])
