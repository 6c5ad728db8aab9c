"""A device: memory that is checked, and launches of kernels on it."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rocmend.codeobject.kernarg import Launch, pack
from rocmend.core.errors import RocmendError, UsageError
from rocmend.emulate import layout
from rocmend.emulate.build import engine
from rocmend.emulate.decode import UnmodelledError
from rocmend.emulate.faults import Check, Fault, FaultKind, message, register_name
from rocmend.emulate.layout import Kind
from rocmend.emulate.program import Program, load

__all__ = ["ALL_CHECKS", "Device", "FaultError", "Order", "Run", "Step"]

ALL_CHECKS = Check.UNWRITTEN | Check.WAITS | Check.RACES | Check.BARRIERS | Check.STORES
MAX_FAULTS = 64
BASE, GAP = 0x7E00_0000_0000, 1 << 21
"""Buffers lie far from each other: an access past the end of one is never inside another."""

_CODE_BASE = 0x7D00_0000_0000
_PRIVATE, _SHARED = 0x2_0000 << 32, 0x1_0000 << 32
_QUANTUM = 1 << 20
_RACE_LIMIT_BYTES = 256 << 20
"""Races are looked for in buffers up to this size: each byte costs sixteen."""

_RESIDENT = 2048
BUDGET = 1 << 33
_HOST_BASE = _CODE_BASE - (1 << 34)
_MOST_GROUPS = 1 << 26
_MOST_STACK_BYTES = 1 << 20
_HOST = frozenset({"hidden_hostcall_buffer", "hidden_printf_buffer"})


class Order:
    """In which order the waves of a workgroup, and the workgroups, run."""

    FORWARD, REVERSE, SHUFFLED = 0, 1, 2


class FaultError(RocmendError):
    """A kernel did something that is wrong on every GPU, or not defined."""

    code = "emulated-fault"

    def __init__(self, kernel: str, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        more = f"\n… and {len(faults) - 5} more." if len(faults) > 5 else ""
        super().__init__(kernel, "\n".join(map(str, faults[:5])) + more)


class Run(NamedTuple):
    """What a launch did.

    Args:
        program: The kernel.
        faults: What the checks found.
        wave_instructions: Instructions that waves executed.
        executed: How often each instruction was.
        active: Lanes that were active then, summed.
        bank_cycles: Cycles that the LDS takes for its accesses, by 32 banks of 4 bytes.
        bank_ideal: What they would be without conflicts.
        time_s: Wall time of the execution alone.
    """

    program: Program
    faults: tuple[Fault, ...]
    wave_instructions: int
    executed: np.ndarray[Any, np.dtype[np.uint64]]
    active: np.ndarray[Any, np.dtype[np.uint64]]
    bank_cycles: int
    bank_ideal: int
    time_s: float

    def __repr__(self) -> str:
        """Return a line, not every instruction."""
        found = f"{len(self.faults)} findings" if self.faults else "no finding"
        kernel, target = self.program.kernel, self.program.generation.target
        return f"<{kernel} on {target}: {self.wave_instructions:,} instructions of waves, {found}>"


class Step(NamedTuple):
    """An instruction that a wave executed.

    Args:
        workgroup: In x, y and z.
        wave: Of the workgroup.
        pc: Offset of the instruction in the code.
        text: LLVM's text of it.
        active: A bit for each lane that was active.
        written: The registers that it may have written, by name: the lanes' values, or the one of a scalar register.
    """

    workgroup: tuple[int, int, int]
    wave: int
    pc: int
    text: str
    active: int
    written: dict[str, tuple[int, ...]]


class _Buffer(NamedTuple):
    base: int
    data: np.ndarray[Any, np.dtype[np.uint8]]
    name: str
    read_only: bool
    unwritten: np.ndarray[Any, np.dtype[np.uint8]] | None


class Device:
    """Memory and launches.

    Args:
        checks: Which checks are on: ``ALL_CHECKS``, or some of ``Check`` or-ed.
    """

    def __init__(self, checks: int = ALL_CHECKS) -> None:
        self.checks = checks
        self._buffers: list[_Buffer] = []
        self._next = BASE

    def add(self, data: np.ndarray[Any, Any], name: str = "", *, read_only: bool = False, written: bool = True) -> int:
        """Make an array part of the device's memory, where it lies, and return its address.

        Args:
            data: Contiguous; results land in it.
            name: For messages.
            read_only: A store to it is a finding.
            written: Whether it holds values; else reading it before the kernel wrote it is a finding.

        Raises:
            UsageError: It is not contiguous.
        """
        if not data.flags.c_contiguous:
            raise UsageError(
                "emulate", f"buffer {name or '?'} must be contiguous.", next_step="Pass a contiguous copy."
            )
        flat = data.reshape(-1).view(np.uint8) if data.size else np.zeros(0, np.uint8)
        unwritten = None
        if self.checks & Check.UNWRITTEN and not read_only:
            unwritten = np.full(flat.size, 0 if written else 255, np.uint8)
        base = self._next
        self._next += (flat.size + GAP - 1) // GAP * GAP + GAP
        self._buffers.append(_Buffer(base, flat, name, read_only, unwritten))
        return base

    def address_of(self, value: Any, name: str = "") -> int:
        """Make an array, or a tensor's storage, part of the memory, once; return the address of its first element.

        Raises:
            UsageError: It is not contiguous, or does not lie in the CPU's memory.
        """
        if isinstance(value, np.ndarray):
            whole = value
            while isinstance(whole.base, np.ndarray):
                whole = whole.base
            place, offset = whole.ctypes.data, value.ctypes.data - whole.ctypes.data
        elif value.device.type == "cpu":
            storage = value.untyped_storage()
            place, size = storage.data_ptr(), storage.nbytes()
            offset = int(value.storage_offset()) * value.element_size()
            raw = (ctypes.c_uint8 * size).from_address(place) if size else b""
            whole = np.ctypeslib.as_array(raw) if size else np.zeros(0, np.uint8)
        else:
            raise UsageError("emulate", f"{name or 'a tensor'} lies on {value.device}.", next_step="Pass value.cpu().")
        held = next((one.base for one in self._buffers if one.data.size and one.data.ctypes.data == place), None)
        if held is None:
            held = self.add(whole, name, read_only=not whole.flags.writeable)
        return held + offset

    def allocate(self, data: bytes) -> int:
        """Put bytes in the device's memory and return their address."""
        return self.add(np.frombuffer(bytearray(data), np.uint8))

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of the device's memory."""
        for one in self._buffers:
            if one.base <= address and address + size <= one.base + one.data.size:
                return one.data[address - one.base : address - one.base + size].tobytes()
        raise UsageError("emulate", f"no buffer holds {size} bytes at 0x{address:x}.")

    def run(self, code: bytes, kernel: str, kernarg: bytes, launch: Launch) -> None:
        """Run a kernel to its end.

        Raises:
            FaultError: A check found something.
        """
        done = self.launch(load(code, kernel), kernarg, launch)
        if done.faults:
            raise FaultError(kernel, done.faults)

    def launch(  # noqa: PLR0913  a launch has so many properties
        self,
        program: Program,
        kernarg: bytes | Sequence[int | bytes],
        launch: Launch,
        *,
        order: int = Order.FORWARD,
        seed: int = 1,
        budget: int = BUDGET,
        resident: int = _RESIDENT,
        trace: Callable[[Step], None] | None = None,
    ) -> Run:
        """Run a kernel.

        Args:
            program: The kernel.
            kernarg: Its segment, or the values of its explicit arguments.
            launch: Grid, workgroup and dynamic LDS.
            order: Of the waves.
            seed: Of a shuffled order.
            budget: Instructions of waves after which it counts as endless.
            resident: Workgroups that take turns where one waits for another.
            trace: Called after each instruction of each wave.

        Raises:
            UsageError: The launch is not possible on the target.
            UnmodelledError: A wave came to an instruction that is not modelled.
        """
        segment = kernarg if isinstance(kernarg, bytes) else pack(program.kernarg, kernarg, launch)
        lds = program.descriptor.lds_bytes + launch.dynamic_lds_bytes
        _check(program, launch, lds)
        buffers = list(self._buffers)
        image = _loaded(program)
        segment = _with_host(program, segment)
        arguments = _Buffer(
            _CODE_BASE - (1 << 32), np.frombuffer(bytearray(segment.ljust(64, b"\0")), np.uint8), "kernarg", True, None
        )
        packet = _Buffer(_CODE_BASE - (1 << 33), _packet(launch, lds, arguments.base), "dispatch packet", True, None)
        host = _Buffer(_HOST_BASE, np.zeros(1 << 20, np.uint8), "what the host serves", True, None)
        every = sorted([*buffers, *image, arguments, packet, host], key=lambda one: one.base)
        machine, kept = self._machine(program, launch, lds, every)
        machine.order, machine.random, machine.budget = order, seed * 0x9E3779B97F4A7C15 % (1 << 64) or 1, budget
        start = _launch(program, launch, arguments, packet.base, resident)
        if trace is not None:
            kept["trace"] = machine.trace = _tracer(program, launch, trace)
        began = time.perf_counter()
        _interruptible(machine, start)
        kept["time_s"] = time.perf_counter() - began
        return _result(program, machine, launch, kept, [*buffers, arguments, *image])

    def _machine(
        self, program: Program, launch: Launch, lds: int, buffers: list[_Buffer]
    ) -> tuple[layout.MACHINE, dict[str, Any]]:
        count = len(program.code.instructions)
        kept: dict[str, Any] = {
            "code": (layout.INST * count)(*program.code.instructions),
            "faults": (layout.FAULT * MAX_FAULTS)(),
            "executed": np.zeros(count, np.uint64),
            "active": np.zeros(count, np.uint64),
            "allocations": (layout.ALLOCATION * len(buffers))(),
            "shadows": [],
        }
        groups = launch.grid[0] * launch.grid[1] * launch.grid[2]
        races = self.checks & Check.RACES and (
            groups > 1 or launch.block[0] * launch.block[1] * launch.block[2] > program.generation.lanes
        )
        for row, one in zip(kept["allocations"], buffers, strict=True):
            row.base, row.size, row.read_only = one.base, one.data.size, one.read_only
            row.host = one.data.ctypes.data if one.base != _HOST_BASE else None
            if one.unwritten is not None:
                row.unwritten = one.unwritten.ctypes.data
            if races and not one.read_only and 0 < one.data.size <= _RACE_LIMIT_BYTES:
                shadow = np.zeros((2, one.data.size), np.uint64)
                kept["shadows"].append(shadow)
                row.writer, row.reader = shadow[0].ctypes.data, shadow[1].ctypes.data
        machine = layout.MACHINE(
            instructions=count, generation=program.generation.major, lanes=program.generation.lanes, lds_bytes=lds,
            scratch_bytes=program.descriptor.stack_bytes, groups=groups, registers=program.registers,
            checks=self.checks, quantum=_QUANTUM, max_faults=MAX_FAULTS, allocations=len(buffers),
            private_base=_PRIVATE, shared_base=_SHARED,
        )  # fmt: skip
        machine.code, machine.fault, machine.allocation = kept["code"], kept["faults"], kept["allocations"]
        machine.executed = kept["executed"].ctypes.data_as(ctypes.POINTER(ctypes.c_uint64))
        machine.active = kept["active"].ctypes.data_as(ctypes.POINTER(ctypes.c_uint64))
        return machine, kept


