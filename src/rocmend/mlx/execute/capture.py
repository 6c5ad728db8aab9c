"""Executor 2: a whole step captured as a CUDA or HIP graph, and replayed.

What differs between replays comes in through device memory: small inputs are copied to fixed places, and integers that
change (offsets, ends of slices) stand in ``Slots``. Large buffers are read and written where they are: a graph holds
for those buffers, and a step with other ones is captured anew. Where each step comes with other ones (the first steps
of every generation: a new cache each time), they are copied too, as long as that takes less time than the launches.
"""

from __future__ import annotations

import math
import weakref
from operator import attrgetter, is_
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.execute import device_graph
from rocmend.mlx.execute.lifted import RULES, Unfit
from rocmend.mlx.execute.outgoing import Outgoing
from rocmend.mlx.execute.slots import Slots
from rocmend.mlx.execute.trace import hold, picker
from rocmend.mlx.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rocmend.mlx.execute.plan import Plan
    from rocmend.mlx.execute.step import Step
    from rocmend.mlx.execute.trace import Tape

__all__ = ["Capture", "Snapshot", "Varying"]

_ALONE = next(map(getrefcount, [object()]))  # what is said of an object that one list holds
MOST_COPIED = 1 << 25  # bytes that are copied to fixed places before a replay
COPIED_FOR_A_LAUNCH = 1 << 19  # bytes whose copying takes no longer than a launch from Python, on a laptop too
FEW = 3  # tensors
LEAST = 4  # operations that a graph is worth
LARGEST = 1 / 256  # of a device's memory: the largest value that is computed in a graph, and what results may keep

_data = attrgetter("data")
_referent = weakref.ref.__call__


class Snapshot:
    """Shapes, changing integers and identities of the values of one step. It keeps no value alive.

    A buffer that the step writes to is known by where it lies, everything else by being the same tensor.
    """

    __slots__ = ("dyn", "shapes", "values")

    def __init__(self, tape: Tape, plan: Plan) -> None:
        self.dyn = tape.dyn()
        self.shapes = tape.shapes
        self.values: list[Any] = []
        donated = set(plan.donated)
        for place in plan.outside:
            value = tape.links[place].data
            if type(value) is tuple:
                self.values.append(None)
            else:
                self.values.append(_where(value) if place in donated else weakref.ref(value))


class Varying:
    """What was seen to differ between two steps of one plan.

    Attributes:
        integers: places of nodes whose changing integers differed.
        shapes: places of nodes whose shapes differed.
        values: places in ``links`` of values from before that were other tensors.
        steady: whether a graph of the later step would hold for the next: the same buffers are written to, no shape
            differs but those of slices, and what is to be copied at each step is little (not another model's weights).
        movable: whether such a graph would hold if all that differed was copied, and is worth that.
    """

    __slots__ = ("integers", "movable", "shapes", "steady", "values")

    def __init__(self, before: Snapshot, now: Snapshot, tape: Tape, plan: Plan) -> None:
        self.integers = [k for k, (a, b) in enumerate(zip(before.dyn, now.dyn, strict=True)) if a != b]
        self.shapes = [k for k, (a, b) in enumerate(zip(before.shapes, now.shapes, strict=True)) if a != b]
        pairs = zip(plan.outside, before.values, now.values, strict=True)
        self.values = {place for place, a, b in pairs if not _same(a, b)}
        differing = [tape.links[place].data for place in self.values]
        copied = sum(value.nbytes for value in differing if type(value) is not tuple)
        alike = all(_name(tape.nodes[k]) == "Slice" for k in self.shapes)
        self.steady = alike and not self.values.intersection(plan.donated) and copied <= MOST_COPIED
        self.movable = alike and copied <= COPIED_FOR_A_LAUNCH * len(plan.steps)


