"""The control flow of kernels: how often each block is executed, from scalar instructions alone."""

from __future__ import annotations

import pytest

from rocmend.kernels.model.clock import alone_cycles, totals
from rocmend.kernels.model.hardware import hardware, tables
from rocmend.kernels.model.listing import Listing, read_listing
from rocmend.kernels.model.scalar import walk

LOOP = """
k:
; %bb.0:
	s_load_b64 s[4:5], s[0:1], 0x0
	v_and_b32_e32 v1, 31, v0
	s_waitcnt lgkmcnt(0)
	s_cmp_lt_i32 s4, 1
	s_cbranch_scc1 .LBB0_3
	s_mov_b32 s6, 0
.LBB0_2:
	global_load_b128 v[4:7], v1, s[8:9]
	s_add_i32 s6, s6, 64
	s_waitcnt vmcnt(0)
	v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]
	v_dual_add_f32 v4, v4, v5 :: v_dual_add_f32 v6, v6, v7
	s_cmp_lt_i32 s6, s4
	s_cbranch_scc1 .LBB0_2
.LBB0_3:
	global_store_b32 v1, v4, s[8:9]
	s_endpgm
	.section	.rodata
	.amdhsa_user_sgpr_count 2
	.amdhsa_system_sgpr_workgroup_id_x 1
"""
GPU = hardware("gfx1151")


def _kernarg(*words: int) -> bytes:
    return b"".join((word & 0xFFFFFFFF).to_bytes(4, "little") for word in words)


def _counts(text: str, *words: int, workgroup: tuple[int, ...] = (0, 0, 0), trips: tuple[int, ...] = ()) -> list[int]:
    return walk(read_listing(text, "k"), _kernarg(*words), workgroup, trips).counts


@pytest.mark.parametrize(("k", "trips"), [(0, 0), (1, 1), (64, 1), (65, 2), (4096, 64), (-5, 0)])
def test_a_loop_is_executed_as_often_as_the_arguments_say(k: int, trips: int) -> None:
    listing = read_listing(LOOP, "k")
    counts = walk(listing, _kernarg(k, 0), (0, 0, 0)).counts
    assert counts == [1, 1 if trips else 0, trips, 1]


def test_what_a_wavefront_uses_grows_with_its_trips() -> None:
    listing = read_listing(LOOP, "k")
    once, twice = (totals(listing, walk(listing, _kernarg(k, 0), (0, 0, 0)).counts, GPU) for k in (2048, 4096))
    assert once.loaded == 32 * 32 * 16
    assert (twice.loaded, twice.matrix, twice.stored) == (2 * once.loaded, 2 * once.matrix, once.stored)
    assert once.matrix == 32 * 8192 / 256  # a SIMD of RDNA3 does 256 operations a cycle
    assert once.vector == 32 + 1  # two of a v_dual at once


def test_twice_the_trips_take_twice_the_time() -> None:
    listing = read_listing(LOOP, "k")
    flows = [walk(listing, _kernarg(k, 0), (0, 0, 0)) for k in (64 * 512, 64 * 1024)]
    once, twice = (alone_cycles(listing, flow, GPU, 300.0) for flow in flows)
    assert twice == pytest.approx(2 * once, rel=0.01)


def test_a_wavefront_waits_for_its_loads() -> None:
    listing = read_listing(LOOP, "k")
    flow = walk(listing, _kernarg(4096, 0), (0, 0, 0))
    quick, slow = (alone_cycles(listing, flow, GPU, load_ns) for load_ns in (100.0, 300.0))
    assert slow - quick == pytest.approx(64 * 200 * GPU.clock_ghz, rel=0.01)
    assert slow > totals(listing, flow.counts, GPU).matrix


@pytest.mark.parametrize(("workgroup", "first"), [((3, 0, 0), 3), ((0, 0, 0), 0)])
def test_the_number_of_the_workgroup_is_known(workgroup: tuple[int, int, int], first: int) -> None:
    text = LOOP.replace("s_cmp_lt_i32 s4, 1", "s_cmp_lt_i32 s2, 1")
    assert _counts(text, 64, 0, workgroup=workgroup)[2] == (1 if first else 0)
    later = text.replace("s_cmp_lt_i32 s2, 1", "s_cmp_lt_i32 ttmp9, 1")
    assert _counts(later, 64, 0, workgroup=workgroup)[2] == (1 if first else 0)


