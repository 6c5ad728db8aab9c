"""The engine's structures, as Python fills them. ``engine/state.h`` has the same; their sizes are compared."""

from __future__ import annotations

import ctypes
from enum import IntEnum, IntFlag

__all__ = [
    "ALLOCATION", "EXEC", "FAULT", "FLAT_SCRATCH", "INST", "LAUNCH", "M0", "MACHINE", "NULL", "OPERAND", "SCC", "SGPRS",
    "TRACE", "TTMP", "VCC", "Counter", "Flag", "Form", "Kind", "Modifier", "Type",
]  # fmt: skip

SGPRS = 136
VCC, TTMP, M0, EXEC, NULL, SCC, XNACK_MASK, FLAT_SCRATCH = 106, 108, 124, 126, 128, 130, 132, 134
MAX_SOURCES = 5


class Kind(IntEnum):
    """What an operand is."""

    NONE = 0
    VGPR = 1
    SGPR = 2
    LITERAL = 3


class Modifier(IntFlag):
    """How an operand is read."""

    NEG = 1
    ABS = 2
    HIGH = 4
    SEXT = 8
    NEG_HIGH = 16
    SELECT_HIGH = 32


Type = IntEnum(
    "Type",
    "B32 B16 B64 PK16 PK32 MIX MASK B96 B128 F32 F16 F64 B256 B512 B1024 I32 U32 I64 U64 I16 U16 BF16 MASK_OUT",
    start=0,
)
"""Types of operands, where they change how one is read or written."""

Form = IntEnum(
    "Form",
    "VALU SALU SMEM LDS GLOBAL FLAT BUFFER SCRATCH MATRIX BRANCH WAIT BARRIER END NOP LANE HWREG SLEEP TRAP SIGNAL",
    start=0,
)
"""Which part of the engine executes an instruction."""


class Flag(IntFlag):
    """What is particular about an instruction."""

    CLAMP = 1
    DPP = 2
    BOUND_CTRL = 4
    FETCH_INACTIVE = 8
    ZERO_HIGH = 16
    SDWA = 32
    PRESERVE = 64
    SDWA_SEXT = 128
    SIGNED = 256
    D16_LOW = 512
    D16_HIGH = 1024
    RETURNS = 2048
    COHERENT = 4096
    OFFEN = 8192
    IDXEN = 16384
    TO_LDS = 32768
    DUAL = 65536
    READS_D = 131072
    STORE = 262144
    ATOMIC = 524288
    FLOATS = 1048576
    IMPLICIT_VCC = 2097152
    WRITES_SCC = 4096
    READS_SCC = 16777216
    DPP8 = 33554432
    TWO = 67108864
    FNUZ = 134217728
    LOSES_HALF = 268435456


class Counter(IntEnum):
    """Counters of memory accesses under way."""

    LOAD = 0
    STORE = 1
    LDS = 2
    SCALAR = 3
    NONE = 4


class OPERAND(ctypes.Structure):
    """An operand of an instruction."""

    _fields_ = [
        ("kind", ctypes.c_uint8), ("modifiers", ctypes.c_uint8), ("select", ctypes.c_uint8), ("dwords", ctypes.c_uint8),
        ("index", ctypes.c_uint16), ("type", ctypes.c_uint16), ("value", ctypes.c_uint64),
    ]  # fmt: skip


class INST(ctypes.Structure):
    """A decoded instruction."""

    _fields_ = [
        ("op", ctypes.c_uint16), ("form", ctypes.c_uint8), ("sources", ctypes.c_uint8),
        ("pc", ctypes.c_uint32), ("next", ctypes.c_uint32), ("target", ctypes.c_int32), ("immediate", ctypes.c_int32),
        ("flags", ctypes.c_uint32), ("dpp", ctypes.c_uint16), ("row_mask", ctypes.c_uint8),
        ("bank_mask", ctypes.c_uint8), ("omod", ctypes.c_uint8), ("bytes", ctypes.c_uint8), ("counter", ctypes.c_uint8),
        ("generation", ctypes.c_uint8),
        ("d", OPERAND), ("e", OPERAND), ("s", OPERAND * MAX_SOURCES),
    ]  # fmt: skip


