"""What an operation of the graph is: how it is computed, differentiated and batched.

A primitive is defined once, beside the public functions that record it. Rules that are left out have a general
fallback: derivatives by torch's own differentiation of ``run``, batching by a loop over the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["IDENTITY", "ITEM", "PRIMITIVES", "STOP_GRADIENT", "Primitive"]

PRIMITIVES: dict[str, Primitive] = {}

Rule = Callable[..., Any]


class Primitive:
    """One operation.

    Attributes:
        name: unique; for people and for errors.
        run: ``run(node, *tensors) -> tensor`` (a tuple of tensors where ``outputs`` is set). It may read ``attrs``,
            ``dyn``, ``shape``, ``dtype`` and ``stream`` of the node and nothing else: what it needs to know of an
            input's type stands in ``attrs``. It never writes to its inputs; it may return a view of one. Tensors
            come in ``dtype.storage``, on the stream's device, with any strides.
        outputs: number of outputs, None for a plain single output; -1: as many as ``node.outputs`` has.
        elementwise: the output at an index depends on the inputs at that index alone (inputs are broadcast).
        view: the output is, without computing, a view of the first input.
        meets: other processes take part in it.
        vjp: ``vjp(node, primals, output, cotangent) -> sequence of array | None``, one for each input. ``primals``,
            ``output`` and ``cotangent`` are arrays (tuples of arrays where ``outputs`` is set; a cotangent may be None
            there).
        jvp: ``jvp(node, primals, tangents, output) -> array`` (tuple); a tangent is None where it is zero.
        vmap: ``vmap(node, arrays, axes) -> (array or tuple, axis or tuple)``; an axis is None where an input is not
            batched.
    """

    __slots__ = ("elementwise", "jvp", "meets", "name", "outputs", "run", "view", "vjp", "vmap")

    def __init__(
        self,
        name: str,
        run: Rule,
        *,
        outputs: int | None = None,
        elementwise: bool = False,
        view: bool = False,
        meets: bool = False,
        vjp: Rule | None = None,
        jvp: Rule | None = None,
        vmap: Rule | None = None,
    ) -> None:
        if name in PRIMITIVES:
            raise ValueError(f"[primitive] {name} is defined twice.")
        self.name = name
        self.run = run
        self.outputs = outputs
        self.elementwise = elementwise
        self.view = view
        self.meets = meets
        self.vjp = vjp
        self.jvp = jvp
        self.vmap = vmap
        PRIMITIVES[name] = self

    def __repr__(self) -> str:
        return self.name

    def rule(self, kind: str) -> Callable[[Rule], Rule]:
        """Decorate the function that is this primitive's ``vjp``, ``jvp`` or ``vmap``."""

        def keep(function: Rule) -> Rule:
            setattr(self, kind, function)
            return function

        return keep


# One of the values of an operation that has several: ``attrs`` is which.
ITEM = Primitive("Item", lambda node, values: values[node.attrs], view=True)


# What is computed is the input itself. Their rules stand in ``transforms.graph`` and ``ops.barrier``.
IDENTITY = Primitive("Identity", lambda node, x: x, elementwise=True, view=True)
STOP_GRADIENT = Primitive("StopGradient", lambda node, x: x, elementwise=True, view=True)
