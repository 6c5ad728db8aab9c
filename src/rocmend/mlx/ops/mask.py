"""Writing where a mask is true."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import shape_text
from rocmend.mlx.array import array, record
from rocmend.mlx.ops.scatter import put_along
from rocmend.mlx.ops.shape import reshaped
from rocmend.mlx.ops.shape_broadcast import broadcast
from rocmend.mlx.ops.slices import batched
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.node import Node

__all__: list[str] = []


def _order(mask: torch.Tensor, batch: int) -> torch.Tensor:
    """Return, for each element, how many true ones stand before it."""
    import torch

    rows = mask.reshape(*mask.shape[:batch], -1)
    return (rows.cumsum(-1, dtype=torch.int64) - 1).clamp(min=0)


def _masked_scatter(node: Node, x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    import torch

    batch = node.attrs
    rows = source.reshape(*source.shape[:batch], -1)
    size = rows.shape[-1]
    if x.numel() == 0:
        return x.clone()
    # on a GPU the host is not to wait for the count
    if not mask.is_cuda and int(mask.reshape(*mask.shape[:batch], -1).sum(-1).max()) > size:
        raise RuntimeError("[masked_scatter] Source does not have enough elements for mask.")
    if size == 0:
        return x.clone()
    places = _order(mask, batch).clamp(max=size - 1)
    return torch.where(mask, rows.gather(-1, places).reshape(x.shape), x)


# inputs: x, a mask of its shape, and the elements that true ones take in order. attrs: axes of a batch in front
MASKED_SCATTER = Primitive("MaskedScatter", _masked_scatter)


def _record(x: array, mask: array, source: array, batch: int) -> array:
    node = x._n
    return record(MASKED_SCATTER, (node, mask._n, source._n), node.shape, node.dtype, batch)


@MASKED_SCATTER.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    x, mask, source = primals
    zero = ops.zeros((), cotangent._n.dtype)
    batch = node.attrs
    lead = x._n.shape[:batch]
    chosen = reshaped(ops.where(mask, cotangent, zero), (*lead, prod(x._n.shape[batch:])))
    counts = ops.cumsum(ops.astype(reshaped(mask, chosen._n.shape), ops.int32), batch)
    places = ops.maximum(ops.subtract(counts, 1), 0)
    size = prod(source._n.shape[batch:])
    # elements that are not true add 0 to a place of the source; those beyond it are left out
    row = put_along(ops.zeros((*lead, size), cotangent._n.dtype), places, chosen, batch, "add")
    return ops.where(mask, zero, cotangent), None, reshaped(row, source._n.shape)


@MASKED_SCATTER.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    x, mask, source = primals
    dx, ds = [ops.zeros_like(p) if t is None else t for p, t in ((x, tangents[0]), (source, tangents[2]))]
    return _record(dx, mask, ds, node.attrs)


@MASKED_SCATTER.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    x, mask, source = batched(arrays, axes)
    return _record(x, mask, source, node.attrs + 1), 0


def masked(x: array, mask: array, value: array, mode: str) -> array:
    """Return ``x`` with a value where a mask is true: one value for all, or one for each.

    Args:
        x: any shape and type.
        mask: bools; its shape is the beginning of that of ``x``.
        value: of the type of ``x``.
        mode: how it is joined with what is there.

    Raises:
        ValueError: a mask of another shape, or another mode than ``assign`` with several values.
    """
    shape = x._n.shape
    ndim = len(mask._n.shape)
    if ndim > len(shape) or mask._n.shape != shape[:ndim]:
        raise ValueError(
            "[masked_scatter] The boolean mask should have the same shape as the beginning of the indexed array but "
            f"the mask has shape {shape_text(mask._n.shape)} and the array has shape {shape_text(shape)}."
        )
    wide = broadcast(reshaped(mask, (*mask._n.shape, *(1,) * (len(shape) - ndim))), shape)
    if mode != "assign":
        raise ValueError("[at] Boolean indices are not supported here. Use where, or integers.")
    if prod(value._n.shape) == 1:
        return ops.where(wide, reshaped(value, ()), x)  # type: ignore[no-any-return]
    return _record(x, wide, value, 0)