class FAULT(ctypes.Structure):
    """Something that a check found."""

    _fields_ = [
        ("kind", ctypes.c_uint32), ("instruction", ctypes.c_uint32), ("workgroup", ctypes.c_uint32),
        ("wave", ctypes.c_uint32), ("lane", ctypes.c_uint32), ("other", ctypes.c_uint32),
        ("address", ctypes.c_uint64), ("count", ctypes.c_uint64),
    ]  # fmt: skip


class ALLOCATION(ctypes.Structure):
    """A piece of the device's memory."""

    _fields_ = [
        ("base", ctypes.c_uint64), ("size", ctypes.c_uint64), ("host", ctypes.c_void_p), ("unwritten", ctypes.c_void_p),
        ("writer", ctypes.c_void_p), ("reader", ctypes.c_void_p), ("read_only", ctypes.c_uint32),
        ("stores", ctypes.c_uint32),
    ]  # fmt: skip


TRACE = ctypes.CFUNCTYPE(
    None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint32),
    ctypes.POINTER(ctypes.c_uint32),
)  # fmt: skip
"""Called after each instruction: workgroup, wave, instruction, lanes that were active, vector and scalar registers."""


class MACHINE(ctypes.Structure):
    """A launch's state beyond its workgroups."""

    _fields_ = [
        ("code", ctypes.POINTER(INST)),
        ("instructions", ctypes.c_uint32), ("generation", ctypes.c_uint32), ("lanes", ctypes.c_uint32),
        ("lds_bytes", ctypes.c_uint32), ("scratch_bytes", ctypes.c_uint32), ("groups", ctypes.c_uint32),
        ("registers", ctypes.c_uint32),
        ("checks", ctypes.c_uint32), ("order", ctypes.c_uint32), ("quantum", ctypes.c_uint32),
        ("max_faults", ctypes.c_uint32),
        ("budget", ctypes.c_uint64),
        ("allocation", ctypes.POINTER(ALLOCATION)),
        ("allocations", ctypes.c_uint32), ("last", ctypes.c_uint32),
        ("fault", ctypes.POINTER(FAULT)),
        ("faults", ctypes.c_uint32),
        ("executed", ctypes.POINTER(ctypes.c_uint64)),
        ("active", ctypes.POINTER(ctypes.c_uint64)),
        ("bank_cycles", ctypes.c_uint64), ("bank_ideal", ctypes.c_uint64),
        ("private_base", ctypes.c_uint64), ("shared_base", ctypes.c_uint64),
        ("sync", ctypes.c_void_p), ("syncs", ctypes.c_uint32), ("sync_room", ctypes.c_uint32),
        ("shared_clock", ctypes.c_void_p),
        ("random", ctypes.c_uint64), ("total", ctypes.c_uint64), ("code_base", ctypes.c_uint64),
        ("bank_seen", ctypes.c_void_p), ("bank_access", ctypes.c_uint32), ("rooms", ctypes.c_void_p),
        ("matrix", ctypes.c_void_p), ("trace", TRACE),
    ]  # fmt: skip


class LAUNCH(ctypes.Structure):
    """What a launch gives its workgroups and waves."""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
        ("first_group", ctypes.c_uint32), ("group_count", ctypes.c_uint32),
        ("entry", ctypes.c_uint32), ("mode", ctypes.c_uint32), ("user_sgprs", ctypes.c_uint32),
        ("id_sgprs", ctypes.c_uint32), ("id_in_ttmp", ctypes.c_uint32), ("packed_ids", ctypes.c_uint32),
        ("vgprs_of_ids", ctypes.c_uint32), ("resident", ctypes.c_uint32), ("scratch_offset_sgpr", ctypes.c_uint32),
        ("user", ctypes.c_uint32 * 32), ("code_base", ctypes.c_uint64),
    ]  # fmt: skip
