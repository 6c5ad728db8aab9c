"""A plan: what to run for a tape of a known structure, in which order, and which buffers may be written in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.execute import heap, interpreter
from rocmend.mlx.execute.order import order_of
from rocmend.mlx.execute.rewrite import rewritten
from rocmend.mlx.execute.sources import Releases, Sources, references, settled
from rocmend.mlx.execute.step import Step
from rocmend.mlx.execute.trace import ALONE, OWNED, Tape

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.node import Node

__all__ = ["Plan", "observe"]

IN_PLACE = "SliceUpdate"


@dataclass(slots=True)
class Plan:
    """What to run for every tape of one structure whose nodes are held alike.

    Attributes:
        steps: in order.
        outside: places in ``links`` of the values from before.
        kept: places of the nodes that get a value.
        lazy: places of nodes that handles hold and that stay to be computed: views of kept values.
        owned: places of kept nodes whose buffers nothing else sees.
        donated: places in ``links`` whose buffers are written to.
        donated_held: reference counts of these nodes when nobody else holds them.
        shared: places in ``links`` whose buffers a kept value sees from now on.
        settled: places in ``links`` that nothing reads again, if it is worth letting them go while the steps run.
    """

    steps: list[Step]
    outside: list[int]
    kept: tuple[int, ...]
    lazy: tuple[int, ...]
    owned: frozenset[int]
    donated: tuple[int, ...]
    donated_held: list[int]
    shared: tuple[int, ...] = ()
    settled: frozenset[int] = frozenset()
    runs: int = 0

    def fits(self, tape: Tape) -> bool:
        """Return whether the buffers that the plan writes to are nobody else's."""
        return not self.donated or references(tape, self.donated) == self.donated_held

    def run(self, tape: Tape) -> None:
        """Compute the tape's nodes."""
        nodes = tape.nodes
        device = nodes[0].stream.device.torch
        values: list[Any] = [None] * (len(nodes) + len(tape.links))
        sources = Sources(tape, self.outside, values, device)
        waiting = sources.waiting
        releases = Releases(tape, self.outside, self.settled) if self.settled else None
        with torch.no_grad():
            for step in self.steps:
                if waiting:
                    sources.bring(step.ins)
                try:
                    result = step.call(nodes, *[values[i] for i in step.ins])
                except interpreter.FAILURES as error:
                    if releases is not None:
                        releases.failed(values)
                    raise interpreter.failure(nodes[step.outs[-1]], [values[i] for i in step.ins], error) from error
                if len(step.outs) == 1:
                    values[step.outs[0]] = result
                else:
                    for place, value in zip(step.outs, result, strict=True):
                        values[place] = value
                for place in step.free:
                    values[place] = None
                if releases is not None:
                    releases.after(step.free)
        for place in self.kept:
            node = nodes[place]
            node.data = values[place]
            node.inputs = ()
        self.runs += 1


def observe(tape: Tape) -> Plan | None:
    """Compute a tape step by step, watch which values share memory, and return a plan for the next one.

    Returns None, and computes nothing, where one plan cannot do it: work for several devices.
    """
    if min(tape.structure[6]) < 0 or len(set(tape.structure[5])) != 1:
        return None
    return _Observation(tape).run()


