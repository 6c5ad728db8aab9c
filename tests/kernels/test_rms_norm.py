"""RMSNorm, with and without a residual, against MLX and torch's autograd."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("numpy")

from tests.kernels.norms_golden import DTYPES, assert_as_mlx, golden

from rocmend.core.errors import UsageError
from rocmend.kernels import add_rms_norm, rms_norm
from rocmend.kernels.ops.rowwise.rms_norm.function import rms_norm_backward
from rocmend.kernels.select import prefer
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced

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


@pytest.mark.parametrize(
    "record",
    [
        {"EARLY": True},
        {"EARLY": True, "RELOAD": True},
        {"RELOAD": True},
        {"EARLY": True, "full": True},
        {"full": True, "tile_added": 64},
    ],
)
@pytest.mark.parametrize("shape", [(5, 33), (4, 64), (3, 64)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_records_change_no_bit(dtype: str, shape: tuple[int, int], record: dict[str, bool]) -> None:
    """What other GPUs' records ask of the kernel: in the interpreter no record of its own does."""
    x, r = (torch.randn(shape).to(getattr(torch, dtype)) for _ in range(2))
    w = torch.randn(shape[1]).to(x.dtype)
    for weight in (w, None):
        with prefer("triton"):
            plain = (rms_norm(x, weight, 1e-5), *add_rms_norm(x, r, weight, 1e-5))
            with forced("rms_norm", "held", Config({"tile": 128, **record})):
                other = (rms_norm(x, weight, 1e-5), *add_rms_norm(x, r, weight, 1e-5))
        assert all(torch.equal(one, two) for one, two in zip(plain, other, strict=True))


@pytest.mark.parametrize("reload_from", [16, 1 << 30])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_by_other_records_are_the_same(dtype: str, reload_from: int) -> None:
    x, upper = (torch.randn(5, 33).to(getattr(torch, dtype)) for _ in range(2))
    w = torch.randn(33).to(x.dtype)
    common = {"tile": 64, "programs_per_unit": 1}
    with prefer("triton"):
        with forced("rms_norm", "backward", Config({**common, "STAGES": 1})):
            plain = rms_norm_backward(upper, x, w, 1e-5)
        more = {"STAGES": 4, "reload_from": reload_from, "AGAIN": True, "STREAM": True}
        with forced("rms_norm", "backward", Config({**common, **more})):
            other = rms_norm_backward(upper, x, w, 1e-5)
    assert all(torch.equal(one, two) for one, two in zip(plain, other, strict=True))


def test_says_what_does_not_fit() -> None:
    with pytest.raises(UsageError, match="at least 1 axis"):
        rms_norm(torch.tensor(1.0), None, 1e-5)
    with pytest.raises(UsageError, match="weight of shape"):
        rms_norm(torch.zeros(2, 3), torch.zeros(4), 1e-5)
    with pytest.raises(UsageError, match="floating type"):
        rms_norm(torch.zeros(2, 3, dtype=torch.int32), None, 1e-5)
    with pytest.raises(UsageError, match="one shape and type"):
        add_rms_norm(torch.zeros(2, 3), torch.zeros(3, 3), None, 1e-5)
