"""How often each block of a kernel is executed: its scalar instructions are carried out, with the launch's arguments.

Loops of Triton's kernels are controlled by scalar registers, which depend on the kernel's arguments and on the number
of the workgroup. What depends on data in memory is unknown, and a branch on it is taken as ``Walk`` says.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rocmend.kernels.model.listing import Block, Instruction, Listing

KERNARG = 1 << 60
"""Address of the kernarg segment: far from any other."""
MOST_STEPS = 400_000
SHOWN = 3
"""Visits of a block that are kept in order: later ones are like the last of these."""

_OPERAND = re.compile(r"^(s|v|ttmp)(?:(\d+)|\[(\d+):(\d+)\])$")
_M32, _M64 = (1 << 32) - 1, (1 << 64) - 1
_INLINE = {"1.0": 0x3F800000, "0.5": 0x3F000000, "2.0": 0x40000000, "4.0": 0x40800000, "-1.0": 0xBF800000,
           "-0.5": 0xBF000000, "-2.0": 0xC0000000, "-4.0": 0xC0800000}  # fmt: skip

_BEFORE_KERNARG = {"private_segment_buffer": 4, "dispatch_ptr": 2, "queue_ptr": 2}
"""Scalar registers that a wavefront starts with, in this order, and how many each takes."""

Word = int | None


class Walk(NamedTuple):
    """What executing a kernel's control flow gave.

    Args:
        counts: Executions of each block.
        order: Blocks in the order of execution, of each the first ``SHOWN`` visits.
        guessed: Branches that depend on data, each counted once.
        cut: It did not come to its end within ``MOST_STEPS`` scalar instructions.
    """

    counts: list[int]
    order: list[int]
    guessed: int
    cut: bool


def walk(listing: Listing, kernarg: bytes, workgroup: Sequence[int], trips: Sequence[int] = ()) -> Walk:
    """Execute a kernel's control flow for the first wavefront of a workgroup.

    Args:
        listing: The kernel.
        kernarg: Its kernarg segment.
        workgroup: Number of the workgroup along x, y and z.
        trips: Trips of loops whose end depends on data, in the order of the code; 1 where there are no more.
    """
    blocks = listing.blocks
    places = {block.label: at for at, block in enumerate(blocks) if block.label}
    machine = _Machine(kernarg)
    machine.begin(listing.directives, workgroup)
    bodies = [[instruction for instruction in block.body if _matters(instruction)] for block in blocks]
    guess = _Guess(blocks, places, trips)
    counts, order = [0] * len(blocks), list[int]()
    at = done = 0
    while at < len(blocks) and done < MOST_STEPS:
        counts[at] += 1
        done += 1 + len(bodies[at])
        if counts[at] <= SHOWN:
            order.append(at)
        for instruction in bodies[at]:
            machine.execute(instruction)
        last = blocks[at].body[-1] if blocks[at].body else None
        if last is None or last.kind != "branch":
            at += 1
        elif last.name in {"s_endpgm", "s_setpc_b64"}:
            break
        else:
            goal = places.get(last.operands[0], len(blocks))
            taken = machine.taken(last.name)
            if taken is None:
                taken = guess.taken(at, goal)
            at = goal if taken else at + 1
    return Walk(counts, order, len(guess.left), done >= MOST_STEPS)


class _Guess:
    """Decides branches that depend on data: a loop ends after its stated trips, and nothing else is skipped.

    Args:
        blocks: The kernel's.
        places: Of labels.
        trips: Of the loops that end by such a branch, in the order in which they are met; 1 where there are no more.
    """

    def __init__(self, blocks: Sequence[Block], places: Mapping[str, int], trips: Sequence[int]) -> None:
        ends = [
            (places.get(block.body[-1].operands[0], len(blocks)), at)
            for at, block in enumerate(blocks)
            if _jumps(block)
        ]
        self.loops = [(goal, at) for goal, at in ends if goal <= at]
        self.trips = list(trips)
        self.left: dict[int, int] = {}

    def taken(self, at: int, goal: int) -> bool:
        """Return whether the branch at the end of a block is taken."""
        around = [end for first, end in self.loops if first <= at <= end]
        back, leaves = goal <= at, bool(around) and goal > min(around)
        if at not in self.left:
            known = back or leaves
            self.left[at] = (self.trips.pop(0) if self.trips and known else 1) - 1
        if not back and not leaves:
            return False
        again = self.left[at] > 0
        self.left[at] -= 1
        return again == back


def _jumps(block: Block) -> bool:
    return bool(block.body) and block.body[-1].name.startswith(("s_branch", "s_cbranch"))


def _matters(instruction: Instruction) -> bool:
    return (
        instruction.kind in {"scalar", "smem"} or instruction.name in _FIRST_LANE or bool(_scalar_results(instruction))
    )


def _scalar_results(instruction: Instruction) -> tuple[str, ...]:
    """Return the scalar registers that a vector instruction writes: of a comparison, a carry, a lane that it reads."""
    if not instruction.name.startswith("v_"):
        return ()
    count = (
        2 if "_co_" in instruction.name or instruction.name.startswith(("v_mad_u64", "v_mad_i64", "v_div_scale")) else 1
    )
    return tuple(text for text in instruction.operands[:count] if text.startswith(("s", "vcc")))


class _Machine:
    """Scalar registers, and of vector registers the first lane."""

    def __init__(self, kernarg: bytes) -> None:
        self.kernarg = kernarg
        # all lanes are taken to be active, whatever is done to the mask
        self.words: dict[str, Word] = {"v0": 0, "scc": None, "exec_lo": _M32, "exec_hi": _M32}

    def begin(self, directives: dict[str, str], workgroup: Sequence[int]) -> None:
        """Fill the registers that a wavefront starts with."""
        users = int(directives.get("user_sgpr_count", "2"))
        # Before the address of the arguments comes, on GPUs older than gfx90a and gfx11, that of private memory.
        first_user = sum(size * int(directives.get(f"user_sgpr_{name}", "0")) for name, size in _BEFORE_KERNARG.items())
        self.words[f"s{first_user}"], self.words[f"s{first_user + 1}"] = KERNARG & _M32, KERNARG >> 32
        length = int(directives.get("user_sgpr_kernarg_preload_length", "0"))
        first = 4 * int(directives.get("user_sgpr_kernarg_preload_offset", "0"))
        for number in range(length):
            self.words[f"s{first_user + 2 + number}"] = self._word(first + 4 * number)
        x, y, z = (*workgroup, 0, 0)[:3]
        place = users
        for axis, value in zip("xyz", (x, y, z), strict=True):
            if directives.get(f"system_sgpr_workgroup_id_{axis}", "0") == "1":
                self.words[f"s{place}"] = value
                place += 1
        self.words["ttmp9"], self.words["ttmp7"], self.words["ttmp8"] = x, y | z << 16, 0

    def _word(self, offset: int) -> Word:
        part = self.kernarg[offset : offset + 4] if offset >= 0 else b""
        return int.from_bytes(part, "little") if len(part) == 4 else None

    def _names(self, text: str) -> list[str]:
        if text in {"vcc", "exec"}:
            return [f"{text}_lo", f"{text}_hi"]
        found = _OPERAND.match(text)
        if not found:
            return [text]
        low = int(found[2] or found[3])
        return [f"{found[1]}{number}" for number in range(low, int(found[2] or found[4]) + 1)]

    def read(self, text: str, bits: int = 32) -> Word:
        """Return an operand's value, unsigned."""
        if text in _INLINE:
            return _INLINE[text]
        if text[:1].isdigit() or text[:1] == "-":
            try:
                return int(text, 0) & ((1 << bits) - 1)
            except ValueError:
                return None
        names = self._names(text)
        low = self.words.get(names[0])
        if bits == 32 or len(names) == 1:
            return low
        high = self.words.get(names[1])
        return None if low is None or high is None else low | high << 32

    def write(self, text: str, value: Word, bits: int = 32) -> None:
        """Set an operand."""
        for number, name in enumerate(self._names(text)):
            if name.startswith("exec"):
                return
            self.words[name] = None if value is None else value >> 32 * number & _M32 if number < bits // 32 else 0

    def taken(self, name: str) -> bool | None:
        """Return whether a branch is taken, or None where that depends on data."""
        if name == "s_branch":
            return True
        scc = self.words["scc"]
        if name.startswith("s_cbranch_scc"):
            return None if scc is None else bool(scc) == name.endswith("1")
        if name == "s_cbranch_execz":
            return False
        if name == "s_cbranch_execnz":
            return True
        if name.startswith("s_cbranch_vcc"):
            vcc = self.words.get("vcc_lo")
            return None if vcc is None else (vcc == 0) == name.endswith("vccz")
        return None

    def execute(self, instruction: Instruction) -> None:
        """Carry an instruction out; what is not known makes its result unknown."""
        name, operands = instruction.name, instruction.operands
        if instruction.kind == "smem":
            self._load(operands)
        elif name in _FIRST_LANE:
            values = [self.read(text) for text in operands[1:]]
            self.write(operands[0], None if None in values else _FIRST_LANE[name](*values))
        elif instruction.kind != "scalar":
            for text in _scalar_results(instruction):
                self.write(text, None)
        elif name.startswith(("s_cmp", "s_bitcmp")):
            self._compare(name, operands)
        elif name.startswith("s_cselect"):
            bits = 64 if name.endswith("64") else 32
            scc = self.words["scc"]
            self.write(operands[0], None if scc is None else self.read(operands[1 if scc else 2], bits), bits)
        else:
            self._compute(name, operands)

    def _load(self, operands: Sequence[str]) -> None:
        base, offset = self.read(operands[1], 64), self.read(operands[2]) if len(operands) > 2 else 0
        place = -1 if base is None or offset is None else base - KERNARG + offset
        for number, register in enumerate(self._names(operands[0])):
            self.words[register] = self._word(place + 4 * number) if place >= 0 else None

    def _compare(self, name: str, operands: Sequence[str]) -> None:
        found = re.match(r"s_cmpk?_(eq|lg|ne|lt|le|gt|ge)_([iuf])(32|64)", name)
        self.words["scc"] = None
        if name.startswith("s_bitcmp"):
            value, bit = self.read(operands[0], 64 if name.endswith("64") else 32), self.read(operands[1])
            if value is not None and bit is not None:
                self.words["scc"] = int((value >> (bit & 63) & 1) == int(name[8]))
        elif found:
            bits = int(found[3])
            left, right = (_typed(self.read(text, bits), found[2], bits) for text in operands[:2])
            if left is not None and right is not None:
                self.words["scc"] = int(_COMPARE[found[1]](left, right))

    def _compute(self, name: str, operands: Sequence[str]) -> None:
        found = re.match(r"s_(\w+?)(?:_([iuf]|b)(32|64|16|24))?$", name)
        stem, kind, bits = (found[1], found[2] or "b", int(found[3] or 32)) if found else (name, "b", 32)
        if name.endswith(("saveexec_b32", "saveexec_b64", "wrexec_b32", "wrexec_b64")):
            self.write(operands[0], _M64, 64)
            self.words["scc"] = 1
            return
        if stem in _KEEPS:
            return
        texts = operands if stem in {"addk", "addk_co", "mulk", "cmovk"} else operands[1:]
        values = [self.read(text, bits) for text in texts]
        rule = None if kind == "f" and not stem.startswith("cvt") else _COMPUTE.get(stem)
        if rule is None or None in values:
            self.write(operands[0], None)
            if stem not in _LEAVES_SCC:
                self.words["scc"] = None
            return
        carry = self.words["scc"]
        result, scc = rule([int(value) for value in values if value is not None], kind, bits, carry)
        self.write(operands[0], None if result is None else int(result) & _M64, bits)
        if stem not in _LEAVES_SCC:
            self.words["scc"] = scc


