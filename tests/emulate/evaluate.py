"""What a vector instruction leaves behind, computed from its statement: operands, modifiers, lanes and halves."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from tests.emulate.exact import Format, bits_of, flushed, is_nan, value_of
from tests.emulate.stated import FORMATS, Statement, loaded, width_of

__all__ = ["Form", "Result", "Source", "evaluate", "float_of", "same"]

Row = list[int]
"""The bits of each lane."""


class Source(NamedTuple):
    """An operand as a form has it.

    Args:
        constant: Its bits; None: a register.
        scalar: A scalar register: what the first lane of each wave has.
        neg: Negated; of packed operands the low half.
        absolute: Without sign.
        high: The high half, of packed operands for the low result.
        neg_high: The high half is negated.
        high_for_high: The high half, for the high result.
        select: SDWA: first bit and width, and whether it is extended with its sign.
    """

    constant: int | None = None
    scalar: bool = False
    neg: bool = False
    absolute: bool = False
    high: bool = False
    neg_high: bool = False
    high_for_high: bool = True
    select: tuple[int, int, bool] | None = None


class Form(NamedTuple):
    """An instruction in one of its forms.

    Args:
        statement: What it computes.
        sources: Operands.
        moved: DPP: lanes to the lane that each reads, or None; with a mask of written lanes.
        bound: DPP: a lane that reads none gets zero, and is written.
        written: DPP: whether a lane is in the masks of rows and banks.
        clamp: The result is clamped.
        scale: Output modifier: the factor.
        flush: Denormals are flushed.
        high: The result goes to the high half.
        zeroes: The other half becomes zero.
        placed: SDWA: first bit, width, and what becomes of the rest: ``zero``, ``sign``, ``kept``.
    """

    statement: Statement
    sources: tuple[Source, ...]
    moved: Callable[[int, int], int | None] | None = None
    bound: bool = False
    written: Callable[[int], bool] = lambda _lane: True
    clamp: bool = False
    scale: float = 1.0
    flush: bool = False
    high: bool = False
    zeroes: bool = False
    placed: tuple[int, int, str] | None = None


class Result(NamedTuple):
    """What is expected.

    Args:
        words: The low and the high register of the result, by lane.
        mask: The bits of the mask, by lane; None where none is written.
        active: Which lanes were written.
        free: Lanes whose result is not defined, or is no number in a part of a register.
    """

    words: list[tuple[int, int]]
    mask: Row | None
    active: list[bool]
    free: list[bool]


def float_of(kind: str) -> Format | None:
    """Return the format that modifiers of an operand work on."""
    return FORMATS.get(kind.removeprefix("pk").removeprefix("hi").removeprefix("r"))


_MEMO: dict[tuple[Any, ...], tuple[int, int, bool]] = {}


def _computed(form: Form, kinds: tuple[str, ...], bits: tuple[int, ...]) -> tuple[int, int, bool]:
    """Return the bits of the result, the mask's bit, and whether the result is free; each set of operands once."""
    statement = form.statement
    key = (id(statement), bits, form.flush, form.clamp, form.scale, form.placed is None)
    if key not in _MEMO:
        value = statement.compute(*(loaded(one, kind) for one, kind in zip(bits, kinds, strict=True)))
        bit = 0
        if statement.mask:
            value, bit = value if statement.result != "none" else (0, value)
        whole = statement.result != "none"
        free = whole and (value is None or (form.placed is not None and isinstance(value, float) and math.isnan(value)))
        made = _rounded(value, statement.result, form) if whole and value is not None else 0
        result = float_of(statement.result) if form.placed is not None else None
        _MEMO[key] = (made, int(bit), free or (result is not None and is_nan(made, result)))
    return _MEMO[key]


