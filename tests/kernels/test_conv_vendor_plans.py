"""torch's convolutions called with everything known, held against torch with channels first, and its gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels.ops.conv.conv import function
from rocmend.kernels.ops.conv.conv import vendor_plans as plans

pytestmark = pytest.mark.cpu


class Case(NamedTuple):
    """A convolution."""

    x: tuple[int, ...]
    weight: tuple[int, ...]
    stride: Any = 1
    padding: Any = 0
    dilation: Any = 1
    groups: int = 1


CASES = (
    Case((2, 9, 8, 6), (10, 3, 2, 6), 1, 1),
    Case((2, 9, 8, 6), (8, 3, 3, 3), 2, 1, 1, 2),
    Case((2, 9, 6), (12, 3, 3), 2, 1, 1, 2),
    Case((2, 5, 6, 7, 4), (8, 2, 2, 2, 4), (1, 2, 1), (0, 1, 1)),
    Case((1, 1, 8, 6), (10, 1, 3, 6), 1, (0, 1)),
    Case((1, 8, 1, 6), (10, 3, 1, 6), 2, (1, 0)),
    Case((2, 9, 8, 6), (6, 3, 3, 1), 1, 2, 2, 6),
    Case((1, 1, 1, 6), (10, 1, 1, 6)),
)


def _seen_last(tensor: Any) -> Any:
    return tensor.movedim(1, -1)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_forward_and_both_gradients(case: Case, dense: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (
        torch.randn(shape, dtype=torch.float64, generator=generator) for shape in (case.x, case.weight, case.weight[:1])
    )
    if not dense:
        x = x.transpose(1, -1).contiguous().transpose(1, -1)
        weight = weight.transpose(0, -1).contiguous().transpose(0, -1)
    geometry = function._geometry(x, weight, bias, (case.stride, case.padding, case.dilation, 1, case.groups, False))
    first, filters = (one.movedim(-1, 1).requires_grad_() for one in (x.detach(), weight.detach()))
    torchs = getattr(torch.nn.functional, f"conv{x.dim() - 2}d")
    wanted = torchs(first, filters, bias, case.stride, case.padding, case.dilation, case.groups)
    above = torch.randn(wanted.shape, dtype=torch.float64, generator=generator)
    by_x, by_weight = torch.autograd.grad(wanted, (first, filters), above)

    forward = plans.plan_forward(x, weight, geometry)
    gradient, five, wide = (function._five(one) for one in (_seen_last(above), x, weight))
    back = plans.plan_input_gradient(gradient, wide, geometry)
    weights = plans.plan_weight_gradient(five, gradient, geometry)
    assert forward is not None
    assert back is not None
    assert weights is not None
    found = (forward(x, weight, bias), back(gradient, wide), weights(five, gradient))
    for out, want in zip(found, (wanted, by_x, by_weight), strict=True):
        assert out.is_contiguous()
        torch.testing.assert_close(out.reshape(_seen_last(want).shape), _seen_last(want))


@pytest.mark.parametrize(("stride", "padding", "extra"), [(1, 0, 0), (2, 1, 1), (3, 0, 0), ((2, 1), (0, 1), (1, 0))])
def test_transposed(stride: Any, padding: Any, extra: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 5, 4, 6, dtype=torch.float64, generator=generator)
    weight = torch.randn(8, 3, 3, 6, dtype=torch.float64, generator=generator)
    wanted = torch.nn.functional.conv_transpose2d(
        x.movedim(-1, 1), weight.permute(3, 0, 1, 2), None, stride, padding, extra
    )
    pairs = [one if isinstance(one, tuple) else (one, one) for one in (stride, padding, extra)]
    (sh, sw), (ph, pw), (eh, ew) = pairs
    ends = (2 - ph, 2 - pw), (2 - ph + eh, 2 - pw + ew)
    geometry = function._geometry(x, weight, None, (1, ends, 1, (sh, sw), 1, True))
    call = plans.plan_forward(x, weight, geometry)
    assert call is not None
    torch.testing.assert_close(call(x, weight, None), _seen_last(wanted))


def test_what_is_no_plain_convolution_is_left_to_others() -> None:
    x, weight = torch.empty(1, 5, 4, 6), torch.empty(8, 3, 3, 3)
    uneven = function._geometry(x, torch.empty(8, 3, 3, 6), None, (1, ((0, 0), (1, 1)), 1, 1, 1, False))
    grouped = function._geometry(x, weight, None, (1, 2, 1, 2, 2, True))
    assert plans.plan_forward(x, weight, uneven) is None
    assert plans.plan_forward(x, weight, grouped) is None
    assert plans.plan_input_gradient(x, weight, uneven) is None
    assert plans.plan_weight_gradient(x, x, uneven) is None
