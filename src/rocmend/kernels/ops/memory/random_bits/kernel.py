"""The Triton kernels: words of a stream, and numbers made of them the way MLX makes them."""

# Triton reads this: no sets, only whole chains of if and else are left out at compile time, constants are parameters.
# ruff: noqa: SIM300, RET505

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common import axes
from rocmend.kernels.common.threefry import two_words
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.tuning import config_for


@triton.jit
def _erfinv(x):
    """Return the inverse error function in fp32. Source: M. Giles, Approximating the erfinv function (2010)."""
    w = -tl.log((1.0 - x) * (1.0 + x))
    near = w - 2.5
    p = 2.81022636e-08
    p = 3.43273939e-07 + p * near
    p = -3.5233877e-06 + p * near
    p = -4.39150654e-06 + p * near
    p = 0.00021858087 + p * near
    p = -0.00125372503 + p * near
    p = -0.00417768164 + p * near
    p = 0.246640727 + p * near
    p = 1.50140941 + p * near
    far = tl.sqrt_rn(tl.maximum(w, 5.0)) - 3.0
    q = -0.000200214257
    q = 0.000100950558 + q * far
    q = 0.00134934322 + q * far
    q = -0.00367342844 + q * far
    q = 0.00573950773 + q * far
    q = -0.0076224613 + q * far
    q = 0.00943887047 + q * far
    q = 1.00167406 + q * far
    q = 2.83297682 + q * far
    return tl.where(w < 5.0, p, q) * x


@triton.jit
def _rounded(x, nothing):
    """Keep a product from becoming part of a fused multiply-add: its bits pass an exclusive or with a run-time 0."""
    return (x.to(tl.int32, bitcast=True) ^ nothing).to(tl.float32, bitcast=True)


@triton.jit
def _below(bits, TO: tl.constexpr):
    """Return a number of [0, 1) in fp32, a value of ``TO``: 2^-32 of the bits, at most the one before 1."""
    unit = bits.to(tl.float32) * 2.3283064365386963e-10
    if TO == tl.float16:
        return narrow(tl.minimum(unit, 0.99951171875), TO).to(tl.float32)
    if TO == tl.bfloat16:
        rounded = tl.minimum(unit, 0.99609375)
        return narrow(rounded, TO).to(tl.float32)
    return tl.minimum(unit, 0.99999994039535522)


@triton.jit
def _affine(unit, low, span, nothing, TO: tl.constexpr):
    """Return ``span · unit + low``, rounded after each operation to ``TO``."""
    product = _rounded(unit * span, nothing)
    if TO != tl.float32:
        product = narrow(product, TO).to(tl.float32)
    return product + low


@triton.jit
def _value(bits, low, span, nothing, KIND: tl.constexpr, TO: tl.constexpr):
    if KIND == "bits":
        return bits.to(tl.int32, bitcast=True)
    elif KIND == "bernoulli":
        return (bits.to(tl.float32) < low * 4294967808.0).to(tl.int8)
    elif KIND == "uniform":
        return narrow(_affine(_below(bits, TO), low, span, nothing, TO), TO)
    elif KIND == "gumbel":
        unit = _below(bits, TO)
        if TO == tl.float32:
            return -tl.log(-tl.log(unit))
        inner = narrow(tl.log(unit), TO).to(tl.float32)
        return narrow(-tl.log(-inner), TO)
    else:
        # (-1, 1): the width is that of MLX, 1 - nextafter(-1, 0) rounded to fp32.
        unit = _rounded(_below(bits, tl.float32) * 2.0, nothing) - 0.99999994039535522
        normal = narrow(_erfinv(unit), TO).to(tl.float32)
        return narrow(_affine(normal, low, span, nothing, TO), TO)


@triton.jit
def stream_kernel(
    key_ptr, out_ptr, low, span, words, half, nothing, KIND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the stream of each key: ``out[key, words]``."""
    number = tl.program_id(1).to(tl.int64)
    word = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    first, second = two_words(key_ptr, number, word, half, words)
    to = out_ptr + number * words + word
    TO: tl.constexpr = out_ptr.dtype.element_ty
    tl.store(to, _value(first, low, span, nothing, KIND, TO), mask=word < words - half)
    tl.store(to + (words - half), _value(second, low, span, nothing, KIND, TO), mask=word < half)


def run(key: Tensor, shape: Sequence[int], *, kind: str, low: float, span: float, dtype: torch.dtype) -> Tensor:
    """Draw numbers; see ``function.random_bits`` and the others."""
    keys = axes.raw(key).contiguous().view(-1, 2)
    elements = math.prod(shape)
    sizes = (*key.shape[:-1], *shape)
    width = dtype.itemsize if kind == "bits" else 4
    words = -(-elements * width // 4)
    storage = torch.int32 if kind == "bits" else torch.int8 if kind == "bernoulli" else dtype
    out = allocate.empty((keys.shape[0], words), dtype=storage, device=key.device)
    if out.numel():
        config = config_for("random_bits", "stream", kind, executor.target_for(key.device))
        half = words // 2
        grid = (cdiv(words - half, config["BLOCK"]), keys.shape[0])
        launch(stream_kernel, grid, (keys, out, low, span, words, half, 0), {"KIND": kind}, config)
    if kind == "bits":
        # The last word of a stream of bytes may be wider than what is left of it.
        out = out.view(dtype)[:, :elements].contiguous()
    return (out.view(torch.bool) if kind == "bernoulli" else out).view(sizes)
