"""Constants of packed instructions are of the type of their halves, and stand in the low one."""

from __future__ import annotations

import pytest

from rocmend.emulate.decode import decode
from rocmend.emulate.disassemble import Line
from rocmend.emulate.generation import generation_of
from rocmend.emulate.layout import Kind, Modifier


@pytest.mark.parametrize(
    ("text", "target", "bits"),
    [
        ("v_dot2_f32_f16 v1, 1.0, v46, 0 op_sel_hi:[0,1,1]", "gfx906", 0x3C00),
        ("v_dot2_f32_bf16 v1, 1.0, v46, v2 op_sel_hi:[0,1,1]", "gfx1100", 0x3F80),
        ("v_pk_add_f16 v1, 1.0, v46 op_sel_hi:[0,1]", "gfx906", 0x3C00),
    ],
)
def test_a_packed_constant_is_a_half(text: str, target: str, bits: int) -> None:
    made = decode([Line(0, 8, text)], generation_of(target, 64))
    assert not made.unknown
    constant = made.instructions[0].s[0]
    assert (constant.kind, constant.value) == (Kind.LITERAL, bits)
    assert not constant.modifiers & Modifier.SELECT_HIGH  # both halves of the product take the low one
