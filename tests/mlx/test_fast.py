"""Fused operations, against float64."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core

mx: Any = core
pytestmark = pytest.mark.cpu
FLOATS = [(mx.float32, 1e-5), (mx.float16, 2e-3), (mx.bfloat16, 1.6e-2)]


def make(*shape: int, seed: int = 0, dtype: Any = mx.float32) -> Any:
    return mx.array(np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)).astype(dtype)


def wide(x: Any) -> Any:
    return np.array(x.astype(mx.float64))


def near(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(wide(found), expected, rtol=0, atol=tolerance * scale)


def leaves(*arrays: Any) -> Any:
    return [torch.tensor(wide(x), requires_grad=True) for x in arrays]


def same_gradients(function: Any, like: Any, arrays: Any, tolerance: float = 1e-5) -> None:
    found = mx.grad(function, tuple(range(len(arrays))))(*arrays)
    found = [found] if len(arrays) == 1 else found
    tensors = leaves(*arrays)
    like(*tensors).backward()
    for one, tensor in zip(found, tensors, strict=True):
        near(one, tensor.grad.numpy(), tolerance)


# -- norms


def rms(x: Any, w: Any, eps: float) -> Any:
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * w


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize("shape", [(8,), (3, 5, 64), (0, 8)])
def test_rms_norm(shape: Any, dtype: Any, tolerance: float) -> None:
    x, w = make(*shape, dtype=dtype), make(shape[-1], seed=1, dtype=dtype)
    found = mx.fast.rms_norm(x, w, 1e-5)
    assert found.dtype is dtype
    near(found, rms(torch.tensor(wide(x)), torch.tensor(wide(w)), 1e-5), tolerance)
    near(mx.fast.rms_norm(x, None, 1e-5), rms(torch.tensor(wide(x)), 1.0, 1e-5), tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
def test_layer_norm(dtype: Any, tolerance: float) -> None:
    x, w, b = make(3, 5, 64, dtype=dtype), make(64, seed=1, dtype=dtype), make(64, seed=2, dtype=dtype)
    for weight, bias in ((w, b), (w, None), (None, b), (None, None)):
        given = [None if one is None else torch.tensor(wide(one)) for one in (weight, bias)]
        expected = torch.nn.functional.layer_norm(torch.tensor(wide(x)), (64,), *given, eps=1e-5)
        near(mx.fast.layer_norm(x, weight, bias, 1e-5), expected, tolerance)


def test_gradients_of_norms() -> None:
    x, w, b, y = make(3, 5, 16), make(16, seed=1), make(16, seed=2), make(3, 5, 16, seed=3)
    other = torch.tensor(wide(y))
    same_gradients(
        lambda x, w: (mx.fast.rms_norm(x, w, 1e-5) * y).sum(), lambda x, w: (rms(x, w, 1e-5) * other).sum(), (x, w)
    )
    same_gradients(
        lambda x: (mx.fast.rms_norm(x, None, 1e-5) * y).sum(), lambda x: (rms(x, 1, 1e-5) * other).sum(), (x,)
    )

    def like(x: Any, w: Any, b: Any) -> Any:
        return (torch.nn.functional.layer_norm(x, (16,), w, b, 1e-5) * other).sum()

    same_gradients(lambda *a: (mx.fast.layer_norm(*a, 1e-5) * y).sum(), like, (x, w, b))
    # once more, through the gradient
    twice = mx.grad(lambda x: (mx.grad(lambda x: (mx.fast.rms_norm(x, w, 1e-5) ** 3).sum())(x) ** 2).sum())(x[0])
    leaf = leaves(x[0])[0]
    first = torch.autograd.grad((rms(leaf, torch.tensor(wide(w)), 1e-5) ** 3).sum(), leaf, create_graph=True)[0]
    first.square().sum().backward()
    near(twice, leaf.grad.numpy(), 1e-4)


def test_norms_batched_and_refused() -> None:
    x, w = make(4, 3, 8), make(4, 8, seed=1)
    expected = np.stack([wide(mx.fast.rms_norm(x[i], w[i], 1e-5)) for i in range(4)])
    near(mx.vmap(lambda x, w: mx.fast.rms_norm(x, w, 1e-5))(x, w), expected)
    near(
        mx.vmap(lambda x: mx.fast.rms_norm(x, w[0], 1e-5), in_axes=1, out_axes=1)(x),
        wide(mx.fast.rms_norm(x, w[0], 1e-5)),
    )
    assert mx.fast.rms_norm(x.astype(mx.float16), w[0].astype(mx.bfloat16), 1e-5).dtype is mx.float32
    assert mx.fast.layer_norm(x.astype(mx.float16), None, w[0], 1e-5).dtype is mx.float16
    for call, match in (
        (lambda: mx.fast.rms_norm(x, w, 1e-5), "1 dimension"),
        (lambda: mx.fast.rms_norm(x, w[0, :3], 1e-5), "same size"),
        (lambda: mx.fast.rms_norm(mx.array(1.0), None, 1e-5), "at least 1"),
        (lambda: mx.fast.layer_norm(x, w[0], w[0, :3], 1e-5), "bias"),
        (lambda: mx.fast.layer_norm(x.astype(mx.int32), None, None, 1e-5), "unsupported type"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()  # type: ignore[no-untyped-call]


# -- rotary positions


def turned(x: Any, dims: int, *, traditional: bool, base: float, scale: float, offset: Any, freqs: Any = None) -> Any:
    half = dims // 2
    inverse = base ** (-torch.arange(half, dtype=torch.float64) / half) if freqs is None else 1 / freqs
    places = torch.arange(x.shape[-2], dtype=torch.float64) + torch.as_tensor(offset, dtype=torch.float64).reshape(
        -1, 1
    )
    angles = (places * scale)[:, None, :, None] * inverse
    cosine, sine = angles.cos(), angles.sin()
    part = x[..., :dims]
    a, b = (part[..., ::2], part[..., 1::2]) if traditional else (part[..., :half], part[..., half:])
    first, second = a * cosine - b * sine, a * sine + b * cosine
    out = torch.stack((first, second), -1).flatten(-2) if traditional else torch.cat((first, second), -1)
    return torch.cat((out, x[..., dims:]), -1)


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize("traditional", [False, True])
@pytest.mark.parametrize(("dims", "offset", "scale"), [(32, 0, 1.0), (16, 7, 0.5), (32, [3, 40], 1.0), (8, [5], 2.0)])
def test_rope(  # noqa: PLR0917  a test has as many arguments as it has parameters
    dims: int, offset: Any, scale: float, traditional: bool, dtype: Any, tolerance: float
) -> None:
    x = make(2, 4, 6, 32, dtype=dtype)
    given = mx.array(offset) if isinstance(offset, list) else offset
    found = mx.fast.rope(x, dims, traditional=traditional, base=10000.0, scale=scale, offset=given)
    assert found.dtype is dtype
    near(
        found,
        turned(torch.tensor(wide(x)), dims, traditional=traditional, base=10000.0, scale=scale, offset=offset),
        3 * tolerance,
    )


def test_rope_with_frequencies_three_axes_and_gradients() -> None:
    x, freqs = make(2, 4, 6, 32), mx.arange(1, 17).astype(mx.float32)
    options = {"traditional": False, "base": None, "scale": 1.0, "offset": mx.array(3), "freqs": freqs}
    like = turned(
        torch.tensor(wide(x)), 32, traditional=False, base=0, scale=1.0, offset=3, freqs=torch.tensor(wide(freqs))
    )
    near(mx.fast.rope(x, 32, **options), like)
    plain: Any = {"traditional": True, "base": 100.0, "scale": 1.0, "offset": 2}
    near(mx.fast.rope(x[:, 0], 32, **plain), wide(mx.fast.rope(x, 32, **plain))[:, 0])
    weights = make(2, 4, 6, 32, seed=1)
    same_gradients(
        lambda x: (mx.fast.rope(x, 16, **plain) * weights).sum(),
        lambda x: (turned(x, 16, **plain) * torch.tensor(wide(weights))).sum(),
        (x,),
    )
    near(mx.jvp(lambda x: mx.fast.rope(x, 16, **plain), [x], [weights])[1][0], wide(mx.fast.rope(weights, 16, **plain)))


def test_rope_refusals() -> None:
    x = make(2, 4, 6, 32)
    options = {"traditional": False, "base": 10000.0, "scale": 1.0, "offset": 0}
    for change, match in (
        ({"dims": 7}, "even"), ({"dims": 64}, "exceed"), ({"dims": 0}, "positive"), ({"base": None}, "Neither"),
        ({"freqs": mx.ones((16,))}, "Only one"), ({"base": None, "freqs": mx.ones((8,))}, "size 16"),
        ({"offset": mx.zeros((3,), mx.int32)}, "2 elements"), ({"offset": mx.zeros((2, 1), mx.int32)}, "one dimension"),
        ({"offset": mx.array(1.5)}, "integer"), ({"a": x[0, 0]}, "3 dimensions"),
        ({"a": x.astype(mx.int32)}, "floating"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            mx.fast.rope(**{"a": x, "dims": 32, **options, **change})


# -- attention


def attended(q: Any, k: Any, v: Any, *, scale: float, mask: Any = None, sinks: Any = None) -> Any:
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.mT * scale
    if isinstance(mask, str):
        scores = scores.masked_fill(
            torch.ones(scores.shape[-2:]).tril(scores.shape[-1] - scores.shape[-2]) == 0, -torch.inf
        )
    elif mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if sinks is not None:
        scores = torch.cat((sinks[None, :, None, None].expand(*scores.shape[:-1], 1), scores), -1)
    weights = torch.softmax(scores, -1)
    return (weights[..., 1:] if sinks is not None else weights) @ v


def operands(dtype: Any = mx.float32) -> Any:
    return (
        make(2, 8, 7, 32, dtype=dtype),
        make(2, 2, 9, 32, seed=1, dtype=dtype),
        make(2, 2, 9, 24, seed=2, dtype=dtype),
    )


def masks(dtype: Any = mx.float32) -> dict[str, Any]:
    return {
        "none": None,
        "causal": "causal",
        "boolean": mx.array(np.random.default_rng(3).random((2, 1, 7, 9)) < 0.7),
        "additive": make(8, 7, 9, seed=4, dtype=dtype),
    }


def for_torch(mask: Any) -> Any:
    if mask is None or isinstance(mask, str):
        return mask
    return torch.tensor(np.array(mask)) if mask.dtype is mx.bool_ else torch.tensor(wide(mask))


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize("kind", ["none", "causal", "boolean", "additive"])
@pytest.mark.parametrize("sunk", [False, True])
def test_attention(kind: str, sunk: bool, dtype: Any, tolerance: float) -> None:
    q, k, v = operands(dtype)
    mask, sinks = masks(dtype)[kind], make(8, seed=5, dtype=dtype) if sunk else None
    found = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.2, mask=mask, sinks=sinks)
    assert found.dtype is dtype
    given = [torch.tensor(wide(x)) for x in (q, k, v)]
    near(
        found,
        attended(*given, scale=0.2, mask=for_torch(mask), sinks=None if sinks is None else torch.tensor(wide(sinks))),
        tolerance,
    )


@pytest.mark.parametrize("kind", ["none", "causal", "boolean", "additive"])
def test_gradients_of_attention(kind: str) -> None:
    arrays, mask, weights = operands(), masks()[kind], make(2, 8, 7, 24, seed=6)
    other, sinks = torch.tensor(wide(weights)), make(8, seed=5)
    same_gradients(
        lambda q, k, v, s: (
            mx.fast.scaled_dot_product_attention(q, k, v, scale=0.2, mask=mask, sinks=s) * weights
        ).sum(),
        lambda q, k, v, s: (attended(q, k, v, scale=0.2, mask=for_torch(mask), sinks=s) * other).sum(),
        (*arrays, sinks),
    )
    if kind == "additive":
        q, k, v = arrays
        plain = [torch.tensor(wide(x)) for x in arrays]
        same_gradients(
            lambda m: (mx.fast.scaled_dot_product_attention(q, k, v, scale=0.2, mask=m) * weights).sum(),
            lambda m: (attended(*plain, scale=0.2, mask=m) * other).sum(),
            (mask,),
        )


def test_attention_to_nothing_of_strides_and_batches() -> None:
    q, k, v = operands()
    blind = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.2, mask=mx.zeros((7, 9), mx.bool_))
    near(blind, np.broadcast_to(wide(v).mean(2, keepdims=True).repeat(4, 1), blind.shape))
    assert (
        mx.fast.scaled_dot_product_attention(q, k[:, :, :0], v[:, :, :0], scale=1.0).tolist()
        == mx.zeros((2, 8, 7, 24)).tolist()
    )
    cache = make(2, 2, 64, 32, seed=8)
    given = [torch.tensor(wide(x)) for x in (q, cache[:, :, 3:12], v)]
    near(mx.fast.scaled_dot_product_attention(q, cache[:, :, 3:12], v, scale=0.2), attended(*given, scale=0.2))
    batched = mx.vmap(lambda q, k, v: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.2))
    found = batched(*(mx.stack([x, 2 * x]) for x in (q, k, v)))
    near(found[1], wide(mx.fast.scaled_dot_product_attention(2 * q, 2 * k, 2 * v, scale=0.2)))


def test_attention_refusals() -> None:
    q, k, v = operands()
    for change, match in (
        ({"q": q[0]}, "rank 4"), ({"q": q[:1]}, "batch"), ({"q": q[:, :3]}, "multiple"),
        ({"q": q[..., :8]}, "last dimension"),
        ({"v": v[:, :1]}, "n_kv_heads"), ({"v": v[:, :, :5]}, "as many"), ({"mask": "other"}, "mask option"),
        ({"mask": mx.zeros((7, 8))}, "broadcast"), ({"mask": mx.zeros((1, 1, 1, 7, 9))}, "rank 4"),
        ({"sinks": mx.zeros((2,))}, "sinks"),
        ({"q": q.astype(mx.int32), "k": k.astype(mx.int32), "v": v.astype(mx.int32)}, "type"),
        ({x: y.astype(mx.float16) for x, y in (("q", q), ("k", k), ("v", v))} | {"mask": mx.zeros((7, 9))}, "promote"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            mx.fast.scaled_dot_product_attention(**{"q": q, "k": k, "v": v, "scale": 1.0, **change})
    with pytest.raises(ValueError, match="force_fused"):
        mx.fast.scaled_dot_product_attention(q, k, v, scale=1.0, force_fused=True, stream=mx.cpu)


# -- the others


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
def test_cross_entropy(dtype: Any, tolerance: float) -> None:
    del tolerance  # losses are float32 whatever the type of logits
    logits, targets = make(3, 5, 32, dtype=dtype), mx.array(np.random.default_rng(1).integers(0, 32, (3, 5)))
    found = mx.fast.cross_entropy(logits, targets)
    assert found.dtype is mx.float32
    flat, places = torch.tensor(wide(logits)).flatten(0, 1), torch.tensor(np.array(targets)).flatten()
    near(found, torch.nn.functional.cross_entropy(flat, places, reduction="none").view(3, 5))
    if dtype is mx.float32:
        same_gradients(
            lambda x: (mx.fast.cross_entropy(x, targets) ** 2).sum(),
            lambda x: torch.nn.functional.cross_entropy(x.flatten(0, 1), places, reduction="none").square().sum(),
            (logits,),
        )
    for call, match in (
        (lambda: mx.fast.cross_entropy(logits, targets[0]), "does not match"),
        (lambda: mx.fast.cross_entropy(logits, targets.astype(mx.float32)), "integer"),
        (lambda: mx.fast.cross_entropy(logits.astype(mx.int32), targets), "unsupported"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("masked", [False, True])
def test_gated_delta_update(masked: bool) -> None:
    q, k, v = make(2, 5, 2, 8) * 0.3, make(2, 5, 2, 8, seed=1) * 0.3, make(2, 5, 4, 6, seed=2)
    gamma, beta, state = mx.sigmoid(make(2, 5, 4, seed=3)), mx.sigmoid(make(2, 5, 4, seed=4)), make(2, 4, 6, 8, seed=5)
    mask = mx.array([[True, True, False, True, False], [False, True, True, True, True]]) if masked else None
    found, last = mx.fast.gated_delta_update(q, k, v, gamma, beta, state, mask)
    now, rows = wide(state), []
    for t in range(5):
        key, query = (np.repeat(wide(x)[:, t], 2, 1)[:, :, None, :] for x in (k, q))
        decayed = now * wide(gamma)[:, t, :, None, None]
        change = (wide(v)[:, t] - (decayed * key).sum(-1)) * wide(beta)[:, t, :, None]
        new = decayed + change[..., None] * key
        seen = np.array(mask)[:, t, None, None] if masked else np.ones((2, 1, 1), bool)
        rows.append(np.where(seen, (new * query).sum(-1), 0))
        now = np.where(seen[..., None], new, now)
    near(found, np.stack(rows, 1))
    near(last, now)
    assert last.dtype is mx.float32
    with pytest.raises(ValueError, match="state"):
        mx.fast.gated_delta_update(q, k, v, gamma, beta, state[:, :2])


def test_foreign_kernels_can_be_named_and_not_called() -> None:
    given = {"name": "twice", "input_names": ["x"], "output_names": ["y"], "source": "y[0] = x[0];"}
    metal = mx.fast.metal_kernel(**given, compile_options={"math_mode": "fast"})
    with pytest.raises(NotImplementedError, match="Metal"):
        metal(inputs=[mx.zeros((1,))], grid=(1, 1, 1), threadgroup=(1, 1, 1))
    with pytest.raises(NotImplementedError, match="CUDA"):
        mx.fast.cuda_kernel(**given)()
    with pytest.raises(ValueError, match="math_mode"):
        mx.fast.metal_kernel(**given, compile_options={"math_mode": "precise"})
    with pytest.raises(ValueError, match="option"):
        mx.fast.metal_kernel(**given, compile_options={"other": 1})
    with pytest.raises(NotImplementedError, match="NVIDIA"):
        mx.fast.precompiled_cuda_kernel(
            name="twice", compiled_source=b"", inputs=[], output_shapes=[], output_dtypes=[], scalars=[],
            grid=(1, 1, 1), threadgroup=(1, 1, 1),
        )  # fmt: skip


def test_batches() -> None:
    x, w = make(3, 2, 4, 6, 32), make(6, 3, 32, seed=1)
    options = {"traditional": False, "base": 100.0, "scale": 1.0}
    for offset in (3, mx.array(3), mx.array([3, 5])):
        found = mx.vmap(lambda x, offset=offset: mx.fast.rope(x, 16, offset=offset, **options))(x)
        near(found, np.stack([wide(mx.fast.rope(x[i], 16, offset=offset, **options)) for i in range(3)]))
    places = mx.array([1, 7, 9])
    found = mx.vmap(lambda x, offset: mx.fast.rope(x, 16, offset=offset, **options))(x, places)
    near(found, np.stack([wide(mx.fast.rope(x[i], 16, offset=places[i], **options)) for i in range(3)]))
    norm = mx.vmap(lambda x, w, b: mx.fast.layer_norm(x, w, b, 1e-5), in_axes=(1, None, None), out_axes=1)
    near(norm(x, w[0, 0], w[0, 1]), wide(mx.fast.layer_norm(x, w[0, 0], w[0, 1], 1e-5)))
    each = mx.vmap(lambda x, w: mx.fast.layer_norm(x, w, None, 1e-5))(x, w[:3, 0])
    near(each, np.stack([wide(mx.fast.layer_norm(x[i], w[i, 0], None, 1e-5)) for i in range(3)]))
    image, taps = make(3, 2, 9, 4), make(3, 5, 3, 4, seed=1)
    near(
        mx.vmap(mx.conv1d, in_axes=(0, None))(image, taps[0]),
        np.stack([wide(mx.conv1d(one, taps[0])) for one in image]),
    )
    both = np.stack([wide(mx.conv1d(image[i], taps[i])) for i in range(3)])
    near(mx.vmap(mx.conv1d)(image, taps), both)
    words, scales, biases = mx.quantize(make(8, 64))
    rows = make(5, 2, 64, seed=2)
    found = mx.vmap(lambda x: mx.quantized_matmul(x, words, scales, biases))(rows)
    near(found, wide(mx.quantized_matmul(rows, words, scales, biases)))
