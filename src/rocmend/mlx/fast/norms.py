"""RMS and layer normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.kernels.ops.rowwise.layer_norm import reference as layer_reference
from rocmend.kernels.ops.rowwise.rms_norm import reference as rms_reference
from rocmend.mlx import kernel_use
from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record, record_many
from rocmend.mlx.dtypes import promote
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms import fallback

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

_MOST = 4096
_rms: dict[Any, Dtype] = {}
_layer: dict[Any, Dtype] = {}


def _run_rms(node: Node, x: torch.Tensor, *weight: torch.Tensor) -> torch.Tensor:
    run = kernels.rms_norm if kernel_use.fits(x) else rms_reference.rms_norm
    out: torch.Tensor = run(x, weight[0] if weight else None, node.attrs)
    return out if out.dtype is node.dtype.storage else out.to(node.dtype.storage)


def _run_rms_back(node: Node, grad: torch.Tensor, x: torch.Tensor, *weight: torch.Tensor) -> Any:
    eps, dtype = node.attrs
    plain = torch.is_grad_enabled() or not kernel_use.fits(x)
    run = rms_reference.rms_norm_backward if plain else kernels.rms_norm_backward
    dx, dw = run(grad, x, weight[0] if weight else None, eps)
    return (dx.to(dtype.storage),) if dw is None else (dx.to(dtype.storage), dw)


def _run_layer(node: Node, x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    eps, has_weight, has_bias = node.attrs
    run = kernels.layer_norm if kernel_use.fits(x) else layer_reference.layer_norm
    out: torch.Tensor = run(x, rest[0] if has_weight else None, rest[-1] if has_bias else None, eps)
    return out if out.dtype is node.dtype.storage else out.to(node.dtype.storage)


def _run_layer_back(node: Node, grad: torch.Tensor, x: torch.Tensor, *rest: torch.Tensor) -> Any:
    eps, has_weight, has_bias = node.attrs
    plain = torch.is_grad_enabled() or not kernel_use.fits(x)
    run = layer_reference.layer_norm_backward if plain else kernels.layer_norm_backward
    found = run(grad, x, rest[0] if has_weight else None, rest[-1] if has_bias else None, eps)
    return tuple(one for one in found if one is not None)


RMS_NORM = Primitive("RMSNorm", _run_rms)
RMS_NORM_BACK = Primitive("RMSNormVJP", _run_rms_back, outputs=2)
LAYER_NORM = Primitive("LayerNorm", _run_layer)
LAYER_NORM_BACK = Primitive("LayerNormVJP", _run_layer_back, outputs=3)


def rms_norm(x: Any, weight: array | None, eps: float, *, stream: Any = None) -> array:
    """Normalise over the last axis: ``x / sqrt(mean(x²) + eps) · weight``, computed in float32.

    Args:
        x: ``[..., n]``.
        weight: ``[n]``, or None.
        eps: added to the mean of squares.
        stream: where it is computed.

    Returns:
        ``[..., n]`` of the type that x and the weight promote to.

    Raises:
        ValueError: shapes or types that do not fit.
    """
    if type(x) is not array:
        x = to_array(x)
    node = x._n
    if weight is None:
        dtype = _rms.get((node.shape, node.dtype)) or _infer_rms(node, None)
        if dtype is not node.dtype:
            node = ops.astype(x, dtype, stream=stream)._n
        return record(RMS_NORM, (node,), node.shape, dtype, eps, None, stream if stream is None else as_stream(stream))
    scale = weight._n
    dtype = _rms.get((node.shape, node.dtype, scale.shape, scale.dtype)) or _infer_rms(node, scale)
    if not node.dtype.is_float:
        node = ops.astype(x, dtype, stream=stream)._n
    if not scale.dtype.is_float:
        scale = ops.astype(weight, dtype, stream=stream)._n
    where = stream if stream is None else as_stream(stream)
    return record(RMS_NORM, (node, scale), node.shape, dtype, eps, None, where)


def layer_norm(x: Any, weight: array | None, bias: array | None, eps: float, *, stream: Any = None) -> array:
    """Normalise over the last axis: ``(x - mean(x)) / sqrt(var(x) + eps) · weight + bias``, computed in float32.

    Args:
        x: ``[..., n]``.
        weight: ``[n]``, or None.
        bias: ``[n]``, or None.
        eps: added to the variance.
        stream: where it is computed.

    Returns:
        ``[..., n]`` of the type that x, the weight and (beside a weight) the bias promote to.

    Raises:
        ValueError: shapes or types that do not fit.
    """
    if type(x) is not array:
        x = to_array(x)
    node = x._n
    scale = None if weight is None else weight._n
    shift = None if bias is None else bias._n
    key = (
        node.shape, node.dtype, None if scale is None else (scale.shape, scale.dtype),
        None if shift is None else (shift.shape, shift.dtype),
    )  # fmt: skip
    dtype = _layer.get(key) or _infer_layer(key)
    inputs = [x, *(one for one in (weight, bias) if one is not None)]
    nodes = tuple([one._n if one._n.dtype.is_float else ops.astype(one, dtype, stream=stream)._n for one in inputs])
    attrs = (eps, scale is not None, shift is not None)
    return record(LAYER_NORM, nodes, node.shape, dtype, attrs, None, stream if stream is None else as_stream(stream))


def _check_part(op: str, name: str, part: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if len(part) != 1:
        raise ValueError(f"[{op}] {name} must have 1 dimension but has {len(part)} dimensions.")
    if part[0] != shape[-1]:
        raise ValueError(
            f"[{op}] {name} must have the same size as the last dimension of x, {shape[-1]}, "
            f"but has {part[0]} elements."
        )


def _floating(op: str, dtype: Dtype) -> Dtype:
    if not dtype.is_float:
        raise ValueError(f"[{op}] Received unsupported type {dtype}.")
    return dtype


def _infer_rms(x: Node, weight: Node | None) -> Dtype:
    if not x.shape:
        raise ValueError("[rms_norm] Input must have at least 1 dimension but got input with 0 dimensions.")
    key: Any = (x.shape, x.dtype)
    dtype = x.dtype
    if weight is not None:
        _check_part("rms_norm", "weight", weight.shape, x.shape)
        key = (*key, weight.shape, weight.dtype)
        dtype = promote(dtype, weight.dtype)
    if len(_rms) >= _MOST:
        _rms.clear()
    _rms[key] = dtype = _floating("rms_norm", dtype)
    return dtype


def _infer_layer(key: Any) -> Dtype:
    shape, dtype, weight, bias = key
    if not shape:
        raise ValueError("[layer_norm] Input must have at least 1 dimension but got input with 0 dimensions.")
    for name, one in (("weight", weight), ("bias", bias)):
        if one is not None:
            _check_part("layer_norm", name, one[0], shape)
    made: Dtype = dtype
    if weight is not None:
        made = promote(dtype, weight[1])
        if bias is not None:
            made = promote(made, bias[1])
    if len(_layer) >= _MOST:
        _layer.clear()
    _layer[key] = made = _floating("layer_norm", made)
    return made


@RMS_NORM.rule("vjp")
def _rms_vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    outputs = [(one.shape, one.dtype) for one in primals]
    inputs = (cotangent._n, *(one._n for one in primals))
    return record_many(RMS_NORM_BACK, inputs, outputs, (node.attrs, outputs[0][1]), None, node.stream)


@RMS_NORM.rule("vmap")
def _rms_vmap(node: Node, arrays: Any, axes: Any) -> Any:
    s = node.stream
    x, *weight = arrays
    if axes[0] is None:
        x = ops.broadcast_to(x, (weight[0].shape[axes[1]], *x.shape), stream=s)
    else:
        x = ops.moveaxis(x, axes[0], 0, stream=s)
    if not weight or axes[1] is None:
        return rms_norm(x, weight[0] if weight else None, node.attrs, stream=s), 0
    scale = ops.moveaxis(weight[0], axes[1], 0, stream=s)
    scale = ops.reshape(scale, (scale.shape[0], *[1] * (x.ndim - 2), scale.shape[1]), stream=s)
    return ops.multiply(rms_norm(x, None, node.attrs, stream=s), scale, stream=s), 0


@LAYER_NORM.rule("vmap")
def _layer_vmap(node: Node, arrays: Any, axes: Any) -> Any:
    s = node.stream
    eps, has_weight, has_bias = node.attrs
    if axes[0] is None or any(axis is not None for axis in axes[1:]):
        size = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
        return fallback.vmap(node, list(arrays), list(axes), size)
    x = ops.moveaxis(arrays[0], axes[0], 0, stream=s)
    weight, bias = arrays[1] if has_weight else None, arrays[-1] if has_bias else None
    return layer_norm(x, weight, bias, eps, stream=s), 0


@LAYER_NORM.rule("vjp")
def _layer_vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    outputs = [(one.shape, one.dtype) for one in primals]
    inputs = (cotangent._n, *(one._n for one in primals))
    return record_many(LAYER_NORM_BACK, inputs, outputs, node.attrs, None, node.stream)


__all__ = ["layer_norm", "rms_norm"]
