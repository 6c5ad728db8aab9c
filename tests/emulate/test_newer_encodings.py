"""What compilers newer than the disassembler write: constants in the fields of operands that an instruction lacks."""

from __future__ import annotations

import pytest

from rocmend.emulate.decode import decode
from rocmend.emulate.decode.operands import UnmodelledError
from rocmend.emulate.disassemble import Line, disassemble
from rocmend.emulate.generation import generation_of
from rocmend.emulate.layout import Form, Modifier

pytest.importorskip("rocm")


@pytest.mark.parametrize(
    ("code", "target", "text"),
    [
        ("3c009cd5d1010102", "gfx1100", "v_mov_b16_e64 v60.l, v209.l"),
        ("030084d603000102", "gfx1201", "v_s_rcp_f32 s3, s3"),
        # A second operand that is there, and is the constant 0, stays.
        ("020003d501010102", "gfx1201", "v_add_f32_e64 v2, v1, 0"),
        ("020013d601010102", "gfx1201", "v_fma_f32 v2, v1, 0, 0"),
    ],
)
def test_missing_operands_encoded_as_the_constant_0_are_read(code: str, target: str, text: str) -> None:
    (line,) = disassemble(bytes.fromhex(code), target, 32)
    assert line.text == text
    assert line.size == 8


def test_a_scalar_instruction_of_the_transcendental_unit_keeps_its_operands_sign() -> None:
    made = decode([Line(0, 8, "v_s_rcp_f32 s3, -|s4|")], generation_of("gfx1201", 32))
    assert not made.unknown
    assert made.instructions[0].form == Form.SALU
    assert made.instructions[0].s[0].modifiers == Modifier.NEG | Modifier.ABS


def test_a_modifier_of_a_scalar_instruction_is_not_ignored() -> None:
    made = decode([Line(0, 8, "v_s_rcp_f32 s3, s4 mul:2")], generation_of("gfx1201", 32))
    assert isinstance(made.unknown[0], UnmodelledError)
