"""What goes to kernels on a GPU, sent there on the CPU: kernels' functions check alike and compute references.

With TRITON_INTERPRET=1 and ROCMEND_KERNELS=triton the kernels themselves compute, in Triton's interpreter: slowly, and
numpy warns there (add ``-W ignore``).
"""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.mlx import core, kernel_use

mx: Any = core
pytestmark = pytest.mark.cpu
FLOATS = [mx.float32, mx.float16, mx.bfloat16]


def make(*shape: int, seed: int = 0, dtype: Any = mx.float32) -> Any:
    return mx.array(np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)).astype(dtype)


def flat(found: Any) -> list[Any]:
    return [found] if isinstance(found, mx.array) else [one for part in found for one in flat(part)]


def sent_to_kernels(monkeypatch: pytest.MonkeyPatch, call: Any, tolerance: float = 2e-5) -> None:
    """Compute both ways and compare; the kernels' way must have been taken."""
    plain = [np.array(one.astype(mx.float64)) for one in flat(call())]
    asked: list[Any] = []

    def every(x: Any) -> bool:
        asked.append(x.dtype)
        return True

    with monkeypatch.context() as patched:
        patched.setattr(kernel_use, "fits", every)
        patched.setattr(kernel_use, "on_gpu", every)
        found = [np.array(one.astype(mx.float64)) for one in flat(call())]
    assert asked
    for one, like in zip(found, plain, strict=True):
        scale = max(1.0, float(np.abs(like).max(initial=0)))
        np.testing.assert_allclose(one, like, rtol=0, atol=tolerance * scale)


