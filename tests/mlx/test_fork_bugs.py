"""Computations that went wrong for users of MLX on AMD GPUs elsewhere: each against float64, on the CPU and on a GPU.

They are of the kinds that no error tells of: outputs left unwritten, products of strided operands that were never
computed, kernels chosen for the wrong format. Outputs are large enough to be written by several blocks of a GPU.
"""

from __future__ import annotations

import json
import math
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core

mx: Any = core

HALVES = [mx.float16, mx.bfloat16]
TOLERANCE = {mx.float32: 2e-5, mx.float16: 4e-3, mx.bfloat16: 3e-2}  # of the largest value
pytestmark = pytest.mark.usefixtures("device")
DEVICES = [pytest.param("cpu", marks=pytest.mark.cpu), pytest.param("gpu", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Compute there; skipped where there is no GPU."""
    if request.param == "gpu" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    before = mx.default_device()
    mx.set_default_device(mx.gpu if request.param == "gpu" else mx.cpu)
    yield request.param
    mx.set_default_device(before)


def make(*shape: int, seed: int = 0, dtype: Any = mx.float32) -> Any:
    return mx.array(np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)).astype(dtype)


def wide(x: Any) -> Any:
    """Return an array's values as float64, brought over through float32, which every type here fits into."""
    return np.array(x.astype(mx.float32)).astype(np.float64)


def near(found: Any, expected: Any, dtype: Any, *, scale: float = 1.0) -> None:
    got = wide(found)
    assert found.dtype == dtype
    assert got.shape == expected.shape
    assert np.isfinite(got).all()
    allowed = TOLERANCE[dtype] * scale * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(got, expected, rtol=0, atol=allowed)


def attention(q: Any, k: Any, v: Any, scale: float, *, causal: bool) -> Any:
    """Grouped attention in float64: ``[B, H, L, D]`` and keys and values of fewer heads."""
    times = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, times, axis=1), np.repeat(v, times, axis=1)
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        rows, columns = scores.shape[-2:]
        seen = np.arange(columns)[None, :] <= np.arange(rows)[:, None] + columns - rows
        scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("length", [1, 5, 33])
def test_grouped_attention_with_strides_that_differ(dtype: Any, length: int) -> None:
    """Keys are part of a cache that is longer than they are, values are transposed, queries come from a projection."""
    batch, heads, kv_heads, size, depth = 2, 8, 2, 64, 70
    q = make(batch, length, heads, size, seed=1, dtype=dtype).transpose(0, 2, 1, 3)
    k = make(batch, kv_heads, 256, size, seed=2, dtype=dtype)[:, :, :depth]
    v = make(batch, depth, kv_heads, 2 * size, seed=3, dtype=dtype).transpose(0, 2, 1, 3)[..., ::2]
    for mask in (None, "causal"):
        found = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.125, mask=mask)
        expected = attention(wide(q), wide(k), wide(v), 0.125, causal=mask is not None)
        near(found, expected, dtype)


@pytest.mark.parametrize("dtype", [mx.float32, *HALVES])
@pytest.mark.parametrize(("length", "depth"), [(1, 9), (1, 1025), (7, 40), (65, 65)])
def test_attention_of_256_writes_every_element(dtype: Any, length: int, depth: int) -> None:
    size = 256
    q, k = make(1, 4, length, size, seed=4, dtype=dtype), make(1, 2, depth, size, seed=5, dtype=dtype)
    v = make(1, 2, depth, size, seed=6, dtype=dtype)
    mx.eval(q, k, v)
    # memory that the result may be given holds NaN, so that an element which is not written shows
    dirty = mx.full((1, 4, length, size), math.nan, dtype=dtype)
    mx.eval(dirty)
    del dirty
    found = mx.fast.scaled_dot_product_attention(q, k, v, scale=1 / 16, mask="causal" if length > 1 else None)
    near(found, attention(wide(q), wide(k), wide(v), 1 / 16, causal=length > 1), dtype)


