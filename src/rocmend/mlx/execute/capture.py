"""Executor 2: a whole step captured as a CUDA or HIP graph, and replayed.

What differs between replays comes in through device memory: small inputs are copied to fixed places, and integers that
change (offsets, ends of slices) stand in ``Slots``. Large buffers are read and written where they are: a graph holds
for those buffers, and a step with other ones is captured anew.
"""

from __future__ import annotations

import math
from operator import attrgetter
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.execute.lifted import RULES, Unfit
from rocmend.mlx.execute.slots import Slots
from rocmend.mlx.execute.trace import hold, picker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rocmend.mlx.execute.plan import Plan
    from rocmend.mlx.execute.step import Step
    from rocmend.mlx.execute.trace import Tape
    from rocmend.mlx.node import Node

__all__ = ["Capture", "Snapshot"]

_ALONE = next(map(getrefcount, [object()]))  # what is said of an object that one list holds
LARGEST = 1 << 22  # elements of a value that is computed in a graph

_data = attrgetter("data")


class Varying:
    """What was seen to differ between two steps of one plan.

    Attributes:
        integers: places of nodes whose changing integers differed.
        shapes: places of nodes whose shapes differed.
        values: places in ``outside`` order of values from before that were other tensors.
    """

    __slots__ = ("integers", "shapes", "values")

    def __init__(self, before: Snapshot, now: Snapshot) -> None:
        self.integers = [k for k, (a, b) in enumerate(zip(before.dyn, now.dyn, strict=True)) if a != b]
        self.shapes = [k for k, (a, b) in enumerate(zip(before.shapes, now.shapes, strict=True)) if a != b]
        self.values = [k for k, (a, b) in enumerate(zip(before.values, now.values, strict=True)) if a != b]


class Snapshot:
    """Shapes, changing integers and identities of the values of one step."""

    __slots__ = ("dyn", "shapes", "values")

    def __init__(self, tape: Tape, plan: Plan) -> None:
        self.dyn = tape.dyn()
        self.shapes = tape.shapes
        self.values = [id(tape.links[place].data) for place in plan.outside]


