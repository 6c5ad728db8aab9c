"""torch's convolutions planned once, compared with torch's own functions with channels first and their gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels.ops.conv.conv import function, vendor
from rocmend.kernels.ops.conv.conv.operands import five

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

    def computed(direction: str, one: Any, other: Any, added: Any, shape: Any) -> Any:
        return vendor.plan(direction, five(one), five(other), added, geometry, tuple(shape))(one, other, added)

    gradient = _seen_last(above)
    found = (
        computed("forward", x, weight, bias, gradient.shape),
        computed("input", gradient, weight, None, x.shape),
        computed("weight", x, gradient, None, weight.shape),
    )
    for out, want in zip(found, (wanted, by_x, by_weight), strict=True):
        assert out.is_contiguous()
        torch.testing.assert_close(out, _seen_last(want))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("stride", "padding", "extra"), [(1, 0, 0), (2, 1, 1), (3, 0, 0), ((2, 1), (0, 1), (1, 0))])
def test_transposed(stride: Any, padding: Any, extra: Any, groups: int) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 5, 4, 6, dtype=torch.float64, generator=generator)
    weight = torch.randn(8, 3, 3, 6 // groups, dtype=torch.float64, generator=generator)
    filters = weight.unflatten(0, (groups, -1)).movedim(-1, 1).flatten(0, 1).requires_grad_()
    first = x.movedim(-1, 1).requires_grad_()
    wanted = torch.nn.functional.conv_transpose2d(first, filters, None, stride, padding, extra, groups)
    above = torch.randn(wanted.shape, dtype=torch.float64, generator=generator)
    by_x, by_filters = torch.autograd.grad(wanted, (first, filters), above)
    by_weight = by_filters.unflatten(0, (groups, -1)).movedim(1, -1).flatten(0, 1)
    pairs = [one if isinstance(one, tuple) else (one, one) for one in (stride, padding, extra)]
    (sh, sw), (ph, pw), (eh, ew) = pairs
    ends = (2 - ph, 2 - pw), (2 - ph + eh, 2 - pw + ew)
    geometry = function._geometry(x, weight, None, (1, ends, 1, (sh, sw), groups, True))
    assert geometry.torch_kind == "transposed"
    gradient = _seen_last(above)
    for direction, one, other, want in (
        ("forward", x, weight, _seen_last(wanted)),
        ("input", gradient, weight, _seen_last(by_x)),
        ("weight", x, gradient, by_weight),
    ):
        out = vendor.plan(direction, five(one), five(other), None, geometry, tuple(want.shape))(one, other)
        assert out.is_contiguous()
        torch.testing.assert_close(out, want)


def test_what_is_no_plain_convolution_is_left_to_others() -> None:
    x, weight = torch.empty(1, 5, 4, 6), torch.empty(8, 3, 3, 6)
    for options in ((1, ((0, 0), (1, 1)), 1, 1, 1, False), (2, 2, 1, 2, 1, True), (1, (-1, 0), 1, 1, 1, False)):
        assert function._geometry(x, weight, None, options).torch_kind is None
    assert function._geometry(x[:0], weight, None, (1, 0, 1, 1, 1, False)).torch_kind is None
