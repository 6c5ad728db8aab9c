"""Every matrix instruction against a product in exact arithmetic, with the layout of rows and columns stated here.

The numbers are small multiples of a power of two: every order of summation gives the same. Layouts are those of AMD's
matrix instruction calculator.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("rocm")

from tests.emulate.bench import TARGETS, Case, Words, execute, lanes_of, tried
from tests.emulate.stated_conversions import fp8_value

from rocmend.emulate.assemble import mnemonics

A_AT, B_AT, C_AT, WORDS = 8, 16, 24, 48
BITS = {
    "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "bf16_1k": 16, "bf16_1": 16, "i8": 8, "fp8": 8, "bf8": 8, "f64": 64,
    "iu8": 8, "iu4": 4,
}  # fmt: skip
HELD = {"f32": 1, "f16": 4, "bf16_1k": 4, "bf16": 2, "i8": 4, "f64": 1}
"""Elements of a lane in the shapes of CDNA2 and before, whose names do not say how many products there are."""

Numbers = np.ndarray[Any, np.dtype[np.float64]]


class Shape(NamedTuple):
    """A matrix instruction, by its name.

    Args:
        name: LLVM's.
        m: Rows.
        n: Columns.
        k: Products of an element.
        blocks: Independent products.
        a: Type of A.
        b: Type of B.
        c: Type of C and D.
        wmma: RDNA's.
    """

    name: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    c: str
    wmma: bool


MFMA = re.compile(
    r"v_mfma_(f32|i32|f64)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?(_?)(f32|f16|bf16_1k|bf16|i8|f64|xf32|(?:fp8|bf8)_(?:fp8|bf8))"
)
WMMA = re.compile(r"v_wmma_(f32|f16|bf16|i32)_16x16x(16|32)_(f16|bf16|iu8|iu4|(?:fp8|bf8)_(?:fp8|bf8))")


@cache
def shapes() -> list[Shape]:
    found = []
    for name in mnemonics():
        if match := MFMA.fullmatch(name):
            c, m, n, k, blocks, joined, kind = match.groups()
            a, _, b = kind.partition("_") if "8_" in kind else (kind, "", kind)
            count = int(blocks or 1)
            if not joined and a in HELD:
                count = 64 * HELD[a] // (int(m) * int(k))
            found.append(Shape(name, int(m), int(n), int(k), count, a, b, c, wmma=False))
        elif match := WMMA.fullmatch(name):
            c, k, kind = match.groups()
            a, _, b = kind.partition("_") if "8_" in kind else (kind, "", kind)
            found.append(Shape(name, 16, 16, int(k), 1, a, b, c, wmma=True))
    return found


def registers(shape: Shape, target: str, lanes: int) -> tuple[int, int]:
    """Return how many registers A has, and C."""
    held = shape.m * shape.k * shape.blocks * BITS[shape.a] // lanes // 32
    if shape.wmma and target.startswith("gfx11"):
        held = shape.k * BITS[shape.a] // 32  # each half of the wave holds all
    wide = {"f64": 2}.get(shape.c, 1)
    sums = shape.m * shape.n * shape.blocks * wide // lanes
    if shape.wmma and shape.c in {"f16", "bf16"} and target.startswith("gfx12"):
        sums //= 2
    return max(held, 1), sums


def places_in(shape: Shape, target: str, lanes: int, outer: int, k: int, block: int) -> list[tuple[int, int]]:
    """Return the lanes, and the number in each, that hold element k of a row of A or a column of B."""
    if shape.wmma and target.startswith("gfx11"):
        return [(lane, k) for lane in range(outer, lanes, 16)]
    each = shape.m * shape.k * shape.blocks // lanes
    rows = shape.m
    if shape.blocks > 1 and shape.a != "f64":
        return [(outer + rows * block, k)]
    return [(outer + rows * (block + shape.blocks * (k // each)), k % each)]


def place_out(shape: Shape, target: str, lanes: int, row: int, column: int, block: int) -> tuple[int, int]:
    """Return the lane and the number of an element of C and D."""
    if shape.wmma and target.startswith("gfx11"):
        groups = lanes // 16
        return column + 16 * (row % groups), row // groups
    if shape.wmma:
        each = 256 // lanes
        return column + 16 * (row // each), row % each
    if shape.c == "f64":
        return (column + 4 * block + 16 * row, 0) if shape.m == 4 else (column + 16 * (row % 4), row // 4)
    if shape.m == 4:
        return column + 4 * block, row
    if shape.m == 16:
        return column + 16 * (row // 4), row % 4 + 4 * block
    return column + 32 * (row // 4 % 2), 4 * (row // 8) + row % 4 + 16 * block


def values(kind: str, rng: np.random.Generator, size: tuple[int, ...], *, fnuz: bool) -> tuple[Numbers, Words]:
    """Return numbers of a type and their bits."""
    if kind in {"f32", "xf32", "f16", "bf16", "bf16_1k", "f64"}:
        numbers = rng.integers(-16, 17, size) / 8.0
        codes = {"f32": "<f", "xf32": "<f", "f16": "<e", "f64": "<d"}
        if kind.startswith("bf16"):
            bits = [struct.unpack("<I", struct.pack("<f", one))[0] >> 16 for one in numbers.flat]
        else:
            bits = [int.from_bytes(struct.pack(codes[kind], one), "little") for one in numbers.flat]
        return numbers, np.array(bits, np.uint64).reshape(size).astype(object)
    width = BITS[kind]
    bits_of = rng.integers(0, 1 << width, size)
    if kind in {"fp8", "bf8"}:
        mantissa = 3 if kind == "fp8" else 2
        low = {3: 0x28, 2: 0x34}[mantissa]
        bits_of = (bits_of & 0x87) | low
        bits_of = np.where(rng.random(size) < 0.1, rng.choice([0, 0x81, 0x01], size), bits_of)
        numbers = np.vectorize(lambda one: fp8_value(int(one), mantissa, fnuz=fnuz))(bits_of)
        return numbers, bits_of.astype(object)
    signed = kind == "i8"
    numbers = np.where(signed & (bits_of >> width - 1 == 1), bits_of - (1 << width), bits_of).astype(np.float64)
    return numbers, bits_of.astype(object)


def result_bits(kind: str, number: float) -> int:
    if kind == "i32":
        return int(number) & 0xFFFFFFFF
    if kind == "bf16":
        raw = int(struct.unpack("<I", struct.pack("<f", number))[0])
        return (raw + 0x7FFF + (raw >> 16 & 1)) >> 16
    return int.from_bytes(struct.pack({"f32": "<f", "f64": "<d", "f16": "<e"}[kind], number), "little")


def put(records: list[list[int]], lane: int, at: int, number: int, width: int, bits: int) -> None:
    """Put a number of some bits where it stands among those of a lane."""
    word, shift = at + number * width // 32, number * width % 32
    if width == 64:
        records[lane][word], records[lane][word + 1] = bits & 0xFFFFFFFF, bits >> 32
    else:
        records[lane][word] |= bits << shift


def text_of(shape: Shape, target: str, lanes: int, c: str = "") -> str:
    held, sums = registers(shape, target, lanes)

    def name(at: int, count: int) -> str:
        return f"v[{at}:{at + count - 1}]" if count > 1 else f"v{at}"

    d = name(C_AT, sums)
    return f"{shape.name} {d}, {name(A_AT, held)}, {name(B_AT, held)}, {c or d}"


@pytest.mark.slow
@pytest.mark.parametrize("target", [one for one in TARGETS if one not in {"gfx906", "gfx1010", "gfx1030"}])
def test_products(target: str) -> None:
    lanes, cases = lanes_of(target), {}
    for shape in shapes():
        if shape.wmma != target.startswith(("gfx11", "gfx12")):
            continue
        _, sums = registers(shape, target, lanes)
        if sums < 1:
            continue
        for c in ("", "1.0" if shape.c in {"f32", "f64"} else "", "0"):
            cases[Case((text_of(shape, target, lanes, c),), words=WORDS)] = (shape, c)
    made = tried(list(cases), target)
    assert len(made.decoded) > 5
    for case in made.decoded:
        shape, c = cases[case]
        product(shape, c, case, made, target)


def product(shape: Shape, c: str, case: Case, made: Any, target: str) -> None:
    lanes, fnuz = lanes_of(target), target == "gfx942"
    rng = np.random.default_rng(7)
    records = [[0] * WORDS for _ in range(lanes)]
    a, a_bits = values(shape.a, rng, (shape.blocks, shape.m, shape.k), fnuz=fnuz)
    b, b_bits = values(shape.b, rng, (shape.blocks, shape.n, shape.k), fnuz=fnuz)
    start = rng.integers(-64, 65, (shape.blocks, shape.m, shape.n)) / (1.0 if shape.c == "i32" else 4.0)
    width = {"f64": 64, "f16": 16, "bf16": 16}.get(shape.c, 32)
    spread = 2 if width == 16 and target.startswith("gfx11") else 1  # a half of each register

    for block in range(shape.blocks):
        for k in range(shape.k):
            for outer in range(shape.m):
                for lane, number in places_in(shape, target, lanes, outer, k, block):
                    put(records, lane, 0, number, BITS[shape.a], int(a_bits[block, outer, k]))
                    put(records, lane, B_AT - A_AT, number, BITS[shape.b], int(b_bits[block, outer, k]))
        for row in range(shape.m):
            for column in range(shape.n):
                lane, number = place_out(shape, target, lanes, row, column, block)
                put(records, lane, C_AT - A_AT, number * spread, width, result_bits(shape.c, start[block, row, column]))
    got = execute(case, made, target, np.array(records, np.uint32))
    added = start if not c else np.full_like(start, float(c))
    wanted = np.einsum("bmk,bnk->bmn", a, b) + added
    for block in range(shape.blocks):
        for row in range(shape.m):
            for column in range(shape.n):
                lane, number = place_out(shape, target, lanes, row, column, block)
                at = number * spread * width
                word = C_AT - A_AT + at // 32
                bits = int(got[lane, word]) | (int(got[lane, word + 1]) << 32 if width == 64 else 0)
                gave = bits >> at % 32 & (1 << width) - 1
                right = result_bits(shape.c, wanted[block, row, column])
                assert gave == right, f"{case.lines[0]}: D[{row}, {column}] of {block}"
