"""Recorded convolutions that cuDNN computes: with which sizes and numbers it is asked, held against torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.kernels.native_driver import driving
from tests.kernels.native_libraries import Convolutions
from tests.kernels.test_conv_vendor_plans import CASES, Case

from rocmend import kernels
from rocmend.kernels import captured, executor, native, select
from rocmend.kernels.native import cudnn as native_cudnn
from rocmend.kernels.ops.conv.conv import cudnn, function

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(native.module() is None, reason="no C compiler here")]
CALLS = 4
"""As it is written, recorded, and from the record twice."""


class _Torchs:
    """Torch's settings; it is taken to give cuDNN whatever it is asked about."""

    def __init__(self) -> None:
        self.enabled, self.benchmark, self.deterministic, self.always = True, False, False, False

    def __contains__(self, _one: Any) -> bool:
        return True

    def told(self) -> list[Callable[..., Any]]:
        """Return what stands for torch's functions."""
        names = ("enabled", "benchmark", "deterministic", "always")
        return [lambda *_: None, lambda *_: None, *[lambda name=name: getattr(self, name) for name in names]]


@pytest.fixture
def torchs(monkeypatch: pytest.MonkeyPatch) -> _Torchs:
    made = _Torchs()
    monkeypatch.setattr(cudnn, "_TORCHS", made.told())
    monkeypatch.setattr(cudnn, "_given", made)
    return made


@pytest.fixture
def library(torchs: _Torchs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Convolutions]:
    del torchs
    made = Convolutions()
    monkeypatch.setattr(native_cudnn, "plan", made.of)
    monkeypatch.setattr(captured, "capturing_device", lambda: None if executor.switch.active is None else 0)
    for _ in driving(monkeypatch):
        with select.prefer("vendor"):
            yield made


def _normal(shape: tuple[int, ...], dtype: Any) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape) + shape[0])).to(dtype)


def _held(call: Callable[[], Any], wanted: Any) -> None:
    for _ in range(CALLS):
        out = call()
        assert out.is_contiguous()
        torch.testing.assert_close(out.double(), wanted, rtol=1e-2, atol=2e-2)


def _executed(library: Convolutions) -> int:
    return sum(call[0] == "execute" for call in library.calls)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("case", [one for one in CASES if one.dilation == 1])
def test_forward_and_both_gradients(case: Case, dtype: Any, library: Convolutions) -> None:
    x, weight = _normal(case.x, dtype), _normal(case.weight, dtype)
    first, filters = (one.double().movedim(-1, 1).requires_grad_() for one in (x, weight))
    torchs = getattr(torch.nn.functional, f"conv{x.dim() - 2}d")
    wanted = torchs(first, filters, None, case.stride, case.padding, 1, case.groups)
    above = _normal(tuple(wanted.movedim(1, -1).shape), dtype)
    by_x, by_weight = torch.autograd.grad(wanted, (first, filters), above.double().movedim(-1, 1))
    options: dict[str, Any] = {"stride": case.stride, "padding": case.padding, "groups": case.groups}
    geometry = function._geometry(x, weight, None, (case.stride, case.padding, 1, 1, case.groups, False))
    five = function._five
    _held(lambda: kernels.conv_general(x, weight, **options), wanted.detach().movedim(1, -1))
    _held(
        lambda: kernels.conv_weight_gradient(x, above, case.weight[1:-1], **options), by_weight.movedim(1, -1)
    )  # fmt: skip
    _held(lambda: function.input_gradient(five(above), five(weight), geometry), five(by_x.movedim(1, -1)))
    assert [one.direction for one in library.planned] == ["forward", "weight", "input"]
    assert _executed(library) == 3 * (CALLS - 1)