def _with_host(program: Program, segment: bytes) -> bytes:
    """Return a kernarg segment with an address that no kernel may use in the place of what a host would serve."""
    made = bytearray(segment)
    for one in program.kernarg.arguments:
        if one.kind in _HOST:
            made[one.offset : one.offset + 8] = _HOST_BASE.to_bytes(8, "little")
    return bytes(made)


def _loaded(program: Program) -> list[_Buffer]:
    """Return the code object's segments in memory, with the addresses that the loader fills in."""
    found = []
    for base, data in program.image:
        raw = bytearray(data)
        for at, value in program.relocations:
            if base <= at and at + 8 <= base + len(raw):
                raw[at - base : at - base + 8] = (_CODE_BASE + value).to_bytes(8, "little")
        found.append(_Buffer(_CODE_BASE + base, np.frombuffer(raw, np.uint8), "code object", False, None))
    return found


def _interruptible(machine: layout.MACHINE, start: layout.LAUNCH) -> None:
    """Run the engine beside the main thread, so that Ctrl-C ends it: it looks at its budget every million steps."""
    run = engine().rocmend_run
    beside = threading.Thread(target=run, args=(ctypes.byref(machine), ctypes.byref(start)), daemon=True)
    beside.start()
    interrupted: BaseException | None = None
    while beside.is_alive():  # its memory must not go before it has ended, whatever comes meanwhile
        try:
            beside.join(0.2)
        except BaseException as error:  # noqa: BLE001  raised again below
            machine.budget = 0
            interrupted = interrupted or error
    if interrupted is not None:
        raise interrupted


