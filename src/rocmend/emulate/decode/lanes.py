"""Instructions that move values between lanes."""

from __future__ import annotations

import re

from rocmend.emulate.decode.operands import UnmodelledError, operand
from rocmend.emulate.decode.text import Parts
from rocmend.emulate.generation import Generation
from rocmend.emulate.layout import INST, Counter, Flag, Form

__all__ = ["read", "reads"]

_OPS = (
    "v_readlane_b32", "v_readfirstlane_b32", "v_writelane_b32", "v_permlane16_b32", "v_permlanex16_b32",
    "v_permlane64_b32", "ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32", "v_swap_b32", "v_permlane16_swap_b32",
    "v_permlane32_swap_b32", "v_permlane16_var_b32", "v_permlanex16_var_b32",
)  # fmt: skip
_CODES = {name: number for number, name in enumerate(_OPS)}


def reads(name: str) -> bool:
    """Return whether an instruction moves values between lanes."""
    return name in _CODES


def read(parts: Parts, _generation: Generation) -> INST | None:
    """Decode an instruction that moves values between lanes; None where it is another."""
    if parts.name not in _CODES:
        return None
    made = INST(op=_CODES[parts.name], form=Form.LANE, counter=Counter.NONE)
    given = parts.operands
    made.d = operand(given[0], "b32", parts.text)
    for number, text in enumerate(given[1:]):
        made.s[number] = operand(text, "b32", parts.text)
    made.sources = len(given) - 1
    if parts.name.startswith("ds_"):
        made.counter = Counter.LDS
        made.immediate = _swizzle(parts) if parts.name == "ds_swizzle_b32" else parts.value("offset")
    for word in parts.modifiers:
        if word == "bound_ctrl:1":
            made.flags |= Flag.BOUND_CTRL
        elif word == "fi:1":
            made.flags |= Flag.FETCH_INACTIVE
        elif bits := parts.bits("op_sel"):  # v_permlane16: fi and bound_ctrl
            made.flags |= (Flag.FETCH_INACTIVE if bits[0] else 0) | (Flag.BOUND_CTRL if bits[1] else 0)
        elif not word.startswith("offset:"):
            raise UnmodelledError(f"the modifier {word}", parts.text)
    return made


_FFT = 0xE000
_SWIZZLE = re.compile(r"offset:swizzle\((\w+), ?(.+)\)")


def _swizzle(parts: Parts) -> int:
    """Return the offset field of a swizzle, which LLVM writes as a macro where it can."""
    text = " ".join(parts.modifiers)
    found = _SWIZZLE.search(text)
    if found is None:
        if parts.value("offset") >= _FFT:
            raise UnmodelledError("the swizzle of an FFT", parts.text)
        return parts.value("offset")
    mode, rest = found.groups()
    values = [one.strip() for one in rest.split(",")]
    if mode == "QUAD_PERM":
        return 0x8000 | sum(int(one) << 2 * at for at, one in enumerate(values))
    if mode == "BITMASK_PERM":
        kinds = {"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}
        masks = [kinds[letter] for letter in reversed(values[0].strip('"'))]
        return sum(mask[part] << at + 5 * part for at, mask in enumerate(masks) for part in range(3))
    size = int(values[0])
    if mode == "SWAP":
        return 0x1F | size << 10
    if mode == "REVERSE":
        return 0x1F | size - 1 << 10
    if mode == "BROADCAST":
        return (0x1F & ~(size - 1)) | int(values[1]) << 5
    raise UnmodelledError(f"the swizzle {mode}", parts.text)
