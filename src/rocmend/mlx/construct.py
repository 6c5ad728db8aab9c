"""Nodes from values: Python numbers and lists, numpy and torch arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import record
from rocmend.mlx.primitive import Primitive

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.array import array
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["constant", "node_of"]


def _constant(node: Node) -> torch.Tensor:
    import torch

    value = node.attrs
    if node.dtype.is_unsigned and value >= 2 ** (node.dtype.size * 8 - 1):
        value -= 2 ** (node.dtype.size * 8)
    return torch.full((), value, dtype=node.dtype.storage, device=node.stream.device.torch)


# A number written in the program: known when a graph is planned, so that no tensor need be made of it.
CONSTANT = Primitive("Constant", _constant)


def constant(value: bool | complex, dtype: Dtype) -> array:
    """Return a 0-d array of a number."""
    return record(CONSTANT, (), (), dtype, value)


def node_of(value: Any, dtype: Dtype | None = None) -> Node:
    """Return a node of any value that ``array`` takes."""
    raise NotImplementedError