def test_arguments_stand_behind_private_memory_s_descriptor_on_older_gpus() -> None:
    """As on gfx906 and gfx10: s[0:3] describe private memory, and the number of the workgroup is in s6."""
    text = LOOP.replace("user_sgpr_count 2", "user_sgpr_count 6\n\t.amdhsa_user_sgpr_private_segment_buffer 1")
    text = text.replace("s_load_b64 s[4:5], s[0:1]", "s_load_b64 s[8:9], s[4:5]").replace(" s4", " s8")
    flow = walk(read_listing(text.replace("s6", "s10"), "k"), _kernarg(256, 0), (0, 0, 0))
    assert (flow.counts[2], flow.guessed) == (4, 0)
    first = text.replace("s6", "s10").replace("s_cmp_lt_i32 s8, 1", "s_cmp_lt_i32 s6, 1")
    assert _counts(first, 256, 0, workgroup=(3, 0, 0))[2] == 4
    assert _counts(first, 256, 0, workgroup=(0, 0, 0))[2] == 0


def test_a_division_is_followed_through_the_first_lane() -> None:
    """As LLVM divides by a number that is the same in all lanes: 4097 // 64 loops."""
    division = """
	v_cvt_f32_u32_e32 v2, s5
	v_rcp_iflag_f32_e32 v2, v2
	s_sub_i32 s7, 0, s5
	v_mul_f32_e32 v2, 0x4f7ffffe, v2
	v_cvt_u32_f32_e32 v2, v2
	v_readfirstlane_b32 s8, v2
	s_mul_i32 s7, s7, s8
	s_mul_hi_u32 s7, s8, s7
	s_add_i32 s8, s8, s7
	s_mul_hi_u32 s7, s4, s8
	s_mul_i32 s8, s7, s5
	s_sub_i32 s8, s4, s8
	s_add_i32 s9, s7, 1
	s_cmp_ge_u32 s8, s5
	s_cselect_b32 s7, s9, s7
	s_lshl_b32 s4, s7, 6
	s_cmp_lt_i32 s4, 1"""
    assert _counts(LOOP.replace("\n\ts_cmp_lt_i32 s4, 1", division), 4097, 64)[2] == 64


def test_loops_that_depend_on_data_take_the_stated_trips() -> None:
    text = LOOP.replace("s_add_i32 s6, s6, 64", "s_load_b32 s6, s[8:9], 0x0")
    assert _counts(text, 64, 0) == [1, 1, 1, 1]
    assert _counts(text, 64, 0, trips=(7,)) == [1, 1, 7, 1]
    assert walk(read_listing(text, "k"), _kernarg(64, 0), (0, 0, 0)).guessed == 1


def test_a_loop_that_is_left_in_its_middle_ends() -> None:
    """As where LLVM tests a loop's end on the mask of lanes: the branch back is unconditional."""
    text = LOOP.replace(
        "\ts_add_i32 s6, s6, 64\n", "\tv_cmp_gt_u32_e32 vcc_lo, v1, v2\n\ts_cbranch_vccz .LBB0_3\n"
    ).replace("s_cbranch_scc1 .LBB0_2", "s_branch .LBB0_2")
    flow = walk(read_listing(text, "k"), _kernarg(64, 0), (0, 0, 0))
    assert (flow.counts, flow.cut) == ([1, 1, 1, 0, 1], False)
    assert _counts(text, 64, 0, trips=(5,)) == [1, 1, 5, 4, 1]


def test_all_lanes_are_active() -> None:
    text = LOOP.replace(
        "\ts_mov_b32 s6, 0\n", "\ts_mov_b32 s6, 0\n\ts_and_saveexec_b32 s7, vcc_lo\n\ts_cbranch_execz .LBB0_3\n"
    )
    flow = walk(read_listing(text, "k"), _kernarg(128, 0), (0, 0, 0))
    assert (flow.counts[-2:], flow.guessed) == ([2, 1], 0)


def test_a_register_that_a_comparison_wrote_is_not_known_any_more() -> None:
    text = LOOP.replace("s_add_i32 s6, s6, 64", "v_cmp_gt_u32_e64 s6, v1, v2")
    assert walk(read_listing(text, "k"), _kernarg(64, 0), (0, 0, 0)).guessed == 1


@pytest.mark.slow
def test_a_loop_without_end_is_cut() -> None:
    endless: Listing = read_listing(LOOP.replace("s_add_i32 s6, s6, 64", "s_add_i32 s6, s6, 0"), "k")
    assert walk(endless, _kernarg(64, 0), (0, 0, 0)).cut


def test_every_constant_of_the_hardware_has_a_source() -> None:
    for kind, table in tables().items():
        constants = {name for name in table if name != "sources"}
        assert constants == set(table["sources"]), kind
        assert all(
            text == "assumed" or text.startswith("assumed") or len(text) > 20 for text in table["sources"].values()
        )
