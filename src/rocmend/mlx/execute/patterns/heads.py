"""Query and key heads, normalised and rotated, and the writes to the cache before attention: one launch.

A decoding step does this in each layer: the queries go to attention, keys and values into their caches, all at the
same place of the sequence. Where the normalisations are missing, the rest is joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from rocmend import kernels
from rocmend.mlx import dtypes
from rocmend.mlx.execute.lifted import Unfit
from rocmend.mlx.execute.patterns import pattern
from rocmend.mlx.execute.patterns.together import one_by_one
from rocmend.mlx.execute.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.execute.patterns.view import View
    from rocmend.mlx.node import Node

MOST_TOKENS = 8
_TYPES = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


class _Head(NamedTuple):
    """Where heads come from: a place, how its axes are ordered, a place of weights or -1, ε; and the steps between."""

    source: int
    axes: tuple[int, ...]
    weight: int
    eps: float
    steps: tuple[int, ...]


class _Layer(NamedTuple):
    """Numbers of the steps of one layer, and where each operand comes from."""

    rope_q: int
    rope_k: int
    write_k: int
    write_v: int
    queries: _Head
    keys: _Head
    values: _Head

    @property
    def last(self) -> int:
        """The step in whose place all of them are done."""
        return max(self.write_k, self.write_v)

    @property
    def steps(self) -> set[int]:
        """All that are joined."""
        heads = {number for head in (self.queries, self.keys, self.values) for number in head.steps}
        return {self.rope_q, self.rope_k, self.write_k, self.write_v, *heads}


@pattern("heads")
def heads(view: View) -> list[Step]:
    """Join the steps of each layer where the later of both caches is written."""
    placed: dict[int, Step] = {}
    gone: set[int] = set()
    for number in range(len(view.steps)):
        layer = _layer(view, number) if view.name(number) == "ScaledDotProductAttention" else None
        if layer is None or not layer.steps.isdisjoint(gone) or not _fits(view, layer):
            continue
        placed[layer.last] = _step(view, layer)
        gone |= layer.steps
    return view.replaced(placed, gone)


# -- finding ---------------------------------------------------------------------------------------------------------


def _layer(view: View, attention: int) -> _Layer | None:
    """Return the steps that lead to attention, where they are those of the pattern."""
    q, k, v = view.steps[attention].ins[:3]
    write_k, write_v = _write(view, k), _write(view, v)
    rope_q = view.maker(q, "RoPE")
    if write_k is None or write_v is None or rope_q is None or write_k == write_v:
        return None
    rope_k = view.maker(view.steps[write_k].ins[1], "RoPE")
    if rope_k is None or rope_k == rope_q or view.only_user(view.steps[rope_k].outs[0]) != write_k:
        return None
    layer = _Layer(
        rope_q, rope_k, write_k, write_v,
        _head(view, view.steps[rope_q].ins[0], rope_q), _head(view, view.steps[rope_k].ins[0], rope_k),
        _turned(view, view.steps[write_v].ins[1], write_v),
    )  # fmt: skip
    return layer if _ordered(view, layer) else None


def _write(view: View, place: int) -> int | None:
    """Return the step that writes to the buffer of which a place is the beginning, in place."""
    part = view.maker(place, "Slice")
    found = view.maker(place if part is None else view.steps[part].ins[0], "SliceUpdate")
    return found if found is not None and getattr(view.steps[found].call, "in_place", False) else None


def _turned(view: View, place: int, user: int) -> _Head:
    """Return where heads come from that a transposition may lie before."""
    turn = view.maker(place, "Transpose")
    if turn is None or view.only_user(place) != user:
        return _Head(place, (0, 1, 2, 3), -1, 0.0, ())
    return _Head(view.steps[turn].ins[0], view.node(place).attrs, -1, 0.0, (turn,))


def _head(view: View, place: int, user: int) -> _Head:
    """Return where heads come from that a normalisation, and then a transposition, may lie before."""
    head = _turned(view, place, user)
    norm = view.maker(head.source, "RMSNorm")
    user = head.steps[0] if head.steps else user
    if norm is None or view.only_user(head.source) != user or head.axes[-1] != 3:
        return head
    ins = view.steps[norm].ins
    if len(ins) != 2 or view.node(ins[1]).dtype is not view.node(ins[0]).dtype:
        return head
    return head._replace(source=ins[0], weight=ins[1], eps=view.node(head.source).attrs, steps=(*head.steps, norm))


def _ordered(view: View, layer: _Layer) -> bool:
    """Return whether operands are there when the step is done and are no views of a cache, and results used later."""
    operands = [head.source for head in (layer.queries, layer.keys, layer.values)]
    if any(not _computed(view, place) for place in operands):
        return False
    others = [head.weight for head in (layer.queries, layer.keys) if head.weight >= 0]
    others += [*view.steps[layer.rope_q].ins[1:], view.steps[layer.write_k].ins[0], view.steps[layer.write_v].ins[0]]
    if any(not view.there(place, layer.last) for place in (*operands, *others)):
        return False
    results = [view.steps[number].outs[0] for number in (layer.rope_q, layer.write_k, layer.write_v)]
    return all(user > layer.last for place in results for user in view.users.get(place, ()))


def _computed(view: View, place: int) -> bool:
    """Return whether a value, or what it is a view of, was computed in the step and not written into a buffer."""
    while place < len(view.tape.nodes):
        op = view.tape.nodes[place].op
        if op is None or op.name == "SliceUpdate":
            return False
        number = view.makers.get(place)
        if not op.view or number is None:
            return number is not None
        place = view.steps[number].ins[0]
    return False


def _fits(view: View, layer: _Layer) -> bool:
    """Return whether types, shapes and options are those of the kernel."""
    tensors = [view.node(head.source) for head in (layer.queries, layer.keys, layer.values)]
    caches = [view.node(view.steps[number].outs[0]) for number in (layer.write_k, layer.write_v)]
    dtype = tensors[0].dtype
    if dtype not in _TYPES or any(node.dtype is not dtype or len(node.shape) != 4 for node in (*tensors, *caches)):
        return False
    rope_q, rope_k = view.steps[layer.rope_q], view.steps[layer.rope_k]
    attrs = view.node(rope_q.outs[0]).attrs
    freqs = [view.node(place) for step in (rope_q, rope_k) for place in step.ins[1:]]
    of_array, has_freqs, inverse = attrs[4:]
    if view.node(rope_k.outs[0]).attrs != attrs or of_array or inverse or (has_freqs and freqs[0] is not freqs[1]):
        return False
    if any(cache.attrs[1] != "assign" or any(one != 1 for one in cache.attrs[0]) for cache in caches):
        return False
    return _agree(view.tape.nodes, _Places.of(view, layer)) >= 0


# -- doing -----------------------------------------------------------------------------------------------------------


class _Places(NamedTuple):
    """Places of the nodes that are computed."""

    keys: int
    queries: int
    values: int
    rotated_keys: int

    @classmethod
    def of(cls, view: View, layer: _Layer) -> _Places:
        """Return those of a layer."""
        numbers = (layer.write_k, layer.rope_q, layer.write_v, layer.rope_k)
        return cls(*[view.steps[number].outs[0] for number in numbers])


def _agree(nodes: Any, places: _Places) -> int:
    """Return the place of the sequence that all nodes of a tape agree on, or -1: then they are not the pattern's."""
    queries, rotated = nodes[places.queries], nodes[places.rotated_keys]
    offset: int = queries.dyn[0]
    tokens: int = queries.shape[2]
    if rotated.dyn[0] != offset or tokens > MOST_TOKENS or offset < 0 or queries.shape[1] % rotated.shape[1]:
        return -1
    for place in (places.keys, places.values):
        cache: Node = nodes[place]
        batch, count, length, size = cache.shape
        if offset + tokens > length or (batch, count) != (rotated.shape[0], rotated.shape[1]):
            return -1
        if cache.dyn != (0, 0, offset, 0, batch, count, offset + tokens, size):
            return -1
    return offset


