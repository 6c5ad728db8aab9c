"""A kernel's assembly as blocks of instructions, each with its class, its registers and what it moves."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

_LABEL = re.compile(r"^(\.LBB\w+|[A-Za-z_][\w$.]*):")
_INSTRUCTION = re.compile(r"^\s+((?:v|s|ds|global|buffer|flat|scratch|tbuffer)_\w+)\s*(.*)$")
_REGISTERS = re.compile(r"\b([vsa])(?:(\d+)|\[(\d+):(\d+)\])")
_DIRECTIVE = re.compile(r"^\s+\.amdhsa_(\w+)\s+(\w+)", re.MULTILINE)
_MATRIX = re.compile(r"v_(?:mfma|smfmac|wmma|swmmac)(?:_scale)?_(\w+?)_(\d+)x(\d+)x(\d+)_?(\w*)")
_MEMORY = re.compile(r"(?:global|buffer|flat|scratch|tbuffer)_(?:load|store|atomic)_(\w+)")
_TRANSCENDENTAL = re.compile(r"v_(?:s_)?(?:rcp|rsq|sqrt|exp|log|sin|cos)_")
_PRODUCT = re.compile(r"v_(?:mul_(?:lo|hi)_[iu]32|mad_(?:co_)?[iu]64)")
_DOUBLE = re.compile(r"v_\w+_f64")
_ENDS = ("s_branch", "s_cbranch", "s_endpgm", "s_setpc")
_BITS = (("128", 128), ("x4", 128), ("96", 96), ("x3", 96), ("64", 64), ("x2", 64), ("16", 16), ("short", 16), ("8", 8),
         ("byte", 8))  # fmt: skip
_DTYPES = {"f16": "fp16", "bf16": "bf16", "iu8": "int8", "i8": "int8", "iu4": "int4", "f32": "fp32", "xf32": "xf32",
           "f64": "fp64", "fp8": "fp8", "bf8": "fp8"}  # fmt: skip


class Instruction(NamedTuple):
    """An instruction.

    Args:
        name: Its mnemonic without the encoding.
        operands: As written.
        kind: ``valu``, ``transcendental``, ``double``, ``product``, ``matrix``, ``scalar``, ``load``, ``store``,
            ``scratch``, ``lds``, ``smem``, ``wait``, ``branch`` or ``other``.
        bits: What a lane moves.
        flops: Of a matrix instruction.
        dtype: Of its operands.
        writes: Vector registers that it writes.
        reads: Vector registers that it reads.
    """

    name: str
    operands: tuple[str, ...]
    kind: str
    bits: int = 0
    flops: float = 0.0
    dtype: str = ""
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


class Block(NamedTuple):
    """Instructions that are executed one after the other.

    Args:
        label: Its label; empty where nothing jumps to it.
        body: The instructions; a branch can only be the last.
    """

    label: str
    body: tuple[Instruction, ...]


class Listing(NamedTuple):
    """A kernel.

    Args:
        blocks: In the order of the code.
        directives: ``.amdhsa_…`` by name.
    """

    blocks: tuple[Block, ...]
    directives: dict[str, str]


def read_listing(text: str, kernel: str) -> Listing:
    """Read the assembly of a kernel."""
    start = text.index(f"\n{kernel}:")
    end = text.find(".section", start)
    blocks: list[Block] = []
    label = ""
    body: list[Instruction] = []
    for line in text[start : end if end > 0 else len(text)].splitlines():
        if found := _LABEL.match(line):
            if found[1].startswith(".LBB"):
                blocks.append(Block(label, tuple(body)))
                label, body = found[1], []
        elif found := _INSTRUCTION.match(line.partition(";")[0]):
            body.append(_instruction(found[1], found[2].strip()))
            if found[1].startswith(_ENDS):
                blocks.append(Block(label, tuple(body)))
                label, body = "", []
    blocks.append(Block(label, tuple(body)))
    return Listing(tuple(one for one in blocks if one.body or one.label), dict(_DIRECTIVE.findall(text)))


@functools.lru_cache(maxsize=65536)
def _instruction(name: str, rest: str) -> Instruction:
    plain = re.sub(r"_(?:e32|e64|dpp|dpp8|e64_dpp|sdwa|vgprcd_e64|mac_e64)$", "", name)
    first, _, second = rest.partition("::")
    operands = tuple(part.strip() for part in first.split(","))
    kind = _kind(plain)
    writes, reads = _registers(plain, operands, kind)
    if second:  # v_dual_a … :: v_dual_b …: issued together
        other = second.strip().partition(" ")[2].split(",")
        writes += _each(other[:1])
        reads += _each(other[1:])
    flops, dtype = 0.0, ""
    if kind == "matrix" and (found := _MATRIX.match(plain)):
        m, n, k = (int(found[at]) for at in (2, 3, 4))
        dtype = _DTYPES.get(found[5].partition("_")[0], found[5] or "fp16")
        flops = 2.0 * m * n * k
    return Instruction(plain, operands, kind, _bits(plain, kind), flops, dtype, writes, reads)


def _kind(name: str) -> str:
    for kind, found in (
        ("wait", name.startswith("s_wait")),
        ("branch", name.startswith(_ENDS)),
        ("smem", name.startswith(("s_load", "s_buffer_load"))),
        ("scalar", name.startswith("s_") and not name.startswith(("s_nop", "s_delay", "s_clause", "s_barrier"))),
        ("lds", name.startswith("ds_")),
        ("scratch", name.startswith("scratch_")),
        ("load", "_load_" in name),
        ("store", "_store_" in name or "_atomic_" in name),
        ("matrix", _MATRIX.match(name)),
        ("transcendental", _TRANSCENDENTAL.match(name)),
        ("double", _DOUBLE.match(name)),
        ("product", _PRODUCT.match(name)),
        ("valu", name.startswith("v_")),
    ):
        if found:
            return kind
    return "other"


def _bits(name: str, kind: str) -> int:
    if kind in {"load", "store", "scratch"}:
        found = _MEMORY.match(name)
        plain = re.sub(r"_?d16(?:_hi)?_?|^lds_", "", found[1] if found else "")
        return next((bits for part, bits in _BITS if part in plain), 32)
    if kind == "lds":
        wide = 2 if "read2" in name or "write2" in name or "_2addr_" in name else 1
        return wide * next((bits for part, bits in _BITS if name.endswith((f"b{part}", f"u{part}", f"i{part}"))), 32)
    return 0


def _registers(name: str, operands: tuple[str, ...], kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if kind in {"store", "wait", "branch", "other"} or name.startswith(("ds_write", "ds_store")):
        return (), _each(operands)
    if kind == "scratch" and "store" in name:
        return (), _each(operands)
    # an accumulator is an operand of its own, except for those that add to what they write
    also = operands[:1] if "fmac" in name or "mac_" in name or "dot2c" in name else ()
    return _each(operands[:1]), _each((*also, *operands[1:]))


def _each(operands: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for text in operands:
        for kind, single, low, high in _REGISTERS.findall(text):
            if kind != "s":
                first, last = (int(single), int(single)) if single else (int(low), int(high))
                found += [f"{kind}{number}" for number in range(first, last + 1)]
    return tuple(found)