class _Observation:
    """One run of a tape that finds out what the next runs may do."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.nodes = tape.nodes
        self.count = len(tape.nodes)
        self.outside = tape.outside()
        self.values: list[Any] = [None] * (self.count + len(tape.links))
        self.address: dict[int, int] = {}  # of a place: its storage
        self.sharing: dict[int, set[int]] = {}  # of a storage: the places that see it and are needed still
        self.donated: list[int] = []
        wanted = self._wanted()
        self.ins = self._inputs()
        self.lazy, self.kept = self._held(wanted)
        self.settled = settled(tape, wanted, self.kept, self.lazy)
        self.order = order_of(self.nodes, wanted, tape.structure[6], self.kept)
        self.last = self._last()
        self.uses = _uses_of_links(tape)

    def _wanted(self) -> list[bool]:
        wanted = [False] * self.count
        for root in self.tape.structure[6]:
            wanted[root] = True
        for place in range(self.count - 1, -1, -1):
            if wanted[place]:
                for child in self.nodes[place].inputs:
                    if child.pos >= 0:
                        wanted[child.pos] = True
        return wanted

    def _inputs(self) -> list[tuple[int, ...]]:
        """Return the places of each node's inputs."""
        found = []
        link = self.count
        for node in self.nodes:
            found.append(tuple(child.pos if child.pos >= 0 else link + k for k, child in enumerate(node.inputs)))
            link += len(node.inputs)
        return found

    def _held(self, wanted: list[bool]) -> tuple[list[int], list[int]]:
        """Return the places that handles hold: those that stay to be computed, and those that get a value.

        A view of a kept buffer costs nothing to compute when it is asked for, and until then it keeps the buffer from
        being written to; computed now, it would be a second owner that nothing knows of.
        """
        uses = [0] * self.count
        for position in self.tape.structure[2]:
            if position >= 0:
                uses[position] += 1
        roots = set(self.tape.structure[6])
        held = {
            place
            for place in range(self.count)
            if wanted[place] and (place in roots or self.tape.held[place] - uses[place] > ALONE)
        }
        lazy = []
        for place in sorted(held):
            node = self.nodes[place]
            source = node.inputs[0].pos if len(node.inputs) == 1 else -1
            if node.op.view and source in held and self.nodes[source].op.name == IN_PLACE:  # type: ignore[union-attr]
                lazy.append(place)
        return lazy, sorted(held.difference(lazy))

    def _last(self) -> dict[int, int]:
        """Return of each place the number of the step that needs it last."""
        last: dict[int, int] = {}
        for number, place in enumerate(self.order):
            for one in (*self.ins[place], place):
                last[one] = number
        for place in self.kept:
            last[place] = len(self.order)
        return last

    def run(self) -> Plan:
        """Compute the tape and return the plan."""
        tape, nodes, values = self.tape, self.nodes, self.values
        device = nodes[0].stream.device.torch
        sources = Sources(tape, self.outside, values, device)
        for place in self.outside:
            if self.count + place not in sources.waiting:
                self._see(self.count + place, values[self.count + place])
        releases = Releases(tape, self.outside, self.settled)
        steps = []
        with torch.no_grad():
            for number, place in enumerate(self.order):
                node, ins = nodes[place], self.ins[place]
                for one in sources.bring(ins):
                    self._see(one, values[one])
                in_place = node.op.name == IN_PLACE and self._may_write(number, place)  # type: ignore[union-attr]
                call = _writer(place) if in_place else _caller(node, place)
                tensors = [values[i] for i in ins]
                try:
                    values[place] = call(nodes, *tensors)
                except interpreter.FAILURES as error:
                    releases.failed(values)
                    raise interpreter.failure(node, tensors, error) from error
                heap.passed((*tensors, values[place]))
                del tensors
                self._see(place, values[place])
                free = tuple(one for one in dict.fromkeys((*ins, place)) if self.last[one] == number)
                for one in free:
                    values[one] = None
                    if one < self.count:  # a value from before is there beyond this tape
                        self.sharing.get(self.address.get(one, 0), set()).discard(one)
                releases.after(free)
                steps.append(Step(call, ins, (place,), free))
        plan = Plan(
            steps=rewritten(steps, tape, self.kept),
            outside=self.outside,
            kept=tuple(self.kept),
            lazy=tuple(self.lazy),
            owned=self._owned(),
            donated=tuple(self.donated),
            donated_held=references(tape, self.donated),
            shared=self._shared(),
            settled=self.settled if releases.any else frozenset(),
        )
        for place in plan.kept:
            nodes[place].data = values[place]
            nodes[place].inputs = ()
        return plan

    def _see(self, place: int, value: Any) -> None:
        if type(value) is not tuple and value.numel():
            address = self.address[place] = value.untyped_storage().data_ptr()
            self.sharing.setdefault(address, set()).add(place)

    def _may_write(self, number: int, place: int) -> bool:
        """Return whether a slice update may write into its first input: nothing needs the old values."""
        source, update = self.ins[place][:2]
        address = self.address.get(source, 0)
        if not address or address == self.address.get(update) or self.last[source] != number:
            return False
        if source >= self.count and not self._ours(source - self.count):
            return False
        if not self.values[source].is_contiguous():  # elements of a broadcast value share their place
            return False
        for other in self.sharing[address]:
            if other >= self.count:
                if (
                    source < self.count
                    or self.tape.links[other - self.count] is not self.tape.links[source - self.count]
                ):
                    return False
                if self.last.get(other, -1) > number:
                    return False
            elif self.last[other] > number:
                return False
        if source >= self.count:
            self.donated.append(source - self.count)
        return True

    def _ours(self, link: int) -> bool:
        """Return whether a value from before belongs to this tape alone."""
        held = references(self.tape, [link])[0]  # before a name of this function holds it too
        node = self.tape.links[link]
        # once in the inputs of each node that uses it, and once in links for each of these
        return node.pos == OWNED and held - 2 * self.uses[id(node)] == ALONE

    def _shared(self) -> tuple[int, ...]:
        """Return the links whose buffer a kept value sees, or might see with other strides."""
        seen = {self.address.get(place, 0) for place in self.kept}
        through = set()
        for kept in self.kept:
            source = kept
            while source < self.count and self.nodes[source].op.view:  # type: ignore[union-attr]
                source = self.ins[source][0]
            through.add(source)
        written = set(self.donated)
        return tuple(
            link
            for link in self.outside
            if link not in written and (self.address.get(self.count + link, -1) in seen or self.count + link in through)
        )

    def _owned(self) -> frozenset[int]:
        """Return the kept slice updates whose storage no other kept value and no value from before sees."""
        ours = {self.count + link for link in self.donated}
        return frozenset(
            place
            for place in self.kept
            if self.nodes[place].op.name == IN_PLACE  # type: ignore[union-attr]
            and self.address.get(place)
            and self.sharing[self.address[place]] - ours == {place}
        )


def _uses_of_links(tape: Tape) -> dict[int, int]:
    """Return how often each node from before is an input."""
    found: dict[int, int] = {}
    for place, position in enumerate(tape.structure[2]):
        if position < 0:
            key = id(tape.links[place])
            found[key] = found.get(key, 0) + 1
    return found


def _caller(node: Node, place: int) -> Callable[..., Any]:
    run = node.op.run  # type: ignore[union-attr]

    def call(nodes: list[Node], *tensors: Any) -> Any:
        return run(nodes[place], *tensors)

    return call


def _writer(place: int) -> Callable[..., Any]:
    def call(nodes: list[Node], into: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        node = nodes[place]
        rank = len(node.shape)
        strides, mode = node.attrs
        dyn = node.dyn or ()
        if mode != "assign" or any(stride != 1 for stride in strides) or into.shape != node.shape:
            return node.op.run(node, into, update)  # type: ignore[no-any-return,union-attr]
        into[tuple(slice(dyn[k], dyn[rank + k]) for k in range(rank))].copy_(update)
        return into

    call.in_place = True  # type: ignore[attr-defined]
    return call
