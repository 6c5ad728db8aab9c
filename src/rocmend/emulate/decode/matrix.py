"""Matrix instructions: their shapes, by their names."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from rocmend.emulate.decode.operands import UnmodelledError, operand
from rocmend.emulate.decode.text import Parts
from rocmend.emulate.generation import Generation
from rocmend.emulate.layout import INST, Counter, Flag, Form, Modifier

__all__ = ["Shape", "read", "reads", "shapes"]

_MFMA = re.compile(
    r"v_mfma_(f32|i32|f64)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_?(f32|f16|bf16_1k|bf16|bf16_?1k|i8|f64|(?:fp8|bf8)_(?:fp8|bf8))"
)
_WMMA = re.compile(r"v_wmma_(f32|f16|bf16|i32)_16x16x(16|32)_(f16|bf16|iu8|iu4|(?:fp8|bf8)_(?:fp8|bf8))")
_ELEMENTS = {"f32": 0, "f16": 1, "bf16": 2, "i8": 3, "fp8": 4, "bf8": 5, "f64": 6, "iu8": 7, "iu4": 8}
_BITS = {"f32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "f64": 64, "iu8": 8, "iu4": 4}
_ACCUMULATORS = {"f32": 0, "i32": 1, "f64": 2, "f16": 3, "bf16": 4}


class Shape(NamedTuple):
    """A matrix instruction: D[m, n] = A[m, k] B[k, n] + C.

    Args:
        m: Rows.
        n: Columns.
        k: Products of each element.
        blocks: Independent products.
        a: Elements of A.
        b: Elements of B.
        accumulator: Elements of C and D.
        wmma: RDNA's instruction, not CDNA's.
        fnuz: 8-bit floats are the FNUZ ones.
        major: Of the instruction set.
    """

    m: int
    n: int
    k: int
    blocks: int
    a: int
    b: int
    accumulator: int
    wmma: int
    fnuz: int
    major: int


@cache
def shapes() -> dict[Shape, int]:
    """Return every shape and its number: the engine's table, in order."""
    found: dict[Shape, int] = {}

    def add(shape: Shape) -> None:
        found.setdefault(shape, len(found))

    small = ("fp8", "bf8")
    pairs = [(one, one) for one in ("f32", "f16", "bf16", "i8")] + [(a, b) for a in small for b in small]
    for a, b in pairs:
        accumulator = _ACCUMULATORS["i32" if a == "i8" else "f32"]
        for side, blocks in ((32, 1), (32, 2), (16, 1), (16, 4), (4, 16)):
            for k in (1, 2, 4, 8, 16, 32, 64, 128):
                for fnuz in (0, 1) if a in small else (0,):
                    add(Shape(side, side, k, blocks, _ELEMENTS[a], _ELEMENTS[b], accumulator, 0, fnuz, 9))
    add(Shape(16, 16, 4, 1, 6, 6, _ACCUMULATORS["f64"], 0, 0, 9))
    add(Shape(4, 4, 4, 4, 6, 6, _ACCUMULATORS["f64"], 0, 0, 9))
    for major in (11, 12):
        for a in ("f16", "bf16"):
            for sums in ("f32", a):
                add(Shape(16, 16, 16, 1, _ELEMENTS[a], _ELEMENTS[a], _ACCUMULATORS[sums], 1, 0, major))
        for a in ("iu8", "iu4"):
            add(Shape(16, 16, 16, 1, _ELEMENTS[a], _ELEMENTS[a], _ACCUMULATORS["i32"], 1, 0, major))
    for left, right in pairs[4:]:
        add(Shape(16, 16, 16, 1, _ELEMENTS[left], _ELEMENTS[right], _ACCUMULATORS["f32"], 1, 0, 12))
    return found


def reads(name: str) -> bool:
    """Return whether an instruction is a product of a shape that is modelled."""
    if found := _MFMA.fullmatch(name):
        return any((one.m, one.n, one.k) == tuple(map(int, found.groups()[1:4])) for one in shapes() if not one.wmma)
    found = _WMMA.fullmatch(name)
    a = _ELEMENTS[found[3].partition("_")[0]] if found else -1
    return found is not None and any(one.wmma and one.k == int(found[2]) and one.a == a for one in shapes())


def read(parts: Parts, generation: Generation) -> INST | None:
    """Decode a matrix instruction; None where it is another."""
    if not parts.name.startswith(("v_mfma_", "v_wmma_", "v_smfmac_", "v_swmmac_")):
        return None
    given, text = parts.operands, parts.text
    if found := _MFMA.fullmatch(parts.name):
        accumulator, m, n, k, blocks, kind = found.groups()
        a, _, b = kind.partition("_") if kind.startswith(("fp8", "bf8")) else (kind.split("_")[0], "", "")
        a = a.removesuffix("1k")
        per_lane = 32 * operand(given[1], "b32", text).dwords // _BITS[a]
        count = int(blocks or 0) or max(1, generation.lanes * per_lane // (int(m) * int(k)))
        shape = Shape(
            int(m), int(n), int(k), count, _ELEMENTS[a], _ELEMENTS[b or a], _ACCUMULATORS[accumulator], 0,
            int(generation.fnuz and a in {"fp8", "bf8"}), 9,
        )  # fmt: skip
    elif found := _WMMA.fullmatch(parts.name):
        accumulator, k, kind = found.groups()
        a, _, b = kind.partition("_")
        shape = Shape(
            16, 16, int(k), 1, _ELEMENTS[a], _ELEMENTS[b or a], _ACCUMULATORS[accumulator], 1, 0, generation.major
        )
    else:
        raise UnmodelledError(parts.name, text)
    if shape not in shapes():
        raise UnmodelledError(parts.name, text)
    return _operands(parts, shapes()[shape], "f64" if accumulator == "f64" else "b32")


def _operands(parts: Parts, number: int, kind: str) -> INST:
    made = INST(op=number, form=Form.MATRIX, counter=Counter.NONE, sources=3)
    made.d = operand(parts.operands[0], "b32", parts.text)
    for at, text in enumerate(parts.operands[1:4]):
        made.s[at] = operand(text, kind if at == 2 else "b32", parts.text)
    for word in parts.modifiers:
        name, _, _ = word.partition(":")
        if name in {"neg_lo", "neg_hi"}:
            for at, bit in enumerate(parts.bits(name)):
                if bit:
                    plain = Modifier.NEG if name == "neg_lo" else Modifier.ABS if at == 2 else Modifier.NEG_HIGH
                    made.s[at].modifiers |= plain
        elif name == "op_sel":
            if parts.bits("op_sel")[2]:
                made.flags |= Flag.D16_HIGH
        elif name == "clamp":
            made.flags |= Flag.CLAMP
        elif name != "op_sel_hi":
            raise UnmodelledError(f"the modifier {word}", parts.text)
    return made