def gathered(x: Any, parts: tuple[Any, ...], chosen: Any, mode: dict[str, Any]) -> Any:
    """Return ``x[b] @ w[chosen[b]].T`` in float64 of the weights as they are dequantized."""
    weights = wide(mx.dequantize(*parts, dtype=mx.float32, **mode))
    return np.stack([wide(x)[row] @ weights[expert].T for row, expert in enumerate(chosen)])


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("sort", [False, True])
def test_expert_batched_gather_in_bfloat16(rows: int, sort: bool) -> None:
    experts, outputs, inputs = 6, 96, 256
    mode = {"group_size": 64, "bits": 4}
    parts = mx.quantize(make(experts, outputs, inputs, seed=7, dtype=mx.bfloat16), **mode)
    chosen = np.array([5, 0, 3, 3, 1, 5, 2, 4, 0])
    chosen = np.sort(chosen) if sort else chosen
    x = make(len(chosen), rows, inputs, seed=8, dtype=mx.bfloat16)
    found = mx.gather_qmm(
        x, *parts, rhs_indices=mx.array(chosen.astype(np.uint32)), transpose=True, sorted_indices=sort, **mode
    )
    near(found, gathered(x, parts, chosen, mode), mx.bfloat16)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("rows", [1, 4, 40])
def test_gather_of_mxfp4(dtype: Any, rows: int) -> None:
    """The scales are exponents and there are no biases: taken for another format, nothing of the result is right."""
    mode = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
    parts = mx.quantize(make(5, 64, 128, seed=9), **mode)
    assert len(parts) == 2
    chosen = np.array([4, 1, 1, 0])
    x = make(len(chosen), rows, 128, seed=10, dtype=dtype)
    found = mx.gather_qmm(x, *parts, rhs_indices=mx.array(chosen.astype(np.uint32)), transpose=True, **mode)
    near(found, gathered(x, parts, chosen, mode), dtype)


@pytest.mark.parametrize("dtype", [mx.float32, *HALVES])
@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize(("outputs", "inputs"), [(64, 512), (100, 384), (8, 4096)])
def test_vector_times_8_bits(dtype: Any, group: int, outputs: int, inputs: int) -> None:
    mode = {"group_size": group, "bits": 8}
    parts = mx.quantize(make(outputs, inputs, seed=11, dtype=dtype), **mode)
    x = make(1, inputs, seed=12, dtype=dtype)
    found = mx.quantized_matmul(x, *parts, transpose=True, **mode)
    near(found, wide(x) @ wide(mx.dequantize(*parts, dtype=mx.float32, **mode)).T, dtype)


@pytest.mark.parametrize("dtype", [*HALVES, mx.float32])
def test_sorting_with_nan(dtype: Any) -> None:
    """NaN comes last, and everything else stays in order: one NaN must not stop the comparisons around it."""
    values = np.random.default_rng(13).permutation(np.arange(-300.0, 300.0)).astype(np.float32).reshape(3, 200)
    values[0, [0, 57, 199]] = np.nan
    values[1, 100] = -np.nan  # the sign of a NaN says nothing
    values[2, [3, 4]] = [np.inf, -np.inf]
    x = mx.array(values).astype(dtype)
    expected = np.sort(wide(x), axis=-1)
    np.testing.assert_array_equal(wide(mx.sort(x, axis=-1)), expected)
    order = np.array(mx.argsort(x, axis=-1))
    np.testing.assert_array_equal(np.sort(order, axis=-1), np.broadcast_to(np.arange(200), (3, 200)))
    np.testing.assert_array_equal(np.take_along_axis(wide(x), order, axis=-1), expected)


@pytest.mark.parametrize("dtype", HALVES)
def test_rms_norm_rounds_between(dtype: Any) -> None:
    """The normalised value is rounded to the type before the weight is applied, and the root is no approximation."""
    x, weight = make(64, 1024, seed=14, dtype=dtype), make(1024, seed=15, dtype=dtype)
    normalised = wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 1e-5)

    def rounded(values: Any) -> Any:
        return wide(mx.array(values.astype(np.float32)).astype(dtype))

    between, once = rounded(rounded(normalised) * wide(weight)), rounded(normalised * wide(weight))
    found = wide(mx.fast.rms_norm(x, weight, 1e-5))
    assert (between == once).mean() < 0.9  # otherwise the comparison could not tell them apart
    assert (found == between).mean() > 0.999  # a sum in float32 may tip a value that lies between two


