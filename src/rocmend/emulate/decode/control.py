"""Instructions that steer: branches, waits, barriers, the mode register, and those that only matter to time."""

from __future__ import annotations

import re

from rocmend.emulate.decode.operands import UnmodelledError, operand
from rocmend.emulate.decode.text import Parts
from rocmend.emulate.layout import INST, Counter, Form, Kind

__all__ = ["WITH_TARGET", "read", "reads"]

_BRANCHES = {
    "s_branch": 0, "s_cbranch_scc0": 1, "s_cbranch_scc1": 2, "s_cbranch_vccz": 3, "s_cbranch_vccnz": 4,
    "s_cbranch_execz": 5, "s_cbranch_execnz": 6,
}  # fmt: skip
_SETPC, _GETPC, _SWAPPC, _CALL = 7, 8, 9, 10
WITH_TARGET = frozenset({*_BRANCHES.values(), _CALL})
"""Branches whose target stands in the instruction."""

_NOTHING = re.compile(
    r"s_(?:nop|delay_alu|clause|sethalt|setprio|inst_prefetch|set_inst_prefetch_distance|icache_inv|dcache_(?:inv|wb)\w*"
    r"|gl1_inv|ttracedata\w*|waitcnt_depctr|wait_alu|wait_event|incperflevel|decperflevel|version|sendmsg|code_end"
    r"|setkill|setreg_unused|barrier_leave|prefetch_\w+|wakeup|code_end)"
    r"|buffer_(?:gl0_inv|gl1_inv|inv|wbl2|wbinvl1\w*|invl2)|global_(?:inv|wb|wbinv)"
)
"""Caches are coherent here, and time does not pass."""

_PLAIN = {
    "s_endpgm": (Form.END, 0), "s_endpgm_saved": (Form.END, 0), "s_barrier": (Form.BARRIER, 0),
    "s_barrier_wait": (Form.BARRIER, 1), "s_barrier_signal": (Form.SIGNAL, 0), "s_sleep": (Form.SLEEP, 0),
    "s_sleep_var": (Form.SLEEP, 0), "s_wait_idle": (Form.WAIT, 1), "s_monitor_sleep": (Form.SLEEP, 0),
}  # fmt: skip
_WAITS = re.compile(r"(vmcnt|lgkmcnt|expcnt|vscnt)\((0x[0-9a-f]+|\d+)\)")
_WAIT_COUNTERS = {"vmcnt": Counter.LOAD, "vscnt": Counter.STORE, "lgkmcnt": Counter.LDS}
_NEW_WAITS = {"loadcnt": Counter.LOAD, "storecnt": Counter.STORE, "dscnt": Counter.LDS, "kmcnt": Counter.SCALAR}


_OTHERS = frozenset({
    "s_trap", "s_getpc_b64", "s_setpc_b64", "s_swappc_b64", "s_call_b64", "s_getreg_b32", "s_setreg_b32",
    "s_setreg_imm32_b32", "s_round_mode", "s_denorm_mode",
})  # fmt: skip
_UNMODELLED_WAITS = re.compile(r"s_wait_(?:x|async|tensor)cnt|s_waitcnt_lds_direct")


def reads(name: str) -> bool:
    """Return whether an instruction steers, or only matters to time."""
    waits = name.startswith("s_wait") and not _UNMODELLED_WAITS.fullmatch(name)
    return name in _BRANCHES or name in _PLAIN or name in _OTHERS or waits or _NOTHING.fullmatch(name) is not None


def read(parts: Parts, size: int) -> INST | None:
    """Decode an instruction that steers; None where it is another."""
    name = parts.name
    if name in _BRANCHES:
        return INST(op=_BRANCHES[name], form=Form.BRANCH, immediate=_signed(parts.operands[0]))
    if name in _PLAIN:
        form, op = _PLAIN[name]
        made = INST(form=form, op=op)
        for counter in (Counter.LOAD, Counter.STORE, Counter.LDS, Counter.SCALAR) if form == Form.WAIT else ():
            _limit(made, counter, 0)
        return made
    if _NOTHING.fullmatch(name):
        return INST(form=Form.NOP)
    if name.startswith("s_wait"):
        return _wait(parts)
    if name == "s_trap":
        return INST(form=Form.TRAP, immediate=int(parts.operands[0], 0))
    return _program_counter(parts, size) or _mode(parts)


