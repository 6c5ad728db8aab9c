"""Both ends of a mixture of experts: which experts a token takes, and the weighted sum of what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend import kernels
from rocmend.mlx import dtypes
from rocmend.mlx.execute.patterns import pattern
from rocmend.mlx.execute.patterns.together import one_by_one
from rocmend.mlx.execute.step import Step

if TYPE_CHECKING:
    from rocmend.mlx.execute.patterns.view import View
    from rocmend.mlx.node import Node

_TYPES = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


@pattern("mixture_router")
def router(view: View) -> list[Step]:
    """Join ``softmax``, the end of its ``argsort`` and the values there, and their division by their sum."""
    placed: dict[int, Step] = {}
    gone: set[int] = set()
    for number in range(len(view.steps)):
        if view.name(number) == "ArgSort":
            _route(view, number, placed, gone)
    return view.replaced(placed, gone)


def _route(view: View, sort: int, placed: dict[int, Step], gone: set[int]) -> None:
    """Join the steps about one sort, if they are those of the pattern."""
    values = view.steps[sort].ins[0]
    softmax = view.maker(values, "Softmax")
    part = view.only_user(view.steps[sort].outs[0])
    if softmax is None or part is None or view.name(part) != "Slice" or values in view.kept:
        return
    places = view.steps[part].outs[0]
    takes = [user for user in view.users[values] if user != sort]
    if len(takes) != 1 or view.name(takes[0]) != "TakeAlongAxis" or view.steps[takes[0]].ins[0] != values:
        return
    take = takes[0]
    node, taken = view.node(values), view.node(view.steps[take].outs[0])
    last = len(node.shape) - 1
    axis = view.node(values).attrs[0]
    axes = (axis if type(axis) is int else -2, view.node(view.steps[sort].outs[0]).attrs[0], taken.attrs)
    if last < 0 or any(one % (last + 1) != last for one in axes if one != -2) or -2 in axes:
        return
    if _same(view, view.steps[take].ins[1]) != places or node.dtype not in _TYPES:
        return
    if _chosen(view.tape.nodes, places, values) == 0:
        return
    if view.node(view.steps[softmax].ins[0]).dtype is not node.dtype or taken.shape != view.node(places).shape:
        return
    total, divide = _division(view, view.steps[take].outs[0])
    steps = [softmax, sort, part, take, *([] if divide is None else [total, divide])]
    scores = view.steps[take if divide is None else divide].outs[0]
    ins, outs = view.steps[softmax].ins, (scores, places)
    alias = view.steps[take].ins[1]
    parts = [view.steps[one] for one in steps]  # type: ignore[index]
    parts = [Step(one.call, tuple(places if place == alias else place for place in one.ins), one.outs) for one in parts]
    placed[sort] = Step(_router(places, values, one_by_one(parts, ins, outs), divide is not None), ins, outs)
    gone.update(steps)  # type: ignore[arg-type]


def _same(view: View, place: int) -> int:
    """Return the place that a value has before ``stop_gradient``."""
    stop = view.maker(place, "StopGradient")
    return place if stop is None else view.steps[stop].ins[0]


def _division(view: View, taken: int) -> tuple[int | None, int | None]:
    """Return the steps that divide values by their sum, if nothing else uses them."""
    users = view.users.get(taken, [])
    total = next((user for user in users if view.name(user) == "Sum"), None)
    if total is None or taken in view.kept:
        return None, None
    divide = view.only_user(view.steps[total].outs[0])
    if divide is None or view.name(divide) != "Divide" or set(users) != {total, divide}:
        return None, None
    axes, keepdims, _ = view.node(view.steps[total].outs[0]).attrs
    shape = view.node(taken).shape
    fits = tuple(axes) == (len(shape) - 1,) and keepdims
    types = {view.node(view.steps[one].outs[0]).dtype for one in (total, divide)}
    if not fits or types != {view.node(taken).dtype} or view.steps[divide].ins != (taken, view.steps[total].outs[0]):
        return None, None
    return total, divide


def _chosen(nodes: Any, places: int, values: int) -> int:
    """Return how many are taken where the slice is the end of the last axis and whole elsewhere, else 0."""
    part: Node = nodes[places]
    shape = nodes[values].shape
    rank = len(shape)
    starts, stops = part.dyn[:rank], part.dyn[rank:]  # type: ignore[index]
    if any(starts[:-1]) or tuple(stops) != tuple(shape) or any(stride != 1 for stride in part.attrs):
        return 0
    return int(shape[-1] - starts[-1])


def _router(places: int, values: int, apart: Any, normalise: bool) -> Any:
    def call(nodes: Any, x: Any) -> Any:
        count = _chosen(nodes, places, values)
        if count == 0:
            return apart(nodes, x)
        scores, chosen = kernels.router(x, count, normalise=normalise)
        return scores, chosen

    return call


@pattern("mixture_sum")
def weighted(view: View) -> list[Step]:
    """Join ``(y * scores[..., None]).sum(-2)`` where the sum stands."""
    placed: dict[int, Step] = {}
    gone: set[int] = set()
    for number in range(len(view.steps)):
        if view.name(number) != "Sum":
            continue
        step = view.steps[number]
        product = view.maker(step.ins[0], "Multiply")
        if product is None or view.only_user(step.ins[0]) != number:
            continue
        node, out = view.node(step.ins[0]), view.node(step.outs[0])
        if tuple(out.attrs[0]) != (len(node.shape) - 2,) or out.attrs[1] or out.dtype is not node.dtype:
            continue
        y, factor = view.steps[product].ins
        wide = view.maker(factor, "ExpandDims")
        if wide is None or out.dtype not in _TYPES:
            continue
        scores = view.steps[wide].ins[0]
        if (*view.node(scores).shape, 1) != view.node(factor).shape or view.node(y).shape != node.shape:
            continue
        if any(view.node(place).dtype is not out.dtype for place in (y, scores)):
            continue
        if view.node(scores).shape != node.shape[:-1]:
            continue
        parts = [view.steps[one] for one in (wide, product, number)]
        placed[number] = Step(_sum(one_by_one(parts, (y, scores), step.outs)), (y, scores), step.outs)
        gone.add(product)
        if view.only_user(factor) == product:
            gone.add(wide)
    return view.replaced(placed, gone)


def _sum(apart: Any) -> Any:
    def call(nodes: Any, y: Any, scores: Any) -> Any:
        # With one structure, another step may broadcast.
        return kernels.weighted_sum(y, scores) if y.shape[:-1] == scores.shape else apart(nodes, y, scores)

    return call