def test_rms_norm_takes_an_exact_root() -> None:
    x = make(64, 1024, seed=16) * 10 ** make(64, 1, seed=17)
    expected = wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 1e-6)
    found = wide(mx.fast.rms_norm(x, None, 1e-6))
    # a few roundings of float32; an approximate reciprocal root is off by many more
    assert np.abs(found / expected - 1).max() < 5 * 2**-24


@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16])
@pytest.mark.parametrize("kind", ["transposed", "sliced", "broadcast", "reordered"])
def test_batched_products_with_strides_that_are_not_uniform(dtype: Any, kind: str) -> None:
    """No single stride leads from one matrix of the batch to the next."""
    if kind == "transposed":
        a, b = make(3, 32, 4, 48, seed=18, dtype=dtype).transpose(0, 2, 1, 3), make(3, 4, 48, 40, seed=19, dtype=dtype)
    elif kind == "sliced":
        a = make(5, 6, 33, 48, seed=20, dtype=dtype)[::2, 1:5]
        b = make(3, 9, 40, 48, seed=21, dtype=dtype)[:, ::-2][:, :4].swapaxes(-1, -2)
    elif kind == "broadcast":
        a = mx.broadcast_to(make(3, 1, 17, 48, seed=22, dtype=dtype), (3, 4, 17, 48))
        b = mx.broadcast_to(make(1, 4, 48, 40, seed=23, dtype=dtype), (3, 4, 48, 40))
    else:
        a = make(4, 48, 3, 33, seed=24, dtype=dtype).transpose(2, 0, 3, 1)
        b = make(40, 3, 48, 4, seed=25, dtype=dtype).transpose(1, 3, 2, 0)
    near(mx.matmul(a, b), wide(a) @ wide(b), dtype)


CHILD = """
import sys
from rocmend.mlx import core as mx
mx.set_default_device(mx.gpu if sys.argv[2] == "gpu" else mx.cpu)
tensors = mx.load(sys.argv[1])
first, last, small = (tensors[name] for name in ("a", "z", "small"))
assert first.shape == last.shape, (first.shape, last.shape)
print(first[0, :4].tolist(), last[-1, -4:].tolist(), small.tolist(), flush=True)
"""


@pytest.mark.slow
def test_a_second_process_loads_a_large_file(device: str, tmp_path: Path) -> None:
    """Two processes one after the other, and one beside another, map a file of 4 GiB, most of it a hole."""
    rows, columns = 1 << 15, 1 << 15  # 2 GiB of bfloat16: offsets beyond 2^31 within a file, and sizes at it
    size = rows * columns * 2
    entries = {
        name: {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [number * size, (number + 1) * size]}
        for number, name in enumerate(("a", "z"))
    }
    entries["small"] = {"dtype": "F32", "shape": [3], "data_offsets": [2 * size, 2 * size + 12]}
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    path = tmp_path / "model.safetensors"
    ends = [b"\x80\x3f\x00\x40\x40\x40\x80\x40", b"\xa0\x40\xc0\x40\xe0\x40\x00\x41"]  # 1 to 4 and 5 to 8
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        start = file.tell()
        file.write(ends[0])
        file.seek(start + 2 * size - len(ends[1]))
        file.write(ends[1] + struct.pack("<3f", 1.5, -2.5, 3.5))
    if path.stat().st_blocks * 512 > size // 2:
        pytest.skip("this file system keeps no holes")
    if device == "gpu" and torch.cuda.mem_get_info()[0] < 3 * size:
        pytest.skip("the GPU has no room for it")
    expected = "[1.0, 2.0, 3.0, 4.0] [5.0, 6.0, 7.0, 8.0] [1.5, -2.5, 3.5]"
    command = [sys.executable, "-c", CHILD, str(path), device]
    for together in (1, 2):
        children = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(together)
        ]
        try:
            for child in children:
                out, errors = child.communicate(timeout=300)
                assert child.returncode == 0, errors[-2000:]
                assert out.strip() == expected
        finally:
            for child in children:
                child.kill()
