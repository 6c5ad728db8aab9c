"""What functions on matrices share: checks, and batching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.array import array, record, record_many
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node
    from rocmend.mlx.primitive import Primitive

REAL = (dtypes.float32, dtypes.float64)
COMPLEX = (*REAL, dtypes.complex64)


def check_matrix(op: str, a: array, allowed: tuple[Dtype, ...] = REAL, *, square: bool = False) -> None:
    """Check the type and shape of matrices.

    Raises:
        ValueError: another type, fewer than two axes, or matrices that are not square.
    """
    if a.dtype not in allowed:
        names = ", ".join(one.name for one in allowed[:-1]) + " or " + allowed[-1].name
        raise ValueError(f"[linalg::{op}] Arrays must have type {names}. Received array with type {a.dtype}.")
    if len(a.shape) < 2:
        raise ValueError(
            f"[linalg::{op}] Arrays must have >= 2 dimensions. Received array with {len(a.shape)} dimensions."
        )
    if square and a.shape[-1] != a.shape[-2]:
        raise ValueError(f"[linalg::{op}] Only defined for square matrices. Received array with shape {a.shape}.")


def real_of(dtype: Dtype) -> Dtype:
    """Return the type of the parts of a complex type; a real type itself."""
    return dtypes.float32 if dtype.is_complex else dtype


def batched(op: Primitive) -> Callable[..., Any]:
    """Give a primitive of one input, which computes each matrix by itself, its rule of batching."""

    def rule(node: Node, arrays: Any, axes: Any) -> Any:
        x = ops.moveaxis(arrays[0], axes[0], 0, stream=node.stream)
        size = x.shape[0]
        if op.outputs is None:
            return record(op, (x._n,), (size, *node.shape), node.dtype, node.attrs, None, node.stream), 0
        outputs = [((size, *shape), dtype) for shape, dtype in node.outputs]
        return record_many(op, (x._n,), outputs, node.attrs, None, node.stream), (0,) * len(outputs)

    op.vmap = rule
    return rule
