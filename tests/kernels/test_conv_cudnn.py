"""The direct way to cuDNN: when it is taken, with which numbers; and plans that have it, against torch."""

from __future__ import annotations

import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels.ops.conv.conv import cudnn, function
from rocmend.kernels.ops.conv.conv import vendor_plans as plans

pytestmark = pytest.mark.cpu
ONES, ZEROS = [1, 1], [0, 0]


class _OnGpu:
    """Stands for a tensor on an NVIDIA GPU."""

    is_cuda = True

    def __init__(self, *shape: int) -> None:
        self.like = torch.empty(shape, device="meta")

    def dim(self) -> int:
        return int(self.like.dim())

    def is_contiguous(self, memory_format: Any) -> bool:
        return bool(self.like.is_contiguous(memory_format=memory_format))


class _Torch:
    """Torch's choice and settings, and its functions of cuDNN, which note what they are given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.enabled, self.benchmark, self.deterministic, self.always = True, False, False, False
        self.backend, self.format = "Cudnn", torch.channels_last
        self.calls: list[tuple[Any, ...]] = []
        told: list[Any] = [
            lambda *_: type("Backend", (), {"name": self.backend}), lambda *_: self.format, lambda: self.enabled,
            lambda: self.benchmark, lambda: self.deterministic, lambda: self.always,
        ]  # fmt: skip
        monkeypatch.setattr(cudnn, "_TORCHS", told)
        monkeypatch.setattr(torch.version, "hip", None)
        for name in ("cudnn_convolution", "cudnn_convolution_transpose"):
            monkeypatch.setattr(torch, name, functools.partial(self._called, name))

    def _called(self, *args: Any, **more: Any) -> None:
        self.calls.append((*args, *more.values()))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> _Torch:
    return _Torch(monkeypatch)


def _on_gpu(*shape: int) -> Any:
    return _OnGpu(*shape)


def _last(*shape: int) -> Any:
    made = _on_gpu(*shape)
    made.like = made.like.contiguous(memory_format=torch.channels_last)
    return made


def test_numbers_stand_where_torch_has_them(fake: _Torch) -> None:
    x, weight = _last(2, 6, 9, 8), _last(4, 6, 3, 3)
    call, out = cudnn.forward(x, weight, [2, 1], [0, 1], ONES, ZEROS, 1), _last(2, 4, 2, 8)
    assert call is not None
    assert call(x, weight, out)
    fake.benchmark, fake.always = True, True
    assert call(x, weight, out)
    first, second = fake.calls
    assert first == ("cudnn_convolution", x, weight, [0, 1], [2, 1], ONES, 1, False, False, False, out)
    assert second == ("cudnn_convolution", x, weight, [0, 1], [2, 1], ONES, 1, True, True, False, out)
    fake.enabled = False
    assert not call(x, weight, out)
    assert len(fake.calls) == 2


def test_numbers_of_transposed_ones(fake: _Torch) -> None:
    fake.backend, fake.deterministic = "CudnnTranspose", True
    x, weight = _last(2, 6, 9, 8), _last(6, 4, 3, 3)
    call = cudnn.transposed(x, weight, [2, 2], [1, 1], ONES, [0, 1], 2)
    assert call is not None
    call(x, weight)
    expected = ("cudnn_convolution_transpose", x, weight, [1, 1], [0, 1], [2, 2], ONES, 2, False, True, False)
    assert fake.calls == [expected]
    fake.enabled = False
    assert call(x, weight) is None


@pytest.mark.parametrize(
    "change",
    [{"backend": "CudaDepthwise2d"}, {"format": torch.contiguous_format}, {"backend": "CudnnTranspose"}],
)
def test_torch_chooses_otherwise(fake: _Torch, change: dict[str, Any]) -> None:
    vars(fake).update(change)
    x = _last(2, 6, 9, 8)
    assert cudnn.forward(x, x, ONES, ZEROS, ONES, ZEROS, 1) is None


@pytest.mark.usefixtures("fake")
def test_others_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    last, first, line = _last(2, 6, 9, 8), _on_gpu(2, 6, 9, 8), _on_gpu(2, 6, 9)
    on_cpu = torch.empty(2, 6, 9, 8).contiguous(memory_format=torch.channels_last)
    assert cudnn.forward(last, last, ONES, ZEROS, ONES, ZEROS, 1) is not None
    assert cudnn.forward(last, last, ONES, ZEROS, [1, 2], ZEROS, 1) is None
    for one in (first, line, on_cpu):
        assert cudnn.forward(one, one, ONES, ZEROS, ONES, ZEROS, 1) is None
    monkeypatch.setattr(torch.version, "hip", "7.0")
    assert cudnn.forward(last, last, ONES, ZEROS, ONES, ZEROS, 1) is None


@pytest.mark.parametrize("works", [True, False])
def test_plans_with_a_direct_way(works: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it computes or hands back: the output and the input's gradient are torch's, with bias and without."""
    taken = []

    def forward(_x: Any, _weight: Any, stride: Any, padding: Any, dilation: Any, extra: Any, groups: int) -> Any:
        def call(x: Any, weight: Any, out: Any) -> bool:
            taken.append("forward")
            if works:
                out.copy_(torch.convolution(x, weight, None, stride, padding, dilation, False, extra, groups))
            return works

        return call

    def transposed(_x: Any, _weight: Any, stride: Any, padding: Any, dilation: Any, extra: Any, groups: int) -> Any:
        def call(x: Any, weight: Any) -> Any:
            taken.append("transposed")
            if not works:
                return None
            out = torch.convolution(x, weight, None, stride, padding, dilation, True, extra, groups)
            return out.contiguous(memory_format=torch.channels_last)

        return call

    monkeypatch.setattr(cudnn, "forward", forward)
    monkeypatch.setattr(cudnn, "transposed", transposed)
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(shape, generator=generator) for shape in ((2, 9, 8, 6), (8, 3, 3, 3), (8,)))
    geometry = function._geometry(x, weight, bias, (2, 1, 1, 1, 2, False))
    first, filters = x.movedim(-1, 1).requires_grad_(), weight.movedim(-1, 1)
    wanted = torch.nn.functional.conv2d(first, filters, None, 2, 1, 1, 2)
    above = torch.randn(wanted.shape, generator=generator)
    (by_x,) = torch.autograd.grad(wanted, first, above)
    ahead = plans.plan_forward(x, weight, geometry)
    back = plans.plan_input_gradient(function._five(above.movedim(1, -1)), function._five(weight), geometry)
    assert ahead is not None
    assert back is not None
    for given in (None, bias):
        out = ahead(x, weight, given)
        assert out.is_contiguous()
        torch.testing.assert_close(out, wanted.detach().movedim(1, -1) + (0 if given is None else bias))
    out = back(function._five(above.movedim(1, -1)), function._five(weight))
    assert out.is_contiguous()
    torch.testing.assert_close(out, function._five(by_x.movedim(1, -1)))
    assert taken == ["forward", "forward", "transposed"]


@pytest.mark.parametrize("works", [True, False])
def test_transposed_plans_with_a_direct_way(works: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def transposed(_x: Any, _weight: Any, stride: Any, padding: Any, dilation: Any, extra: Any, groups: int) -> Any:
        def call(x: Any, weight: Any) -> Any:
            taken.append(x.shape)
            if not works:
                return None
            out = torch.convolution(x, weight, None, stride, padding, dilation, True, extra, groups)
            return out.contiguous(memory_format=torch.channels_last)

        return call

    monkeypatch.setattr(cudnn, "transposed", transposed)
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(shape, generator=generator) for shape in ((2, 5, 4, 6), (8, 3, 3, 6), (8,)))
    geometry = function._geometry(x, weight, bias, (1, ((1, 1), (2, 2)), 1, 2, 1, True))
    call = plans.plan_forward(x, weight, geometry)
    assert call is not None
    for given in (None, bias):
        wanted = torch.nn.functional.conv_transpose2d(x.movedim(-1, 1), weight.permute(3, 0, 1, 2), given, 2, 1, 1)
        out = call(x, weight, given)
        assert out.is_contiguous()
        torch.testing.assert_close(out, wanted.movedim(1, -1))
    assert taken == [(2, 6, 5, 4)] * 2
