"""Choosing the plan of a tape: the one that came after the last, one that was made before, or a new one."""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Any

from rocmend.mlx.execute import compare, device_graph, fetch, settings
from rocmend.mlx.execute.capture import Capture, Snapshot, Varying
from rocmend.mlx.execute.lifted import Unfit
from rocmend.mlx.execute.plan import Plan, observe
from rocmend.mlx.execute.trace import SHARED, Tape, seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.node import Node

__all__ = ["Entry", "Planner", "planner"]

LOG = logging.getLogger("rocmend.mlx")
LIMIT = 256  # plans that a thread remembers
GRAPHS = 4  # captured steps of one plan: a cache that has grown needs another
TRIES = 8  # captures of one plan that may turn out to be needed once
WORTH = 16  # replays that are worth another capture


class Entry:
    """A plan, and what a tape must equal for it.

    Attributes:
        structure: of the tapes that the plan holds for.
        held: how their nodes are held.
        plan: what to run.
        following: what came after it the last time.
        before: shapes and integers of the last step.
        moved: how many steps in a row came with other buffers than the step before.
        captures: of this plan, the last used one last.
        tries: how many captures were made.
        replays: how many steps they computed.
        unfit: why it is not captured: the driver refused, or it cannot be; empty where it may be.
    """

    __slots__ = ("before", "captures", "following", "held", "moved", "plan", "replays", "structure", "tries", "unfit")

    def __init__(self, tape: Tape, plan: Plan) -> None:
        self.structure = tape.structure
        self.held = tape.held
        self.plan = plan
        self.following: Entry | None = None
        self.before: Snapshot | None = None
        self.moved = 0
        self.captures: list[Capture] = []
        self.tries = 0
        self.replays = 0
        # Processes decide each for itself when a step is captured, and nccl wants all or none of them to have done so.
        meets = any(node.op is not None and node.op.meets for node in tape.nodes)
        self.unfit = "it exchanges values with other processes" if meets else ""

    def matches(self, tape: Tape) -> bool:
        """Return whether the plan holds for a tape."""
        return self.held == tape.held and self.structure == tape.structure

    def run(self, tape: Tape) -> None:
        """Compute a tape that matches: by a captured step, by capturing it, or call after call."""
        fitting = self._fitting(tape)
        if fitting is not None and not fitting.moving:
            fitting.run(tape)
            self.replays += 1
            return
        found = self._made(tape, instead=fitting) if self._may_capture(tape) else None
        if found is not None:
            self.captures = [*self.captures[1 - GRAPHS :], found]
            found.run(tape)
        elif fitting is not None:
            fitting.run(tape)
            self.replays += 1
        else:
            self.plan.run(tape)

    def _fitting(self, tape: Tape) -> Capture | None:
        """Return a capture that holds for a step: one that reads and writes buffers where they are, if there is one."""
        moving = None
        for capture in reversed(self.captures):
            if (moving is None or not capture.moving) and capture.fits(tape):
                if not capture.moving:
                    return capture
                moving = capture
        return moving

    def _made(self, tape: Tape, *, instead: Capture | None) -> Capture | None:
        """Capture a step if the last ones show that the graph will hold for more of them.

        Args:
            tape: of the step.
            instead: a capture that holds for it, but copies the buffers.
        """
        before, self.before = self.before, Snapshot(tape, self.plan)
        if before is None:
            return None
        varying = Varying(before, self.before, tape, self.plan)
        if varying.steady:
            self.moved = 0
            return self._captured(tape, before, varying)
        # A generation's first steps come with another cache each time. One step with another cache says little: the
        # next ones may go on with it.
        self.moved = self.moved + 1 if varying.movable else 0
        return self._captured(tape, before, varying) if self.moved > 1 and instead is None else None

    def _captured(self, tape: Tape, before: Snapshot, varying: Varying) -> Capture | None:
        """Capture a step, if that can be done and has been worth it."""
        if self.tries >= TRIES + self.replays // WORTH:
            return None
        self.tries += 1
        try:
            capture = Capture(tape, self.plan, before, varying)
        except Unfit as reason:  # these two steps: others may differ in less
            LOG.debug("not captured: %s", reason)
        except RuntimeError as error:  # the driver's or torch's refusal: the plan can run without
            self.unfit = str(error)
            LOG.warning("a step could not be captured and runs call by call: %s", error)
        else:
            return capture if capture.fits(tape) else None
        return None

    def _may_capture(self, tape: Tape) -> bool:
        return not self.unfit and settings.captures() and device_graph.can(tape.nodes[0].stream.device.torch)