def _tracer(program: Program, launch: Launch, trace: Callable[[Step], None]) -> Any:
    """Return the engine's callback: what an instruction wrote, read from the registers after it."""
    lanes, code = program.generation.lanes, program.code.instructions

    def called(*told: Any) -> None:
        group, wave, number, active, vector, scalar = told
        written: dict[str, tuple[int, ...]] = {}
        for one in (code[number].d, code[number].e):
            for index in range(one.index, one.index + one.dwords):
                if one.kind == Kind.VGPR:
                    written[register_name(index, 1)] = tuple(vector[index * lanes : (index + 1) * lanes])
                elif one.kind == Kind.SGPR and index != layout.NULL:
                    written[register_name(index, 0)] = (scalar[index],)
        trace(Step(group_id(group, launch), wave, code[number].pc, program.code.texts[number], active, written))

    return layout.TRACE(called)


def group_id(number: int, launch: Launch) -> tuple[int, int, int]:
    """Return a workgroup's id in x, y and z."""
    x, y = launch.grid[0], launch.grid[1]
    return number % x, number // x % y, number // x // y


def _check(program: Program, launch: Launch, lds: int) -> None:
    items = launch.block[0] * launch.block[1] * launch.block[2]
    if not 0 < items <= 1024 or min(launch.grid) < 1:
        raise UsageError("emulate", f"a workgroup of {items} work-items in a grid of {launch.grid} cannot be launched.")
    if launch.grid[0] * launch.grid[1] * launch.grid[2] >= _MOST_GROUPS:
        raise UsageError("emulate", f"a grid of {launch.grid} has too many workgroups: {_MOST_GROUPS:,} at most.")
    if program.descriptor.stack_bytes > _MOST_STACK_BYTES:
        raise UsageError(
            "emulate", f"{program.kernel} wants {program.descriptor.stack_bytes} bytes of private memory a lane."
        )
    if program.descriptor.mode & 15:
        raise UnmodelledError("another rounding than to the nearest", f"MODE of {program.kernel}")
    most = program.generation.lds_bytes
    if lds > most:
        raise UsageError(
            "emulate",
            f"{program.kernel} wants {lds} bytes of LDS; {program.generation.target} has {most}.",
        )


