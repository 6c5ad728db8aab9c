"""Quantized weights and products with them. Recorded codes and scales are of MLX 0.32.4 on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core

mx: Any = core

pytestmark = pytest.mark.cpu

MODES = [("affine", bits, group) for bits in (2, 3, 4, 5, 6, 8) for group in (32, 64, 128)]
MODES += [("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]


def make(*shape: int, seed: int = 0, dtype: Any = mx.float32) -> Any:
    return mx.array(np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)).astype(dtype)


def wide(x: Any) -> Any:
    return np.array(x.astype(mx.float64))


def near(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(wide(found), expected, rtol=0, atol=tolerance * scale)


def quantized(w: Any, mode: str, bits: int, group: int) -> tuple[Any, Any, Any]:
    parts = mx.quantize(w, group, bits, mode)
    return (*parts, None) if len(parts) == 2 else tuple(parts)


SINES = [
    ("affine", 4, [3726965256, 1603313489, 183774929, 872154872], -0.12497410923242569),
    ("affine", 3, [3520900932, 2750447115, 669056023], -0.24994821846485138),
    ("affine", 8, [4154524032, 3487177281, 2482720018, 1392283136], -0.007810881827026606),
    ("mxfp4", 4, [3444894304, 1050058293, 1793351110, 1440506592], 125),
    ("mxfp8", 8, [4159207424, 4076041584, 3807866230, 1811471992], 119),
    ("nvfp4", 4, [3999660912, 1335340870, 2079682263, 1726837744], 35),
]


@pytest.mark.parametrize(("mode", "bits", "words", "scale"), SINES)
def test_codes_are_those_of_mlx(mode: str, bits: int, words: Any, scale: Any) -> None:
    w = mx.array(np.sin(np.arange(64) * 1.7).astype(np.float32).reshape(2, 32))
    found, scales, biases = quantized(w, mode, bits, 16 if mode == "nvfp4" else 32)
    assert found.dtype is mx.uint32
    assert found[0, : len(words)].tolist() == words
    assert scales[0, 0].item() == scale
    assert (biases is not None) == (mode == "affine")


@pytest.mark.parametrize(("mode", "bits", "group"), MODES)
@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_there_and_back(mode: str, bits: int, group: int, dtype: Any) -> None:
    w = make(6, 256, dtype=dtype)
    words, scales, biases = quantized(w, mode, bits, group)
    assert words.shape == (6, 256 * bits // 32)
    assert scales.shape == (6, 256 // group)
    assert scales.dtype is (dtype if mode == "affine" else mx.uint8)
    back = mx.dequantize(words, scales, biases, group, bits, mode)
    assert back.dtype is (dtype if mode == "affine" else mx.bfloat16)
    # affine: half a step, the range of a group being 4 to 8; e2m1 and e4m3: a part of each number
    step = {2: 2.6, 3: 1.2, 4: 0.5, 5: 0.25, 6: 0.15, 8: 0.06}[bits] if mode == "affine" else 0.9 if bits == 4 else 0.2
    assert np.abs(wide(back) - wide(w)).max() < step


@pytest.mark.parametrize(("mode", "bits", "group"), MODES)
def test_products(mode: str, bits: int, group: int) -> None:
    w, x = make(128, 256), make(3, 256, seed=1)
    words, scales, biases = quantized(w, mode, bits, group)
    options = {"group_size": group, "bits": bits, "mode": mode}
    values = wide(mx.dequantize(words, scales, biases, dtype=mx.float32, **options))
    near(mx.quantized_matmul(x, words, scales, biases, **options), wide(x) @ values.T)
    near(mx.quantized_matmul(x[0], words, scales, biases, **options), wide(x)[0] @ values.T)
    y = make(2, 5, 128, seed=2)
    near(mx.quantized_matmul(y, words, scales, biases, False, **options), wide(y) @ values)
    half = mx.quantized_matmul(x.astype(mx.float16), words, scales, biases, **options)
    assert half.dtype is (mx.float32 if mode == "affine" else mx.float16)


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
def test_half_types_are_summed_in_float32(dtype: Any) -> None:
    w, x = make(32, 2048, dtype=dtype), make(3, 2048, seed=1, dtype=dtype)
    words, scales, biases = mx.quantize(w)
    values = wide(scales)[..., None] * wide(mx.dequantize(words, mx.ones_like(scales), mx.zeros_like(biases))).reshape(
        32, -1, 64
    )
    values = (values + wide(biases)[..., None]).reshape(32, -1)
    found = mx.quantized_matmul(x, words, scales, biases)
    assert found.dtype is dtype
    near(found, wide(x) @ values.T, 2**-9 if dtype is mx.bfloat16 else 2**-11)


@pytest.mark.parametrize("mode", ["affine", "mxfp4", "mxfp8", "nvfp4"])
def test_gathered_products(mode: str) -> None:
    w = make(4, 64, 128)
    words, scales, biases = (*mx.quantize(w, mode=mode), None)[:3]
    values = wide(mx.dequantize(words, scales, biases, mode=mode, dtype=mx.float32))
    x = make(5, 1, 1, 128, seed=1)
    experts = mx.array([[0, 3], [1, 1], [2, 0], [3, 3], [0, 1]], mx.uint32)
    found = mx.gather_qmm(x, words, scales, biases, rhs_indices=experts, mode=mode)
    near(found, wide(x) @ values[np.array(experts)].swapaxes(-1, -2))
    y = make(3, 2, 64, seed=2)
    left, right = mx.array([[0], [2]]), mx.array([1, 3])
    found = mx.gather_qmm(y, words, scales, biases, left, right, False, mode=mode)
    near(found, wide(y)[[[0], [2]]] @ values[[1, 3]])
    ordered = mx.array([0, 0, 1, 2, 2, 3])
    z = make(6, 1, 128, seed=3)
    found = mx.gather_qmm(z, words, scales, biases, rhs_indices=ordered, mode=mode, sorted_indices=True)
    near(found, wide(z) @ values[np.array(ordered)].swapaxes(-1, -2))
    plain = mx.gather_qmm(make(4, 2, 128), words, scales, biases, mode=mode)
    near(plain, wide(make(4, 2, 128)) @ values.swapaxes(-1, -2))


def test_gradients() -> None:
    w, x, y = make(64, 128), make(3, 128, seed=1), make(3, 64, seed=2)
    words, scales, biases = mx.quantize(w)

    def loss(x: Any, scales: Any, biases: Any) -> Any:
        return (mx.quantized_matmul(x, words, scales, biases) * y).sum()

    def plain(x: Any, scales: Any, biases: Any) -> Any:
        return ((x @ mx.dequantize(words, scales, biases).T) * y).sum()

    found = mx.grad(loss, (0, 1, 2))(x, scales, biases)
    for one, like in zip(found, mx.grad(plain, (0, 1, 2))(x, scales, biases), strict=True):
        near(one, wide(like))
    codes = wide(mx.dequantize(words, mx.ones_like(scales), mx.zeros_like(biases)))
    near(found[1], ((wide(y).T @ wide(x)) * codes).reshape(64, 2, 64).sum(-1))
    half = mx.grad(lambda x: mx.quantized_matmul(x, words, scales, biases).sum())(x.astype(mx.bfloat16))
    assert half.dtype is mx.bfloat16
    with pytest.raises(RuntimeError, match="quantized weights"):
        mx.grad(lambda w: mx.quantized_matmul(x, w, scales, biases).sum())(words)
    fp, byte_scales = mx.quantize(w, mode="mxfp4")
    with pytest.raises(ValueError, match="scales of 8 bits"):
        mx.grad(lambda s: mx.quantized_matmul(x, fp, s, mode="mxfp4").sum())(byte_scales)


def test_gradients_of_gathered_products() -> None:
    w, x = make(4, 64, 128), make(5, 2, 128, seed=1)
    words, scales, biases = mx.quantize(w)
    left, right = mx.array([[0], [4], [0]]), mx.array([1, 1, 3])
    weights = make(3, 3, 2, 64, seed=3)

    def loss(x: Any, scales: Any, biases: Any) -> Any:
        return (mx.gather_qmm(x, words, scales, biases, left, right) * weights).sum()

    def plain(x: Any, scales: Any, biases: Any) -> Any:
        values = mx.dequantize(words, scales, biases)
        return ((x[left] @ values[right].swapaxes(-1, -2)) * weights).sum()

    found = mx.grad(loss, (0, 1, 2))(x, scales, biases)
    for one, like in zip(found, mx.grad(plain, (0, 1, 2))(x, scales, biases), strict=True):
        near(one, wide(like))


def test_global_scale() -> None:
    w = make(8, 64) * 1000
    scale = mx.abs(w).max()
    words, scales = mx.quantize(w, mode="nvfp4", global_scale=scale)
    back = mx.dequantize(words, scales, mode="nvfp4", global_scale=scale, dtype=mx.float32)
    assert np.abs(wide(back) - wide(w)).max() < 600
    near(back, wide(mx.dequantize(words, scales, mode="nvfp4", dtype=mx.float32)) * scale.item() / 2688)
    x = make(2, 64)
    found = mx.gather_qmm(x, words, scales, global_scale=scale, mode="nvfp4")
    near(found, wide(x) @ wide(back).T)
    with pytest.raises(ValueError, match="nvfp4"):
        mx.quantize(w, mode="mxfp4", global_scale=scale)
    with pytest.raises(ValueError, match="scalar"):
        mx.quantize(w, mode="nvfp4", global_scale=mx.ones((2,)))


@pytest.mark.parametrize(("mode", "scaled"), [("nvfp4", False), ("nvfp4", True), ("mxfp8", False), ("mxfp4", False)])
def test_both_sides_quantized(mode: str, scaled: bool) -> None:
    x, w = make(3, 5, 64), make(32, 64, seed=1)
    of_x, of_w = (mx.abs(x).max(), mx.abs(w).max()) if scaled else (None, None)

    def rounded(x: Any, scale: Any) -> Any:
        return mx.dequantize(
            *mx.quantize(x, mode=mode, global_scale=scale), mode=mode, global_scale=scale, dtype=mx.float32
        )

    expected = wide(rounded(x, of_x)) @ wide(rounded(w, of_w)).T
    given = {"mode": mode, "global_scale_x": of_x, "global_scale_w": of_w}
    near(mx.qqmm(x, w, **given), expected)
    near(mx.qqmm(x, *mx.quantize(w, mode=mode, global_scale=of_w), **given), expected)
    many, experts = make(4, 32, 64, seed=2), mx.array([3, 0, 3])
    found = mx.gather_qqmm(x, many, rhs_indices=experts, mode=mode)
    other = wide(rounded(many, None))[[3, 0, 3]].swapaxes(-1, -2)
    near(found, wide(rounded(x, None)) @ other)
    near(
        mx.gather_qqmm(x, *mx.quantize(many, mode=mode), rhs_indices=experts, mode=mode), wide(rounded(x, None)) @ other
    )
    grads = mx.grad(lambda x, w: (mx.qqmm(x, w, **given) ** 2).sum(), (0, 1))(x, w)
    near(grads[0], 2 * expected @ wide(rounded(w, of_w)), 1e-5)


def test_refusals() -> None:
    w = make(64, 128)
    words, scales, biases = mx.quantize(w)
    x = make(2, 128)
    for call, match in (
        (lambda: mx.quantize(w, mode="xyz"), "mode"), (lambda: mx.quantize(w, bits=7), "bits"),
        (lambda: mx.quantize(w, 16), "groups"), (lambda: mx.quantize(w, bits=3, mode="mxfp4"), "requires bits=4"),
        (lambda: mx.quantize(w[0]), "2 dimensions"), (lambda: mx.quantize(w[:, :65]), "divisible"),
        (lambda: mx.quantize(mx.zeros((2, 64), mx.int32)), "floating"),
        (lambda: mx.dequantize(words, scales), "Biases"),
        (lambda: mx.dequantize(words, scales[:, :1], biases), "incompatible"),
        (lambda: mx.dequantize(words.astype(mx.int32), scales, biases), "uint32"),
        (lambda: mx.dequantize(words, scales, biases, dtype=mx.int32), "output dtype"),
        (lambda: mx.quantized_matmul(x, words, scales), "Biases"),
        (lambda: mx.quantized_matmul(x, words.T, scales, biases), "batch shape|incompatible"),
        (lambda: mx.quantized_matmul(x, words, scales, biases, False), "does not match"),
        (lambda: mx.quantized_matmul(x, words, scales, biases, mode="mxfp4"), "must be null"),
        (lambda: mx.gather_qmm(x, words, scales, biases, rhs_indices=mx.array([0.5])), "integral"),
        (lambda: mx.gather_qmm(x[0], words, scales, biases, rhs_indices=mx.array(0)), "two dimensions"),
        (lambda: mx.qqmm(x, words), "Scales"), (lambda: mx.qqmm(x, w, mode="affine"), "modes"),
        (lambda: mx.qqmm(x, w, global_scale_x=mx.array(1.0)), "or neither"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("mode", ["affine", "mxfp4"])
def test_a_large_product_is_computed_in_parts_of_the_columns(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.mlx.ops import quantized_products
    from rocmend.mlx.ops.quantized_values import values

    w, x = mx.random.normal((70, 128)), mx.random.normal((2, 3, 128))
    words, scales, *biases = mx.quantize(w, mode=mode)
    whole = mx.quantized_matmul(x, words, scales, *biases, mode=mode)
    mx.eval(whole)
    unpacked = []

    def watched(*given: Any) -> Any:
        unpacked.append(len(given[0]))
        return values(*given)

    monkeypatch.setattr(quantized_products, "LARGE", 1 << 12)
    monkeypatch.setattr(quantized_products, "values", watched)
    parts = mx.quantized_matmul(x, words, scales, *biases, mode=mode)
    assert mx.allclose(parts, whole, atol=1e-5).item()
    assert unpacked == [32, 32, 6]