@pytest.mark.parametrize(("stride", "padding", "extra"), [(1, 1, 0), (2, 1, 1), ((2, 1), (0, 1), 0)])
def test_transposed_ones_have_their_weight_turned(stride: Any, padding: Any, extra: int, library: Convolutions) -> None:
    x, weight = _normal((2, 5, 4, 6), torch.float16), _normal((8, 3, 3, 6), torch.float16)
    wanted = torch.nn.functional.conv_transpose2d(
        x.double().movedim(-1, 1), weight.double().permute(3, 0, 1, 2), None, stride, padding, extra
    )
    _held(
        lambda: kernels.conv_transpose2d(x, weight, stride=stride, padding=padding, output_padding=extra),
        wanted.movedim(1, -1),
    )
    assert [one.direction for one in library.planned] == ["input"]
    assert _executed(library) == CALLS - 1


def test_a_bias_is_added_to_what_cudnn_wrote(library: Convolutions) -> None:
    x, weight, bias = (_normal(shape, torch.float16) for shape in ((2, 9, 8, 6), (8, 3, 3, 6), (16,)))
    first, filters = x.movedim(-1, 1), weight.movedim(-1, 1)
    for some, executed in ((bias[:8], CALLS - 1), (bias[::2], 0)):
        before = _executed(library)
        wanted = torch.nn.functional.conv2d(first, filters, some).movedim(1, -1).double()
        _held(lambda some=some: kernels.conv2d(x, weight, some), wanted)  # type: ignore[misc]
        assert _executed(library) - before == executed


def test_other_settings_and_odd_addresses_are_torchs(library: Convolutions, torchs: _Torchs) -> None:
    x, weight = (_normal(shape, torch.float16) for shape in ((2, 9, 8, 6), (8, 3, 3, 6)))
    plain = torch.nn.functional.conv2d(x.movedim(-1, 1), weight.movedim(-1, 1)).movedim(1, -1).double()
    _held(lambda: kernels.conv2d(x, weight), plain)
    before = _executed(library)
    assert before == CALLS - 1
    for name in ("enabled", "benchmark", "deterministic", "always"):
        setattr(torchs, name, not getattr(torchs, name))
        _held(lambda: kernels.conv2d(x, weight), plain)
        setattr(torchs, name, not getattr(torchs, name))
    odd = torch.empty(x.numel() + 1, dtype=x.dtype)[1:].view(x.shape).copy_(x)
    _held(lambda: kernels.conv2d(odd, weight), plain)
    assert _executed(library) == before
    kernels.conv2d(x, weight)
    assert _executed(library) == before + 1


def test_without_a_plan_torch_computes(library: Convolutions, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> Any:
        raise native_cudnn.Refused("no engine is fit")

    monkeypatch.setattr(native_cudnn, "plan", none)
    x, weight = _normal((2, 9, 8, 6), torch.float16), _normal((8, 3, 3, 6), torch.float16)
    wanted = torch.nn.functional.conv2d(x.movedim(-1, 1), weight.movedim(-1, 1)).movedim(1, -1).double()
    _held(lambda: kernels.conv2d(x, weight), wanted)
    assert not library.calls


def test_what_torch_does_not_hand_over_as_it_is_is_not_asked_for() -> None:
    x, weight = torch.empty(2, 9, 8, 6, dtype=torch.float16), torch.empty(8, 3, 3, 6, dtype=torch.float16)

    def asked(x: Any, weight: Any, options: tuple[Any, ...] = (1, 0, 1, 1, 1, False)) -> Any:
        geometry = function._geometry(x, weight, None, options)
        return cudnn.convolution("forward", x, weight, geometry.axes[1:], geometry)

    assert asked(x, weight) == cudnn.Convolution(
        "forward", torch.float16, (2, 6, 9, 8), (8, 6, 3, 3), (2, 8, 7, 6), (1, 1), (0, 0)
    )
    assert asked(x.float(), weight.float()) is None
    assert asked(x.transpose(1, 2), weight) is None
    assert asked(x[:0], weight) is None
    for options in ((1, 0, 2, 1, 1, False), (1, 0, 1, 2, 1, False), (1, -1, 1, 1, 1, False), (1, 0, 1, 1, 1, True)):
        assert asked(x, weight, options) is None