def _packet(launch: Launch, lds: int, kernarg: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the AQL packet of the dispatch, which kernels of older code objects read sizes from."""
    raw = bytearray(64)
    raw[0:2] = (2).to_bytes(2, "little")
    raw[2:4] = (3).to_bytes(2, "little")
    for at, size in enumerate(launch.block):
        raw[4 + 2 * at : 6 + 2 * at] = size.to_bytes(2, "little")
    for at in range(3):
        raw[12 + 4 * at : 16 + 4 * at] = (launch.grid[at] * launch.block[at]).to_bytes(4, "little")
    raw[28:32] = lds.to_bytes(4, "little")
    raw[40:48] = kernarg.to_bytes(8, "little")
    return np.frombuffer(raw, np.uint8)


def _launch(program: Program, launch: Launch, kernarg: _Buffer, packet: int, resident: int) -> layout.LAUNCH:
    """Return the registers that a wave finds, in the order that the ABI gives them."""
    descriptor, generation = program.descriptor, program.generation
    user: list[int] = []
    bits = descriptor.properties

    def give(number: int, *values: int) -> None:
        if bits >> number & 1:
            user.extend(value & 0xFFFFFFFF for value in values)

    # A private segment buffer: swizzled by lane and wide open, since scratch is checked by itself.
    flags = 0x00E00000 if generation.major == 9 else 0x31E00000 & ~(1 << 23) | 1 << 23
    give(0, 0, 0x80000000 if generation.major < 11 else 0x40000000, 0xFFFFFFFF, flags)
    give(1, packet, packet >> 32)
    give(2, 0, 0)
    give(3, kernarg.base, kernarg.base >> 32)
    give(4, 0, 0)
    give(5, 0, 0)
    give(6, descriptor.stack_bytes)
    length, offset = descriptor.preload & 0x7F, descriptor.preload >> 7
    entry = program.entry
    if length and generation.cdna2:
        for number in range(length):
            at = 4 * (offset + number)
            user.append(int.from_bytes(kernarg.data[at : at + 4].tobytes(), "little"))
        # A kernel that expects preloaded arguments begins with 256 bytes for firmware that does not preload.
        entry = next(
            n for n, one in enumerate(program.code.instructions) if one.pc == descriptor.entry - program.base + 256
        )
    count = descriptor.user_sgprs
    user = [*user[:count], *[0] * (count - len(user))]
    rsrc2 = descriptor.rsrc2
    return layout.LAUNCH(
        grid=launch.grid, block=launch.block, group_count=launch.grid[0] * launch.grid[1] * launch.grid[2],
        entry=entry, mode=descriptor.mode, user_sgprs=count, id_in_ttmp=int(generation.major >= 12),
        id_sgprs=(rsrc2 >> 7 & 15) | (16 if rsrc2 & 1 and not generation.cdna3 and generation.major < 11 else 0),
        packed_ids=int(generation.packed_ids), vgprs_of_ids=rsrc2 >> 11 & 3, resident=resident,
        user=(ctypes.c_uint32 * 32)(*user[:32]), code_base=_CODE_BASE + program.base,
    )  # fmt: skip


def _result(
    program: Program, machine: layout.MACHINE, launch: Launch, kept: Mapping[str, Any], buffers: list[_Buffer]
) -> Run:
    faults = []
    for one in kept["faults"][: machine.faults]:
        kind = FaultKind(one.kind)
        at = one.instruction
        if kind is FaultKind.TRAPPED and at in program.code.unknown:
            raise program.code.unknown[at]
        if kind is FaultKind.ASKS_HOST:
            raise UnmodelledError("what a kernel asks of the host (printing, assertions)", program.code.texts[at])
        faults.append(
            Fault(
                kind, program.code.instructions[at].pc, program.code.texts[at],
                group_id(one.workgroup, launch), one.wave, one.lane, one.address, one.count,
                message(kind, one.address, one.other, _where(one.address, buffers)),
            )
        )  # fmt: skip
    return Run(
        program,
        tuple(faults),
        machine.total,
        kept["executed"],
        kept["active"],
        machine.bank_cycles,
        machine.bank_ideal,
        kept["time_s"],
    )


def _where(address: int, buffers: list[_Buffer]) -> str:
    """Say what lies at an address, or nearest to it."""
    best, distance = None, GAP
    for one in buffers:
        end = one.base + one.data.size
        away = 0 if one.base <= address < end else min(abs(address - end), abs(one.base - address))
        if away < distance:
            best, distance = one, away
    if best is None:
        return ""
    name = best.name or "a buffer"
    end = best.base + best.data.size
    if best.base <= address < end:
        return f" (byte {address - best.base} of {name})"
    if address >= end:
        return f" ({address - end} bytes past the end of {name})"
    return f" ({best.base - address} bytes before {name})"
