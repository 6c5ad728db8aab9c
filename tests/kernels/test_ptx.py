"""What executes PTX on the CPU: it computes what PTX says, and sees what a GPU would let pass."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.kernels.ptx.execute import execute
from tests.kernels.ptx.memory import Global, WrongAccessError
from tests.kernels.ptx.program import parse

pytestmark = pytest.mark.cpu
HEAD = """
.version 8.7
.extern .shared .align 16 .b8 rest[];
.visible .entry kernel(.param .u64 kernel_param_0, .param .u64 kernel_param_1)
.reqntid 64
{
	.reg .b32 	%r<9>;
	.shared .align 16 .b8 own[256];
	ld.param.b64 	%rd0, [kernel_param_0];
	ld.param.b64 	%rd1, [kernel_param_1]; // the result's
	mov.u32 	%r0, %tid.x;
	mul.wide.u32 	%rd2, %r0, 4;
	add.s64 	%rd3, %rd0, %rd2;
	add.s64 	%rd4, %rd1, %rd2;
	shl.b32 	%r5, %r0, 2;
	mov.u32 	%r6, own;
	add.s32 	%r5, %r5, %r6;
"""


def _run(body: str, given: Any, count: int = 64) -> Any:
    out, memory = torch.full((count,), -1, dtype=torch.int32), Global()
    execute(HEAD + body + "\n\tret;\n}\n", (1,), 64, memory, [memory.place(given), memory.place(out)])
    memory.take_back()
    return out


NUMBERS = torch.arange(100, 164, dtype=torch.int32)
LOAD, STORE = "ld.global.b32 %r1, [%rd3];", "st.global.b32 [%rd4], {%r1};"


def test_lanes_load_compute_and_store() -> None:
    out = _run(LOAD + "mad.lo.s32 %r1, %r1, -2, %r0; bfe.u32 %r2, %r0, 1, 3; add.s32 %r1, %r1, %r2;" + STORE, NUMBERS)
    lane = torch.arange(64)
    assert torch.equal(out, (-2 * (lane + 100) + lane + lane // 2 % 8).int())


def test_guards_and_branches_leave_lanes_out() -> None:
    body = LOAD + "setp.lt.u32 %p1, %r0, 10; @%p1 mov.b32 %r1, 7; { setp.ge.u32 p, %r0, 32;\n@p bra done;" + STORE
    out = _run(body + "\ndone:\n}", NUMBERS)
    assert out.tolist() == [7] * 10 + list(range(110, 132)) + [-1] * 32


def test_a_loop_that_all_lanes_take() -> None:
    out = _run(
        "mov.b32 %r1, 0;\n$again:\nadd.s32 %r1, %r1, 3; setp.lt.s32 %p1, %r1, 10; @%p1 bra $again;" + STORE, NUMBERS
    )
    assert set(out.tolist()) == {12}


def test_wavefronts_see_what_they_wrote_once_they_met() -> None:
    swap = LOAD + "st.shared.b32 [%r5], %r1; {} xor.b32 %r5, %r5, 128; ld.shared.b32 %r1, [%r5];" + STORE
    out = _run(swap.replace("{}", "bar.sync 0;"), NUMBERS)
    assert torch.equal(out, NUMBERS[torch.arange(64) ^ 32])
    with pytest.raises(WrongAccessError, match=r"just (written|read)"):
        _run(swap.replace("{}", ""), NUMBERS)


def test_what_is_read_is_not_written_before_wavefronts_met() -> None:
    body = LOAD + "st.shared.b32 [%r5], %r1; bar.sync 0; ld.shared.b32 %r1, [own];" + STORE
    assert set(_run(body, NUMBERS).tolist()) == {100}
    with pytest.raises(WrongAccessError, match=r"just (written|read)"):
        _run(body + "add.s32 %r1, %r1, 1; st.shared.b32 [%r5], %r1;", NUMBERS)


def test_wavefronts_may_join_with_a_word_but_read_it_once_they_met() -> None:
    body = "st.shared.b32 [own+128], 7; bar.sync 0; red.shared.max.u32 [own+128], %r0; {} ld.shared.b32 %r1, [own+128];"
    assert set(_run(body.replace("{}", "bar.sync 0;") + STORE, NUMBERS).tolist()) == {63}
    with pytest.raises(WrongAccessError, match=r"just (written|read)"):
        _run(body.replace("{}", "") + STORE, NUMBERS)


def test_barriers_of_some_wavefronts() -> None:
    swap = LOAD + "st.shared.b32 [%r5], %r1; {} xor.b32 %r5, %r5, 128; ld.shared.b32 %r1, [%r5];" + STORE
    assert torch.equal(_run(swap.replace("{}", "bar.sync 1, 64;"), NUMBERS), NUMBERS[torch.arange(64) ^ 32])
    with pytest.raises(WrongAccessError, match=r"just (written|read)"):
        _run(swap.replace("{}", "bar.sync 1, 32;"), NUMBERS)
    with pytest.raises(AssertionError, match="do not come"):
        _run(swap.replace("{}", "bar.sync 1, 96;"), NUMBERS)


def test_copies_are_there_once_they_were_waited_for() -> None:
    copy = "cp.async.ca.shared.global [%r5], [%rd3], 4; cp.async.commit_group; {} ld.shared.b32 %r1, [%r5];" + STORE
    assert torch.equal(_run(copy.replace("{}", "cp.async.wait_group 0;"), NUMBERS), NUMBERS)
    assert set(_run(copy.replace("{}", "cp.async.wait_group 1;"), NUMBERS).tolist()) == {-1}
    # Lanes from 63 on copy nothing, but zeros.
    some = copy.replace("[%rd3], 4;", "[%rd3], 4, %r2;").replace("{}", "cp.async.wait_group 0;")
    out = _run("setp.lt.u32 %p1, %r0, 63; selp.b32 %r2, 4, 0, %p1; " + some, NUMBERS[:63].clone())
    assert out.tolist() == [*range(100, 163), 0]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (LOAD, "outside of all tensors"),
        ("add.s64 %rd3, %rd0, 2; " + LOAD, "no multiple"),
        ("st.shared.b32 [%r5+999996], %r0;", "outside of shared memory"),
    ],
)
def test_what_is_not_there_is_neither_read_nor_written(body: str, told: str) -> None:
    with pytest.raises(WrongAccessError, match=told):
        _run(body, NUMBERS[:63].clone())


def test_matrix_instructions_multiply() -> None:
    # All of A is 2, of B 3 in bfloat16: sums of 16 products.
    body = "mov.b32 %r1, 0x40004000; mov.b32 %r2, 0x40404040; mov.b32 %r3, 0f3F800000;"
    body += (
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1, %r4, %r7, %r8}, {%r1, %r1, %r1, %r1}, {%r2, %r2},"
    )
    out = _run(body + "{%r3, %r3, %r3, %r3};" + STORE, NUMBERS)
    assert set(out.view(torch.float32).tolist()) == {16 * 2.0 * 3.0 + 1.0}


def test_numbers_are_divided_shifted_and_cut_out_as_their_type_says() -> None:
    body = (
        "sub.s32 %r1, %r0, 32; div.s32 %r2, %r1, 5; rem.s32 %r3, %r1, 5; bfe.s32 %r4, %r1, 1, 3; shr.s32 %r1, %r1, 1;"
    )
    lane = torch.arange(64) - 32
    field = (lane >> 1) % 8
    for register, wanted in (
        ("%r2", torch.div(lane, 5, rounding_mode="trunc")), ("%r3", torch.fmod(lane, 5)),
        ("%r4", torch.where(field < 4, field, field - 8)), ("%r1", lane >> 1),
    ):  # fmt: skip
        assert torch.equal(_run(body + f"mov.b32 %r1, {register};" + STORE, NUMBERS), wanted.int())


def test_a_shift_by_more_than_a_register_leaves_nothing() -> None:
    assert set(_run("mov.b32 %r1, 255; shl.b32 %r1, %r1, 32;" + STORE, NUMBERS).tolist()) == {0}
    assert set(_run("mov.b32 %r1, -2; shr.s32 %r1, %r1, 40;" + STORE, NUMBERS).tolist()) == {-1}


def test_bytes_are_picked_shifted_and_shared_between_lanes() -> None:
    body = "mov.b32 %r1, 0x33221100; mov.b32 %r2, 0x77665544; prmt.b32 %r1, %r1, %r2, 0x7240; "
    body += "shf.r.wrap.b32 %r1, %r1, %r2, 8; add.u32 %r1, %r1, %r0; shfl.sync.bfly.b32 %r1, %r1, 1, 31, 0xffffffff;"
    picked = 0x77224400
    moved = (picked >> 8 | 0x44 << 24) & 0xFFFFFFFF
    lane = torch.arange(64)
    assert torch.equal(_run(body + STORE, NUMBERS), (moved + (lane ^ 1)).int())


def test_shared_memory_whose_size_is_told_elsewhere_lies_behind_the_rest() -> None:
    code = parse(HEAD + "ret; }")
    assert (code.shared, code.size) == ({"own": 0, "rest": 256}, 256)