def _typed(value: Word, kind: str, bits: int) -> float | None:
    if value is None or kind in "ub":
        return value
    return _float(value) if kind == "f" else _signed(value, bits)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _float(value: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", value & _M32))[0])


def _bits_of(value: float) -> Word:
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except (OverflowError, ValueError):
        return None


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_KEEPS = frozenset({
    "setreg", "setreg_imm32", "sethalt", "sleep", "setprio", "inst_prefetch", "set_inst_prefetch_distance", "sendmsg",
    "version", "code_end", "icache_inv", "dcache_inv", "dcache_wb", "round_mode", "denorm_mode", "ttracedata",
})  # fmt: skip
_LEAVES_SCC = frozenset({
    "mov", "movk", "mul", "mul_hi", "mulk", "cmovk", "cmov", "bfm", "brev", "sext_i32", "pack_ll", "pack_lh", "pack_hh",
    "ff1", "ctz", "flbit", "clz", "getreg", "getpc", "cvt_f32", "cvt_u32", "cvt_i32", "fmac", "rcp", "bitset0",
    "bitset1", "add_nc", "sub_nc", "trunc",
})  # fmt: skip
_Rule = Callable[[list[int], str, int, Word], tuple[int | None, Word]]


def _plain(operation: Callable[..., int], *, sized: bool = False) -> _Rule:
    """Make a rule of arithmetic, with SCC for a result that is not 0; ``sized`` gives it the bits, too."""

    def rule(values: list[int], kind: str, bits: int, _carry: Word) -> tuple[int | None, Word]:
        given = (*values, bits) if sized else tuple(_signed(value, bits) if kind == "i" else value for value in values)
        result = operation(*given) & ((1 << bits) - 1)
        return result, int(result != 0)

    return rule


def _sum(values: list[int], kind: str, bits: int, sign: int) -> tuple[int, Word]:
    total = values[0] + sign * values[1]
    whole = total & ((1 << bits) - 1)
    if kind == "i":  # SCC is the overflow
        signed = _signed(values[0], bits) + sign * _signed(values[1], bits)
        return whole, int(signed != _signed(whole, bits))
    return whole, int(total != whole)


def _sum_with_carry(values: list[int], bits: int, carry: Word, sign: int) -> tuple[int | None, Word]:
    return (None, None) if carry is None else _sum([values[0], values[1] + carry], "u", bits, sign)


def _extract(values: list[int], kind: str, bits: int, _carry: Word) -> tuple[int | None, Word]:
    start, width = values[1] & (bits - 1), values[1] >> 16 & 127
    result = values[0] >> start & ((1 << width) - 1)
    return _signed(result, width) if kind == "i" and width else result, int(result != 0)


def _pick(values: list[int], kind: str, bits: int, *, least: bool) -> tuple[int | None, Word]:
    left, right = (_signed(value, bits) if kind == "i" else value for value in values)
    return (min if least else max)(left, right), int(left < right if least else left > right)


_COMPUTE: dict[str, _Rule] = {
    "mov": _plain(lambda a: a),
    "movk": lambda values, *_: (_signed(values[0] & 0xFFFF, 16), None),
    "not": _plain(lambda a: ~a),
    "and": _plain(lambda a, b: a & b),
    "or": _plain(lambda a, b: a | b),
    "xor": _plain(lambda a, b: a ^ b),
    "andn2": _plain(lambda a, b: a & ~b),
    "and_not1": _plain(lambda a, b: a & ~b),
    "orn2": _plain(lambda a, b: a | ~b),
    "or_not1": _plain(lambda a, b: a | ~b),
    "abs": _plain(abs),
    "mul": _plain(lambda a, b: a * b),
    "mul_hi": _plain(lambda a, b: a * b >> 32),
    "mulk": _plain(lambda a, b: a * _signed(b & 0xFFFF, 16)),
    "add": lambda values, kind, bits, _carry: _sum(values, kind, bits, 1),
    "add_co": lambda values, kind, bits, _carry: _sum(values, kind, bits, 1),
    "add_nc": lambda values, kind, bits, _carry: _sum(values, kind, bits, 1),
    "addc": lambda values, _kind, bits, carry: _sum_with_carry(values, bits, carry, 1),
    "add_co_ci": lambda values, _kind, bits, carry: _sum_with_carry(values, bits, carry, 1),
    "addk": lambda values, _kind, bits, _carry: _sum(_extended(values), "i", bits, 1),
    "addk_co": lambda values, _kind, bits, _carry: _sum(_extended(values), "i", bits, 1),
    "sub": lambda values, kind, bits, _carry: _sum(values, kind, bits, -1),
    "sub_co": lambda values, kind, bits, _carry: _sum(values, kind, bits, -1),
    "sub_nc": lambda values, kind, bits, _carry: _sum(values, kind, bits, -1),
    "subb": lambda values, _kind, bits, carry: _sum_with_carry(values, bits, carry, -1),
    "sub_co_ci": lambda values, _kind, bits, carry: _sum_with_carry(values, bits, carry, -1),
    "lshl": _plain(lambda a, by, bits: a << (by & (bits - 1)), sized=True),
    "lshr": _plain(lambda a, by, bits: a >> (by & (bits - 1)), sized=True),
    "ashr": _plain(lambda a, by, bits: _signed(a, bits) >> (by & (bits - 1)), sized=True),
    "lshl1_add": lambda values, *_: _lshl_add(values, 1),
    "lshl2_add": lambda values, *_: _lshl_add(values, 2),
    "lshl3_add": lambda values, *_: _lshl_add(values, 3),
    "lshl4_add": lambda values, *_: _lshl_add(values, 4),
    "bfe": _extract,
    "min": lambda values, kind, bits, _carry: _pick(values, kind, bits, least=True),
    "max": lambda values, kind, bits, _carry: _pick(values, kind, bits, least=False),
    "sext_i32": lambda values, _kind, bits, _carry: (_signed(values[0] & ((1 << bits) - 1), bits), None),
    "cvt_f32": lambda values, kind, *_: (_bits_of(_signed(values[0], 32) if kind == "i" else values[0]), None),
    "cvt_u32": lambda values, *_: (_integer(values[0]), None),
    "cvt_i32": lambda values, *_: (_integer(values[0]), None),
    "bcnt1_i32": _plain(lambda a: int(a).bit_count()),
}


def _extended(values: list[int]) -> list[int]:
    return [values[0], _signed(values[1] & 0xFFFF, 16) & _M32]


def _lshl_add(values: list[int], by: int) -> tuple[int, Word]:
    total = (values[0] << by) + values[1]
    return total & _M32, int(total > _M32)


def _integer(value: int) -> int | None:
    number = _float(value)
    return max(0, min(int(number), _M32)) if math.isfinite(number) else None


def _reciprocal(value: int) -> Word:
    number = _float(value)
    return _bits_of(1.0 / number) if number else None


# Division by a number that is the same in all lanes goes through the first lane of vector registers.
_FIRST_LANE: dict[str, Callable[..., Word]] = {
    "v_readfirstlane_b32": lambda a: a,
    "v_mov_b32": lambda a: a,
    "v_cvt_f32_u32": _bits_of,
    "v_cvt_f32_i32": lambda a: _bits_of(_signed(a, 32)),
    "v_cvt_u32_f32": _integer,
    "v_rcp_iflag_f32": _reciprocal,
    "v_rcp_f32": _reciprocal,
    "v_s_rcp_f32": _reciprocal,
    "v_mul_f32": lambda a, b: _bits_of(_float(a) * _float(b)),
    "s_mul_f32": lambda a, b: _bits_of(_float(a) * _float(b)),
    "v_lshrrev_b32": lambda by, a: a >> (by & 31),
    "v_and_b32": lambda a, b: a & b,
}
