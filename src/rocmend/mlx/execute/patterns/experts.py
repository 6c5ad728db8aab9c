"""Both first products of a mixture's experts and ``silu(gate) · up``: one pass over both weights.

The products are not rounded before the gate, which is one rounding less than one operation after another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend import kernels
from rocmend.mlx.execute.patterns import pattern
from rocmend.mlx.execute.step import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.execute.fusion.kernel import Micro
    from rocmend.mlx.execute.patterns.view import View


def gated(micros: Sequence[Micro] | None) -> tuple[int, int] | None:
    """Return the places of the gate and of the other operand where a chain is ``gate · sigmoid(gate) · up``."""
    if micros is None or [micro.op for micro in micros] != ["Sigmoid", "Multiply", "Multiply"]:
        return None
    sigmoid, silu, product = micros
    gate = sigmoid.ins[0]
    if set(silu.ins) != {gate, sigmoid.out} or silu.out not in product.ins:
        return None
    up = product.ins[0] if product.ins[1] == silu.out else product.ins[1]
    return (gate, up) if up not in {gate, sigmoid.out, silu.out} else None  # type: ignore[return-value]


@pattern("experts")
def experts(view: View) -> list[Step]:
    """Join each such triple where the gate stands."""
    placed: dict[int, Step] = {}
    gone: set[int] = set()
    for number, step in enumerate(view.steps):
        found = gated(step.merged)
        if found is None:
            continue
        makers = [view.maker(place, "GatherQMM") for place in found]
        if None in makers or any(view.only_user(place) is None and found[0] != place for place in found[1:]):
            continue
        gate, up = (view.steps[maker] for maker in makers)  # type: ignore[index]
        if set(view.users.get(found[0], [])) != {number} or found[0] in view.kept:
            continue
        attrs = view.node(found[0]).attrs
        transpose, form, left, right, _ = attrs
        weights = 3 if form.affine else 2
        if view.node(found[1]).attrs != attrs or not transpose or not right:
            continue
        if gate.ins[0] != up.ins[0] or gate.ins[1 + weights :] != up.ins[1 + weights :]:
            nodes = [[view.node(place) for place in one.ins] for one in (gate, up)]
            if nodes[0][0] is not nodes[1][0] or nodes[0][1 + weights :] != nodes[1][1 + weights :]:
                continue
        placed[number] = Step(_call(attrs), (*gate.ins, *up.ins[1 : 1 + weights]), step.outs)
        gone.update(maker for maker in makers if maker is not None)
        del left
    return view.replaced(placed, gone)


def _call(attrs: Any) -> Any:
    _, form, left, right, ordered = attrs
    count = 3 if form.affine else 2

    def call(_nodes: Any, x: Any, *rest: Any) -> Any:
        gate, indices, up = rest[:count], list(rest[count : len(rest) - count]), rest[len(rest) - count :]
        lhs = indices.pop(0) if left else None
        rhs = indices.pop(0) if right else None
        pad = () if form.affine else (None,)
        return kernels.gather_qmm_swiglu(
            x, (*gate, *pad), (*up, *pad), lhs, rhs, form.group_size, form.bits, form.mode, sorted_indices=ordered
        )

    return call
