"""Cross-entropy against torch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("numpy")

from rocmend.core.errors import UsageError
from rocmend.kernels import cross_entropy, cross_entropy_backward, select

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("classes", [11, 9000])
def test_losses_and_gradients_are_torch_s(classes: int, smoothing: float) -> None:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(4, classes, generator=generator).requires_grad_()
    targets = torch.tensor([1, -100, classes - 1, 0])
    mine = cross_entropy(x, targets, label_smoothing=smoothing)
    theirs = torch.nn.functional.cross_entropy(x, targets, reduction="none", label_smoothing=smoothing)
    torch.testing.assert_close(mine, theirs, rtol=2e-6, atol=2e-6)
    upper = torch.tensor([1.0, 2.0, -3.0, 0.5])
    (dmine,), (dtheirs,) = (torch.autograd.grad(one, x, upper) for one in (mine, theirs))
    torch.testing.assert_close(dmine, dtheirs, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("tier", ["reference", "triton"])
@pytest.mark.parametrize("classes", [5, 9000])
def test_large_logits_do_not_hide_their_gaps(classes: int, tier: str) -> None:
    x = torch.randint(0, 64, (3, classes), generator=torch.Generator().manual_seed(6)) / 8.0
    targets = torch.tensor([0, classes - 1, 2])
    exact = x.double().requires_grad_()
    wanted = torch.nn.functional.cross_entropy(exact, targets, reduction="none")
    (slope,) = torch.autograd.grad(wanted.sum(), exact)
    large = (x + float(1 << 20)).requires_grad_()  # exact in float32: what is lost is lost in the loss
    with select.prefer(tier):
        found = cross_entropy(large, targets)
        (own,) = torch.autograd.grad(found.sum(), large)
        again = cross_entropy_backward(torch.ones(3), large.detach(), targets)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)
    for gradient in (own, again):
        torch.testing.assert_close(gradient.double(), slope, rtol=1e-5, atol=1e-6)


def test_a_class_that_is_not_there_gives_nan() -> None:
    loss = cross_entropy(torch.zeros(2, 3), torch.tensor([7, 1]))
    assert bool(loss[0].isnan())
    assert bool(loss[1].isfinite())


def test_says_what_does_not_fit() -> None:
    with pytest.raises(UsageError, match="leading axes"):
        cross_entropy(torch.zeros(2, 3), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(UsageError, match="integer type"):
        cross_entropy(torch.zeros(2, 3), torch.zeros(2))
    with pytest.raises(UsageError, match="from 0 to 1"):
        cross_entropy(torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64), label_smoothing=2.0)
