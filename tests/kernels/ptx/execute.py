"""Executes programs of a kernel one after the other, and of one program a wavefront until it waits for others.

Loads and stores are carried out at once. Of what orders them there are barriers of wavefronts and waits for copies to
shared memory, without which nobody may see what was stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np
from tests.kernels.ptx import lanes
from tests.kernels.ptx.memory import POISON, Global, Shared
from tests.kernels.ptx.program import Instruction, Program, parse

NOTHING = ("createpolicy", "griddepcontrol", "bar.warp.sync", "prefetch")
LANES = 32
BARRIERS = ("bar.sync", "bar.red", "barrier.sync")
EXTERN = 160 << 10
"""Bytes of shared memory whose size the code does not tell."""


def execute(text: str, grid: tuple[int, ...], threads: int, memory: Global, parameters: list[int]) -> None:
    """Execute a kernel.

    Args:
        text: A module in PTX with one kernel.
        grid: Programs along up to three axes.
        threads: Lanes of a program, a multiple of 32.
        memory: Where its pointers lead.
        parameters: The kernel's, pointers and numbers.

    Raises:
        WrongAccessError: A lane reads or writes outside of tensors or of shared memory, at an odd address, or what
            another wavefront wrote or reads without their having met.
    """
    launched = _Launched(parse(text), (*grid, 1, 1)[:3], threads, memory, parameters)
    for number in np.ndindex(*launched.grid):
        _Program(launched, number).run()


class _Launched(NamedTuple):
    """What all programs of a launch share."""

    code: Program
    grid: tuple[int, ...]
    threads: int
    memory: Global
    parameters: list[int]


class _Meeting(NamedTuple):
    """What a wavefront waits for: a barrier, how many lanes come to it, and how many of its own want something."""

    barrier: int
    coming: int
    wanting: int


class _Program:
    """One program: wavefronts that share memory, and meet."""

    def __init__(self, launched: _Launched, number: tuple[int, ...]) -> None:
        count = launched.threads // LANES
        shared = Shared(launched.code.size + EXTERN, count)
        self.shared = shared
        self.wavefronts = [_Wavefront(launched, number, at, shared) for at in range(count)]

    def run(self) -> None:
        """Execute the program."""
        going = [one.run() for one in self.wavefronts]
        ready: list[tuple[int, int | None]] = [(at, None) for at in range(len(going))]
        waiting: dict[int, list[tuple[int, int]]] = {}
        with np.errstate(all="ignore"):
            while ready:
                at, found = ready.pop(0)
                try:
                    meeting = going[at].send(found)
                except StopIteration:
                    continue
                here = waiting.setdefault(meeting.barrier, [])
                here.append((at, meeting.wanting))
                if LANES * len(here) == meeting.coming:
                    self.shared.meet([one for one, _ in here])
                    total = sum(wanting for _, wanting in here)
                    ready += [(one, total) for one, _ in waiting.pop(meeting.barrier)]
        assert not waiting, "wavefronts wait for others that do not come"


class _Wavefront:
    """One wavefront: its registers, by name ``[lanes]`` of bits, and which lanes take part."""

    def __init__(self, launched: _Launched, number: tuple[int, ...], wavefront: int, shared: Shared) -> None:
        self.code, grid, self.threads, self.memory, self.parameters = launched
        self.shared, self.wavefront = shared, wavefront
        self.active = np.ones(LANES, bool)
        self.waiting: dict[int, Any] = {}
        self.registers: dict[str, Any] = {}
        self.groups: list[list[tuple[Any, Any]]] = [[]]
        lane = np.arange(LANES)
        own = {"%tid.x": lane + LANES * wavefront, "%ntid.x": self.threads, "%laneid": lane}
        own |= {"%lanemask_eq": 1 << lane, "%lanemask_lt": (1 << lane) - 1}
        for at, axis in enumerate("xyz"):
            own |= {f"%ctaid.{axis}": number[at], f"%nctaid.{axis}": grid[at]}
        for name, value in (*own.items(), *self.code.shared.items()):
            self.registers[name] = np.full(LANES, value, np.uint32)

    def run(self) -> Generator[_Meeting, int | None, None]:
        """Execute the wavefront; it yields what it waits for, and is sent how many lanes wanted something there."""
        at = 0
        while at < len(self.code.instructions):
            if at in self.waiting:
                self.active = self.active | self.waiting.pop(at)
            one = self.code.instructions[at]
            if one.name == "ret":
                assert self.active.all(), "some lanes end before others"
                return
            mask = self._mask(one.guard)
            if one.name.startswith("bra"):
                at = self._branch(at, one.operands[0], mask)
                continue
            if one.name.startswith(BARRIERS):
                found = yield self._meeting(one)
                if one.name.startswith("bar.red.popc"):
                    self._set(one.operands[0], np.full(LANES, found, np.uint32), mask)
            else:
                self._step(one, mask)
            at += 1

    def _meeting(self, one: Instruction) -> _Meeting:
        assert self.active.all(), "some lanes do not come to the barrier"
        counted = one.name.startswith("bar.red")
        barrier, *rest = one.operands[1:] if counted else one.operands
        wanting = int(self._value(rest[-1], "pred").sum()) if counted else 0
        more = rest[:-1] if counted else rest
        count = int(self._value(more[0], "u32")[0]) if more else self.threads
        return _Meeting(int(self._value(barrier, "u32")[0]), count, wanting)

    def _branch(self, at: int, label: str, mask: Any) -> int:
        places = self.code.labels[label]
        ahead = [place for place in places if place > at]
        if not mask.any():
            return at + 1
        if ahead:
            self.waiting[ahead[0]] = self.waiting.get(ahead[0], False) | mask
            self.active = self.active & ~mask
            return at + 1 if self.active.any() else min(self.waiting)
        assert mask.all(), "lanes leave a loop at different times"
        return places[-1]

    def _mask(self, guard: str) -> Any:
        if not guard:
            return self.active
        held = self.registers[guard.lstrip("!")]
        return self.active & (~held if guard.startswith("!") else held)

    def _value(self, name: str, kind: str) -> Any:
        """Return an operand as numbers of a type."""
        if name in self.registers:
            return lanes.as_kind(self.registers[name], kind)
        if name.startswith("%rs") and kind == "b16":
            # Of two halves that are joined one may never have been given a value.
            return np.full(LANES, POISON * 0x0101, np.uint16)
        if name.startswith("{"):
            half = f"b{int(kind[1:]) // 2}"
            joined = np.stack([self._value(one, half) for one in _names(name)], 1)
            return joined.view(lanes.KINDS[kind])[:, 0]
        return np.full(LANES, lanes.literal(name, kind))

    def _set(self, name: str, numbers: Any, mask: Any) -> None:
        bits = lanes.as_bits(np.broadcast_to(numbers, (LANES,)))
        before = self.registers.get(name)
        if mask.all() or before is None or before.dtype != bits.dtype:
            self.registers[name] = bits
        else:
            self.registers[name] = np.where(mask, bits, before)

    def _step(self, one: Instruction, mask: Any) -> None:
        name, operands = one.name, one.operands
        for begin, does in _SPECIAL.items():
            if name.startswith(begin):
                does(self, name, operands, mask)
                return
        if name.startswith(NOTHING):
            for result in operands[:1] if name.startswith("createpolicy") else ():
                self._set(result, np.zeros(LANES, np.uint64), mask)
            return
        if operands[0].startswith("{"):
            kind = name.rpartition(".")[2]
            whole = np.ascontiguousarray(self._value(operands[1], kind))
            parts = whole.view(lanes.KINDS[f"b{int(kind[1:]) // 2}"]).reshape(-1, 2)
            for at, part in enumerate(_names(operands[0])):
                self._set(part, parts[:, at], mask)
            return
        self._set(operands[0], self._computed(name, operands[1:]), mask)

    def _computed(self, name: str, of: tuple[str, ...]) -> Any:
        """Return what an instruction makes of its operands; the table that knows its name says how they are seen."""
        what, _, kind = name.rpartition(".")
        if name in lanes.CONVERTED:
            found = lanes.CONVERTED[name](self._value(of[0], "b" + kind.lstrip("usbf")))
        elif name in lanes.OF_HALVES:
            seen = "f32" if name.endswith(".f32") else "b32"
            found = lanes.OF_HALVES[name](*(self._value(at, seen) for at in of))
        elif what in lanes.WIDE:
            wider = [self._value(at, kind[0] + "64") for at in of[2:]]
            found = lanes.WIDE[what](kind, *(self._value(at, kind) for at in of[:2]), *wider)
        elif what in lanes.SHIFTED:
            found = lanes.SHIFTED[what](self._value(of[0], kind), self._value(of[1], "u32"))
        elif what == "selp":
            found = np.where(self._value(of[2], "pred"), self._value(of[0], kind), self._value(of[1], kind))
        elif what.startswith("setp"):
            _, compared, *joined = what.split(".")
            found = lanes.COMPARED[compared](self._value(of[0], kind), self._value(of[1], kind))
            found = lanes.SAME[joined[0]](found, self._value(of[2], "pred")) if joined else found
        else:
            found = lanes.SAME[what](*(self._value(at, kind) for at in of))
        return found

    def _address(self, operand: str, kind: str) -> Any:
        register, _, by = operand.strip("[] ").partition("+")
        return self._value(register.strip(), kind) + lanes.literal(by.strip() or "0", kind)

    def _parameter(self, _name: str, operands: tuple[str, ...], mask: Any) -> None:
        number = int(re.findall(r"_param_(\d+)", operands[1])[0])
        self._set(operands[0], np.full(LANES, self.parameters[number], np.uint64), mask)

    def _load(self, name: str, operands: tuple[str, ...], mask: Any) -> None:
        to, size = _names(operands[0]), np.dtype(lanes.KINDS[name.rpartition(".")[2]]).itemsize
        if name.startswith("ld.shared"):
            data = self.shared.read(self._address(operands[1], "u32")[mask], size * len(to), self.wavefront)
        else:
            data = self.memory.read(self._address(operands[1], "u64")[mask], size * len(to))
        for at, register in enumerate(to):
            held = np.zeros((LANES, size), np.uint8)
            held[mask] = data[:, at * size : (at + 1) * size]
            self._set(register, held.view(lanes.BITS[size])[:, 0], mask)

    def _keep(self, name: str, operands: tuple[str, ...], mask: Any) -> None:
        kind = name.rpartition(".")[2]
        values = [lanes.as_bits(self._value(one, kind))[mask] for one in _names(operands[1])]
        data = np.stack(values, 1).view(np.uint8)
        if name.startswith("st.shared"):
            self.shared.write(self._address(operands[0], "u32")[mask], data, self.wavefront)
        else:
            self.memory.write(self._address(operands[0], "u64")[mask], data)

    def _copy(self, name: str, operands: tuple[str, ...], mask: Any) -> None:
        """Copy to shared memory, where it is once it was waited for."""
        if name.endswith("commit_group"):
            self.groups.append([])
        elif name.endswith("wait_group"):
            done = len(self.groups) - 1 - int(operands[0], 0)
            for group in self.groups[: max(done, 0)]:
                for to, data in group:
                    self.shared.write(to, data, self.wavefront)
            del self.groups[: max(done, 0)]
        else:
            size = int(operands[2], 0)
            # Of fewer bytes, or none, the rest are zeros.
            sizes = self._value(operands[3], "u32")[mask] if len(operands) > 3 else np.full(int(mask.sum()), size)
            assert np.isin(sizes, (0, size)).all()
            data = np.zeros((sizes.size, size), np.uint8)
            data[sizes > 0] = self.memory.read(self._address(operands[1], "u64")[mask][sizes > 0], size)
            self.groups[-1].append((self._address(operands[0], "u32")[mask], data))

    def _join(self, name: str, operands: tuple[str, ...], mask: Any) -> None:
        assert name == "red.shared.max.u32"
        numbers = self._value(operands[1], "u32")[mask]
        self.shared.join_most(self._address(operands[0], "u32")[mask], numbers, self.wavefront)

    def _other_lane(self, name: str, operands: tuple[str, ...], mask: Any) -> None:
        """Take another lane's register: of a lane so many bits away, or of the one that is named in a segment."""
        assert mask.all() or not mask.any(), "lanes are missing"
        one, by, clamp = self._value(operands[1], "b32"), *(self._value(at, "u32") for at in operands[2:4])
        lane, segment = np.arange(LANES), clamp >> np.uint32(8) & 31
        assert (clamp & 31 == 31).all()
        named = {"shfl.sync.bfly.b32": lane ^ by, "shfl.sync.idx.b32": (lane & segment) | (by & ~segment & 31)}
        self._set(operands[0], one[named[name]], mask)

    def _reduced(self, name: str, operands: tuple[str, ...], mask: Any) -> None:
        assert mask.all(), "lanes are missing"
        if name == "vote.sync.ballot.b32":
            found = np.uint32(
                (self._value(operands[1], "pred").astype(np.uint64) << np.arange(LANES, dtype=np.uint64)).sum()
            )
        else:
            assert name in {"redux.sync.max.u32", "redux.sync.max.s32"}
            found = lanes.as_bits(self._value(operands[1], name[-3:]).max())
        self._set(operands[0], np.full(LANES, found, np.uint32), mask)

    def _multiply(self, name: str, operands: tuple[str, ...], mask: Any) -> None:
        assert mask.all(), "lanes are missing"
        to, *of = (_names(one) for one in operands)
        found = lanes.multiplied(name, *([self._value(one, "b32") for one in part] for part in of))
        for register, sums in zip(to, found, strict=True):
            self._set(register, sums, mask)


_SPECIAL: dict[str, Callable[[_Wavefront, str, tuple[str, ...], Any], None]] = {
    "ld.param": _Wavefront._parameter, "ld.": _Wavefront._load, "st.": _Wavefront._keep, "cp.async": _Wavefront._copy,
    "red.": _Wavefront._join, "shfl": _Wavefront._other_lane, "redux": _Wavefront._reduced, "vote": _Wavefront._reduced,
    "mma": _Wavefront._multiply,
}  # fmt: skip
"""By how their names begin; the first one that fits."""


def _names(operand: str) -> list[str]:
    return [one.strip() for one in operand.strip("{} ").split(",")]
