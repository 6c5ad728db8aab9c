"""Loads, stores and atomics of the LDS and of global memory, alone, with bytes as Python keeps them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("rocm")

from tests.emulate.bench import TARGETS, WORDS, Case, Words, execute, lanes_of, tried, waits
from tests.emulate.exact import BF16, F16, F32, F64, bits_of, sums, value_of

WAVES = 2
STRIDE = 32
"""Bytes of memory of each lane."""


def given(lanes: int) -> Words:
    """Return records: v8 and on random, v10 the lane's offset in memory and v12 that in the LDS."""
    pick = random.Random(9)  # noqa: S311  test data
    made = np.array([[pick.getrandbits(32) for _ in range(WORDS)] for _ in range(WAVES * lanes)], np.uint32)
    made[:, 2] = np.arange(WAVES * lanes) * STRIDE
    made[:, 4] = np.arange(WAVES * lanes) % lanes * STRIDE
    return made


def memory_of(lanes: int) -> Words:
    return np.random.default_rng(2).integers(0, 1 << 32, WAVES * lanes * STRIDE // 4, np.uint32)


def word(data: bytes, at: int = 0, size: int = 4, *, signed: bool = False) -> int:
    return int.from_bytes(data[at : at + size], "little", signed=signed) & 0xFFFFFFFF


LOADS: dict[str, Callable[[bytes, int], list[int]]] = {
    "ubyte": lambda data, old: [word(data, size=1)],
    "sbyte": lambda data, old: [word(data, size=1, signed=True)],
    "ushort": lambda data, old: [word(data, size=2)],
    "sshort": lambda data, old: [word(data, size=2, signed=True)],
    "dword": lambda data, old: [word(data)],
    "dwordx2": lambda data, old: [word(data, at) for at in (0, 4)],
    "dwordx3": lambda data, old: [word(data, at) for at in (0, 4, 8)],
    "dwordx4": lambda data, old: [word(data, at) for at in (0, 4, 8, 12)],
    "ubyte_d16": lambda data, old: [old & 0xFFFF0000 | word(data, size=1)],
    "sbyte_d16": lambda data, old: [old & 0xFFFF0000 | word(data, size=1, signed=True) & 0xFFFF],
    "short_d16": lambda data, old: [old & 0xFFFF0000 | word(data, size=2)],
    "ubyte_d16_hi": lambda data, old: [old & 0xFFFF | word(data, size=1) << 16],
    "sbyte_d16_hi": lambda data, old: [old & 0xFFFF | (word(data, size=1, signed=True) & 0xFFFF) << 16],
    "short_d16_hi": lambda data, old: [old & 0xFFFF | word(data, size=2) << 16],
}
STORES: dict[str, tuple[int, int]] = {
    "byte": (0, 1), "short": (0, 2), "byte_d16_hi": (2, 1), "short_d16_hi": (2, 2), "dword": (0, 4), "dwordx2": (0, 8),
    "dwordx3": (0, 12), "dwordx4": (0, 16),
}  # fmt: skip
"""First byte of the registers, and bytes."""


def registers(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


Loaded = Callable[[bytes, int], list[int]]


def half_alone(kind: str, loaded: Loaded, target: str) -> tuple[tuple[str, ...], Loaded]:
    """Look at the loaded half alone where the other one does not survive: with ECC of the registers.

    Source: LLVM's GCNSubtarget::d16PreservesUnusedBits.
    """
    if "d16" not in kind or target not in {"gfx90a", "gfx942", "gfx950"}:
        return (), loaded
    mask = 0xFFFF0000 if kind.endswith("_hi") else 0xFFFF
    return (f"v_and_b32 v24, 0x{mask:x}, v24",), lambda data, old: [one & mask for one in loaded(data, old)]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_loads_and_stores_of_memory(target: str) -> None:
    lanes, wait = lanes_of(target), waits(target)
    memory, records = memory_of(lanes), given(lanes)
    loads, stores = {}, {}
    for kind, loaded in LOADS.items():
        count = len(loaded(bytes(16), 0))
        lines, half = half_alone(kind, loaded, target)
        loads[Case((f"global_load_{kind} {registers(24, count)}, v10, s[10:11] offset:8", *wait, *lines))] = half, 8
        name = kind.replace("short_d16", "short_d16")
        text = f"flat_load_{name} {registers(24, count)}, v[26:27]"
        address = (
            "v_mov_b32 v27, s11",
            "v_mov_b32 v26, v10",
            "v_add_co_u32 v26, vcc, s10, v26",
            "v_addc_co_u32 v27, vcc, 0, v27, vcc",
        )
        if target.startswith("gfx9") and count <= 2:
            loads[Case((*address, text, *wait, *lines))] = half, 0
    for kind, (first, size) in STORES.items():
        count = max(1, size // 4)
        stores[Case((f"global_store_{kind} v10, {registers(16, count)}, s[10:11] offset:4", *wait))] = first, size
    made = tried([*loads, *stores], target)
    assert not made.unmodelled, made.unmodelled
    assert not made.wrong, made.wrong
    for case, (loaded, offset) in loads.items():
        got = execute(case, made, target, records, memory.copy())
        whole = memory.tobytes()
        for lane, row in enumerate(records):
            at = int(row[2]) + offset
            wanted = loaded(whole[at : at + 16], int(row[8]))
            assert [int(one) for one in got[lane, : len(wanted)]] == wanted, (case.lines, lane)
    for case, (first, size) in stores.items():
        written = memory.copy()
        execute(case, made, target, records, written)
        right = bytearray(memory.tobytes())
        for row in records:
            at = int(row[2]) + 4
            right[at : at + size] = row[8:12].tobytes()[first : first + size]
        assert written.tobytes() == bytes(right), case.lines


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> bits - 1 else x


ATOMICS: dict[str, Callable[[int, int, int], int]] = {
    "swap": lambda old, value, bits: value,
    "add": lambda old, value, bits: old + value,
    "sub": lambda old, value, bits: old - value,
    "smin": lambda old, value, bits: min(old, value, key=lambda one: signed(one, bits)),
    "umin": lambda old, value, bits: min(old, value),
    "smax": lambda old, value, bits: max(old, value, key=lambda one: signed(one, bits)),
    "umax": lambda old, value, bits: max(old, value),
    "and": lambda old, value, bits: old & value,
    "or": lambda old, value, bits: old | value,
    "xor": lambda old, value, bits: old ^ value,
    "inc": lambda old, value, bits: 0 if old >= value else old + 1,
    "dec": lambda old, value, bits: value if old == 0 or old > value else old - 1,
}


def added(old: int, value: int, bits: int) -> int:
    form = F64 if bits == 64 else F32
    return bits_of(sums(value_of(old, form), value_of(value, form)), form)


def added_pairs(form: str) -> Callable[[int, int, int], int]:
    number = F16 if form == "f16" else BF16

    def compute(old: int, value: int, bits: int) -> int:
        del bits
        halves = [
            bits_of(sums(value_of(old >> at & 65535, number), value_of(value >> at & 65535, number)), number)
            for at in (0, 16)
        ]
        return halves[0] | halves[1] << 16

    return compute


def floats(records: Words, memory: Words, bits: int, pairs: str = "") -> tuple[Words, Words]:
    """Return copies in which data and memory are numbers near one another."""
    records, memory = records.copy(), memory.copy()
    rng = np.random.default_rng(4)
    for array, columns in ((records, slice(8, 12)), (memory, slice(None))):
        part = array[:, columns] if array.ndim == 2 else array
        count = part.size
        numbers = rng.normal(0, 100, count)
        if pairs == "bf16":
            raw = (numbers.astype(np.float32).view(np.uint32) & 0xFFFF0000) | np.roll(
                numbers.astype(np.float32).view(np.uint32) >> 16, 1
            )
        elif pairs:
            half = numbers.astype(np.float16).view(np.uint16).astype(np.uint32)
            raw = half | np.roll(half, 1) << 16
        elif bits == 64:
            raw = numbers[: count // 2].view(np.uint32)
        else:
            raw = numbers.astype(np.float32).view(np.uint32)
        part[...] = raw.reshape(part.shape)
    return records, memory


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_atomics(target: str) -> None:
    lanes, wait = lanes_of(target), waits(target)
    scope = "th:TH_ATOMIC_RETURN" if target.startswith("gfx12") else "sc0" if target in {"gfx942", "gfx950"} else "glc"
    cases: dict[Case, tuple[Callable[[int, int, int], int], int, str, bool]] = {}
    for name, compute in ATOMICS.items():
        for suffix, bits in (("", 32), ("_x2", 64)):
            data = registers(16, bits // 32)
            for returns in (True, False):
                result, after = (f"{registers(24, bits // 32)}, ", f" {scope}") if returns else ("", "")
                line = f"global_atomic_{name}{suffix} {result}v10, {data}, s[10:11] offset:8{after}"
                cases[Case((line, *wait))] = compute, bits, "", returns
    for name, compute, bits, pairs in (
        ("add_f32", added, 32, ""), ("add_f64", added, 64, ""), ("pk_add_f16", added_pairs("f16"), 32, "f16"),
        ("pk_add_bf16", added_pairs("bf16"), 32, "bf16"),
    ):  # fmt: skip
        line = f"global_atomic_{name} v10, {registers(16, bits // 32)}, s[10:11] offset:8"
        cases[Case((line, *wait))] = compute, bits, pairs or "f", False
    made = tried(list(cases), target)
    assert not made.unmodelled, made.unmodelled
    assert len(made.decoded) >= 44
    plain = given(lanes)
    memory = memory_of(lanes)
    for case in made.decoded:
        compute, bits, kind, returns = cases[case]
        records, before = (
            (plain, memory.copy()) if not kind else floats(plain, memory, bits, kind if kind != "f" else "")
        )
        after_memory = before.copy()
        got = execute(case, made, target, records, after_memory)
        size = bits // 8
        old_bytes, wanted = before.tobytes(), bytearray(before.tobytes())
        for lane, row in enumerate(records):
            at = int(row[2]) + 8
            old = int.from_bytes(old_bytes[at : at + size], "little")
            value = int.from_bytes(row[8:10].tobytes()[:size], "little")
            wanted[at : at + size] = (compute(old, value, bits) & (1 << bits) - 1).to_bytes(size, "little")
            if returns:
                gave = int.from_bytes(got[lane, :2].tobytes()[:size], "little")
                assert gave == old, (case.lines, lane)
        assert after_memory.tobytes() == bytes(wanted), case.lines


LDS = (
    ("b8", 0, 1),
    ("b16", 0, 2),
    ("b8_d16_hi", 2, 1),
    ("b16_d16_hi", 2, 2),
    ("b32", 0, 4),
    ("b64", 0, 8),
    ("b96", 0, 12),
    ("b128", 0, 16),
)
LDS_LOADS = {
    "u8": "ubyte", "i8": "sbyte", "u16": "ushort", "i16": "sshort", "b32": "dword", "b64": "dwordx2", "b96": "dwordx3",
    "b128": "dwordx4", "u8_d16": "ubyte_d16", "i8_d16": "sbyte_d16", "u16_d16": "short_d16", "u8_d16_hi": "ubyte_d16_hi",
    "i8_d16_hi": "sbyte_d16_hi", "u16_d16_hi": "short_d16_hi",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_lds(target: str) -> None:
    """What is written, is read: first four words of every lane, then the case, then four words again."""
    lanes, wait = lanes_of(target), waits(target)
    records = given(lanes)
    records[:, 4] = records[:, 4] // 2  # 16 bytes a lane
    fill = (
        "v_mov_b32 v28, v8",
        "v_mov_b32 v29, v11",
        "v_mov_b32 v30, v13",
        "v_mov_b32 v31, v14",
        "ds_write_b128 v12, v[28:31]",
        *wait,
    )
    back = ("ds_read_b128 v[24:27], v12", *wait)
    zero = "s_mov_b32 m0, -1"
    cases: dict[Case, Callable[[bytes, bytes], bytes]] = {}

    def stores(first: int, size: int) -> Callable[[bytes, bytes], bytes]:
        return lambda held, data: data[first : first + size] + held[size:]

    for kind, first, size in LDS:
        cases[Case((zero, *fill, f"ds_write_{kind} v12, {registers(16, max(1, size // 4))}", *wait, *back))] = stores(
            first, size
        )
    for name, compute in ATOMICS.items():
        kind = {"smin": "min_i", "umin": "min_u", "smax": "max_i", "umax": "max_u"}.get(name, f"{name}_u")
        kind = {"swap": "wrxchg_rtn_b", "and": "and_b", "or": "or_b", "xor": "xor_b"}.get(name, kind)
        for bits in (32, 64):
            count = bits // 32
            result = f"{registers(18, count)}, " if "rtn" in kind else ""

            def changed(
                held: bytes, data: bytes, compute: Callable[[int, int, int], int] = compute, bits: int = bits
            ) -> bytes:
                size = bits // 8
                old, value = (int.from_bytes(one[:size], "little") for one in (held, data))
                return (compute(old, value, bits) & (1 << bits) - 1).to_bytes(size, "little") + held[size:]

            cases[Case((zero, *fill, f"ds_{kind}{bits} {result}v12, {registers(16, count)}", *wait, *back))] = changed
    loads: dict[Case, tuple[Callable[[bytes, int], list[int]], int]] = {}
    for kind, same in LDS_LOADS.items():
        loaded = LOADS[same]
        count = len(loaded(bytes(16), 0))
        loads[Case((zero, *fill, f"ds_read_{kind} {registers(24, count)}, v12", *wait))] = loaded, count
    pairs = {
        Case((zero, *fill, "ds_read2_b32 v[24:25], v12 offset0:1 offset1:3", *wait)): lambda held: (
            held[4:8] + held[12:16]
        ),
        Case((zero, *fill, "ds_read2_b64 v[24:27], v12 offset0:1 offset1:0", *wait)): lambda held: (
            held[8:16] + held[:8]
        ),
        Case((zero, *fill, "ds_write2_b32 v12, v16, v17 offset0:2 offset1:1", *wait, *back)): None,
    }
    made = tried([*cases, *loads, *pairs], target)
    assert not made.unmodelled, made.unmodelled
    assert not made.wrong, made.wrong
    held = [struct.pack("<4I", *(int(row[at]) for at in (0, 3, 5, 6))) for row in records]
    for case, change in cases.items():
        got = execute(case, made, target, records)
        for lane, row in enumerate(records):
            wanted = change(held[lane], row[8:12].tobytes())
            assert got[lane, :4].tobytes() == wanted, (case.lines, lane)
    for case, (loaded, count) in loads.items():
        got = execute(case, made, target, records)
        for lane, row in enumerate(records):
            assert [int(one) for one in got[lane, :count]] == loaded(held[lane], int(row[8])), (case.lines, lane)
    for case, read in pairs.items():
        got = execute(case, made, target, records)
        for lane, row in enumerate(records):
            if read is None:
                data = row[8:10].tobytes()
                wanted = held[lane][:4] + data[4:8] + data[:4] + held[lane][12:]
                assert got[lane, :4].tobytes() == wanted, case.lines
            else:
                wanted = read(held[lane])
                assert got[lane, : len(wanted) // 4].tobytes() == wanted, case.lines
