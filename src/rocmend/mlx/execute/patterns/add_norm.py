"""``h = x + y`` and the RMS normalisation of ``h``: one pass over both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend import kernels
from rocmend.mlx import dtypes
from rocmend.mlx.execute.patterns import pattern
from rocmend.mlx.execute.step import Step

if TYPE_CHECKING:
    from rocmend.mlx.execute.patterns.view import View

_TYPES = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


@pattern("add_norm")
def add_norm(view: View) -> list[Step]:
    """Join each such pair where the sum stands."""
    placed: dict[int, Step] = {}
    gone: set[int] = set()
    for number in range(len(view.steps)):
        if view.name(number) != "RMSNorm":
            continue
        norm = view.steps[number]
        total = norm.ins[0]
        added = view.maker(total, "Add")
        if added is None or added in placed or len(norm.ins) != 2 or not view.there(norm.ins[1], added):
            continue
        add = view.steps[added]
        nodes = [view.node(place) for place in (*add.ins, total, norm.ins[1], norm.outs[0])]
        if any(node.dtype is not nodes[0].dtype for node in nodes) or nodes[0].dtype not in _TYPES:
            continue
        if nodes[0].shape != nodes[2].shape or nodes[1].shape != nodes[2].shape:
            continue
        eps = view.node(norm.outs[0]).attrs
        ins, outs = (*add.ins, norm.ins[1]), (norm.outs[0], total)
        placed[added] = Step(_call(eps), ins, outs, kernel=("add_rms_norm", eps))
        gone.add(number)
    return view.replaced(placed, gone)


def _call(eps: float) -> Any:
    def call(_nodes: Any, x: Any, y: Any, weight: Any) -> Any:
        return kernels.add_rms_norm(x, y, weight, eps)

    return call