def _program_counter(parts: Parts, size: int) -> INST | None:
    name, given, text = parts.name, parts.operands, parts.text
    made = INST(form=Form.BRANCH, bytes=size)
    if name.startswith("s_getpc_b64"):
        made.op, made.d = _GETPC, operand(given[0], "u64", text)
    elif name == "s_setpc_b64":
        made.op, made.s[0], made.sources = _SETPC, operand(given[0], "u64", text), 1
    elif name == "s_swappc_b64":
        made.op, made.d, made.s[0], made.sources = (
            _SWAPPC,
            operand(given[0], "u64", text),
            operand(given[1], "u64", text),
            1,
        )
    elif name == "s_call_b64":
        made.op, made.d, made.immediate = _CALL, operand(given[0], "u64", text), _signed(given[1])
    else:
        return None
    return made


_REGISTERS = {"HW_REG_MODE": 1, "HW_REG_WAVE_MODE": 1}
_FIELD = re.compile(r"hwreg\((\w+)(?:, *(\d+), *(\d+))?\)")


def _mode(parts: Parts) -> INST | None:
    name, given = parts.name, parts.operands
    if name in {"s_round_mode", "s_denorm_mode"}:
        if name == "s_round_mode" and int(given[0], 0) & 15:
            raise UnmodelledError("another rounding than to the nearest", parts.text)
        return INST(form=Form.HWREG, op=2 if name == "s_round_mode" else 3, immediate=int(given[0], 0) & 15)
    if not name.startswith(("s_getreg", "s_setreg")):
        return None
    reads = name.startswith("s_getreg")
    found = _FIELD.fullmatch(given[1 if reads else 0])
    if found is None:
        raise UnmodelledError(f"the register of {name}", parts.text)
    # Registers that only say what the wave runs on read as zero; setting one but MODE changes nothing here.
    number = _REGISTERS.get(found[1], 0)
    offset, width = int(found[2] or 0), int(found[3] or 32)
    made = INST(form=Form.HWREG, op=0 if reads else 1, immediate=number | offset << 6 | width - 1 << 11)
    if reads:
        if not number:
            raise UnmodelledError(f"reading {found[1]}", parts.text)
        made.d = operand(given[0], "u32", parts.text)
    else:
        made.s[0], made.sources = operand(given[1], "u32", parts.text), 1
        if number and offset < 4 and _rounds(made, offset):
            raise UnmodelledError("another rounding than to the nearest", parts.text)
    return made


def _rounds(made: INST, offset: int) -> bool:
    return made.s[0].kind != Kind.LITERAL or bool(made.s[0].value << offset & 15)


def _signed(text: str) -> int:
    value = int(text, 0) & 0xFFFF
    return value - 0x10000 if value & 0x8000 else value


def _limit(made: INST, counter: Counter, left: int) -> None:
    one = made.s[counter]
    one.kind, one.value = Kind.LITERAL, min(left, one.value) if one.kind == Kind.LITERAL else left


def _wait(parts: Parts) -> INST:
    made = INST(form=Form.WAIT)
    name, given = parts.name, parts.operands
    if name == "s_waitcnt":
        for counter, left in _WAITS.findall(parts.text):
            if counter in _WAIT_COUNTERS:
                _limit(made, _WAIT_COUNTERS[counter], int(left, 0))
        if not _WAITS.search(parts.text):
            _old_wait(made, int(given[0], 0), parts.text)
        return made
    if (found := re.fullmatch(r"s_waitcnt_(vscnt|vmcnt|lgkmcnt|expcnt)", name)) is not None:
        if found[1] in _WAIT_COUNTERS:
            _limit(made, _WAIT_COUNTERS[found[1]], int(given[1], 0))
        return made
    kinds = name.removeprefix("s_wait_").split("_")
    left = int(given[0], 0)
    for at, kind in enumerate(kinds):
        if kind in _NEW_WAITS:
            _limit(made, _NEW_WAITS[kind], (left >> 8 if at == 0 else left & 0x3F) if len(kinds) > 1 else left)
        elif kind not in {"samplecnt", "bvhcnt", "expcnt"}:
            raise UnmodelledError(name, parts.text)
    return made


def _old_wait(made: INST, bits: int, text: str) -> None:
    """Apply a wait that LLVM writes as a number: all counters at 0."""
    if bits:
        raise UnmodelledError(f"s_waitcnt {bits:#x}", text)
    for counter in (Counter.LOAD, Counter.LDS):
        _limit(made, counter, 0)
