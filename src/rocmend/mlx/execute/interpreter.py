"""Executor 0: one torch call after another. Always available; the oracle of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.execute import heap
from rocmend.mlx.execute.trace import SHARED

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["FAILURES", "failure", "moved", "run", "step"]

# what torch raises for a call that it cannot do
FAILURES = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)


def run(pending: list[Node], *, keep: bool) -> None:
    """Compute nodes in order.

    Args:
        pending: the nodes, each after its inputs. The list is emptied, so that a value nobody holds is let go at once.
        keep: leave the inputs of computed nodes in place (a transformation will walk them).
    """
    pending.reverse()
    with torch.no_grad():
        while pending:
            node = pending.pop()
            if node.data is None:  # an operation may compute others
                node.data = step(node)
            if not keep:
                node.inputs = ()


def step(node: Node) -> Any:
    """Compute one node of computed inputs and return its value."""
    device = node.stream.device.torch
    tensors = []
    for child in node.inputs:
        child.pos = SHARED  # the value may be a view of it
        tensors.append(moved(child.data, device))
    try:
        found = node.op.run(node, *tensors)  # type: ignore[union-attr]
    except FAILURES as error:
        raise failure(node, tensors, error) from error
    heap.passed((*tensors, found))
    return found


def failure(node: Node, tensors: list[Any], error: Exception) -> Exception:
    """Return the error of an operation that could not be computed, with the operation's name."""
    if str(error).startswith("["):
        return error
    return RuntimeError(f"[{node.op}] could not be computed for {_described(tensors)}: {error}")


def moved(tensor: Any, device: torch.device) -> Any:
    """Return a tensor, or a tuple of them, on a device: itself where it is there."""
    if type(tensor) is tuple:
        return tuple(moved(part, device) for part in tensor)
    return tensor if tensor.device == device else tensor.to(device)


def _described(tensors: list[Any]) -> str:
    return ", ".join(f"{tuple(t.shape)} {t.dtype}" for t in tensors if isinstance(t, torch.Tensor)) or "no inputs"