def _rounded(value: Any, kind: str, form: Form) -> int:
    """Return the bits of a result."""
    base = kind.removeprefix("pk").removeprefix("hi")
    if base in FORMATS:
        made = bits_of(Fraction(value) if isinstance(value, int) else value, FORMATS[base])
        return _finished(made, FORMATS[base], form)
    if base.startswith("r"):
        return _finished(int(value), FORMATS[base[1:]], form)
    width = width_of(base)
    whole = int(value)
    if form.clamp and form.statement.clamps:
        low, high = (-(1 << width - 1), (1 << width - 1) - 1) if base.startswith("i") else (0, (1 << width) - 1)
        whole = max(low, min(high, whole))
    return whole & (1 << width) - 1


def _finished(bits: int, form: Format, how: Form) -> int:
    if how.flush:
        bits = flushed(bits, form)
    if how.scale != 1.0 and not is_nan(bits, form):
        scaled = value_of(bits, form)
        bits = bits_of(Fraction(scaled) * Fraction(how.scale) if math.isfinite(scaled) and scaled else scaled, form)
        bits = flushed(bits, form)
        bits = 0 if bits == form.sign else bits  # a scaled zero has no sign
    if how.clamp:
        value = value_of(bits, form)
        bits = 0 if is_nan(bits, form) or value <= 0 else bits_of(min(value, 1.0), form)
    return bits


def _operand(form: Form, number: int, row: Row, *, top: bool, flush: bool) -> Row:
    """Return an operand's bits as the function gets them; ``top``: for the high half of a packed result."""
    source, kind = form.sources[number], form.statement.operands[number]
    packed = kind.startswith("pk") and not kind.endswith("b32")
    base = kind.removeprefix("pk") if packed else kind
    width, made = (32 if base in {"mix", "m"} else width_of(base)), []
    number_form = float_of(base)
    high = source.high_for_high if packed and top else source.high
    neg = source.neg_high if packed and top else source.neg
    if (
        width in {0, 32, 64}
        and not packed
        and source.select is None
        and kind != "mix"
        and not (number_form and (neg or source.absolute or flush))
        and not high
    ):
        return row
    for bits in row:
        x = bits
        if source.select is not None:
            at, size, signed = source.select
            x = x >> at & (1 << size) - 1
            if signed and x >> size - 1:
                x |= (1 << 32) - (1 << size)
        if high and (width < 32 or packed):
            x >>= width
        this = number_form
        if kind == "mix":
            this = FORMATS["f16" if source.high_for_high else "f32"]
            x = (x >> 16 if high else x) & 0xFFFF if source.high_for_high else x
        elif base == "byte8":
            x &= 255
        else:
            x &= (1 << width) - 1
        if this is not None:
            if source.absolute:
                x &= ~this.sign
            if neg:
                x ^= this.sign
            if flush:
                x = flushed(x, this)
        if kind == "mix" and this is FORMATS["f16"]:
            x = bits_of(value_of(x, FORMATS["f16"]), FORMATS["f32"])
        made.append(x)
    return made