def tolerance_of(dtype: Any) -> float:
    return {mx.float32: 2e-5, mx.float16: 4e-3, mx.bfloat16: 3e-2}[dtype]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_norms_and_softmax(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    x, w, b = make(3, 5, 64, dtype=dtype), make(64, seed=1, dtype=dtype), make(64, seed=2, dtype=dtype)
    for call in (
        lambda: mx.fast.rms_norm(x, w, 1e-5), lambda: mx.fast.rms_norm(x, None, 1e-5),
        lambda: mx.fast.rms_norm(x, w.astype(mx.float32), 1e-5), lambda: mx.fast.layer_norm(x, w, b, 1e-5),
        lambda: mx.fast.layer_norm(x, None, b, 1e-5), lambda: mx.fast.layer_norm(x, w, None, 1e-5),
        lambda: mx.softmax(x, -1), lambda: mx.softmax(x, 1),
        lambda: mx.grad(lambda x, w: mx.fast.rms_norm(x, w, 1e-5).square().sum(), (0, 1))(x, w),
        lambda: mx.grad(lambda x: mx.fast.rms_norm(x, None, 1e-5).square().sum())(x),
        lambda: mx.grad(lambda x, w, b: mx.fast.layer_norm(x, w, b, 1e-5).square().sum(), (0, 1, 2))(x, w, b),
    ):  # fmt: skip
        sent_to_kernels(monkeypatch, call, tolerance_of(dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["none", "causal", "boolean", "additive"])
@pytest.mark.parametrize("sunk", [False, True])
def test_attention(monkeypatch: pytest.MonkeyPatch, kind: str, sunk: bool, dtype: Any) -> None:
    q, k, v = (
        make(2, 8, 7, 32, dtype=dtype),
        make(2, 2, 9, 32, seed=1, dtype=dtype),
        make(2, 2, 9, 24, seed=2, dtype=dtype),
    )
    masks = {
        "none": None, "causal": "causal", "boolean": mx.array(np.random.default_rng(3).random((2, 1, 7, 9)) < 0.7),
        "additive": make(8, 7, 9, seed=4, dtype=dtype),
    }  # fmt: skip
    options = {"scale": 0.2, "mask": masks[kind], "sinks": make(8, seed=5, dtype=dtype) if sunk else None}

    def loss(q: Any, k: Any, v: Any) -> Any:
        return mx.fast.scaled_dot_product_attention(q, k, v, **options).square().sum()

    sent_to_kernels(monkeypatch, lambda: mx.fast.scaled_dot_product_attention(q, k, v, **options), tolerance_of(dtype))
    if kind != "additive":  # whose gradient is torch's everywhere
        sent_to_kernels(monkeypatch, lambda: mx.grad(loss, (0, 1, 2))(q, k, v), tolerance_of(dtype))


def test_cross_entropy_and_gated_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, targets = make(3, 5, 32), mx.array(np.random.default_rng(1).integers(0, 32, (3, 5)).astype(np.uint32))
    sent_to_kernels(monkeypatch, lambda: mx.fast.cross_entropy(logits, targets))
    sent_to_kernels(monkeypatch, lambda: mx.grad(lambda x: mx.fast.cross_entropy(x, targets).sum())(logits))
    q, k, v = make(2, 5, 2, 8) * 0.3, make(2, 5, 2, 8, seed=1) * 0.3, make(2, 5, 4, 6, seed=2)
    gamma, beta, state = mx.sigmoid(make(2, 5, 4, seed=3)), mx.sigmoid(make(2, 5, 4, seed=4)), make(2, 4, 6, 8, seed=5)
    mask = mx.array(np.random.default_rng(6).random((2, 5)) < 0.6)
    sent_to_kernels(monkeypatch, lambda: mx.fast.gated_delta_update(q, k, v, gamma, beta))
    sent_to_kernels(monkeypatch, lambda: mx.fast.gated_delta_update(q, k, v, gamma, beta, state, mask))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["affine", "mxfp4", "mxfp8", "nvfp4"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_quantized_products(monkeypatch: pytest.MonkeyPatch, mode: str, dtype: Any) -> None:
    words, scales, biases = (*mx.quantize(make(64, 128, dtype=dtype), mode=mode), None)[:3]
    many, many_scales, many_biases = (*mx.quantize(make(4, 64, 128, dtype=dtype), mode=mode), None)[:3]
    x, y, z = (
        make(2, 3, 128, seed=1, dtype=dtype),
        make(3, 64, seed=2, dtype=dtype),
        make(3, 1, 1, 128, seed=3, dtype=dtype),
    )
    experts = mx.array([[0, 3], [1, 1], [2, 0]], mx.uint32)
    left, right = mx.array([[0], [1]]), mx.array([1, 3])
    for call in (
        lambda: mx.quantized_matmul(x, words, scales, biases, mode=mode),
        lambda: mx.quantized_matmul(x[0, 0], words, scales, biases, mode=mode),
        lambda: mx.quantized_matmul(y, words, scales, biases, False, mode=mode),
        lambda: mx.gather_qmm(z, many, many_scales, many_biases, rhs_indices=experts, mode=mode),
        lambda: mx.gather_qmm(x, many, many_scales, many_biases, left, right, mode=mode),
        lambda: mx.grad(lambda x: mx.quantized_matmul(x, words, scales, biases, mode=mode).square().sum())(x),
        lambda: mx.grad(
            lambda z: mx.gather_qmm(z, many, many_scales, many_biases, None, experts, mode=mode).square().sum()
        )(z),
    ):  # fmt: skip
        sent_to_kernels(monkeypatch, call, tolerance_of(dtype))


@pytest.mark.parametrize(("mode", "bits"), [("affine", 3), ("affine", 8), ("mxfp4", 4), ("mxfp8", 8), ("nvfp4", 4)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_quantizing_and_back(monkeypatch: pytest.MonkeyPatch, mode: str, bits: int, dtype: Any) -> None:
    w = make(8, 64, dtype=dtype)
    packed = mx.quantize(w, mode=mode, bits=bits, group_size=16 if mode == "nvfp4" else 32)
    form = {"mode": mode, "bits": bits, "group_size": 16 if mode == "nvfp4" else 32}
    sent_to_kernels(monkeypatch, lambda: mx.quantize(w, **form), tolerance_of(dtype))
    sent_to_kernels(monkeypatch, lambda: mx.dequantize(*packed, **form), tolerance_of(dtype))
    if mode != "affine":
        sent_to_kernels(monkeypatch, lambda: mx.qqmm(w, *packed[:2], **form), tolerance_of(dtype))


@pytest.mark.parametrize("traditional", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_rotations(monkeypatch: pytest.MonkeyPatch, traditional: bool, dtype: Any) -> None:
    x, weights = make(2, 3, 5, 32, dtype=dtype), make(2, 3, 5, 32, seed=1, dtype=dtype)
    freqs = mx.arange(1, 9).astype(mx.float32)
    plain = {"traditional": traditional, "base": 100.0, "scale": 0.5}
    for call in (
        lambda: mx.fast.rope(x, 32, **plain, offset=7), lambda: mx.fast.rope(x, 16, **plain, offset=mx.array([3, 11])),
        lambda: mx.fast.rope(x, 16, traditional=traditional, base=None, scale=1.0, offset=2, freqs=freqs),
        lambda: mx.grad(lambda x: (mx.fast.rope(x, 32, **plain, offset=1) * weights).sum())(x),
    ):  # fmt: skip
        sent_to_kernels(monkeypatch, call, tolerance_of(dtype))


def test_gathered_products(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = make(5, 3, 6), make(4, 6, 2, seed=1)
    left, right = mx.array([[0], [4]]), mx.array([0, 3, 3], mx.uint32)
    sent_to_kernels(monkeypatch, lambda: mx.gather_mm(a, b, left, right))
    sent_to_kernels(monkeypatch, lambda: mx.gather_mm(a, b, rhs_indices=mx.array([0, 0, 1, 2, 3]), sorted_indices=True))
    sent_to_kernels(monkeypatch, lambda: mx.grad(lambda a, b: mx.gather_mm(a, b, left, right).sum(), (0, 1))(a, b))


@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2}, {"padding": 2}, {"kernel_dilation": 2}, {"input_dilation": 3}, {"flip": True}, {"groups": 2},
     {"stride": 2, "padding": ([1], [3]), "kernel_dilation": 2, "input_dilation": 2, "flip": True},
     {"padding": ([-1], [2])}],
)  # fmt: skip
def test_convolutions(monkeypatch: pytest.MonkeyPatch, options: Any) -> None:
    x, w = make(2, 12, 6), make(12, 3, 6 // options.get("groups", 1), seed=1)
    sent_to_kernels(monkeypatch, lambda: mx.conv_general(x, w, **options))
    sent_to_kernels(
        monkeypatch, lambda: mx.grad(lambda x, w: mx.conv_general(x, w, **options).square().sum(), (0, 1))(x, w), 1e-4
    )
    image, taps = make(2, 7, 6, 4), make(6, 3, 2, 4, seed=1)
    sent_to_kernels(monkeypatch, lambda: mx.conv2d(image, taps, (2, 1), (1, 2), (1, 2)))
    sent_to_kernels(monkeypatch, lambda: mx.conv_transpose2d(image, taps, 2, 1, 1, 1))


def test_random_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    key = mx.random.key(7)
    sent_to_kernels(monkeypatch, lambda: mx.random.split(key, 5), 0)
    sent_to_kernels(monkeypatch, lambda: mx.random.uniform(shape=(1001,), key=key), 0)
    sent_to_kernels(
        monkeypatch, lambda: mx.vmap(lambda key: mx.random.uniform(shape=(3,), key=key))(mx.random.split(key, 4)), 0
    )
