"""Gated linear units against torch's autograd."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("numpy")

from rocmend.core.errors import UsageError
from rocmend.kernels import geglu, select, swiglu

pytestmark = [pytest.mark.cpu]


@pytest.mark.parametrize("kind", ["silu", "none", "tanh"])
def test_gradients_are_autograd_s(kind: str) -> None:
    both = torch.randn(4, 66, generator=torch.Generator().manual_seed(6)).requires_grad_()
    gate, up = both.chunk(2, -1)
    mine = swiglu(gate, up) if kind == "silu" else geglu(gate, up, approximate=kind)
    functional = torch.nn.functional
    theirs = (functional.silu(gate) if kind == "silu" else functional.gelu(gate, approximate=kind)) * up
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    (dmine,), (dtheirs,) = (torch.autograd.grad(one.sin().sum(), both, retain_graph=True) for one in (mine, theirs))
    torch.testing.assert_close(dmine, dtheirs, rtol=1e-5, atol=2e-6)


def test_says_what_does_not_fit() -> None:
    with pytest.raises(UsageError, match="one shape and type"):
        swiglu(torch.zeros(2), torch.zeros(3))
    with pytest.raises(UsageError, match="none or tanh"):
        geglu(torch.zeros(2), torch.zeros(2), approximate="erf")


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_the_reference_is_right_at_the_ends_of_the_range(approximate: str) -> None:
    """In fp32 torch's gelu gives NaN for inf, and inf for the largest number, where it computes eight at a time."""
    largest = torch.finfo(torch.float32).max
    gate = torch.tensor([largest, -largest, float("inf"), -float("inf"), float("nan"), 3e38, 0.0, -0.0] * 4)
    with select.prefer("reference"):
        out = geglu(gate, torch.ones_like(gate), approximate=approximate)
    wanted = torch.nn.functional.gelu(gate.double(), approximate=approximate).float()
    assert torch.equal(out.isnan(), wanted.isnan())
    torch.testing.assert_close(out, wanted, equal_nan=True)
