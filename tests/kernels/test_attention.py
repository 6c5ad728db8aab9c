"""Attention: real MLX's values, autograd, errors, which implementation is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import numpy as np
from tests.kernels.golden import attention as golden

from rocmend.core.errors import UsageError
from rocmend.kernels import attention_backward, executor, scaled_dot_product_attention, select
from rocmend.kernels.ops.attention.attention import OP, Problem, pairs, split
from rocmend.kernels.ops.attention.attention.arguments import NVIDIA_PIECE, least_piece
from rocmend.kernels.ops.attention.attention.reference import attention
from rocmend.kernels.ops.attention.attention.reference import attention_backward as reference_backward
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config, forced

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
GOLDEN = np.load(Path(__file__).parent / "golden" / "attention.npz")
PROBLEM = Problem("bfloat16", 1, 32, 8, 4096, 4096, 128, 128, "causal")


def _normal(*shape: int, seed: int = 0) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("implementation", ["flash", "decode-split", "reference"])
@pytest.mark.parametrize("name", golden.NAMES)
def test_mlx(name: str, implementation: str) -> None:
    given = {key: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
             for key, value in golden.inputs(name).items()}  # fmt: skip
    few = slice(0, 19 if implementation != "decode-split" else 7)
    if implementation == "decode-split":
        if name in ("causal", "short", "nothing"):
            pytest.skip("its first queries alone are another problem")
        given["q"] = given["q"][:, :, few]
        if given["mask"] is not None and given["mask"].shape[-2] > 1:
            given["mask"] = given["mask"][..., few, :]
    with select.prefer(implementation):
        out = scaled_dot_product_attention(**given)
    np.testing.assert_allclose(out.numpy(), GOLDEN[name][:, :, few], rtol=2e-6, atol=2e-6)


def test_additive_minus_infinity_throughout_is_nan_as_in_mlx() -> None:
    q, k, v = _normal(1, 1, 20, 16), _normal(1, 1, 40, 16, seed=1), _normal(1, 1, 40, 16, seed=2)
    mask = torch.zeros(20, 40)
    mask[3] = float("-inf")
    mask[4, :33] = float("-inf")
    with select.prefer("flash"):
        out = scaled_dot_product_attention(q, k, v, scale=0.25, mask=mask)
    assert out[0, 0, 3].isnan().all()
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.25)
    keep = torch.arange(20) != 3
    torch.testing.assert_close(out[:, :, keep], wanted[:, :, keep], rtol=1e-5, atol=1e-6)


def test_nan_and_infinity_stay_in_their_rows() -> None:
    q, k, v = _normal(1, 2, 40, 16), _normal(1, 1, 40, 16, seed=1), _normal(1, 1, 40, 16, seed=2)
    q[0, 0, 7, 3] = float("nan")
    k[0, 0, 30, 0] = float("inf")
    with select.prefer("flash"):
        out = scaled_dot_product_attention(q, k, v, scale=0.25, mask="causal")
    wanted = attention(q, k, v, scale=0.25, mask="causal")
    assert torch.equal(out.isnan(), wanted.isnan())
    assert out[0, 0, 7].isnan().all()
    assert not out[:, :, :7].isnan().any()
    torch.testing.assert_close(out, wanted, equal_nan=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [-0.3, 0.0, 40.0])
def test_scale_of_any_sign(scale: float) -> None:
    q, k, v = _normal(1, 2, 33, 16), _normal(1, 2, 50, 16, seed=1), _normal(1, 2, 50, 16, seed=2)
    with select.prefer("flash"):
        out = scaled_dot_product_attention(q, k, v, scale=scale)
    wanted = attention(q.double(), k.double(), v.double(), scale=scale)
    torch.testing.assert_close(out.double(), wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("strided", [False, True])
def test_autograd_equals_float64(strided: bool) -> None:
    q, k, v, sinks = _normal(2, 4, 20, 24), _normal(2, 2, 28, 24, seed=1), _normal(2, 2, 28, 40, seed=2), _normal(4)
    if strided:
        q, k, v = (one.transpose(1, 2).contiguous().transpose(1, 2) for one in (q, k, v))
    leaves = [one.requires_grad_() for one in (q, k, v, sinks)]
    mask = torch.rand(20, 28, generator=torch.Generator().manual_seed(3)) > 0.3
    with select.prefer("flash"):
        out = scaled_dot_product_attention(q, k, v, scale=0.2, mask=mask, sinks=sinks, soft_cap=4.0)
        found = torch.autograd.grad(out.sin().sum(), leaves)
    wide = [one.detach().double().requires_grad_() for one in leaves]
    wanted = attention(*wide[:3], scale=0.2, mask=mask, sinks=wide[3], soft_cap=4.0)
    for one, want in zip(found, torch.autograd.grad(wanted.sin().sum(), wide), strict=True):
        torch.testing.assert_close(one.double(), want, rtol=1e-4, atol=1e-5)


def test_a_gradient_that_is_an_expanded_scalar() -> None:
    q, k, v = (_normal(1, 2, 18, 16, seed=seed).requires_grad_() for seed in range(3))
    with select.prefer("flash"):
        found = torch.autograd.grad(scaled_dot_product_attention(q, k, v, scale=0.25, mask="causal").sum(), (q, k, v))
    wanted = reference_backward(torch.ones(1, 2, 18, 16), q, k, v, scale=0.25, mask="causal")
    for one, want in zip(found, wanted[:3], strict=True):
        torch.testing.assert_close(one, want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [16, 80, 100])
def test_head_dimensions_in_pieces(dim: int) -> None:
    q, grad = _normal(1, 2, 21, dim), _normal(1, 2, 21, dim, seed=3)
    k, v = _normal(1, 1, 33, dim, seed=1), _normal(1, 1, 33, dim, seed=2)
    options: dict[str, Any] = {"scale": dim**-0.5, "mask": "causal"}
    pieces = Config({"BLOCK_M": 16, "BLOCK_N": 16, "chunk": 32})
    with select.prefer("flash"), forced("attention", "forward", pieces):
        out, lse = scaled_dot_product_attention(q, k, v, **options, return_lse=True)
        with forced("attention", "dq", pieces), forced("attention", "dkv", pieces):
            found = attention_backward(grad, q, k, v, **options, out=out, lse=lse)
    torch.testing.assert_close(out, attention(q, k, v, **options), rtol=1e-5, atol=1e-5)
    for one, want in zip(found[:3], reference_backward(grad, q, k, v, **options)[:3], strict=True):
        torch.testing.assert_close(one, want, rtol=1e-4, atol=1e-5)


def test_offsets_past_31_bits_are_computed_in_64() -> None:
    recorder = executor.Recorder(by_name("gfx1151"))
    q, k = (torch.empty(1, heads, 64, 1 << 22, device="meta", dtype=torch.bfloat16)[..., :64] for heads in (2, 1))
    with executor.using(recorder), select.prefer("flash"):
        scaled_dot_product_attention(q, k, k, scale=0.1)
        near = torch.empty(1, 2, 64, 64, device="meta", dtype=torch.bfloat16)
        scaled_dot_product_attention(near, near, near, scale=0.1)
    assert [launch.constants["WIDE"] for launch in recorder.launches] == [True, False]


def test_what_has_no_gradient_is_refused() -> None:
    q = _normal(1, 1, 20, 16).requires_grad_()
    with pytest.raises(UsageError, match="additive mask without gradient"):
        scaled_dot_product_attention(q, q, q, scale=1.0, mask=torch.zeros(20, 20, requires_grad=True))
    with pytest.raises(UsageError, match="without gradient with return_lse"):
        scaled_dot_product_attention(q, q, q, scale=1.0, return_lse=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": torch.zeros(4, 5, 16)}, "4 axes"),
        ({"k": torch.zeros(1, 2, 6, 16, dtype=torch.float16)}, "one floating type"),
        ({"v": torch.zeros(1, 2, 7, 16)}, r"expected q \[B, H, L, D\]"),
        ({"k": torch.zeros(1, 2, 6, 8)}, "one head dimension"),
        ({"q": torch.zeros(1, 3, 5, 16)}, "multiple of KV"),
        ({"mask": "full"}, "causal"),
        ({"mask": torch.zeros(5, 7, dtype=torch.bool)}, "broadcasts"),
        ({"mask": torch.zeros(5, 6, dtype=torch.int32)}, "boolean or floating"),
        ({"sinks": torch.zeros(2)}, "sinks of shape"),
        ({"soft_cap": 0.0}, "soft_cap above 0"),
        ({"window": 3}, 'mask "causal" with a window'),
        ({"window": 0, "mask": "causal"}, "at least 1"),
    ],
)
def test_arguments_that_do_not_fit(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "q": torch.zeros(1, 4, 5, 16), "k": torch.zeros(1, 2, 6, 16), "v": torch.zeros(1, 2, 6, 16), "scale": 1.0,
    }  # fmt: skip
    with pytest.raises(UsageError, match=message):
        scaled_dot_product_attention(**{**given, **change})


def test_a_gradient_of_another_shape_is_refused() -> None:
    q = torch.zeros(1, 1, 4, 16)
    with pytest.raises(UsageError, match="expected grad"):
        attention_backward(q[:, :, :3], q, q, q, scale=1.0)


@pytest.mark.parametrize(
    ("target", "change", "wanted"),
    [
        ("sm90", {}, "torch.sdpa"),
        ("gfx942", {}, "torch.sdpa"),
        ("gfx1151", {}, "flash"),
        ("sm90", {"queries": 512, "keys": 512}, "flash"),
        ("sm90", {"queries": 512, "keys": 512, "dim": 80, "dim_v": 80}, "torch.sdpa"),
        ("sm90", {"queries": 64, "keys": 64, "dim": 256, "dim_v": 256}, "torch.sdpa"),
        ("sm90", {"queries": 1024, "keys": 1024}, "torch.sdpa"),
        ("sm80", {"queries": 512, "keys": 512}, "torch.sdpa"),
        ("gfx942", {"queries": 512, "keys": 512}, "torch.sdpa"),
        ("sm90", {"grad": True}, "flash"),
        ("sm90", {"window": 128}, "flash"),
        ("sm90", {"sinks": True}, "flash"),
        ("sm90", {"queries": 100}, "flash"),
        ("sm90", {"mask": "boolean"}, "flash"),
        ("sm90", {"dim_v": 64}, "flash"),
        ("sm90", {"dtype": "float32"}, "flash"),
        ("sm90", {"queries": 1}, "decode-split"),
        ("gfx1151", {"queries": 1, "lse": True}, "flash"),
        ("gfx1151", {"dtype": "float64"}, "torch"),
    ],
)
def test_which_implementation_is_taken(
    target: str, change: dict[str, Any], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", raising=False)
    assert select.select(OP, PROBLEM._replace(**change), by_name(target)).implementation == wanted


def test_torchs_own_gradients_can_be_asked_for() -> None:
    problem = PROBLEM._replace(grad=True)
    assert select.select(OP, problem, by_name("sm90"), "vendor").implementation == "torch.sdpa-training"


def test_vendor_agrees() -> None:
    from rocmend.kernels.ops.attention.attention.vendor import run

    q, k = _normal(2, 4, 9, 16), _normal(2, 2, 9, 16, seed=1)
    torch.testing.assert_close(run(q, k, k, scale=0.3, mask="causal"), attention(q, k, k, scale=0.3, mask="causal"))


def test_no_second_piece_of_16_columns_on_nvidia() -> None:
    assert [split(dim, NVIDIA_PIECE) for dim in (80, 96, 192)] == [(128, 0), (64, 32), (128, 64)]


def test_no_second_piece_for_unaligned_tensors_on_nvidia() -> None:
    whole = torch.empty(1, 2, 5, 97)
    near = (torch.empty(1, 2, 5, 96),)
    sm90 = by_name("sm90")
    assert least_piece((whole[..., :96],), sm90, 3) > 96
    assert least_piece(near, sm90, 1) > 96
    assert least_piece(near, by_name("sm80"), 3) > 96
    assert least_piece(near, sm90, 3) == NVIDIA_PIECE
    assert least_piece((whole[..., :96],), by_name("gfx1151"), 1) == 16


def test_one_piece_takes_the_records_of_its_width() -> None:
    recorder = executor.Recorder(by_name("sm90"))
    q, mask = torch.empty(1, 2, 64, 192, device="meta", dtype=torch.bfloat16), torch.empty(64, 64, device="meta")
    with executor.using(recorder), select.prefer("flash"):
        scaled_dot_product_attention(q, q, q, scale=0.1, mask="causal")
        scaled_dot_product_attention(q, q, q, scale=0.1, mask=mask)
        wide = torch.empty(1, 2, 64, 256, device="meta", dtype=torch.bfloat16)
        scaled_dot_product_attention(wide, wide, wide, scale=0.1)
    two, one, full = recorder.launches
    assert (two.constants["D1"], two.constants["D2"], one.constants["D1"], one.constants["D2"]) == (128, 64, 256, 0)
    assert two.config is not one.config
    assert one.config is full.config


def test_pieces_of_head_dimensions() -> None:
    dims = (1, 16, 24, 48, 64, 80, 96, 100, 112, 128, 192, 256, 576)
    assert [split(dim) for dim in dims] == [
        (16, 0), (16, 0), (32, 0), (64, 0), (64, 0), (64, 16),
        (64, 32), (128, 0), (128, 0), (128, 0), (128, 64), (256, 0),
        (512, 64),
    ]  # fmt: skip


@pytest.mark.parametrize(("queries", "keys", "window"), [(5, 9, 0), (9, 5, 0), (1, 7, 0), (40, 40, 3)])
def test_cost_counts_visible_pairs(queries: int, keys: int, window: int) -> None:
    problem = PROBLEM._replace(queries=queries, keys=keys, window=window)
    i, j = torch.arange(queries)[:, None] + keys - queries, torch.arange(keys)
    seen = (j <= i) & ((j > i - window) if window else True)
    assert pairs(problem) >= int(seen.sum()) >= (0.9 * pairs(problem) if window else pairs(problem))
