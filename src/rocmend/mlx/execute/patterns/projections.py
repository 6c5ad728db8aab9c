"""Products of one x with several quantized weights: one launch; with ``silu(gate) · up`` behind two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend import kernels
from rocmend.mlx import dtypes
from rocmend.mlx.execute.patterns import pattern
from rocmend.mlx.execute.patterns.experts import gated
from rocmend.mlx.execute.step import Step

if TYPE_CHECKING:
    from rocmend.mlx.execute.patterns.view import View

MOST = 3  # products of a launch
GATED, MANY = "quantized_swiglu", "quantized_matmul_many"
_TYPES = (dtypes.float16, dtypes.bfloat16)


@pattern("projections")
def projections(view: View) -> list[Step]:
    """Join gates where they are applied, and then the other products where the first of them stands."""
    placed: dict[int, Step] = {}
    gone: set[int] = set()
    for number, step in enumerate(view.steps):
        found = gated(step.merged)
        if found is None or len(step.outs) != 1:
            continue
        makers = [view.maker(place, "QuantizedMatmul") for place in found]
        if None in makers or any(set(view.users[place]) != {number} or place in view.kept for place in found):
            continue
        gate, up = makers
        if gate == up or kind_of(view, gate) is None or kind_of(view, gate) != kind_of(view, up):
            continue
        pair = [view.steps[one] for one in (gate, up)]  # type: ignore[index]
        if view.node(found[0]).shape != view.node(found[1]).shape:
            continue
        form = view.node(found[0]).attrs[1]
        placed[number] = Step(_gated(form), (*pair[0].ins, *pair[1].ins[1:]), step.outs, kernel=(GATED, form))
        gone.update((gate, up))  # type: ignore[arg-type]
    alike: dict[Any, list[int]] = {}
    for number in range(len(view.steps)):
        kind = None if number in gone or number in placed else kind_of(view, number)
        if kind is not None:
            alike.setdefault(kind, []).append(number)
    for numbers in alike.values():
        for first in range(0, len(numbers), MOST):
            some = numbers[first : first + MOST]
            if len(some) < 2:
                continue
            steps = [view.steps[number] for number in some]
            if any(not view.there(place, some[0]) for step in steps for place in step.ins):
                continue
            ins = (steps[0].ins[0], *[place for step in steps for place in step.ins[1:]])
            form = view.node(steps[0].outs[0]).attrs[1]
            outs = tuple(step.outs[0] for step in steps)
            placed[some[0]] = Step(_many(form), ins, outs, kernel=(MANY, form))
            gone.update(some)
    return view.replaced(placed, gone)


def kind_of(view: View, number: int | None) -> Any:
    """Return what products of one launch have in common, x first; None for a step that is none of them."""
    if number is None or view.name(number) != "QuantizedMatmul":
        return None
    step = view.steps[number]
    out = view.node(step.outs[0])
    x, w, scales = [view.node(place) for place in step.ins[:3]]
    transpose, form = out.attrs
    if not transpose or len(w.shape) != 2 or out.dtype not in _TYPES or x.dtype is not out.dtype:
        return None
    if form.affine and any(view.node(place).dtype is not x.dtype for place in step.ins[2:]):
        return None
    # A value from before has a place for each use.
    return id(x), form, len(step.ins), scales.dtype


def weights_of(form: Any, rest: Any) -> list[Any]:
    """Return words, scales and biases of each of several weights in a row."""
    count = 3 if form.affine else 2
    pad = () if form.affine else (None,)
    return [(*rest[first : first + count], *pad) for first in range(0, len(rest), count)]


def _gated(form: Any) -> Any:
    def call(_nodes: Any, x: Any, *rest: Any) -> Any:
        gate, up = weights_of(form, rest)
        return kernels.quantized_swiglu(x, gate, up, form.group_size, form.bits, form.mode)

    return call


def _many(form: Any) -> Any:
    def call(_nodes: Any, x: Any, *rest: Any) -> Any:
        return kernels.quantized_matmul_many(x, weights_of(form, rest), form.group_size, form.bits, form.mode)

    return call
