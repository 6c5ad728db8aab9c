"""Softmax and logsumexp against MLX and torch's autograd."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("numpy")

from tests.kernels.norms_golden import DTYPES, assert_as_mlx, golden

from rocmend.core.errors import UsageError
from rocmend.kernels import log_softmax, logsumexp, select, softmax

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@pytest.mark.parametrize("dtype", DTYPES)
def test_as_mlx(dtype: str) -> None:
    x, h, o = (golden(dtype, name) for name in "xho")
    # MLX sums in another order; in half types that moves an element over a rounding boundary at most.
    ulps = 8 if dtype == "float32" else 1
    assert_as_mlx(softmax(x, -1, precise=True), golden(dtype, "softmax"), ulps=ulps)
    assert_as_mlx(softmax(h, (1, 2), precise=True), golden(dtype, "softmax_axis"), ulps=ulps)
    assert_as_mlx(softmax(o, -1), golden(dtype, "softmax_odd"), ulps=ulps)
    assert_as_mlx(logsumexp(o, -1), golden(dtype, "lse_odd"), ulps=1)
    if dtype == "float32":  # MLX computes half types in their own type there
        assert_as_mlx(logsumexp(x, -1), golden(dtype, "lse"), ulps=8)
        assert_as_mlx(logsumexp(h, (0, 2)), golden(dtype, "lse_axis"), ulps=8)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("shape", [(4, 9), (2, 20_000)])
def test_gradients_are_autograd_s(name: str, shape: tuple[int, int]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3)).requires_grad_()
    upper = torch.randn(shape, generator=torch.Generator().manual_seed(4))
    upper = upper[:, 0] if name == "logsumexp" else upper
    ours = {"softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp}[name]
    (mine,) = torch.autograd.grad(ours(x, -1), x, upper)
    (theirs,) = torch.autograd.grad(getattr(torch, name)(x, -1), x, upper)
    torch.testing.assert_close(mine, theirs, rtol=2e-5, atol=1e-6 * float(theirs.abs().max()))


def test_says_what_does_not_fit() -> None:
    with pytest.raises(UsageError, match="axes of 2"):
        softmax(torch.zeros(2, 3), 2)
    with pytest.raises(UsageError, match="each axis once"):
        logsumexp(torch.zeros(2, 3), (1, -1))


@pytest.mark.parametrize("tier", ["reference", "triton"])
def test_a_second_derivative_is_refused(tier: str) -> None:
    """The gradient is not recorded: without an error its derivative would lack most of its terms."""
    x = torch.randn(2, 8, requires_grad=True)
    with select.prefer(tier):
        (first,) = torch.autograd.grad(softmax(x, -1).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        first.sum().backward()
