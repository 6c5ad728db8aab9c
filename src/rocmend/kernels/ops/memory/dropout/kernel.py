"""The Triton kernels: the mask is drawn where it is used, and drawn again in the backward pass."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common import axes
from rocmend.kernels.common.threefry import two_words
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.memory.dropout.reference import mlx_numbers, philox_numbers
from rocmend.kernels.tuning import config_for


@triton.jit
def _kept(x_ptr, out_ptr, bits, at, inside, keep, scale):
    """Multiply by the truth value, as MLX does: what is dropped keeps its sign, and NaN stays."""
    x = tl.load(x_ptr + at, mask=inside, other=0).to(tl.float32)
    mask = (bits.to(tl.float32) < keep * 4294967808.0).to(tl.float32)
    tl.store(out_ptr + at, narrow(x * mask * scale, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def threefry_kernel(key_ptr, x_ptr, out_ptr, words, half, keep, scale, BLOCK: tl.constexpr):
    """Elements i and half + i take the two words of one counter."""
    word = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    first, second = two_words(key_ptr, 0, word, half, words)
    _kept(x_ptr, out_ptr, first, word, word < words - half, keep, scale)
    _kept(x_ptr, out_ptr, second, word + (words - half), word < half, keep, scale)


@triton.jit
def philox_kernel(state_ptr, x_ptr, out_ptr, n, threshold, scale, BLOCK: tl.constexpr):
    """Elements 4 i … 4 i + 3 take the four words of counter (i + offset, 0), keyed by the seed."""
    seed = tl.load(state_ptr)
    counter = tl.load(state_ptr + 1) + tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    low, high = (counter & 0xFFFFFFFF).to(tl.uint32), ((counter >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = low * 0
    a, b, c, d = tl.philox(seed, low, high, zero, zero)
    bits = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), (4 * BLOCK,))
    at = tl.program_id(0).to(tl.int64) * (4 * BLOCK) + tl.arange(0, 4 * BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0).to(tl.float32)
    kept = bits.to(tl.int64) >= threshold
    tl.store(out_ptr + at, narrow(tl.where(kept, x * scale, 0.0), out_ptr.dtype.element_ty), mask=inside)


def run(x: Tensor, p: float, state: Tensor, *, generator: str) -> Tensor:
    """Drop elements; see ``function.dropout_mlx`` and ``function.dropout_philox``."""
    x = x.contiguous()
    out = allocate.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    config = config_for("dropout", generator, "*", executor.target_for(x.device))
    if generator == "threefry":
        keep, scale = mlx_numbers(p, x.dtype)
        half = n // 2
        args = (axes.raw(state), x, out, n, half, keep, scale)
        launch(threefry_kernel, (cdiv(n - half, config["BLOCK"]),), args, {}, config)
    else:
        threshold, scale = philox_numbers(p)
        grid = (cdiv(n, 4 * config["BLOCK"]),)
        launch(philox_kernel, grid, (state, x, out, n, threshold, scale), {}, config)
    return out
