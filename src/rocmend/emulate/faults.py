"""What the checks found, in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Check", "Fault", "FaultKind", "message", "register_name"]


class FaultKind(IntEnum):
    """What may be wrong. ``engine/state.h`` has the same numbers."""

    BAD_ADDRESS = 1
    UNWRITTEN_ADDRESS = 2
    UNWRITTEN_BRANCH = 3
    UNWRITTEN_EXEC = 4
    UNWRITTEN_STORE = 5
    NOT_WAITED = 6
    OVERWRITTEN = 7
    LDS_BOUNDS = 8
    LDS_RACE = 9
    GLOBAL_RACE = 10
    MISALIGNED = 11
    BARRIER_ENDED = 12
    BARRIER_DIFFERS = 13
    READ_ONLY = 14
    SCRATCH_BOUNDS = 15
    HAZARD = 16
    TRAPPED = 17
    BAD_PC = 18
    STUCK = 19
    BUDGET = 20
    ASKS_HOST = 21


class Check(IntEnum):
    """Checks that can be switched off, a bit each."""

    UNWRITTEN = 1
    WAITS = 2
    RACES = 4
    BARRIERS = 8
    STORES = 16


@dataclass(frozen=True, slots=True)
class Fault:
    """A finding of a check.

    Args:
        kind: What it is.
        pc: Offset of the instruction in the code.
        instruction: LLVM's text of it.
        workgroup: In x, y and z.
        wave: Of the workgroup.
        lane: Of the wave.
        address: In memory, where it is about memory.
        count: How often it happened at this instruction.
        detail: In words.
    """

    kind: FaultKind
    pc: int
    instruction: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: int
    address: int
    count: int
    detail: str

    def __str__(self) -> str:
        """Return one line: what, where, who."""
        group = ",".join(map(str, self.workgroup))
        times = f", {self.count} times" if self.count > 1 else ""
        return (
            f"{self.detail}\n  at 0x{self.pc:x}: {self.instruction}\n"
            f"  workgroup ({group}), wave {self.wave}, lane {self.lane}{times}"
        )


def register_name(number: int, vector: int) -> str:
    """Return what LLVM calls a register of the engine's."""
    if not vector:
        return (
            f"s{number}"
            if number < 106
            else {106: "vcc", 107: "vcc_hi", 124: "m0", 126: "exec"}.get(number, f"s{number}")
        )
    return f"v{number}" if number < 256 else f"a{number - 256}"


def message(kind: FaultKind, address: int, other: int, where: str) -> str:
    """Return a finding in words.

    Args:
        kind: What it is.
        address: As the engine gives it: an address, or the number of a register.
        other: What else the engine says of it.
        where: What lies at the address, or next to it.
    """
    size, what = other & 255, "stores" if other & 256 else "loads"
    if other & 512:
        what = "atomically updates"
    register = register_name(address, other)
    did = "read" if other & 256 else "wrote"
    texts = {
        FaultKind.BAD_ADDRESS: f"{what} {size} bytes at 0x{address:x}, which belong to no buffer{where}",
        FaultKind.READ_ONLY: f"writes to a buffer that is only to be read, at 0x{address:x}{where}",
        FaultKind.MISALIGNED: f"{size} bytes at 0x{address:x} are not aligned{where}",
        FaultKind.LDS_BOUNDS: f"{what} {size} bytes at 0x{address:x} of the LDS, beyond what the workgroup has",
        FaultKind.SCRATCH_BOUNDS: f"{what} {size} bytes at 0x{address:x} of the private memory, beyond its end",
        FaultKind.LDS_RACE: f"a race in the LDS at byte 0x{address:x}: wave {other & 31} {did} it, and no barrier, or"
        " no wait before it, stands between",
        FaultKind.GLOBAL_RACE: f"a race at 0x{address:x}{where}: workgroup {other} accessed it, and nothing orders the"
        " two",
        FaultKind.UNWRITTEN_ADDRESS: f"an address in {register_name(address, other == 1)}, which nothing wrote",
        FaultKind.UNWRITTEN_BRANCH: "a branch that depends on something that nothing wrote",
        FaultKind.UNWRITTEN_EXEC: "the mask of active lanes depends on something that nothing wrote",
        FaultKind.UNWRITTEN_STORE: f"a result at 0x{address:x}{where} that depends on something that nothing wrote"
        f" (in v{other})",
        FaultKind.NOT_WAITED: f"{register} is read before the load into it was waited for",
        FaultKind.OVERWRITTEN: f"{register} is written while a load into it is under way",
        FaultKind.BARRIER_ENDED: f"a wave ends while {other} of its workgroup wait at the barrier at 0x{address:x}",
        FaultKind.BARRIER_DIFFERS: f"waves of a workgroup wait at different barriers: another waits at 0x{address:x}",
        FaultKind.HAZARD: f"{register} of a WMMA differs between lanes that must hold the same rows",
        FaultKind.TRAPPED: "a trap" if address < 1 << 31 else "an instruction that is not modelled",
        FaultKind.BAD_PC: f"a jump to 0x{address:x}, where there is no instruction of the program",
        FaultKind.STUCK: "every wave waits at a barrier, and none can come to it",
        FaultKind.BUDGET: "did not end within the instructions that it was given",
    }  # fmt: skip
    return texts.get(kind, f"{kind.name} {address:#x} {other}")
