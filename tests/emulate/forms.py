"""The forms of vector instructions: encodings, modifiers, constants, halves, DPP and SDWA, as text and as meaning."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from functools import partial

from tests.emulate.bench import FLUSHED, KEPT, Case
from tests.emulate.evaluate import Form, Source, float_of
from tests.emulate.stated import Statement, width_of
from tests.emulate.stated_integers import BITOP3

__all__ = ["forms"]

OPERANDS, RESULT = (8, 10, 12), 24
"""Registers of the operands and of the result."""

_ZEROED_NAMES = """
cvt_f16_f32 cvt_f16_u16 cvt_f16_i16 rcp_f16 rsq_f16 sqrt_f16 log_f16 exp_f16 sin_f16 cos_f16 floor_f16 ceil_f16
trunc_f16 rndne_f16 fract_f16 frexp_mant_f16 frexp_exp_i16_f16 ldexp_f16 lshlrev_b16 lshrrev_b16 ashrrev_i16 add_u16
sub_u16 subrev_u16 mul_lo_u16 add_f16 sub_f16 subrev_f16 mul_f16 max_f16 min_f16 max_u16 min_u16 max_i16 min_i16
mac_f16 madak_f16 madmk_f16 mad_legacy_f16 mad_legacy_u16 mad_legacy_i16 fma_legacy_f16 div_fixup_legacy_f16
"""
ZEROED = frozenset(f"v_{name}" for name in _ZEROED_NAMES.split())
"""Instructions that make the high half zero on gfx9; of the others LLVM knows none that does, or the ISA's document
says that they keep it."""

UNDEFINED = frozenset({"v_cvt_u16_f16", "v_cvt_i16_f16", "v_cvt_norm_i16_f16", "v_cvt_norm_u16_f16", "v_sat_pk_u8_i16"})
"""Of which nobody says what becomes of the high half on gfx9."""


class Writer:
    """Writes the lines of an instruction's forms for a target, in one choice of everything for each name.

    Args:
        statement: What it computes.
        target: The gfx target.
        lanes: Of a wavefront.
    """

    def __init__(self, statement: Statement, target: str, lanes: int) -> None:
        self.statement, self.target, self.lanes = statement, target, lanes
        self.major = int(target[3:-2])
        self.random = random.Random(statement.name)  # noqa: S311  test data
        self.mask = "s[44:45]" if lanes == 64 else "s44"
        self.vcc = "vcc" if lanes == 64 else "vcc_lo"

    def register(self, number: int, kind: str, letter: str = "v", half: str = "") -> str:
        wide = width_of(kind) == 64
        name = f"{letter}[{number}:{number + 1}]" if wide else f"{letter}{number}"
        return name + half

    def half(self, kind: str, *, high: bool = False) -> str:
        """Return the suffix of a register that is named by its half."""
        plain = kind.removeprefix("hi")
        if self.major < 11 or kind in {"m", "mix"} or plain.startswith(("pk", "byte")) or width_of(plain) != 16:
            return ""
        return ".h" if high else ".l"

    def line(
        self, suffix: str, operands: list[str], after: str = "", *, mask: str = "", result_half: bool = False
    ) -> str:
        """Return the text of an instruction."""
        statement, parts = self.statement, list(operands)
        written = mask or self.mask
        compares = statement.name.startswith("v_cmp")
        exec_only = statement.name.startswith("v_cmpx") and self.major >= 10
        if statement.mask and not exec_only:
            parts.insert(0, written)
        if statement.result != "none":
            parts.insert(0, self.register(RESULT, statement.result, half=self.half(statement.result, high=result_half)))
        del compares
        if "bitop3" in statement.name:
            after = f"bitop3:{BITOP3:#x} {after}"
        return f"{statement.name}{suffix} {', '.join(parts)} {after}".strip()

    def plain(self, *, mask: str = "") -> list[str]:
        written = mask or self.mask
        return [
            written if kind == "m" else self.register(OPERANDS[at], kind, half=self.half(kind))
            for at, kind in enumerate(self.statement.operands)
        ]


def _bits_of(number: float, kind: str) -> int:
    base = kind.removeprefix("pk").removeprefix("r")
    if base == "bf16":
        return int.from_bytes(struct.pack("<f", number), "little") >> 16
    code = {"f16": "e", "f32": "f", "f64": "d"}[base if base in {"f16", "f64"} else "f32"]
    return int.from_bytes(struct.pack(f"<{code}", number), "little")


INLINE_FLOATS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0)
TURN = {"f16": 0x3118, "f32": 0x3E22F983, "f64": 0x3FC45F306DC9C882}


def forms(statement: Statement, target: str, lanes: int) -> Iterator[tuple[Case, Form]]:
    """Yield the forms of an instruction that a target may have, as lines and as meaning; LLVM knows which it has."""
    writer = Writer(statement, target, lanes)
    count = len(statement.operands)
    plain = tuple(Source(high_for_high=False) if kind == "mix" else Source() for kind in statement.operands)
    zeroes = writer.major == 9 and statement.name in ZEROED
    base = Form(statement, plain, zeroes=zeroes)

    def case(line: str, form: Form, rsrc1: int = KEPT) -> tuple[Case, Form]:
        return Case((line,), rsrc1=rsrc1, lanes=lanes), form

    yield case(writer.line("_e32", writer.plain(mask=writer.vcc), mask=writer.vcc), base)
    if statement.name.endswith(
        ("aak_f32", "amk_f32", "aak_f16", "amk_f16", "dak_f32", "dmk_f32", "dak_f16", "dmk_f16")
    ):
        yield from _with_literal(writer, base, case)
        return
    yield case(writer.line("_e64", writer.plain()), base)
    if any(kind.startswith(("mix", "pk", "dot")) for kind in statement.operands):
        yield case(writer.line("", writer.plain()), base)
        yield from _packed(writer, base, case)
    else:
        yield from _modified(writer, base, case)
    for letter in "sc":
        yield from _replaced(writer, base, case, letter)
    yield from _halves(writer, base, case)
    yield from _finished(writer, base, case)
    if count and statement.operands[0] not in {"m", "byte8"} and width_of(statement.operands[0]) <= 32:
        yield from _lanes_moved(writer, base, case)
        yield from _sub_dword(writer, base, case)


Make = Callable[..., tuple[Case, Form]]


def _with_literal(writer: Writer, base: Form, case: Make) -> Iterator[tuple[Case, Form]]:
    """Yield the forms whose second or third operand is a literal."""
    operands = writer.plain()
    at = 2 if "ak_" in writer.statement.name else 1
    kind = writer.statement.operands[at]
    bits = 0x42F6E979 if kind == "f32" else 0x57BA
    operands[at] = f"{bits:#x}"
    sources = list(base.sources)
    sources[at] = Source(constant=bits)
    yield case(writer.line("", operands), base._replace(sources=tuple(sources)))


def _modified(writer: Writer, base: Form, case: Make) -> Iterator[tuple[Case, Form]]:
    """Yield operands that are negated and without sign."""
    kinds = writer.statement.operands
    if not any(float_of(kind) for kind in kinds):
        return
    for _ in range(2):
        operands, sources = writer.plain(), list(base.sources)
        for at, kind in enumerate(kinds):
            if float_of(kind) is None:
                continue
            neg, absolute = writer.random.choice([(True, False), (False, True), (True, True), (False, False)])
            text = f"|{operands[at]}|" if absolute else operands[at]
            operands[at] = f"-{text}" if neg else text
            sources[at] = Source(neg=neg, absolute=absolute)
        yield case(writer.line("_e64", operands), base._replace(sources=tuple(sources)))


def _replaced(writer: Writer, base: Form, case: Make, letter: str) -> Iterator[tuple[Case, Form]]:
    """Yield a scalar register, or constants, in place of each operand."""
    for at, kind in enumerate(writer.statement.operands):
        if kind == "m":
            continue
        operands, sources = writer.plain(), list(base.sources)
        if letter == "s":
            operands[at] = writer.register(20 + OPERANDS[at] - 8, kind, "s")
            sources[at] = base.sources[at]._replace(scalar=True)
            yield case(writer.line("_e64", operands), base._replace(sources=tuple(sources)))
            continue
        for text, bits in _constants(writer, kind):
            operands[at] = text
            sources[at] = base.sources[at]._replace(constant=bits)
            yield case(writer.line("_e64", operands), base._replace(sources=tuple(sources)))
            if at == 0:
                yield case(writer.line("_e32", operands, mask=writer.vcc), base._replace(sources=tuple(sources)))


def _constants(writer: Writer, kind: str) -> Iterator[tuple[str, int]]:
    """Yield inline constants and a literal: text and bits."""
    packed = kind.startswith(("pk", "dot"))
    if kind in {"byte8", "half16"} or packed:
        return
    width = 32 if kind == "mix" else width_of(kind)
    whole = writer.random.choice([0, 1, 17, 64, -1, -16])
    yield str(whole), whole & (1 << width) - 1
    number = float_of(kind)
    if number is None:
        if width == 32:
            yield "0x9e3779b1", 0x9E3779B1
            real = writer.random.choice(INLINE_FLOATS)
            yield str(real), _bits_of(real, "f32")
        return
    base = kind.removeprefix("r")
    real = writer.random.choice(INLINE_FLOATS)
    yield str(real), _bits_of(real, base)
    if base in TURN:
        yield "0.15915494309189532" if width == 64 else "0.15915494", TURN[base]
    literal = {"f16": 0x57BA, "f32": 0xC2F6E979, "f64": 0x405EDD2F}.get(base)
    if literal is not None:
        yield f"{literal:#x}", literal << 32 if width == 64 else literal


def _halves(writer: Writer, base: Form, case: Make) -> Iterator[tuple[Case, Form]]:
    """Yield high halves: registers named by their half, or op_sel."""
    statement = writer.statement
    sixteen = [
        kind not in {"m", "mix"} and not kind.startswith("pk") and width_of(kind) == 16 for kind in statement.operands
    ]
    result = statement.result != "none" and "mix" not in statement.operands and width_of(statement.result) == 16
    if not any(sixteen) and not result:
        return
    for _ in range(3):
        picks = [one and bool(writer.random.getrandbits(1)) for one in sixteen]
        top = result and bool(writer.random.getrandbits(1))
        if not (any(picks) or top):
            continue
        sources = tuple(source._replace(high=pick) for source, pick in zip(base.sources, picks, strict=True))
        form = base._replace(sources=sources, high=top, zeroes=False)
        if writer.major >= 11:
            operands = writer.plain()
            for at, pick in enumerate(picks):
                if pick:
                    operands[at] = operands[at].replace(".l", ".h")
            for suffix, mask in (("_e32", writer.vcc), ("_e64", writer.mask)):
                swapped = [mask if one == writer.mask else one for one in operands]
                yield case(writer.line(suffix, swapped, mask=mask, result_half=top), form)
        else:
            bits = [*map(int, picks), int(top)] if statement.result != "none" else [*map(int, picks), 0]
            zeroes = base.zeroes and not top
            text = f"op_sel:[{','.join(map(str, bits))}]"
            yield case(writer.line("_e64", writer.plain(), text), form._replace(zeroes=zeroes))


def _packed(writer: Writer, base: Form, case: Make) -> Iterator[tuple[Case, Form]]:
    """Yield the choices of halves, and negations of each."""
    kinds = writer.statement.operands
    mixes = "mix" in kinds
    floats = any(float_of(kind) for kind in kinds)
    for _ in range(4):
        bits = {
            name: [writer.random.getrandbits(1) for _ in kinds] for name in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")
        }
        if not (floats or mixes):
            bits["neg_lo"] = bits["neg_hi"] = [0 for _ in kinds]
        text = " ".join(
            f"{name}:[{','.join(map(str, digits))}]"
            for name, digits in bits.items()
            if floats or mixes or name.startswith("op")
        )
        sources = []
        operands = writer.plain()
        for at, (low, high, neg, neg_high) in enumerate(zip(*bits.values(), strict=True)):
            if mixes:
                sources.append(Source(high=bool(low), high_for_high=bool(high), neg=bool(neg), absolute=bool(neg_high)))
                operands[at] = f"|{operands[at]}|" if neg_high else operands[at]
                operands[at] = f"-{operands[at]}" if neg else operands[at]
            else:
                sources.append(Source(high=bool(low), high_for_high=bool(high), neg=bool(neg), neg_high=bool(neg_high)))
        if mixes:
            text = " ".join(f"{name}:[{','.join(map(str, bits[name]))}]" for name in ("op_sel", "op_sel_hi"))
        if any(kind.startswith("dot") for kind in kinds):
            return
        yield case(writer.line("", operands, text), base._replace(sources=tuple(sources)))
    if not mixes and all(kind.startswith("pk") for kind in kinds):
        yield from _packed_constants(writer, base, case)


def _packed_constants(writer: Writer, base: Form, case: Make) -> Iterator[tuple[Case, Form]]:
    """Yield inline constants: a float stands in the low half, an integer fills 32 bits, each half is picked."""
    for at, kind in enumerate(writer.statement.operands):
        if not kind.endswith("16"):
            continue
        floats = float_of(kind) is not None
        for text, word in (("1.0", 0x3C00), ("-4.0", 0xC400)) if floats else (("17", 17), ("-3", 0xFFFFFFFD)):
            for low, high in ((0, 0), (0, 1), (1, 0)):
                operands, sources = writer.plain(), list(base.sources)
                operands[at] = text
                sources[at] = Source(constant=word, high=bool(low), high_for_high=bool(high))
                bits = [
                    [low if k == at else 0 for k in range(len(operands))],
                    [high if k == at else 1 for k in range(len(operands))],
                ]
                after = f"op_sel:[{','.join(map(str, bits[0]))}] op_sel_hi:[{','.join(map(str, bits[1]))}]"
                yield case(writer.line("", operands, after), base._replace(sources=tuple(sources)))


UNFLUSHED = ("class", "pack", "div_fixup", "mix", "cvt_pk", "dot2")
"""Parts of names of which no document says what becomes of denormals that are flushed, or which keep them."""


def _finished(writer: Writer, base: Form, case: Make) -> Iterator[tuple[Case, Form]]:
    """Yield clamps, output modifiers, and denormals that are flushed."""
    result = writer.statement.result
    floats = float_of(result) is not None or any(float_of(kind) or kind == "mix" for kind in writer.statement.operands)
    if float_of(result) is not None or writer.statement.clamps:
        yield case(writer.line("_e64", writer.plain(), "clamp"), base._replace(clamp=True))
        yield case(writer.line("", writer.plain(), "clamp"), base._replace(clamp=True))
    if not floats or writer.statement.ulps > 1 or any(one in writer.statement.name for one in UNFLUSHED):
        return
    yield case(writer.line("_e64", writer.plain()), base._replace(flush=True), FLUSHED)
    if float_of(result) is not None and not result.startswith("pk"):
        for text, factor in (("mul:2", 2.0), ("mul:4", 4.0), ("div:2", 0.5)):
            # The modifiers are for modes without IEEE's NaN and without denormals: otherwise they do nothing.
            yield case(writer.line("_e64", writer.plain(), text), base._replace(flush=True, scale=factor), 0)
        yield case(writer.line("_e64", writer.plain(), "mul:2"), base)


def _rotated(by: int, lane: int, _lanes: int) -> int | None:
    return lane & ~15 | (lane - by) & 15


CONTROLS: dict[str, Callable[[int, int], int | None]] = {
    "quad_perm:[2,0,3,1]": lambda lane, _: lane & ~3 | (2, 0, 3, 1)[lane & 3],
    "row_shl:3": lambda lane, _: lane + 3 if (lane & 15) + 3 < 16 else None,
    "row_shr:5": lambda lane, _: lane - 5 if lane & 15 >= 5 else None,
    "row_ror:4": partial(_rotated, 4),
    "row_mirror": lambda lane, _: lane ^ 15,
    "row_half_mirror": lambda lane, _: lane ^ 7,
    "row_bcast:15": lambda lane, _: (lane & ~15) - 1 if lane >= 16 else None,
    "row_bcast:31": lambda lane, _: 31 if lane >= 32 else None,
    "wave_shl:1": lambda lane, lanes: lane + 1 if lane + 1 < lanes else None,
    "wave_rol:1": lambda lane, lanes: (lane + 1) % lanes,
    "wave_shr:1": lambda lane, _: lane - 1 if lane else None,
    "wave_ror:1": lambda lane, lanes: (lane - 1) % lanes,
    "row_share:6": lambda lane, _: lane & ~15 | 6,
    "row_newbcast:9": lambda lane, _: lane & ~15 | 9,
    "row_xmask:10": lambda lane, _: lane ^ 10,
    "dpp8:[7,2,0,5,1,1,6,3]": lambda lane, _: lane & ~7 | (7, 2, 0, 5, 1, 1, 6, 3)[lane & 7],
}
MASKS = ((15, 15), (5, 15), (15, 9), (10, 6))


def _shifted_right(lane: int, _lanes: int) -> int | None:
    return lane - 5 if (lane & 15) >= 5 else None


CONTROLS["row_shr:5"] = _shifted_right
EVERY_CONTROL = frozenset(
    {"v_mov_b32", "v_add_u32", "v_add_nc_u32", "v_fmac_f32", "v_cmp_lt_u32", "v_cmp_gt_f32", "v_add_f16"}
)


def _lanes_moved(writer: Writer, base: Form, case: Make) -> Iterator[tuple[Case, Form]]:
    """Yield DPP: every control for a few instructions, one for the others."""
    names = list(CONTROLS) if writer.statement.name in EVERY_CONTROL else writer.random.sample(sorted(CONTROLS), 3)
    for name in names:
        rows, banks = writer.random.choice(MASKS)
        bound = bool(writer.random.getrandbits(1))
        eight = name.startswith("dpp8")
        after = name if eight else f"{name} row_mask:{rows:#x} bank_mask:{banks:#x}"
        after += " bound_ctrl:1" if bound and not eight else ""
        form = base._replace(
            moved=CONTROLS[name],
            bound=bound and not eight,
            written=(lambda _lane: True) if eight else partial(_in_masks, rows, banks),
        )
        for suffix, mask in (("_dpp", writer.vcc), ("_e64_dpp", writer.mask)):
            operands = [
                mask if kind == "m" else text
                for text, kind in zip(writer.plain(), writer.statement.operands, strict=True)
            ]
            yield case(writer.line(suffix, operands, after, mask=mask), form)


def _in_masks(rows: int, banks: int, lane: int) -> bool:
    return bool(rows >> (lane // 16 & 3) & 1 and banks >> (lane // 4 & 3) & 1)


SELECTS = {
    "DWORD": (0, 32),
    "BYTE_0": (0, 8),
    "BYTE_1": (8, 8),
    "BYTE_2": (16, 8),
    "BYTE_3": (24, 8),
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
}
UNUSED = {"UNUSED_PAD": "zero", "UNUSED_SEXT": "sign", "UNUSED_PRESERVE": "kept"}


def _sub_dword(writer: Writer, base: Form, case: Make) -> Iterator[tuple[Case, Form]]:
    """Yield SDWA: bytes and words of operands, extended with their sign or not, and of the result."""
    if writer.major not in {9, 10}:
        return
    statement = writer.statement
    for _ in range(3):
        operands, sources, after = writer.plain(mask=writer.vcc), list(base.sources), []
        for at, kind in enumerate(statement.operands):
            if kind == "m":
                continue
            half = width_of(kind) == 16
            name = writer.random.choice([one for one in SELECTS if not half or one.startswith("WORD")])
            signed = float_of(kind) is None and not half and bool(writer.random.getrandbits(1))
            start, size = SELECTS[name]
            operands[at] = f"sext({operands[at]})" if signed else operands[at]
            sources[at] = Source(select=(start, size, signed))
            after.append(f"src{at}_sel:{name}")
        placed = None
        if statement.result != "none":
            half = width_of(statement.result) == 16
            name = writer.random.choice([one for one in SELECTS if not half or one.startswith("WORD")])
            unused = writer.random.choice(list(UNUSED))
            placed = (*SELECTS[name], UNUSED[unused])
            after = [f"dst_sel:{name} dst_unused:{unused}", *after]
        form = base._replace(sources=tuple(sources), placed=placed, zeroes=False)
        yield case(writer.line("_sdwa", operands, " ".join(after), mask=writer.vcc), form)
