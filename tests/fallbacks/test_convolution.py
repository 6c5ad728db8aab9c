"""The matrix path against PyTorch's native float64 convolution, over shapes of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from rocmend.core.errors import UsageError  # noqa: E402
from rocmend.fallbacks.convolution import convolution, convolution_backward  # noqa: E402

pytestmark = pytest.mark.cpu

TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
relaxed = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Drawn:
    source: tuple[int, ...]
    weight: tuple[int, ...]
    biased: bool
    parameters: tuple[Any, ...]
    channels_last: bool
    limit_bytes: int | None


@st.composite
def convolutions(draw: st.DrawFn) -> Drawn:
    rank = draw(st.integers(1, 3))

    def axes(values: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=rank, max_size=rank))

    groups, transposed = draw(st.sampled_from([1, 1, 2, 3])), draw(st.booleans())
    inside, outside = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 5]))
    stride, dilation = axes(st.integers(1, 3)), axes(st.integers(1, 2))
    extra = [draw(st.integers(0, max(a, b) - 1)) if transposed else 0 for a, b in zip(stride, dilation, strict=True)]
    weight = (inside * groups, outside) if transposed else (outside * groups, inside)
    return Drawn(
        (draw(st.integers(0, 3)), inside * groups, *axes(st.integers(1, 7))),
        (*weight, *axes(st.integers(1, 4))),
        draw(st.booleans()),
        (stride, axes(st.integers(0, 4)), dilation, transposed, extra, groups),
        draw(st.booleans()),
        draw(st.sampled_from([None, 1, 100, 2000])),
    )


def make(drawn: Drawn, dtype: Any) -> tuple[Any, Any, Any]:
    source, weight = (torch.randn(shape, dtype=torch.float64).to(dtype) for shape in (drawn.source, drawn.weight))
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if drawn.channels_last and source.ndim in formats:
        source = source.to(memory_format=formats[source.ndim])
    outputs = drawn.weight[1] * drawn.parameters[5] if drawn.parameters[3] else drawn.weight[0]
    return source, weight, torch.randn(outputs, dtype=torch.float64).to(dtype) if drawn.biased else None


def native(source: Any, weight: Any, bias: Any, parameters: tuple[Any, ...]) -> Any:
    try:
        return torch.ops.aten.convolution.default(
            source.double(), weight.double(), None if bias is None else bias.double(), *parameters
        )
    except RuntimeError:  # not a convolution: an output of no size
        assume(False)
        raise


def close(found: Any, expected: Any, dtype: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == dtype
    if expected.numel():
        error = (found.double() - expected).abs().max() / expected.abs().max().clamp_min(1.0)
        assert error <= TOLERANCE[dtype]


@pytest.mark.slow
@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@relaxed
@given(drawn=convolutions())
def test_forward_and_backward_equal_native_float64(dtype: Any, drawn: Drawn) -> None:
    source, weight, bias = make(drawn, dtype)
    expected = native(source, weight, bias, drawn.parameters)
    close(convolution(source, weight, bias, *drawn.parameters, limit_bytes=drawn.limit_bytes), expected, dtype)
    gradient = torch.randn(expected.shape, dtype=torch.float64).to(dtype)
    sizes: Any = None if bias is None else list(bias.shape)
    mask = [True, True, bias is not None]
    references = torch.ops.aten.convolution_backward.default(
        gradient.double(), source.double(), weight.double(), sizes, *drawn.parameters, mask
    )
    rest: tuple[Any, ...] = (*drawn.parameters, mask)
    found = convolution_backward(gradient, source, weight, sizes, *rest, limit_bytes=drawn.limit_bytes)
    for one, reference, wanted in zip(found, references, mask, strict=True):
        assert (one is not None) == wanted
        if one is not None:
            close(one, reference, dtype)


@pytest.mark.slow
@relaxed
@given(drawn=convolutions())
def test_a_small_workspace_gives_what_a_large_one_gives(drawn: Drawn) -> None:
    source, weight, bias = make(drawn, torch.float64)
    native(source, weight, bias, drawn.parameters)
    whole = convolution(source, weight, bias, *drawn.parameters, limit_bytes=1 << 30)
    torch.testing.assert_close(convolution(source, weight, bias, *drawn.parameters, limit_bytes=1), whole)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_result_has_the_native_memory_format(layout: Any, transposed: bool) -> None:
    source = torch.randn(2, 4, 9, 9).to(memory_format=layout)
    weight = torch.randn(4, 4, 3, 3)
    parameters = ([2, 2], [1, 1], [1, 1], transposed, [0, 0], 1)
    expected = torch.ops.aten.convolution.default(source, weight, None, *parameters)
    assert convolution(source, weight, None, *parameters).stride() == expected.stride()


def test_memory_stays_within_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:

    seen: list[int] = []
    plain = torch.bmm

    def watching(left: Any, right: Any) -> Any:
        seen.append(right.numel() * right.element_size())
        return plain(left, right)

    monkeypatch.setattr(torch, "bmm", watching)
    source, weight = torch.randn(2, 8, 32, 32), torch.randn(8, 8, 3, 3)
    convolution(source, weight, None, [1], [1], [1], False, [0], 1, limit_bytes=64 << 10)
    assert len(seen) > 1
    assert max(seen) <= 64 << 10


def test_a_kernel_larger_than_the_input_is_refused_as_natively() -> None:
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        convolution(torch.randn(1, 1, 2, 2), torch.randn(1, 1, 3, 3), None, [1], [0], [1], False, [0], 1)


def test_a_negative_output_is_refused() -> None:
    with pytest.raises(UsageError, match="no negative size"):
        convolution(torch.randn(1, 1, 2), torch.randn(1, 1, 2), None, [1], [5], [1], True, [0], 1)


@pytest.mark.parametrize(
    ("stride", "padding", "groups", "message"),
    [([0], [0], 1, "stride"), ([1, 1, 1], [0], 1, "stride"), ([1], [-1], 1, "padding"), ([1], [0], 0, "groups")],
)
def test_parameters_out_of_range_are_refused_as_natively(stride: Any, padding: Any, groups: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        convolution(torch.randn(1, 2, 5, 5), torch.randn(2, 2, 3, 3), None, stride, padding, [1], False, [0], groups)