def _step(view: View, layer: _Layer) -> Step:
    places = _Places.of(view, layer)
    attrs = view.node(places.queries).attrs
    weights = [head.weight for head in (layer.queries, layer.keys)]
    freqs = view.steps[layer.rope_q].ins[1:]
    ins = (
        layer.queries.source, layer.keys.source, layer.values.source, view.steps[layer.write_k].ins[0],
        view.steps[layer.write_v].ins[0], *[place for place in weights if place >= 0], *freqs,
    )  # fmt: skip
    # The keys' rotation may name its frequencies by another link of the same node.
    alike = dict(zip(view.steps[layer.rope_k].ins[1:], freqs, strict=True))
    parts = [view.steps[number] for number in sorted(layer.steps)]
    parts = [Step(part.call, tuple(alike.get(place, place) for place in part.ins), part.outs) for part in parts]
    outs = (places.keys, places.queries, places.values)
    apart = one_by_one(parts, ins, outs)

    def run(offset: int | torch.Tensor, tensors: Any) -> Any:
        rest = list(tensors[5:])
        given = [
            x.permute(head.axes) for x, head in zip(tensors[:3], (layer.queries, layer.keys, layer.values), strict=True)
        ]
        query_weight = rest.pop(0) if weights[0] >= 0 else None
        key_weight = rest.pop(0) if weights[1] >= 0 else None
        queries, keys, values = kernels.heads_into_cache(
            *given, *tensors[3:5], attrs[0], offset=offset, query_weight=query_weight, key_weight=key_weight,
            query_eps=layer.queries.eps, key_eps=layer.keys.eps, traditional=attrs[1], base=attrs[2], scale=attrs[3],
            freqs=rest[0] if rest else None,
        )  # fmt: skip
        return keys, queries, values

    def call(nodes: Any, *tensors: Any) -> Any:
        offset = _agree(nodes, places)
        return apart(nodes, *tensors) if offset < 0 else run(offset, tensors)

    def rule(nodes: Any, integers: Callable[[int], tuple[Any, ...]]) -> Callable[..., Any]:
        if _agree(nodes, places) < 0:
            raise Unfit("heads, keys and values of different places of the sequence")
        cached, valued = integers(places.keys), integers(places.values)
        ends = {_where(cached[6]), _where(valued[6])}
        starts = {_where(integers(place)[0]) for place in (places.queries, places.rotated_keys)}
        starts |= {_where(cached[2]), _where(valued[2])}
        still = [one for dyn in (cached, valued) for k, one in enumerate(dyn) if k not in {2, 6}]
        if len(starts) != 1 or len(ends) != 1 or any(isinstance(one, torch.Tensor) for one in still):
            raise Unfit("places of heads, keys and values change apart from step to step")
        offset = cached[2]
        return lambda _nodes, *tensors: run(offset, tensors)

    call.in_place = True  # type: ignore[attr-defined]
    return Step(call, ins, outs, rule=rule)


def _where(integer: Any) -> Any:
    """Return what tells a changing integer from another one."""
    return ("slot", integer.data_ptr()) if isinstance(integer, torch.Tensor) else integer
