"""Instructions that move values between lanes, the LDS's and memory's, against Python's statements of them."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("rocm")

from tests.emulate.bench import TARGETS, WORDS, Case, Tried, Words, execute, lanes_of, tried, waits

Lanes = list[int]
Move = Callable[[Lanes, Lanes, list[bool]], Lanes]
"""From what lanes held in v8, in v10 and in the result, and which are active, to the result."""

SELECT = (0x76543210, 0xFEDCBA98, 0x02468ACE, 0x13579BDF)


def given(lanes: int, seed: int = 5) -> Words:
    pick = random.Random(seed)  # noqa: S311  test data
    made = np.array([[pick.getrandbits(32) for _ in range(WORDS)] for _ in range(4 * lanes)], np.uint32)
    made[::lanes, 6:8] = [[pick.getrandbits(32), pick.getrandbits(32)] for _ in range(4)]
    return made


def active_of(records: Words, wave: int, lanes: int) -> list[bool]:
    """Return the lanes that a case leaves active: those of s[26:27], which the first lane's v14 and v15 held."""
    low, high = (int(one) for one in records[wave * lanes, 6:8])
    return [bool((low | high << 32) >> lane & 1) for lane in range(lanes)]


def masked(lanes: int, *lines: str) -> tuple[str, ...]:
    """Return lines with some lanes inactive."""
    if lanes == 64:
        return ("s_mov_b64 exec, s[26:27]", *lines)
    return ("s_mov_b32 exec_lo, s26", *lines)


def check(case: Case, made: Tried, target: str, move: Move, *, partly: bool) -> None:
    lanes = lanes_of(target)
    records = given(lanes)
    got = execute(case, made, target, records)
    for wave in range(4):
        rows = records[wave * lanes : (wave + 1) * lanes]
        active = active_of(records, wave, lanes) if partly else [True] * lanes
        data, index, old = ([int(one) for one in rows[:, at]] for at in (0, 2, 8))
        wanted = move(data, index, active) if move.__code__.co_argcount == 3 else move(data, index, active, old)  # type: ignore[call-arg]
        wanted = [one if on else before for one, on, before in zip(wanted, active, old, strict=True)]
        result = [int(one) for one in got[wave * lanes : (wave + 1) * lanes, 0]]
        assert result == wanted, (target, case.lines, wave)


def bpermuted(target: str, offset: int) -> Move:
    def move(data: Lanes, index: Lanes, active: list[bool]) -> Lanes:
        lanes = len(data)
        made = []
        for lane in range(lanes):
            source = (index[lane] + offset) // 4 % lanes
            if lanes == 64 and not target.startswith("gfx9"):
                source = source % 32 + lane // 32 * 32
            made.append(data[source] if active[source] else 0)
        return made

    return move


