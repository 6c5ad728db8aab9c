"""Compiled functions in a plan: the operations of their bodies, where all of them are element-wise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.execute.fusion.expressions import EXPRESSIONS, LOGICAL, TYPES
from rocmend.mlx.execute.fusion.kernel import Micro
from rocmend.mlx.execute.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocmend.mlx.node import Node

__all__ = ["inlined"]


def inlined(steps: Sequence[Step], nodes: Sequence[Node]) -> list[Step]:
    """Put one step in the place of each call of a compiled function and of the steps that pick its values.

    Only where every value of the call is picked, once, and no other step uses the call.
    """
    users: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        for place in step.ins:
            users.setdefault(place, []).append(number)
    gone: set[int] = set()
    placed: dict[int, Step] = {}
    for number, step in enumerate(steps):
        node = nodes[step.outs[0]]
        if node.op is None or node.op.name != "Compiled" or len(step.outs) > 1:
            continue
        picks = users.get(step.outs[0], [])
        items = {nodes[steps[k].outs[0]].attrs: k for k in picks if nodes[steps[k].outs[0]].op.name == "Item"}  # type: ignore[union-attr]
        if len(items) != len(picks) or len(items) != len(node.attrs.outputs):
            continue
        outs = [steps[items[index]].outs[0] for index in range(len(items))]
        micros = _body(node.attrs, step.ins, outs)
        if micros is None or any(nodes[out].shape != nodes[outs[0]].shape for out in outs):
            micros = None
        gone.update(picks)
        placed[number] = Step(step.call if len(outs) > 1 else _first(step.call), step.ins, tuple(outs), merged=micros)
    return [placed.get(number, step) for number, step in enumerate(steps) if number not in gone]


def _first(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of the one value that another call returns a tuple of."""
    return lambda nodes, *tensors: call(nodes, *tensors)[0]


def _body(trace: Any, ins: Sequence[int], outs: Sequence[int]) -> list[Micro] | None:
    """Return the operations of a trace, with the call's places for its inputs and outputs."""
    names: dict[int, Any] = {
        id(node): place for node, place in zip((*trace.inputs, *trace.constants), ins, strict=True)
    }
    produced: dict[int, int] = {}
    for node, out in zip(trace.outputs, outs, strict=True):
        if id(node) in names or id(node) in produced:
            return None  # an input handed through, or one value twice
        produced[id(node)] = out
    micros = []
    for number, node in enumerate(trace.nodes):
        name: Any = produced.get(id(node), (outs[0], number))
        names[id(node)] = name
        if node.op.name == "Constant" and node.dtype in TYPES:
            micros.append(Micro(name, "Constant", (), node.dtype, node.attrs))
            continue
        types = [child.dtype for child in node.inputs]
        if node.op.name not in EXPRESSIONS or any(dtype not in TYPES for dtype in (*types, node.dtype)):
            return None
        if node.op.name in LOGICAL and any(dtype is not dtypes.bool_ for dtype in types):
            return None
        micros.append(Micro(name, node.op.name, tuple(names[id(child)] for child in node.inputs), node.dtype))
    return micros
