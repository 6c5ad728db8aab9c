"""Fourier transforms, against numpy and torch."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core

mx: Any = core

pytestmark = pytest.mark.cpu


def make(*shape: int, seed: int = 0, of_complex: bool = False) -> Any:
    draws = np.random.default_rng((seed, *shape))
    values = draws.standard_normal(shape).astype(np.float32)
    return mx.array((values + 1j * draws.standard_normal(shape)).astype(np.complex64) if of_complex else values)


def near(found: Any, expected: Any, tolerance: float = 2e-6) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(np.array(found), expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 3, 9])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_along_an_axis(name: str, norm: str, n: Any, axis: int) -> None:
    a = make(4, 6, 5, of_complex=name != "rfft")
    found = getattr(mx.fft, name)(a, n, axis, norm)
    assert found.dtype is (mx.float32 if name == "irfft" else mx.complex64)
    near(found, getattr(np.fft, name)(np.array(a), n, axis, norm))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_along_several_axes(name: str) -> None:
    a = make(3, 4, 6)
    ours, theirs = getattr(mx.fft, name), getattr(np.fft, name)
    near(ours(a), theirs(np.array(a)))
    near(ours(a, (5, 3), (0, 2)), theirs(np.array(a), (5, 3), (0, 2)))
    near(ours(a, axes=(1, 0), norm="ortho"), theirs(np.array(a), axes=(1, 0), norm="ortho"))
    near(
        mx.vmap(ours, in_axes=3, out_axes=0)(mx.stack([a, 2 * a], 3)),
        np.stack([theirs(np.array(a)), 2 * theirs(np.array(a))]),
    )


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_gradients(name: str) -> None:
    a = make(2, 6, of_complex=name != "rfft")
    weights = make(2, 9, seed=1)[:, : 5 if name == "rfft" else 9]
    found = mx.grad(lambda x: (mx.abs(getattr(mx.fft, name)(x, 9)) * weights).sum())(a)
    leaf = torch.tensor(np.array(a), requires_grad=True)
    (getattr(torch.fft, name)(leaf, 9).abs() * torch.tensor(np.array(weights))).sum().backward()
    near(found, leaf.grad.numpy(), 1e-5)


def test_frequencies_and_shifts() -> None:
    for n in (1, 2, 5, 8):
        near(mx.fft.fftfreq(n, 0.3), np.fft.fftfreq(n, 0.3))
        near(mx.fft.rfftfreq(n, 0.3), np.fft.rfftfreq(n, 0.3))
    a = make(4, 5)
    for axes in (None, 0, [0, 1], -1):
        near(mx.fft.fftshift(a, axes), np.fft.fftshift(np.array(a), axes))
        near(mx.fft.ifftshift(a, axes), np.fft.ifftshift(np.array(a), axes))
    assert mx.fft.fftshift(a, []).tolist() == a.tolist()


def test_frames() -> None:
    x = make(2, 3000)
    window = mx.array(np.hanning(257)[:256].astype(np.float32))
    found = mx.fft.stft(x, 256, 64, window=window)
    like = torch.stft(
        torch.tensor(np.array(x)),
        256,
        64,
        window=torch.tensor(np.array(window)),
        return_complex=True,
        pad_mode="reflect",
    )
    near(found, like.numpy())
    back = mx.fft.istft(found, 256, 64, window=window, length=3000)
    near(back, np.array(x), 1e-5)
    for options in ({"center": False}, {"pad_mode": "constant"}, {"pad_mode": "edge"}, {"onesided": False}):
        made = mx.fft.stft(x, 256, 64, 200, **options)
        again = mx.fft.istft(made, 256, 64, 200, **{k: v for k, v in options.items() if k != "pad_mode"})
        least = 128 if options.get("center") is False else 0
        n = again.shape[-1] - 128
        near(again[:, least:n], np.array(x)[:, least:n], 1e-5)
    assert mx.fft.istft(found, 256, 64, window=window, length=5000).shape == (2, 5000)
    grad = mx.grad(lambda x: (mx.abs(mx.fft.stft(x, 64)) ** 2).sum())(x[0])
    step = mx.zeros((3000,)).at[1000].add(1e-1)
    loss = [(mx.abs(mx.fft.stft(x[0] + d * step, 64)) ** 2).sum().item() for d in (1, -1)]
    assert grad[1000].item() == pytest.approx((loss[0] - loss[1]) / 0.2, rel=1e-2)


def test_short_signals_are_reflected_more_than_once() -> None:
    found = mx.fft.stft(make(100), 512)
    padded = np.pad(np.array(make(100)), 256, mode="reflect")
    near(found[:, 0], np.fft.rfft(padded[:512]), 1e-5)


def test_refusals() -> None:
    a = make(4, 6)
    for call, match in (
        (lambda: mx.fft.fft(a, 0), "size"), (lambda: mx.fft.fft(a, norm="foo"), "norm"),
        (lambda: mx.fft.fftn(a, axes=[0, 0]), "Duplicated"), (lambda: mx.fft.fftn(a, (3,)), "axes"),
        (lambda: mx.fft.fftn(a, (3, 4), [0]), "different sizes"), (lambda: mx.fft.irfft(a[:, :1]), "size"),
        (lambda: mx.fft.fftfreq(0), "greater"), (lambda: mx.fft.fftfreq(3, 0), "non-zero"),
        (lambda: mx.fft.stft(a, 512, center=False), "too short"), (lambda: mx.fft.stft(a, 0), "positive"),
        (lambda: mx.fft.stft(a, 512, 0), "positive"), (lambda: mx.fft.stft(a, 4, win_length=5), "exceed"),
        (lambda: mx.fft.stft(a, 4, pad_mode="foo"), "mode"), (lambda: mx.fft.istft(a[0]), "two dimensions"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()  # type: ignore[no-untyped-call]
    for call in (lambda: mx.fft.fft(a, axis=5), lambda: mx.fft.fftshift(a, 2), lambda: mx.fft.fft(mx.array(1.0))):
        with pytest.raises(IndexError):
            call()