def permuted(offset: int) -> Move:
    def move(data: Lanes, index: Lanes, active: list[bool]) -> Lanes:
        lanes = len(data)
        made = [0] * lanes
        for lane in range(lanes):
            if active[lane]:
                made[(index[lane] + offset) // 4 % lanes] = data[lane]
        return made

    return move


def from_lanes(source: Callable[[int], int], *, inactive: bool = False) -> Move:
    """Return what each lane gets from another; of one that is not active zero, or what it holds."""

    def move(data: Lanes, index: Lanes, active: list[bool]) -> Lanes:
        del index
        return [data[source(lane)] if active[source(lane)] or inactive else 0 for lane in range(len(data))]

    return move


def rotated(lane: int) -> int:
    """Return where a rotation by 5 to the left, within 8 lanes, reads."""
    return lane & ~7 | (lane + 5) & 7


SWIZZLES: dict[str, Callable[[int], int]] = {
    "offset:swizzle(QUAD_PERM, 2, 0, 3, 1)": lambda lane: lane & ~3 | (2, 0, 3, 1)[lane & 3],
    "offset:swizzle(SWAP, 8)": lambda lane: lane ^ 8,
    "offset:swizzle(SWAP, 16)": lambda lane: lane ^ 16,
    "offset:swizzle(REVERSE, 16)": lambda lane: lane ^ 15,
    "offset:swizzle(BROADCAST, 8, 3)": lambda lane: lane & ~7 | 3,
    'offset:swizzle(BITMASK_PERM, "01pi0")': lambda lane: (lane & 0b00110 | 0b01000) ^ 0b00010 | lane & ~31,
    "offset:0x5a5a": lambda lane: ((lane & 0x1A) | 0x12) ^ 0x16 | lane & ~31,
}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_lds_lane_operations(target: str) -> None:
    lanes = lanes_of(target)
    wait = waits(target)
    moves: dict[tuple[str, ...], tuple[Move, bool]] = {}
    for offset in (0, 20):
        after = f" offset:{offset}" if offset else ""
        plain = (f"ds_bpermute_b32 v24, v10, v8{after}", *wait)
        moves[plain] = bpermuted(target, offset), False
        moves[masked(lanes, *plain)] = bpermuted(target, offset), True
        plain = (f"ds_permute_b32 v24, v10, v8{after}", *wait)
        moves[plain] = permuted(offset), False
        moves[masked(lanes, *plain)] = permuted(offset), True
    for text, source in SWIZZLES.items():
        moves[(f"ds_swizzle_b32 v24, v8 {text}", *wait)] = from_lanes(source), False
        moves[masked(lanes, f"ds_swizzle_b32 v24, v8 {text}", *wait)] = from_lanes(source), True
    cases = {Case(lines): pair for lines, pair in moves.items()}
    made = tried(list(cases), target)
    assert not made.unmodelled
    assert not made.wrong
    for case, (move, partly) in cases.items():
        check(case, made, target, move, partly=partly)


def selected(lane: int, low: int, high: int) -> int:
    return (low | high << 32) >> 4 * (lane & 15) & 15


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"])
def test_permlane(target: str) -> None:
    lanes = lanes_of(target)
    low, high = SELECT[2], SELECT[3]
    across = {"v_permlane16_b32": 0, "v_permlanex16_b32": 16}
    cases: dict[Case, tuple[Callable[..., Lanes], bool]] = {}

    def moved(by: int, *, inactive: bool, zero: bool) -> Callable[..., Lanes]:
        def move(data: Lanes, index: Lanes, active: list[bool], old: Lanes) -> Lanes:
            del index
            made = []
            for lane in range(len(data)):
                source = (lane ^ by) & ~15 | selected(lane, low, high)
                made.append(data[source] if active[source] or inactive else 0 if zero else old[lane])
            return made

        return move

    for name, by in across.items():
        for text, inactive, zero in (
            ("", 0, 0),
            (" op_sel:[1,0]", 1, 0),
            (" op_sel:[0,1]", 0, 1),
            (" op_sel:[1,1]", 1, 1),
        ):
            lines = (
                f"s_mov_b32 s46, {low:#x}",
                f"s_mov_b32 s47, {high:#x}",
                *masked(lanes, f"{name} v24, v8, s46, s47{text}"),
            )
            cases[Case(lines)] = moved(by, inactive=bool(inactive), zero=bool(zero)), True
    made = tried(list(cases), target)
    assert not made.unmodelled
    assert not made.wrong
    for case, (move, partly) in cases.items():
        check(case, made, target, move, partly=partly)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_lanes_to_scalars(target: str) -> None:
    lanes = lanes_of(target)
    records = given(lanes)
    lines: dict[str, Callable[[Words, list[bool]], int]] = {
        "v_readlane_b32 s36, v8, s24": lambda rows, _: int(rows[int(rows[0, 4]) % lanes, 0]),
        "v_readlane_b32 s36, v8, 13": lambda rows, _: int(rows[13, 0]),
        "v_readfirstlane_b32 s36, v8": lambda rows, active: int(rows[active.index(True), 0]),
    }
    cases = {Case(masked(lanes, text)): one for text, one in lines.items()}
    write = Case(masked(lanes, "v_writelane_b32 v24, s20, 13"))
    made = tried([*cases, write], target)
    assert not made.wrong
    for case, one in cases.items():
        got = execute(case, made, target, records)
        for wave in range(4):
            rows = records[wave * lanes : (wave + 1) * lanes]
            assert int(got[wave * lanes, 8]) == one(rows, active_of(records, wave, lanes)), case.lines
    got = execute(write, made, target, records)
    for wave in range(4):
        rows = records[wave * lanes : (wave + 1) * lanes]
        wanted = [int(one) for one in rows[:, 8]]
        wanted[13] = int(rows[0, 0])
        assert [int(one) for one in got[wave * lanes : (wave + 1) * lanes, 0]] == wanted


@pytest.mark.slow
def test_swaps_of_lanes() -> None:
    """gfx950: odd rows of one register with even rows of the other."""
    for name, step in (("v_permlane16_swap_b32", 16), ("v_permlane32_swap_b32", 32)):
        case = Case((f"{name} v24, v25",))
        made = tried([case], "gfx950")
        records = given(64)
        got = execute(case, made, "gfx950", records)
        for wave in range(4):
            first, second = ([int(one) for one in records[wave * 64 : (wave + 1) * 64, at]] for at in (8, 9))
            for lane in range(64):
                if not lane & step:
                    first[lane + step], second[lane] = second[lane], first[lane + step]
            assert [int(one) for one in got[wave * 64 : (wave + 1) * 64, 0]] == first
            assert [int(one) for one in got[wave * 64 : (wave + 1) * 64, 1]] == second
