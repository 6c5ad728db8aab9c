"""Whoever runs a convolution, and however, comes through the chosen path; afterwards nothing is left."""

from __future__ import annotations

import shutil
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rocmend.core.errors import UsageError  # noqa: E402
from rocmend.fallbacks import conv, safe_conv  # noqa: E402

pytestmark = pytest.mark.cpu
F = torch.nn.functional


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What came through the matrix path: ``f`` and ``b`` for forward and backward."""
    seen: list[str] = []
    for name in ("convolution", "convolution_backward"):
        plain = getattr(conv, name)

        def watching(
            *arguments: Any, plain: Any = plain, mark: str = "b" if "back" in name else "f", **rest: Any
        ) -> Any:
            seen.append(mark)
            return plain(*arguments, **rest)

        monkeypatch.setattr(conv, name, watching)
    return seen


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_modules_come_through(rank: int, transposed: bool, mode: str, calls: list[str]) -> None:
    if transposed and mode != "zeros":
        pytest.skip("PyTorch pads transposed convolutions with zeros only")
    kind = getattr(torch.nn, f"Conv{'Transpose' if transposed else ''}{rank}d")
    padding: Any = 1 if transposed else "same"
    module = kind(4, 6, 3, padding=padding, padding_mode=mode, groups=2).double()
    source = torch.randn(2, 4, *[6] * rank, dtype=torch.float64, requires_grad=True)
    expected = module(source)
    slope = torch.randn_like(expected)
    gradients = torch.autograd.grad(expected, [source, *module.parameters()], slope)
    assert not calls
    with safe_conv("gemm", device="cpu"):
        found = module(source)
        again = torch.autograd.grad(found, [source, *module.parameters()], slope)
    assert calls == ["f", "b"]
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(again, gradients)
    calls.clear()
    module(source).sum().backward()
    assert not calls, "a convolution after the block still came through"


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # forward-mode derivatives compile a script
@pytest.mark.parametrize(
    "function",
    [
        torch.conv2d,
        lambda x, w: F.conv2d(x, w, padding="valid"),
        lambda x, w: torch.convolution(x, w, None, [1], [0], [1], False, [0], 1),
        lambda x, w: torch.ops.aten.convolution.default(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        lambda x, w: torch.func.vmap(F.conv2d, in_dims=(0, None))(x[None], w)[0],
        lambda x, w: torch.func.jvp(lambda one: F.conv2d(one, w), (x,), (x,))[1],
    ],
)
def test_functions_come_through(function: Any, calls: list[str]) -> None:
    x, w = torch.randn(1, 3, 6, 6), torch.randn(2, 3, 3, 3)
    with safe_conv("gemm", device="cpu"):
        found = function(x, w)
    assert calls
    torch.testing.assert_close(found, F.conv2d(x, w))


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_without_gradients(context: Any, calls: list[str]) -> None:
    with safe_conv("gemm", device="cpu"), context():
        F.conv2d(torch.randn(1, 3, 6, 6), torch.randn(2, 3, 3, 3))
    assert calls == ["f"]


def test_autocast_and_16_bits(calls: list[str]) -> None:
    x, w = torch.randn(1, 3, 6, 6), torch.randn(2, 3, 3, 3, requires_grad=True)
    with safe_conv("gemm", device="cpu"), torch.autocast("cpu", torch.bfloat16):
        found = F.conv2d(x, w)
        found.float().sum().backward()
    assert calls == ["f", "b"]
    assert found.dtype is torch.bfloat16
    assert w.grad is not None
    assert w.grad.dtype is torch.float32
    torch.testing.assert_close(found.float(), F.conv2d(x, w), rtol=0.05, atol=0.05)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_other_threads_and_compiled_scripts(calls: list[str]) -> None:
    module = torch.nn.Conv2d(3, 4, 3).requires_grad_(False)
    x = torch.randn(1, 3, 6, 6)
    traced = torch.jit.trace(module, (x,))
    with safe_conv("gemm", device="cpu"):
        thread = threading.Thread(target=module, args=(x,))
        thread.start()
        thread.join()
        traced(x)
    assert calls == ["f", "f"]


@pytest.mark.slow
@pytest.mark.parametrize("transposed", [False, True])
def test_second_derivatives(transposed: bool) -> None:
    function = F.conv_transpose2d if transposed else F.conv2d
    x, w, b = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((1, 2, 4, 4), (2, 2, 3, 3), (2,)))
    with safe_conv("gemm", device="cpu"):
        assert torch.autograd.gradcheck(lambda *t: function(*t, stride=2, padding=1), (x, w, b))
        assert torch.autograd.gradgradcheck(lambda *t: function(*t, stride=2, padding=1), (x, w, b))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_compiled_graphs(backend: str, calls: list[str]) -> None:
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor compiles with g++, which is not here")
    try:
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    except (ImportError, torch._dynamo.exc.BackendCompilerFailed) as error:
        pytest.skip(f"this torch cannot compile a sum with this Triton: {str(error)[:200]}")
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.ConvTranspose2d(4, 2, 2))
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last).requires_grad_()
    expected = module(x)
    (gradient,) = torch.autograd.grad(expected.sum(), x)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend=backend)
    with safe_conv("gemm", device="cpu"):
        found = compiled(x)
        (again,) = torch.autograd.grad(found.sum(), x)
    assert calls == ["f", "f", "b", "b"]
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(again, gradient)
    calls.clear()
    compiled(x)
    assert not calls, "the compiled graph kept the route after it was taken away"


class Block(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.second = torch.nn.Conv2d(outside, outside, 3, 1, 1, groups=2)
        self.norm = torch.nn.BatchNorm2d(outside)
        self.skip = torch.nn.Conv2d(inside, outside, 1, stride)

    def forward(self, x: Any) -> Any:
        return F.relu(self.second(F.relu(self.norm(self.first(x)))) + self.skip(x))


def train(steps: int) -> list[float]:
    torch.manual_seed(3)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, 2, 3),
        Block(8, 8, 1),
        Block(8, 16, 2),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 5),
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    x, target = torch.randn(8, 3, 32, 32), torch.randint(0, 5, (8,))
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(network(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.slow
def test_a_residual_network_trains_alike(calls: list[str]) -> None:
    expected = train(5)
    with safe_conv("gemm", device="cpu"):
        found = train(5)
    assert calls.count("f") == 5 * 7 == calls.count("b")
    assert found == pytest.approx(expected, rel=1e-4)
    assert found[-1] < found[0]


def test_integers_stay_native(calls: list[str]) -> None:
    x, w = torch.ones(1, 1, 3, 3, dtype=torch.int64), torch.ones(1, 1, 2, 2, dtype=torch.int64)
    with safe_conv("gemm", device="cpu"):
        assert F.conv2d(x, w).unique().tolist() == [4]
    assert not calls


@pytest.mark.parametrize("path", ["native", "aten"])
def test_pytorchs_own_paths_are_reached_under_the_override(path: str, calls: list[str]) -> None:
    x, w = torch.randn(1, 3, 6, 6, requires_grad=True), torch.randn(2, 3, 3, 3)
    expected = torch.autograd.grad(F.conv2d(x, w).square().sum(), x)
    with safe_conv(path, device="cpu"):
        found = torch.autograd.grad(F.conv2d(x, w).square().sum(), x)
    assert not calls
    torch.testing.assert_close(found, expected)
    assert torch.backends.cudnn.enabled


def test_handles_nest_and_end_in_any_order(calls: list[str]) -> None:
    x, w = torch.randn(1, 3, 6, 6), torch.randn(2, 3, 3, 3)
    outer, inner = safe_conv("gemm", device="cpu"), safe_conv("native", device="cpu")
    F.conv2d(x, w)
    assert not calls
    outer.restore()
    outer.restore()
    F.conv2d(x, w)
    assert not calls
    inner.restore()
    with safe_conv("gemm", device="cpu"):
        F.conv2d(x, w)
    assert calls == ["f"]


def test_the_environment_gives_the_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCMEND_SAFE_CONV", "gemm")
    with safe_conv(device="cpu") as handle:
        assert handle.mode == "gemm"
    with safe_conv("native", device="cpu") as handle:
        assert handle.mode == "native", "a mode named in the program is the program's"
    monkeypatch.setenv("ROCMEND_SAFE_CONV", "fast")
    with pytest.raises(UsageError, match="fast"):
        safe_conv(device="cpu")


@pytest.mark.parametrize("options", [{"mode": "best"}, {"device": "meta"}, {"mode": "gemm", "workspace_bytes": 0}])
def test_what_there_is_not_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="safe_conv"):
        safe_conv(**options)
    assert not conv.SafeConv.active
