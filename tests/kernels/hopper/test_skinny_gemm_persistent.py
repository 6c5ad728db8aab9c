"""The kernel for one to eight rows of x whose programs walk over rows of weights: its PTX on a wavefront of NumPy."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import numpy as np
from tests.kernels.wavefront import LANE, QUARTER, ROW, Wavefront, bits_of, code_words, narrow, packed, wide

from rocmend.kernels import backends, executor, select
from rocmend.kernels.backends.hopper import mma as blocks
from rocmend.kernels.backends.hopper.quantized_matmul import host, skinny_gemm_persistent
from rocmend.kernels.backends.hopper.quantized_matmul.kernels import skinny_gemm_persistent_ptx as blocks_rows
from rocmend.kernels.common.formats import Format
from rocmend.kernels.ops.matmul.quantized_matmul import OP, Problem
from rocmend.kernels.target import Target, by_name
from rocmend.kernels.tuning import Config, config_for

pytestmark = pytest.mark.cpu
H200 = by_name("sm90", compute_units=132)


Sizes = tuple[int, ...]
WORD = blocks_rows.WORD_BYTES
SUMS_AT = 16 * WORD
BEHIND = SUMS_AT + WORD


def _in_order(shared: Any, x: Any, block: str) -> None:
    """Hand x to a block as the kernel does, which brings it into shared memory or notes rows' largest numbers."""
    largest = BEHIND + blocks_rows.LARGEST + ROW * 4
    # Words 0 and 1 of a chunk are of its first group, which quarters 0 and 1 hold; the others are given its halves.
    for place in range(16):
        chunk, word = place // 4, place % 4
        given = np.where(word // 2 != QUARTER // 2, 2, 0)
        eight = (chunk * 16 + word // 2 * 8 + QUARTER % 2 * 4 + given + word % 2) * 4
        of_x = [packed(x)[ROW, eight + at] for at in range(4)]
        to = largest if block == blocks_rows.largest() else place * WORD + LANE * 16
        Wavefront([*of_x, *[to] * 4, *[largest] * 4], shared=shared).run(block, 0)


def _summed(shared: Any) -> None:
    seen = BEHIND + blocks_rows.SEEN + ROW
    Wavefront([LANE * 16, SUMS_AT + LANE * 16, ROW, seen], 1, shared).run(blocks_rows.totals(WORD), 0)


def _multiplied(codes: Any, x: Any, scales: Any, biases: Any) -> tuple[Any, bool, bool, Any]:
    """Return the product of 512 codes of 16 rows; whether x was looked at, and multiplied, again; and shared memory."""
    words = code_words(codes)
    shared = np.full((BEHIND + blocks_rows.EXTRA_BYTES) // 4, 0xFFFFFFFF, np.uint32)
    Wavefront([ROW * 4, QUARTER * 4], 1, shared).run(blocks_rows.begun(BEHIND), 0)
    _in_order(shared, x, blocks_rows.placed())
    _summed(shared)
    odd = again = bool(Wavefront([], shared=shared).run(blocks_rows.odd(BEHIND), 1)[0].any())
    if odd:
        _in_order(shared, x, blocks_rows.largest())
        again = bool(Wavefront([], shared=shared).run(blocks_rows.needed(BEHIND), 1)[0].any())
    if again:
        _in_order(shared, x, blocks_rows.placed_by_size())
        _summed(shared)
    ordered = [
        [shared[(place * WORD + LANE * 16) // 4 + at] for place in range(4 * chunk, 4 * chunk + 4) for at in range(4)]
        for chunk in range(4)
    ]
    sums: list[Any] = [np.zeros(32, np.uint32)] * 4
    quads = [[one[ROW + by, QUARTER]] * 4 for one in (packed(biases), packed(scales)) for by in (0, 8)]
    for chunk in range(4):
        places = [chunk * 16 + QUARTER * 4 + word for word in range(4)]
        low, high = ([words[ROW + by, one] for one in places] for by in (0, 8))
        operands = [*sums, *low, *high, *ordered[chunk], *quads[2], *quads[3], *[QUARTER // 2] * 4]
        sums = Wavefront(operands).run(blocks_rows.product(chunk))
    rest = [*[np.zeros(32, np.uint32)] * 4, *quads[0], *quads[1], *[SUMS_AT + LANE * 16] * 4]
    others = Wavefront(rest, shared=shared).run(blocks_rows.others())
    back = BEHIND + blocks_rows.BACK + QUARTER * 8
    if again:
        sums = Wavefront([*sums, *others, *[back] * 4], shared=shared).run(blocks_rows.restored())
    else:
        both = zip(sums, others, strict=True)
        sums = [bits_of(one.view(np.float32) * np.float32(2.0**53) + more.view(np.float32)) for one, more in both]
    got = np.zeros((16, 8), np.float32)
    for at in range(4):
        got[ROW + at // 2 * 8, 2 * QUARTER + at % 2] = sums[at].view(np.float32)
    return got, odd, again, shared


def _drawn(seed: int) -> tuple[Any, Any, Any, Any, Any]:
    drawn = np.random.default_rng(seed)
    codes = drawn.integers(0, 16, (16, 512))
    x = drawn.standard_normal((8, 512))
    scales, biases = narrow(drawn.standard_normal((2, 16, 8)))
    dense = codes.reshape(16, -1, 64) * wide(scales)[:, :, None].astype(np.float64) + wide(biases)[:, :, None]
    return codes, x, scales, biases, dense.reshape(16, 512)


@pytest.mark.parametrize("exponent", [0, 44, -40])
def test_blocks_multiply_eight_rows_of_x_with_a_wavefronts_share(exponent: int) -> None:
    codes, drawn, scales, biases, dense = _drawn(1)
    size = 2.0**exponent
    x = narrow(drawn * size)
    got, odd, again, shared = _multiplied(codes, x, scales, biases)
    assert (odd, again) == (False, False)
    thirds = [shared[(SUMS_AT + LANE * 16) // 4 + at] for at in range(3)]
    left = wide(x).astype(np.float64).reshape(8, 8, 64).sum(2)
    for group in range(2):
        total = sum(wide(third >> np.uint32(16 * group) & 0xFFFF).astype(np.float64) for third in thirds)
        np.testing.assert_allclose(total, left[ROW, 2 * QUARTER + group], atol=1e-5 * size)
    wanted = dense @ wide(x).astype(np.float64).T
    np.testing.assert_allclose(got, wanted, atol=4e-6 * size * np.abs(dense).sum(1).max())


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize(
    "exponents",
    [(47,) * 8, (90,) * 8, (115,) * 8, (-70,) * 8, (-100,) * 8, (-130,) * 8, (0, 110, -110, 46, -50, 60, -132, 20)],
    ids=str,
)
def test_any_number_of_x_is_taken(exponents: Sizes) -> None:
    codes, drawn, scales, biases, dense = _drawn(2)
    drawn[4, :] *= np.where(np.arange(512) % 2, 1.0, 2.0**-20)
    x = narrow(drawn * 2.0 ** np.array(exponents, np.float64)[:, None])
    got, odd, again, _ = _multiplied(codes, x, scales, biases)
    assert (odd, again) == (True, True)
    wanted = dense @ wide(x).astype(np.float64).T
    room = np.abs(dense) @ np.abs(wide(x).astype(np.float64)).T
    # Results that are subnormal have the spacing of those.
    assert (np.abs(got - wanted) <= 4e-6 * room + 2.0**-149).all()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:overflow:RuntimeWarning")
def test_an_infinity_and_a_row_of_zeros_stay_in_their_rows() -> None:
    codes, drawn, scales, biases, dense = _drawn(3)
    drawn[2] = 0
    x = narrow(drawn)
    x[5, 77] = 0x7F80
    x[6, 300] = 0x7FC0
    got, odd, again, _ = _multiplied(codes, x, scales, biases)
    assert (odd, again) == (True, False)  # nothing is gained by multiplying them
    assert not np.isfinite(got[:, 5:7]).any()
    assert (got[:, 2] == 0).all()
    others = [0, 1, 3, 4, 7]
    wanted = dense @ wide(x[others]).astype(np.float64).T
    np.testing.assert_allclose(got[:, others], wanted, atol=4e-6 * np.abs(dense).sum(1).max())


@pytest.mark.parametrize("wavefronts", [2, 4, 8])
def test_wavefronts_that_share_a_tile_add_up_what_they_have(wavefronts: int) -> None:
    own = np.random.default_rng(4).standard_normal((wavefronts, 4, 32)).astype(np.float32)
    shared = np.full(wavefronts * 128, 0x7FC00000, np.uint32)
    # The first wavefront last: nothing waits here.
    for wavefront in reversed(range(wavefronts)):
        place = LANE * 16 + 512 * wavefront
        operands = [*bits_of(own[wavefront]), *[place] * 4, *[LANE * 16] * 4, *[np.full(32, 3)] * 4]
        got = Wavefront(operands, shared=shared).run(blocks.shared(wavefronts))
    wanted = own[0]
    for more in own[1:]:  # in the order of wavefronts, whichever comes first
        wanted = wanted + more
    np.testing.assert_array_equal([one.view(np.float32) for one in got], wanted)


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, batch=1, rows=8, columns=14336, depth=4096)
    return plain._replace(**change)


def _kernel(problem: Problem, target: Target) -> str:
    return select.select(OP, problem, target, "triton").implementation


def _record(problem: Problem) -> Config:
    kind = skinny_gemm_persistent.depth_class(problem)
    return config_for("quantized_matmul", "skinny_gemm_persistent", kind, H200)


@pytest.mark.parametrize(
    "change",
    [
        {}, {"rows": 1}, {"rows": 2}, {"group_size": 128}, {"depth": 5120}, {"depth": 8192}, {"columns": 4096},
        {"columns": 6144},
        {"columns": 8192, "depth": 2048}, {"columns": 19456, "depth": 2560}, {"columns": 4096, "depth": 8192},
    ],
    ids=str,
)  # fmt: skip
def test_one_to_eight_rows_against_many_weights_take_the_kernel(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert _kernel(_problem(**change), H200) == "skinny_gemm_persistent"


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp4", "group_size": 32}, {"bits": 8}, {"group_size": 32}, {"batch": 2},
        {"transpose": False}, {"rows": 9}, {"columns": 14344}, {"depth": 4096 + 256}, {"columns": 2048},
        {"depth": 14336}, {"columns": 5120, "depth": 5120}, {"columns": 3584, "depth": 3584}, {"columns": 32},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert _kernel(_problem(**change), H200) != "skinny_gemm_persistent"


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert _kernel(_problem(), by_name(name)) != "skinny_gemm_persistent"


@pytest.mark.parametrize("columns", [16, 4096, 14336, 28672, 151936])
@pytest.mark.parametrize("depth", [512, 1536, 4096, 5120, 7168, 8192])
def test_every_tile_is_some_wavefronts(columns: int, depth: int) -> None:
    problem = _problem(columns=columns, depth=depth)
    walk = skinny_gemm_persistent.walk_of(problem, 132)
    assert depth % (walk.slices * skinny_gemm_persistent.SLICE) == 0
    assert walk.slices * walk.side == skinny_gemm_persistent.WARPS == _record(problem)["num_warps"]
    tiles, at_once = columns // 16, walk.programs * walk.side
    assert at_once * walk.rounds >= tiles > at_once * (walk.rounds - 1)
    # What Triton can have wavefronts of.
    assert walk.slices * walk.side & (walk.slices * walk.side - 1) == 0


def _launched(x: Any, scales: Any) -> executor.Launch:
    """Return the launch for tensors at some addresses."""
    problem = _problem(rows=3, columns=64, depth=2048)
    w = torch.zeros(64, 256, dtype=torch.int32)
    recorder = executor.Recorder(H200)
    with executor.using(recorder):
        host.skinny_gemm_persistent(x, w, scales, scales, Format("affine", 4, 64), problem)
    (launch,) = recorder.launches
    return launch


def test_tensors_at_odd_addresses_take_the_other_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(backends, "MEASURED", True)
    kernels = "rocmend.kernels.ops.matmul.quantized_matmul.kernels"
    own = "rocmend.kernels.backends.hopper.quantized_matmul.kernels"
    walking = importlib.import_module(f"{own}.skinny_gemm_persistent").skinny_gemm_persistent_kernel
    lanes = importlib.import_module(f"{kernels}.lanes").lanes_kernel
    x, scales = torch.zeros(3, 2056, dtype=torch.bfloat16), torch.zeros(64 * 32 + 1, dtype=torch.bfloat16)
    at_start = scales[:-1].view(64, 32)
    launch = _launched(x[:, :2048], at_start)
    assert launch.kernel is walking
    # All that it takes is given: what is not there by position has to be a constant.
    assert len(launch.args) + len(launch.constants) == len(walking.arg_names)
    assert _launched(x[:, 1:2049], at_start).kernel is lanes
    assert _launched(x[:, :2048], scales[1:].view(64, 32)).kernel is lanes
    # Rows of x that do not stand at multiples of 16 bytes.
    assert _launched(torch.zeros(3, 2049, dtype=torch.bfloat16)[:, :2048], at_start).kernel is lanes
