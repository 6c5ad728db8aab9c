"""Rotary positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.kernels.ops.attention.rope import reference
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms import fallback

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["rope"]

_MOST = 4096
_known: dict[Any, Any] = {}  # attributes, by shapes, types and options


def _run(node: Node, x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    dims, traditional, base, scale, of_array, has_freqs, inverse = node.attrs
    offset: Any = rest[0] if of_array else node.dyn[0]  # type: ignore[index]
    place: Any = kernels if kernel_use.fits(x) else reference
    run = place.rope_backward if inverse else place.rope
    out: torch.Tensor = run(
        x, dims, traditional=traditional, base=base, scale=scale, offset=offset, freqs=rest[-1] if has_freqs else None
    )
    return out


ROPE = Primitive("RoPE", _run)


def rope(
    a: Any, dims: int, *, traditional: bool, base: float | None, scale: float, offset: int | array,
    freqs: array | None = None, stream: Any = None,
) -> array:  # fmt: skip
    """Rotate pairs of elements by angles that grow with their place: ``(offset + t) · scale · base^(-2i / dims)``.

    Args:
        a: ``[batch, ..., tokens, size]`` of a floating type.
        dims: how many leading elements are rotated, even; the others stay.
        traditional: pairs are neighbours; otherwise an element of the first half of dims with one of the second.
        base: of the frequencies; None where ``freqs`` is given.
        scale: multiplies places.
        offset: added to places: a number, or an array of integers, one or one for each entry of the batch.
        freqs: ``[dims / 2]``, what places are divided by.
        stream: where it is computed.

    Returns:
        The shape and type of a.

    Raises:
        ValueError: shapes, types or options that do not fit.
    """
    if type(a) is not array:
        a = to_array(a)
    node = a._n
    shape = node.shape
    if type(offset) is int and freqs is None:
        key: Any = (shape, node.dtype, dims, traditional, base, scale)
        attrs = _known.get(key) or _check(key, shape, node.dtype, dims, traditional, base, scale, None, None)
        where = stream if stream is None else as_stream(stream)
        return record(ROPE, (node,), shape, node.dtype, attrs, (offset,), where)
    inputs = [node]
    dyn: tuple[int, ...] | None = None
    places = divisors = None
    if type(offset) is int:
        dyn = (offset,)
    else:
        offset = to_array(offset)
        inputs.append(offset._n)
        places = (offset._n.shape, offset._n.dtype)
    if freqs is not None:
        inputs.append(freqs._n)
        divisors = (freqs._n.shape, freqs._n.dtype)
    key = (shape, node.dtype, dims, traditional, base, scale, places, divisors)
    attrs = _known.get(key) or _check(key, shape, node.dtype, dims, traditional, base, scale, places, divisors)
    if divisors is not None and not divisors[1].is_float:
        inputs[-1] = ops.astype(freqs, dtypes.float32, stream=stream)._n
    where = stream if stream is None else as_stream(stream)
    return record(ROPE, tuple(inputs), shape, node.dtype, attrs, dyn, where)


def _check(
    key: Any, shape: tuple[int, ...], dtype: Any, dims: int, traditional: bool, base: float | None, scale: float,
    places: Any, divisors: Any,
) -> Any:  # fmt: skip
    """Check arguments and return the primitive's attributes."""
    if len(shape) < 3:
        raise ValueError(f"[rope] Input must have at least 3 dimensions but got input with {len(shape)} dimensions.")
    if not dtype.is_float:
        raise ValueError(f"[rope] Input must be a floating type but got {dtype}.")
    if dims <= 0:
        raise ValueError(f"[rope] dims must be positive but got {dims}.")
    if dims % 2:
        raise ValueError(f"[rope] dims must be even but got {dims}.")
    if dims > shape[-1]:
        raise ValueError(f"[rope] dims must not exceed the input's last dimension ({shape[-1]}) but got {dims}.")
    if places is not None:
        if len(places[0]) > 1:
            raise ValueError(f"[rope] offset must have at most one dimension but has shape {shape_text(places[0])}.")
        if places[0] not in ((), (1,), (shape[0],)):
            raise ValueError(
                f"[rope] offset must be a scalar or vector with {shape[0]} elements but has shape "
                f"{shape_text(places[0])}."
            )
        if places[1].is_inexact or places[1] is dtypes.bool_:
            raise ValueError(f"[rope] offset must be an integer but got type {places[1]}.")
    if divisors is None and base is None:
        raise ValueError("[rope] Neither base nor freqs has a value.")
    if divisors is not None:
        if base is not None:
            raise ValueError("[rope] Only one of base or freqs can have a value.")
        if divisors[0] != (dims // 2,):
            raise ValueError(
                f"[rope] freqs must be one dimensional with size {dims // 2} but got shape {shape_text(divisors[0])}."
            )
    if len(_known) >= _MOST:
        _known.clear()
    attrs = _known[key] = (
        dims, bool(traditional), None if base is None else float(base), float(scale), places is not None,
        divisors is not None, False,
    )  # fmt: skip
    return attrs


def _turned(node: Node, x: array, rest: Any, *, inverse: bool) -> array:
    attrs = (*node.attrs[:-1], inverse)
    return record(ROPE, (x._n, *(one._n for one in rest)), x.shape, x.dtype, attrs, node.dyn, node.stream)


@ROPE.rule("vjp")
def _vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    return (_turned(node, cotangent, primals[1:], inverse=not node.attrs[-1]), *(None for _ in primals[1:]))


@ROPE.rule("vmap")
def _vmap(node: Node, arrays: Any, axes: Any) -> Any:
    s = node.stream
    x, *rest = arrays
    shared = all(axis is None for axis in axes[1:]) and (not node.attrs[4] or rest[0].size == 1)
    if axes[0] is None or not shared:
        size = next(one.shape[axis] for one, axis in zip(arrays, axes, strict=True) if axis is not None)
        return fallback.vmap(node, list(arrays), list(axes), size)
    x = ops.moveaxis(x, axes[0], 0, stream=s)
    return record(ROPE, (x._n, *(one._n for one in rest)), x.shape, x.dtype, node.attrs, node.dyn, s), 0


@ROPE.rule("jvp")
def _jvp(node: Node, primals: Any, tangents: Any, _: array) -> array:
    return _turned(node, tangents[0], primals[1:], inverse=node.attrs[-1])