def evaluate(form: Form, rows: list[Row], old: list[tuple[int, int]], masks: list[bool], lanes: int) -> Result:
    """Return what an instruction leaves.

    Args:
        form: Of the instruction.
        rows: What the operands' registers hold, by operand and lane.
        old: What the result's registers held.
        masks: The lane's bit of a mask operand.
        lanes: Of a wavefront.
    """
    statement = form.statement
    count = len(old)
    inputs: list[Row] = []
    active = [form.written(lane % lanes) for lane in range(count)]
    for number, source in enumerate(form.sources):
        row = [source.constant] * count if source.constant is not None else rows[number]
        if source.scalar:
            row = [row[lane - lane % lanes] for lane in range(count)]
        if number == 0 and form.moved is not None:
            found = [form.moved(lane % lanes, lanes) for lane in range(count)]
            row = [row[lane - lane % lanes + at] if at is not None else 0 for lane, at in enumerate(found)]
            active = [on and (at is not None or form.bound) for on, at in zip(active, found, strict=True)]
        inputs.append(row)
    halves = (
        (False, True)
        if statement.result == "pkf32" or (statement.result.startswith("pk") and statement.result.endswith("16"))
        else (False,)
    )
    width = width_of(statement.result) // len(halves) if statement.result != "none" else 0
    words, bits, free = [0] * count, [0] * count, [False] * count
    for top in halves:
        given = [_operand(form, number, row, top=top, flush=form.flush) for number, row in enumerate(inputs)]
        kinds = [_kind(one) for one in statement.operands]
        if statement.reads:
            shift = 16 if (form.high or top) and width == 16 else width if top else 0
            kept = [(low | high << 32) >> shift & (1 << width) - 1 for low, high in old]
            result = FORMATS.get(statement.result.removeprefix("pk"))
            given.append([flushed(one, result) if form.flush and result else one for one in kept])
            kinds.append(statement.result.removeprefix("pk"))
        tuple_of_kinds = tuple(kinds)
        for lane in range(count):
            given_lane = tuple(
                int(masks[lane]) if kind == "m" else row[lane] for kind, row in zip(kinds, given, strict=True)
            )
            made, bits[lane], undefined = _computed(form, tuple_of_kinds, given_lane)
            free[lane] |= undefined
            words[lane] |= made << (width if top else 0)
    placed = [_placed(form, made, before) for made, before in zip(words, old, strict=True)]
    return Result(
        [new if on else before for new, before, on in zip(placed, old, active, strict=True)],
        [bit if on else 0 for bit, on in zip(bits, active, strict=True)] if statement.mask else None,
        active,
        [one and on for one, on in zip(free, active, strict=True)],
    )


def _kind(kind: str) -> str:
    if kind == "mix":
        return "f32"
    if kind == "m":
        return "m"
    if kind in {"byte8", "half16", "perm32", "dot32"} or kind.endswith("b32"):
        return "u32"
    return kind.removeprefix("pk")


def _placed(form: Form, made: int, old: tuple[int, int]) -> tuple[int, int]:
    """Return the registers with the result in its place."""
    result = form.statement.result
    if result == "none":
        return old
    if form.placed is not None:
        at, size, rest = form.placed
        field = made & (1 << size) - 1
        if size == 32:
            return field, old[1]
        if rest == "kept":
            return (old[0] & ~(((1 << size) - 1) << at)) | field << at, old[1]
        sign = rest == "sign" and field >> size - 1
        return (field << at | ((1 << 32) - (1 << at + size) if sign else 0)) & 0xFFFFFFFF, old[1]
    width = width_of(result)
    if width == 64:
        return made & 0xFFFFFFFF, made >> 32
    if width == 16:
        if form.high or result.startswith("hi"):
            return old[0] & 0xFFFF | made << 16, old[1]
        return (made if form.zeroes else old[0] & 0xFFFF0000 | made), old[1]
    return made, old[1]


def same(kind: str, got: int, wanted: int, statement: Statement) -> bool:
    """Return whether the bits of a result are right: any NaN for NaN, and within the statement's tolerance."""
    if got == wanted:
        return True
    base = kind.removeprefix("hi")
    base = base[:-3] if base in {"pkf16b32", "pkbf16b32", "pkf32b64"} else base
    if base.startswith("pk"):
        inner, width = base[2:], width_of(base) // 2
        mask = (1 << width) - 1
        return all(same(inner, got >> at & mask, wanted >> at & mask, statement) for at in (0, width))
    number = float_of(base)
    if number is None:
        return False
    if is_nan(got, number) and is_nan(wanted, number):
        return True
    if is_nan(got, number) or is_nan(wanted, number) or not (statement.ulps or statement.absolute):
        return False
    keys = [-(one & ~number.sign) if one & number.sign else one for one in (got, wanted)]
    if abs(keys[0] - keys[1]) <= statement.ulps:
        return True
    return abs(value_of(got, number) - value_of(wanted, number)) <= statement.absolute
