"""Types of arrays: conversion, reinterpretation of bits, parts of complex numbers, 8-bit floats."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.conversion import ASTYPE
from rocmend.mlx.dtypes import Dtype, bfloat16, bool_, complex64, float32, uint8
from rocmend.mlx.ops.elementwise import flat, primitive
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.node import Node

__all__ = ["astype", "conj", "conjugate", "from_fp8", "imag", "real", "to_fp8", "view"]

# -- conversion


def astype(a: array, dtype: Dtype, /, *, stream: Any = None) -> array:
    """Convert an array to another type.

    Floating values are truncated towards zero where the target is an integer; the real part of complex values is kept.

    Args:
        a: any array.
        dtype: the type of the result.
        stream: where to compute it.

    Returns:
        An array of the shape of ``a``.

    Raises:
        TypeError: ``dtype`` is no type of this module.
    """
    x = a._n if type(a) is array else to_array(a)._n
    if x.dtype is dtype:
        return wrap(x)
    if type(dtype) is not Dtype:
        raise TypeError(f"[astype] expected a Dtype such as mlx.core.float32, got {dtype!r}.")
    return record(ASTYPE, (x,), x.shape, dtype, x.dtype, None, stream if stream is None else as_stream(stream))


@ASTYPE.rule("vjp")
def _as_type_vjp(node: Node, primals: Sequence[array], output: array, cotangent: array) -> tuple[array]:
    return (astype(cotangent, node.attrs),)


@ASTYPE.rule("jvp")
def _as_type_jvp(node: Node, primals: Sequence[array], tangents: Sequence[array], output: array) -> array:
    return astype(tangents[0], node.dtype)


# -- bits


def _view(node: Node, tensor: Any) -> Any:
    source: Dtype = node.attrs
    target = node.dtype
    if source.is_unsigned and not target.is_unsigned and source.storage is target.storage:
        return tensor
    if source is bool_:
        tensor = tensor.view(torch.uint8)
    if target.size != source.size:
        if not tensor.numel():  # the strides of nothing do not fit where the elements are of another size
            return torch.empty(node.shape, dtype=target.storage, device=tensor.device)
        tensor = tensor.contiguous()
        # an axis of one element may have any stride, which torch would not divide
        tensor = tensor.as_strided(tensor.shape, [prod(tensor.shape[axis + 1 :]) for axis in range(tensor.dim())])
    return tensor.view(target.storage)


VIEW = Primitive("View", _view)


def view(a: Any, dtype: Dtype, stream: Any = None) -> array:
    """Reinterpret the bytes of an array as another type.

    Args:
        a: any array.
        dtype: the type of the result.
        stream: where to compute it.

    Returns:
        An array whose last axis is longer or shorter by the ratio of the sizes of the types.

    Raises:
        ValueError: the last axis does not hold whole elements of ``dtype``, or a scalar would change its size.
    """
    x = to_array(a)._n
    if x.dtype is dtype:
        return wrap(x)
    shape = x.shape
    have, want = x.dtype.size, dtype.size
    if have != want:
        if not shape:
            raise ValueError("[view] Changing the type of a scalar is only allowed for types with the same size.")
        if shape[-1] * have % want:
            raise ValueError(
                "[view] When viewing as a larger dtype, the size in bytes of the last axis must be a multiple of the "
                f"requested type size; got {shape[-1]} elements of {have} bytes for elements of {want} bytes."
            )
        shape = (*shape[:-1], shape[-1] * have // want)
    return record(VIEW, (x,), shape, dtype, x.dtype, None, stream if stream is None else as_stream(stream))


@VIEW.rule("vjp")
def _view_vjp(node: Node, primals: Sequence[array], output: array, cotangent: array) -> tuple[array]:
    return (ops.zeros_like(primals[0]),)


@VIEW.rule("jvp")
def _view_jvp(node: Node, primals: Sequence[array], tangents: Sequence[array], output: array) -> array:
    return ops.zeros_like(output)  # type: ignore[no-any-return]


@VIEW.rule("vmap")
def _view_vmap(node: Node, arrays: Sequence[array], axes: Sequence[int]) -> tuple[array, int]:
    x = ops.moveaxis(arrays[0], axes[0], 0)
    if x.ndim == 1:  # the last axis must not be the batch
        return ops.squeeze(view(ops.expand_dims(x, 1), node.dtype, node.stream), 1), 0
    return view(x, node.dtype, node.stream), 0


# -- complex numbers

REAL = primitive("Real", lambda node, x: torch.real(x))
IMAG = primitive("Imag", lambda node, x: torch.imag(x))
CONJUGATE = primitive("Conjugate", lambda node, x: torch.conj_physical(x))


def real(a: array, /, *, stream: Any = None) -> array:
    """Return the real part, element by element.

    Args:
        a: any array.
        stream: where to compute it.

    Returns:
        float32 for complex64; ``a`` for other types.
    """
    x = to_array(a)._n
    if not x.dtype.is_complex:
        return wrap(x)
    return record(REAL, (x,), x.shape, float32, None, None, stream if stream is None else as_stream(stream))


def imag(a: array, /, *, stream: Any = None) -> array:
    """Return the imaginary part, element by element.

    Args:
        a: any array.
        stream: where to compute it.

    Returns:
        float32 for complex64; zeros of the type of ``a`` for other types.
    """
    x = to_array(a)._n
    if not x.dtype.is_complex:
        return ops.zeros_like(wrap(x), stream=stream)  # type: ignore[no-any-return]
    return record(IMAG, (x,), x.shape, float32, None, None, stream if stream is None else as_stream(stream))


def conjugate(a: array, *, stream: Any = None) -> array:
    """Return the complex conjugate, element by element.

    Args:
        a: any array; real ones are returned as they are.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.
    """
    x = to_array(a)._n
    if not x.dtype.is_complex:
        return wrap(x)
    return record(CONJUGATE, (x,), x.shape, x.dtype, None, None, stream if stream is None else as_stream(stream))


def conj(a: array, *, stream: Any = None) -> array:
    """Return the complex conjugate, element by element; see :func:`conjugate`."""
    return conjugate(a, stream=stream)


def _times_i(g: array) -> array:
    return ops.multiply(g, ops.full((), 1j, complex64))  # type: ignore[no-any-return]


REAL.vjp = lambda node, primals, output, g: (astype(g, complex64),)
REAL.jvp = lambda node, primals, tangents, output: real(tangents[0])
IMAG.vjp = lambda node, primals, output, g: (_times_i(astype(g, complex64)),)
IMAG.jvp = lambda node, primals, tangents, output: imag(tangents[0])
CONJUGATE.vjp = lambda node, primals, output, g: (conjugate(g),)
CONJUGATE.jvp = lambda node, primals, tangents, output: conjugate(tangents[0])


# -- 8-bit floats (e4m3: 4 bits of exponent, 3 of fraction, no infinity)


def _to_fp8(node: Node, tensor: Any) -> Any:
    # torch rounds to nearest even too; beyond 448 it gives NaN where the largest number is wanted
    whole = tensor.float()
    small = whole.abs().clamp(max=448.0).copysign(whole)
    bits = small.to(torch.float8_e4m3fn).view(torch.uint8)
    # NaN saturates as well
    return torch.where(whole.isnan(), (torch.signbit(whole).to(torch.uint8) << 7) | 0x7E, bits)


def _from_fp8(node: Node, tensor: Any) -> Any:
    whole = tensor.contiguous().view(torch.float8_e4m3fn).float()
    # the bits of NaN stand for the number they would be: 480
    whole = torch.where(whole.isnan(), torch.where(tensor < 128, 480.0, -480.0), whole)
    return whole.to(node.dtype.storage)


TO_FP8 = primitive("ToFP8", _to_fp8)
FROM_FP8 = primitive("FromFP8", _from_fp8)


def to_fp8(x: array, *, stream: Any = None) -> array:
    """Round to 8-bit floats (e4m3) and return their bits.

    Args:
        x: a real floating array.
        stream: where to compute it.

    Returns:
        uint8, of the shape of ``x``. Values beyond 448 give 448.

    Raises:
        ValueError: ``x`` is not a real floating array.
    """
    n = to_array(x)._n
    if not n.dtype.is_float:
        raise ValueError(f"[to_fp8] expected a real floating type, got {n.dtype.name.removesuffix('_')}.")
    return record(TO_FP8, (n,), n.shape, uint8, None, None, stream if stream is None else as_stream(stream))


def from_fp8(x: array, dtype: Dtype = bfloat16, *, stream: Any = None) -> array:
    """Return the values of 8-bit floats (e4m3) given by their bits.

    Args:
        x: uint8.
        dtype: a real floating type.
        stream: where to compute it.

    Returns:
        An array of ``dtype`` and of the shape of ``x``.

    Raises:
        ValueError: ``x`` is not uint8, or ``dtype`` is not a real floating type.
    """
    n = to_array(x)._n
    if n.dtype is not uint8:
        raise ValueError(f"[from_fp8] expected the bits as uint8, got {n.dtype.name.removesuffix('_')}.")
    if not dtype.is_float:
        raise ValueError(
            f"[from_fp8] expected a real floating type for the result, got {dtype.name.removesuffix('_')}."
        )
    return record(FROM_FP8, (n,), n.shape, dtype, None, None, stream if stream is None else as_stream(stream))


for _op in (TO_FP8, FROM_FP8):
    flat(_op)
