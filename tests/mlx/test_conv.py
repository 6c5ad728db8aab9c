"""Convolutions, against torch in float64."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core

mx: Any = core

pytestmark = pytest.mark.cpu

OPTIONS: list[dict[str, Any]] = [
    {}, {"stride": 2}, {"padding": 2}, {"kernel_dilation": 2}, {"input_dilation": 3}, {"flip": True}, {"groups": 2},
    {"stride": 2, "padding": ([1], [3]), "kernel_dilation": 2, "input_dilation": 2, "flip": True},
    {"padding": ([-1], [2]), "groups": 2}, {"stride": 3, "padding": 1, "groups": 6},
]  # fmt: skip


def make(*shape: int, seed: int = 0, dtype: Any = mx.float32) -> Any:
    return mx.array(np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)).astype(dtype)


def wide(x: Any) -> Any:
    return np.array(x.astype(mx.float64))


def near(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(wide(found), expected, rtol=0, atol=tolerance * scale)


def reference(x: Any, w: Any, options: dict[str, Any]) -> Any:
    """Convolve element by element of the definition."""
    pick = {"stride": 1, "padding": 0, "kernel_dilation": 1, "input_dilation": 1, "groups": 1, "flip": False, **options}
    axes = x.dim() - 2
    each = {name: [value] * axes for name, value in pick.items() if isinstance(value, int)}
    low, high = pick["padding"] if isinstance(pick["padding"], tuple) else (each["padding"], each["padding"])
    sizes = [(size - 1) * step + 1 for size, step in zip(x.shape[1:-1], each["input_dilation"], strict=True)]
    spread = x.new_zeros((x.shape[0], *sizes, x.shape[-1]))
    spread[(slice(None), *[slice(None, None, step) for step in each["input_dilation"]])] = x
    pads = [side for i in reversed(range(axes)) for side in (low[i], high[i])]
    spread = torch.nn.functional.pad(spread, (0, 0, *pads))
    taps = w.flip(tuple(range(1, 1 + axes))) if pick["flip"] else w
    run = (torch.conv1d, torch.conv2d, torch.conv3d)[axes - 1]
    out = run(
        spread.movedim(-1, 1), taps.movedim(-1, 1), None, each["stride"], 0, each["kernel_dilation"], pick["groups"]
    )
    return out.movedim(1, -1)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(mx.float32, 1e-5), (mx.float16, 2e-3), (mx.bfloat16, 1.6e-2)])
def test_conv_general(options: dict[str, Any], dtype: Any, tolerance: float) -> None:
    groups = options.get("groups", 1)
    x, w = make(2, 12, 6, dtype=dtype), make(12, 3, 6 // groups, seed=1, dtype=dtype)
    found = mx.conv_general(x, w, **options)
    assert found.dtype is dtype
    near(found, reference(torch.tensor(wide(x)), torch.tensor(wide(w)), options), tolerance)


@pytest.mark.parametrize("options", OPTIONS)
def test_gradients(options: dict[str, Any]) -> None:
    x, w = make(2, 12, 6), make(12, 3, 6 // options.get("groups", 1), seed=1)
    found = mx.grad(lambda x, w: (mx.conv_general(x, w, **options) ** 2).sum(), (0, 1))(x, w)
    leaves = [torch.tensor(wide(one), requires_grad=True) for one in (x, w)]
    reference(leaves[0], leaves[1], options).square().sum().backward()
    for one, like in zip(found, leaves, strict=True):
        near(one, like.grad.numpy(), 1e-5)


def test_second_derivative() -> None:
    x, w = make(1, 8, 2), make(3, 3, 2, seed=1)

    def inner(x: Any, w: Any) -> Any:
        return mx.grad(lambda w: (mx.conv_general(x, w, stride=2, padding=1) ** 3).sum())(w)

    found = mx.grad(lambda x: (inner(x, w) ** 2).sum())(x)
    leaf, taps = torch.tensor(wide(x), requires_grad=True), torch.tensor(wide(w), requires_grad=True)
    first = torch.autograd.grad(
        (reference(leaf, taps, {"stride": 2, "padding": 1}) ** 3).sum(), taps, create_graph=True
    )[0]
    first.square().sum().backward()
    near(found, leaf.grad.numpy(), 1e-4)


def test_two_and_three_axes() -> None:
    x, w = make(2, 9, 8, 4), make(6, 3, 2, 4, seed=1)
    near(mx.conv2d(x, w), reference(torch.tensor(wide(x)), torch.tensor(wide(w)), {}))
    found = mx.conv2d(x, w, (2, 1), (0, 2), (1, 2))
    like = torch.conv2d(
        torch.tensor(wide(x)).movedim(-1, 1), torch.tensor(wide(w)).movedim(-1, 1), None, (2, 1), (0, 2), (1, 2)
    )
    near(found, like.movedim(1, -1))
    x, w = make(2, 5, 6, 7, 4), make(6, 3, 2, 3, 2, seed=1)
    near(mx.conv3d(x, w, groups=2), reference(torch.tensor(wide(x)), torch.tensor(wide(w)), {"groups": 2}))


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("more", [(1, 0, 1, 0), (2, 1, 1, 1), (3, 0, 2, 0)])
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed(axes: int, more: Any, groups: int) -> None:
    stride, padding, dilation, extra = more
    x, w = make(2, *(5, 4, 3)[:axes], 4), make(6, *(3, 2, 2)[:axes], 4 // groups, seed=1)
    found = getattr(mx, f"conv_transpose{axes}d")(x, w, stride, padding, dilation, extra, groups)
    run: Any = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)[axes - 1]
    taps = torch.tensor(wide(w)).movedim(-1, 1).unflatten(0, (groups, 6 // groups)).transpose(1, 2).flatten(0, 1)
    like = run(torch.tensor(wide(x)).movedim(-1, 1), taps, None, stride, padding, extra, groups, dilation)
    near(found, like.movedim(1, -1))


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("taps", [1, 2, 3, 4, 9])
def test_convolve(mode: Any, taps: int) -> None:
    a, v = make(6), make(taps, seed=1)
    near(mx.convolve(a, v, mode), np.convolve(wide(a), wide(v), mode))


def test_empty_and_refusals() -> None:
    assert mx.conv1d(mx.zeros((0, 5, 3)), mx.zeros((4, 2, 3))).shape == (0, 4, 4)
    x, w = mx.zeros((2, 5, 3)), mx.zeros((4, 2, 3))
    for call, match in (
        (lambda: mx.conv1d(x, w[..., :2]), "channels"), (lambda: mx.conv1d(x, mx.zeros((4, 7, 3))), "smaller"),
        (lambda: mx.conv1d(x, w, stride=0), "positive"), (lambda: mx.conv1d(x[0], w), "spatial"),
        (lambda: mx.conv1d(mx.zeros((2, 5, 4)), mx.zeros((3, 2, 2)), groups=2), "divisible"),
        (lambda: mx.conv1d(x.astype(mx.int32), w), "floating"), (lambda: mx.convolve(x, w), "1D"),
        (lambda: mx.convolve(mx.zeros((3,)), mx.zeros((0,))), "empty"),
        (lambda: mx.convolve(mx.zeros((3,)), mx.zeros((2,)), "other"), "mode"),
        (lambda: mx.conv2d(mx.zeros((1, 5, 5, 2)), mx.zeros((1, 2, 2, 2)), (1, 2, 3)), "stride"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()  # type: ignore[no-untyped-call]
