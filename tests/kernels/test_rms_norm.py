"""RMSNorm, with and without a residual, against MLX and torch's autograd."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("numpy")

from tests.kernels.norms_golden import DTYPES, assert_as_mlx, golden

from rocmend.core.errors import UsageError
from rocmend.kernels import add_rms_norm, rms_norm
from rocmend.kernels.choose import prefer

pytestmark = [pytest.mark.cpu]


@pytest.mark.parametrize("tier", ["triton", "reference"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounds_as_mlx(dtype: str, tier: str) -> None:
    x, w = golden(dtype, "x"), golden(dtype, "w")
    with prefer(tier):
        # Half types agree bit for bit: both round after normalising and after weighting.
        assert_as_mlx(rms_norm(x, w, 1e-5), golden(dtype, "rms"), ulps=4 if dtype == "float32" else 0)
        assert_as_mlx(rms_norm(x, None, 1e-5), golden(dtype, "rms_plain"), ulps=4 if dtype == "float32" else 0)


def test_gradients_are_mlx_s() -> None:
    x, w = golden("float32", "x").requires_grad_(), golden("float32", "w").requires_grad_()
    upper = torch.arange(x.numel()).reshape(x.shape).float().cos()
    rms_norm(x, w, 1e-5).backward(upper)
    assert x.grad is not None
    assert w.grad is not None
    torch.testing.assert_close(x.grad, golden("float32", "rms_dx"), rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(w.grad, golden("float32", "rms_dw"), rtol=1e-5, atol=2e-6)


def test_residual_gradients_are_autograd_s() -> None:
    generator = torch.Generator().manual_seed(1)
    x, r = (torch.randn(5, 33, generator=generator).requires_grad_() for _ in range(2))
    w = torch.randn(33, generator=generator).requires_grad_()
    out, total = add_rms_norm(x, r, w, 1e-5)
    mine = torch.autograd.grad((out.sin() + total.square()).sum(), (x, r, w))
    total = x + r
    out = torch.nn.functional.rms_norm(total, (33,), w, 1e-5)
    theirs = torch.autograd.grad((out.sin() + total.square()).sum(), (x, r, w))
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5)


def test_says_what_does_not_fit() -> None:
    with pytest.raises(UsageError, match="at least 1 axis"):
        rms_norm(torch.tensor(1.0), None, 1e-5)
    with pytest.raises(UsageError, match="weight of shape"):
        rms_norm(torch.zeros(2, 3), torch.zeros(4), 1e-5)
    with pytest.raises(UsageError, match="floating type"):
        rms_norm(torch.zeros(2, 3, dtype=torch.int32), None, 1e-5)
    with pytest.raises(UsageError, match="one shape and type"):
        add_rms_norm(torch.zeros(2, 3), torch.zeros(3, 3), None, 1e-5)