class Capture:
    """One captured step."""

    def __init__(self, tape: Tape, plan: Plan, before: Snapshot, now: Snapshot) -> None:
        """Capture a step; nothing is computed yet.

        Raises:
            Unfit: an operation of it cannot be part of a graph.
        """
        self.plan = plan
        varying = Varying(before, now)
        device = tape.nodes[0].stream.device.torch
        self._integers(tape, before, varying, device)
        self._shapes(tape, varying)
        self._inputs(tape, plan, varying)
        self.graph = torch.cuda.CUDAGraph()
        self._capture(tape, plan, device)

    # -- what a step must be like ----------------------------------------------------------------------------------

    def _integers(self, tape: Tape, before: Snapshot, varying: Varying, device: torch.device) -> None:
        """Find the integers that change, and which of them are always the same number."""
        now = now_dyn = tape.dyn()
        places: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for place in varying.integers:
            old, new = before.dyn[place] or (), now[place] or ()
            for k, pair in enumerate(zip(old, new, strict=True)):
                if pair[0] != pair[1]:
                    places.setdefault(pair, []).append((place, k))
        groups = list(places.values())
        self.slots = Slots(max(len(groups), 1), device)
        self.slot_of = {one: index for index, group in enumerate(groups) for one in group}
        self.first = [group[0] for group in groups]
        # nodes whose integers were equal in both steps must have equal ones again; of each such group one is looked at
        alike: dict[Any, list[int]] = {}
        for place in varying.integers:
            alike.setdefault((before.dyn[place], now_dyn[place]), []).append(place)
        self.groups = [
            (
                picker(members),
                len(members),
                members[0],
                [
                    (k, self.slot_of.get((members[0], k), -1), value)
                    for k, value in enumerate(now_dyn[members[0]] or ())
                ],
            )
            for members in alike.values()
        ]
        fixed = [k for k, dyn in enumerate(now) if dyn is not None and k not in set(varying.integers)]
        self.fixed_nodes = picker(fixed)
        self.fixed_values = self.fixed_nodes(now)

    def _shapes(self, tape: Tape, varying: Varying) -> None:
        changing = set(varying.shapes)
        stray = [k for k in changing if _name(tape.nodes[k]) != "Slice"]
        if stray:
            raise Unfit(f"the shape of {tape.nodes[stray[0]].op} changes from step to step")
        self.fixed_shapes = picker([k for k in range(len(tape.nodes)) if k not in changing])
        self.shapes = self.fixed_shapes(tape.shapes)

        largest = max((math.prod(node.shape) for node in tape.nodes if _computes(node)), default=0)
        if largest > LARGEST:
            raise Unfit(f"a value of {largest} elements: its computation takes longer than its launch")

    def _inputs(self, tape: Tape, plan: Plan, varying: Varying) -> None:
        """Tell values that are copied to a fixed place from those that are read where they are."""
        donated = set(plan.donated)
        changing = {plan.outside[k] for k in varying.values} - donated
        direct: list[int] = []
        copied: list[int] = []
        for place in plan.outside:
            value = tape.links[place].data
            if type(value) is tuple:
                raise Unfit("several values of one operation come from before the step")
            if value.device != tape.nodes[0].stream.device.torch:
                if value.numel() > 1:
                    raise Unfit("a value from another device")
                copied.append(place)
            else:
                (copied if place in changing else direct).append(place)
        self.copied, self.direct = picker(copied), picker(direct)
        self.copied_places, self.direct_places = copied, direct
        device = tape.nodes[0].stream.device.torch
        self.fixed = [torch.empty_like(tape.links[place].data, device=device) for place in copied]
        self.fixed_sizes = [(tuple(t.shape), t.dtype) for t in self.fixed]
        self.held = [tape.links[place].data for place in direct]  # keeps their memory theirs
        self.addresses = [id(value) for value in self.held]

    # -- capturing -------------------------------------------------------------------------------------------------

    def _capture(self, tape: Tape, plan: Plan, device: torch.device) -> None:
        count = len(tape.nodes)
        values: list[Any] = [None] * (count + len(tape.links))
        for place, value in zip(self.copied_places, self.fixed, strict=True):
            values[count + place] = value
        for place, value in zip(self.direct_places, self.held, strict=True):
            values[count + place] = value
        calls = [self._call(tape, step) for step in plan.steps]  # Unfit before anything is under way
        pool = _pool(device)
        side = _side_stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.no_grad(), torch.cuda.stream(side):
            self.graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                for step, call in zip(plan.steps, calls, strict=True):
                    result = call(tape.nodes, *[values[i] for i in step.ins])
                    if len(step.outs) == 1:
                        values[step.outs[0]] = result
                    else:
                        for place, value in zip(step.outs, result, strict=True):
                            values[place] = value
                    for place in step.free:
                        values[place] = None
            finally:
                self.graph.capture_end()
        torch.cuda.current_stream(device).wait_stream(side)
        inputs = {id(value) for value in self.held}
        self.results = [values[place] for place in plan.kept]
        # written in place, a buffer is the node's value itself; everything else is copied out of the graph's memory
        self.same = [id(value) in inputs for value in self.results]

    def _call(self, tape: Tape, step: Step) -> Callable[..., Any]:
        """Return what a step calls in the graph: the form that reads changing integers from device memory."""
        reads = [place for place in step.outs if self._changes(tape, place)]
        takes = [place for place in step.ins if self._is_prefix(tape, place)]
        if not reads and not takes:
            return step.call
        if step.rule is not None:
            return step.rule(tape.nodes, lambda place: self._integers_of(tape, place))  # type: ignore[no-any-return]
        node = tape.nodes[step.outs[-1]]
        rule = RULES.get(_name(node))
        if rule is None or len(step.outs) > 1:
            raise Unfit(f"{node.op} depends on an integer that changes from step to step")
        return rule(node, self._integers_of(tape, step.outs[0]), getattr(step.call, "in_place", False))

    def _integers_of(self, tape: Tape, place: int) -> tuple[Any, ...]:
        """Return a node's changing integers: numbers, or where they change, their places in device memory."""
        return tuple(
            self.slots.one(self.slot_of[place, k]) if (place, k) in self.slot_of else value
            for k, value in enumerate(tape.nodes[place].dyn or ())
        )

    def _changes(self, tape: Tape, place: int) -> bool:
        return any((place, k) in self.slot_of for k in range(len(tape.nodes[place].dyn or ())))

    def _is_prefix(self, tape: Tape, place: int) -> bool:
        return place < len(tape.nodes) and _name(tape.nodes[place]) == "Slice" and self._changes(tape, place)

    # -- replaying -------------------------------------------------------------------------------------------------

    def fits(self, tape: Tape) -> bool:
        """Return whether the graph holds for a step, whose integers are then known."""
        links = tape.links
        if not hold(self.direct(links), self.addresses):
            return False
        if self.fixed_shapes(tape.shapes) != self.shapes:
            return False
        dyn = tape.dyn()
        if self.fixed_nodes(dyn) != self.fixed_values:
            return False
        numbers = [0] * len(self.first)
        for place_k, (place, k) in enumerate(self.first):
            numbers[place_k] = tuple(dyn[place] or ())[k]
        for pick, count, member, pattern in self.groups:
            one = dyn[member] or ()
            if pick(dyn) != (one,) * count:
                return False
            for k, slot, value in pattern:
                if one[k] != (value if slot < 0 else numbers[slot]):
                    return False
        self.numbers = numbers
        for value, size in zip(map(_data, self.copied(links)), self.fixed_sizes, strict=True):
            if (tuple(value.shape), value.dtype) != size:
                return False
        return True

    def uses(self) -> list[int]:
        """Return the identities of the buffers that the graph holds, each as often as it does."""
        return [*self.addresses, *(id(value) for value, same in zip(self.results, self.same, strict=True) if same)]

    def stale(self, uses: Mapping[int, int]) -> bool:
        """Return whether a buffer of the graph is held by graphs alone: no step will come with it again.

        Args:
            uses: how often all graphs hold each buffer.
        """
        return any(
            count - _ALONE < uses[address]
            for count, address in zip(map(getrefcount, self.held), self.addresses, strict=True)
        )

    def run(self, tape: Tape) -> None:
        """Replay for a tape that fits."""
        with torch.no_grad():
            if self.first:
                self.slots.set(self.numbers)
            if self.fixed:
                torch._foreach_copy_(self.fixed, list(map(_data, self.copied(tape.links))))
            self.graph.replay()
            for place, value, same in zip(self.plan.kept, self.results, self.same, strict=True):
                node = tape.nodes[place]
                node.data = value if same else value.clone()
                node.inputs = ()
        self.plan.runs += 1


def _name(node: Node) -> str:
    return "" if node.op is None else node.op.name


def _computes(node: Node) -> bool:
    """Return whether an operation computes all of its value: it is no view, and no write into a buffer."""
    return node.op is not None and not node.op.view and node.op.name != "SliceUpdate" and node.shape is not None


_anchors: dict[torch.device, torch.cuda.CUDAGraph] = {}
_sides: dict[torch.device, torch.cuda.Stream] = {}


def _pool(device: torch.device) -> Any:
    """Return the memory that all graphs share: they run one after another, and results are copied out.

    Torch gives the memory up with the last graph that uses it; a graph of nothing much is kept so that this never is.
    """
    anchor = _anchors.get(device)
    if anchor is None:
        anchor = torch.cuda.CUDAGraph()
        side = _side_stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            anchor.capture_begin(capture_error_mode="thread_local")
            torch.zeros(1, device=device)
            anchor.capture_end()
        _anchors[device] = anchor
    return anchor.pool()


def _side_stream(device: torch.device) -> torch.cuda.Stream:
    side = _sides.get(device)
    if side is None:
        side = _sides[device] = torch.cuda.Stream(device)
    return side
