"""LayerNorm against MLX and torch's autograd."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("numpy")

from tests.kernels.norms_golden import DTYPES, assert_as_mlx, golden

from rocmend.core.errors import UsageError
from rocmend.kernels import layer_norm
from rocmend.kernels.select import prefer
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced

pytestmark = [pytest.mark.cpu]


@pytest.mark.parametrize("tier", ["triton", "reference"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounds_as_mlx(dtype: str, tier: str) -> None:
    x, w, b = (golden(dtype, name) for name in "xwb")
    with prefer(tier):
        out = layer_norm(x, None, None, 1e-5)
        wanted = golden(dtype, "layer_plain")
        out_weighted = layer_norm(x, w, b, 1e-5)
    if dtype == "float32":  # the mean and the bias cancel: units of the result say nothing
        torch.testing.assert_close(out, wanted, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(out_weighted, golden(dtype, "layer"), rtol=1e-6, atol=1e-6)
    else:
        assert_as_mlx(out, wanted, ulps=0)
        assert_as_mlx(out_weighted, golden(dtype, "layer"), ulps=0)


def test_gradients_are_autograd_s() -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(5, 33, generator=generator).requires_grad_()
    w, b = (torch.randn(33, generator=generator).requires_grad_() for _ in range(2))
    mine = torch.autograd.grad(layer_norm(x, w, b, 1e-5).sin().sum(), (x, w, b))
    theirs = torch.autograd.grad(torch.nn.functional.layer_norm(x, (33,), w, b, 1e-5).sin().sum(), (x, w, b))
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("record", [{"reload": True}, {"again_from": 16}, {"full": True}])
@pytest.mark.parametrize("shape", [(5, 33), (4, 64)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_records_change_no_bit(dtype: str, shape: tuple[int, int], record: dict[str, int]) -> None:
    """What other GPUs' records ask of the kernel: in the interpreter no record of its own does."""
    x = torch.randn(shape).to(getattr(torch, dtype))
    w, b = (torch.randn(shape[1]).to(x.dtype) for _ in range(2))
    for weight, bias in ((w, b), (w, None), (None, None)):
        with prefer("triton"):
            plain = layer_norm(x, weight, bias, 1e-5)
            with forced("layer_norm", "held", Config({"tile": 128, **record})):
                assert torch.equal(layer_norm(x, weight, bias, 1e-5), plain)


def test_says_what_does_not_fit() -> None:
    with pytest.raises(UsageError, match="bias of shape"):
        layer_norm(torch.zeros(2, 3), None, torch.zeros(4), 1e-5)