class Planner:
    """The plans of one thread.

    Attributes:
        made: how many plans were made.
        runs: how many tapes were computed by a plan that was there.
    """

    def __init__(self) -> None:
        self.entries: OrderedDict[tuple[Any, ...], Entry] = OrderedDict()
        self.last: Entry | None = None
        self.made = 0
        self.runs = 0
        self.holders: list[list[int]] = []  # of what captured steps stand on, when they were looked through

    def run(self, nodes: list[Node], roots: list[Node], pending: Callable[[list[Node]], None]) -> bool:
        """Compute ``roots``, which stand on the tape of ``nodes``.

        Args:
            nodes: of a tape, which is at its end: their places mean nothing afterwards.
            roots: what is wanted.
            pending: computes values of older tapes.

        Returns:
            False, with nothing done, where no plan can compute them.
        """
        if any(root.pos < 0 for root in roots):
            return False
        tape = Tape(nodes, roots)
        if tape.older:
            pending(tape.older)
            tape.older = []  # it would hold them to the end
        entry = self._find(tape)
        owned: frozenset[int] = frozenset()
        try:
            if entry is not None and entry.plan.fits(tape):
                expected = compare.reference(tape, entry.plan) if settings.compares() else None
                entry.run(tape)
                self.runs += 1
                if expected is not None:
                    compare.check(tape, expected)
            else:
                plan = observe(tape)
                if plan is None:
                    return False
                entry = self._remember(tape, plan)
            owned = entry.plan.owned
            for link in entry.plan.shared:
                tape.links[link].pos = SHARED
            fetch.start([root.data for root in roots])
        finally:
            seen(nodes, owned=owned)
        if self.last is not None:
            self.last.following = entry
        self.last = entry
        return True

    def _find(self, tape: Tape) -> Entry | None:
        """Return the plan of a tape: first the one that followed the last one before."""
        expected = self.last.following if self.last is not None else None
        if expected is not None and expected.matches(tape):
            return expected
        entry = self.entries.get(_key(tape))
        return entry if entry is not None and entry.matches(tape) else None

    def _remember(self, tape: Tape, plan: Plan) -> Entry:
        entry = Entry(tape, plan)
        entry.before = Snapshot(tape, plan) if settings.captures() else None
        self.made += 1
        self.entries[_key(tape)] = entry
        while len(self.entries) > LIMIT:
            _, old = self.entries.popitem(last=False)
            if self.last is old:
                self.last = None
        return entry

    def trim(self) -> None:
        """Drop captured steps that stand on buffers which nothing else holds: of models and caches that are gone."""
        holders = [capture.holders() for entry in self.entries.values() for capture in entry.captures]
        if holders == self.holders:
            return  # as it was the last time, when they stayed: programs ask often
        self.holders = holders
        uses: Counter[int] = Counter()
        for entry in self.entries.values():
            for capture in entry.captures:
                uses.update(capture.uses())
        for entry in self.entries.values():
            entry.captures = [capture for capture in entry.captures if not capture.stale(uses)]

    def forget(self) -> None:
        """Drop all plans, and the memory that captured steps hold."""
        self.entries.clear()
        self.last = None
        self.holders = []


def _key(tape: Tape) -> tuple[Any, ...]:
    structure = tape.structure
    return (len(tape.nodes), *(hash(tuple(part)) for part in structure), hash(tuple(tape.held)))


_thread = threading.local()


def planner() -> Planner:
    """Return this thread's planner."""
    found: Planner | None = getattr(_thread, "planner", None)
    if found is None:
        found = _thread.planner = Planner()
    return found