class Capture:
    """One captured step.

    Attributes:
        moving: whether buffers that the step writes to are copied to a fixed place, and back.
    """

    def __init__(self, tape: Tape, plan: Plan, before: Snapshot, varying: Varying) -> None:
        """Capture a step; nothing is computed yet.

        Args:
            tape: of the step.
            plan: of the tape.
            before: the step before.
            varying: what differs, and is steady.

        Raises:
            Unfit: an operation of it cannot be part of a graph.
        """
        self.plan = plan
        device = tape.nodes[0].stream.device.torch
        self._shapes(tape, varying)
        self._integers(tape, before, varying, device)
        self._inputs(tape, plan, varying)
        self.graph = device_graph.make(device)
        self._capture(tape, plan)

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
        numbers = [(now[place] or ())[k] for place, k in self.first]
        if not _small(numbers):
            raise Unfit("an integer of more than 32 bits changes from step to step")
        self.slots.set(numbers or [0])
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
        self.fixed_shapes = picker([k for k in range(len(tape.nodes)) if k not in changing])
        self.shapes = self.fixed_shapes(tape.shapes)
        computed = [tape.nodes[place] for step in self.plan.steps for place in step.outs]
        sizes = [math.prod(node.shape) * node.dtype.size for node in computed if _computes(node)]
        if len(sizes) < LEAST:
            raise Unfit(f"{len(sizes)} operations, whose launches cost no more than a graph's")
        largest, most = max(sizes), device_graph.memory(tape.nodes[0].stream.device.torch) * LARGEST
        if largest > most:
            raise Unfit(f"a value of {largest} bytes, which a graph would keep: more than {most:.0f}")

    def _inputs(self, tape: Tape, plan: Plan, varying: Varying) -> None:
        """Tell values that are copied to a fixed place from those that are read where they are."""
        device = tape.nodes[0].stream.device.torch
        donated = set(plan.donated)
        kinds: dict[str, list[int]] = {"written": [], "held": [], "copied": []}
        for place in plan.outside:
            value = tape.links[place].data
            if type(value) is tuple:
                raise Unfit("several values of one operation come from before the step")
            if value.device != device and value.numel() > 1:
                raise Unfit("a value from another device")
            if place in varying.values or value.device != device:
                kinds["copied"].append(place)
            else:
                kinds["written" if place in donated else "held"].append(place)
        self.moving = not donated.isdisjoint(kinds["copied"])
        self.copied_places = kinds["copied"]
        self.copied = picker(kinds["copied"])
        self.fixed = [tape.links[place].data.to(device, copy=True) for place in kinds["copied"]]
        self.fixed_sizes = [(tuple(t.shape), t.dtype) for t in self.fixed]
        # Weights are known by being the same tensors, which are kept alive here. Buffers that are written to are known
        # by where they are: a cache that is dropped goes, and the next one may lie in its place.
        self.held_places = kinds["held"]
        self.direct = picker(kinds["held"])
        self.held = [tape.links[place].data for place in kinds["held"]]
        self.addresses = [id(value) for value in self.held]
        self.written_places = kinds["written"]
        self.written = picker(kinds["written"])
        values = list(map(_data, self.written(tape.links)))
        self.written_at = list(map(_where, values))
        self.written_last = list(map(weakref.ref, values))

    # -- capturing -------------------------------------------------------------------------------------------------

    def _capture(self, tape: Tape, plan: Plan) -> None:
        count = len(tape.nodes)
        values: list[Any] = [None] * (count + len(tape.links))
        for place, value in zip(self.copied_places, self.fixed, strict=True):
            values[count + place] = value
        for place, value in zip(self.held_places, self.held, strict=True):
            values[count + place] = value
        for place in self.written_places:
            values[count + place] = tape.links[place].data
        calls = [self._call(tape, step) for step in plan.steps]  # Unfit before anything is under way

        # what operations read of their nodes, without what the nodes keep alive
        nodes = [
            Node(node.op, (), node.attrs, node.dyn, node.shape, node.dtype, node.stream, None, -1)
            for node in tape.nodes
        ]

        def work() -> list[Any]:
            filled = list(values)
            for step, call in zip(plan.steps, calls, strict=True):
                result = call(nodes, *[filled[i] for i in step.ins])
                if len(step.outs) == 1:
                    filled[step.outs[0]] = result
                else:
                    for place, value in zip(step.outs, result, strict=True):
                        filled[place] = value
                for place in step.free:
                    filled[place] = None
            return [filled[kept] for kept in plan.kept]

        with torch.no_grad():
            made = dict(zip(plan.kept, self.graph.capture(work), strict=True))
        # Written in place, a buffer is the node's value itself, and so is one handed through; everything else is copied
        # out of the graph's memory.
        through = {id(tape.links[place].data): place for place in (*self.held_places, *self.written_places)}
        self.same = [(kept, through[id(value)]) for kept, value in made.items() if id(value) in through]
        self.made = [kept for kept, value in made.items() if id(value) not in through]
        self.results = [made[kept] for kept in self.made]
        self.outgoing = Outgoing(self.results, device_graph.memory(tape.nodes[0].stream.device.torch) * LARGEST)

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
        if not self._lie_there(links):
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
        if not _small(numbers):
            return False
        self.numbers = numbers
        for value, size in zip(map(_data, self.copied(links)), self.fixed_sizes, strict=True):
            if (tuple(value.shape), value.dtype) != size:
                return False
        return True

    def _lie_there(self, links: list[Node]) -> bool:
        """Return whether the buffers that are written to are where they were captured."""
        values = list(map(_data, self.written(links)))
        if all(map(is_, values, map(_referent, self.written_last))):
            return True  # a step hands its buffers on to the next: the same tensors, which need not be looked at
        if list(map(_where, values)) != self.written_at:
            return False
        self.written_last = list(map(weakref.ref, values))
        return True

    def uses(self) -> list[int]:
        """Return the identities of the tensors that the graph keeps alive."""
        return self.addresses

    def holders(self) -> list[int]:
        """Return how many references each of these tensors has."""
        return list(map(getrefcount, self.held))

    def stale(self, uses: Mapping[int, int]) -> bool:
        """Return whether a buffer of the graph is held by graphs alone: no step will come with it again.

        Args:
            uses: how often all graphs hold each buffer.
        """
        return any(
            count - _ALONE < uses[address] for count, address in zip(self.holders(), self.addresses, strict=True)
        )

    def run(self, tape: Tape) -> None:
        """Replay for a tape that fits."""
        with torch.no_grad():
            if self.first:
                self.slots.set(self.numbers)
            if self.fixed:
                _copy(self.fixed, list(map(_data, self.copied(tape.links))))
            self.graph.replay()
            nodes, links = tape.nodes, tape.links
            for place, link in self.same:
                nodes[place].data = links[link].data
            values = self.outgoing.take()
            if values:
                _copy(values, self.results)
            for place, value in zip(self.made, values, strict=True):
                nodes[place].data = value
            for place in self.plan.kept:
                nodes[place].inputs = ()
        self.plan.runs += 1


def _copy(into: list[torch.Tensor], of: list[torch.Tensor]) -> None:
    """Copy tensors: a few one by one, which takes the CPU less time than preparing one launch for all of them."""
    if len(into) > FEW:
        torch._foreach_copy_(into, of)
        return
    for one, other in zip(into, of, strict=True):
        one.copy_(other)


def _small(numbers: list[int]) -> bool:
    """Return whether integers fit into the 32 bits that they have in device memory."""
    return not numbers or (max(numbers) < 1 << 31 and min(numbers) >= -(1 << 31))


def _same(one: Any, other: Any) -> bool:
    """Return whether two values of snapshots are the same buffer or tensor, which is still there."""
    if type(one) is tuple or type(other) is tuple:
        return bool(one == other)
    return one is not None and other is not None and one() is not None and one() is other()


def _where(value: torch.Tensor) -> tuple[int, torch.Size, tuple[int, ...]]:
    return value.data_ptr(), value.shape, value.stride()


def _name(node: Node) -> str:
    return "" if node.op is None else node.op.name


def _computes(node: Node) -> bool:
    """Return whether an operation computes all of its value: it is no view, and no write into a buffer."""
    return node.op is not None and not node.op.view and node.op.name != "SliceUpdate" and node.shape is not None
