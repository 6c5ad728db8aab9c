"""Computing what was asked for: the order, the executor, and what is let go afterwards."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import chain
from operator import attrgetter, is_
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from rocmend.mlx import memory
from rocmend.mlx.device import cpu
from rocmend.mlx.execute import interpreter, settings
from rocmend.mlx.execute.fetch import fetched
from rocmend.mlx.execute.planner import planner
from rocmend.mlx.execute.trace import ALONE, OWNED, SHARED, seen
from rocmend.mlx.node import Node, State, current
from rocmend.mlx.primitive import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocmend.mlx.array_operators import ArrayOperators

__all__ = ["compute", "evaluate", "host_value", "let_go", "schedule", "value"]

# Longer tapes are dropped: no step of a program is that long, and what nobody evaluates must not pile up.
LONGEST_TAPE = 200_000

# One evaluation at a time: threads may share a graph, and computed nodes let go of their inputs.
_lock = threading.RLock()

_inputs = attrgetter("inputs")
_pos = attrgetter("pos")


def schedule(roots: Iterable[Node]) -> list[Node]:
    """Return the nodes that must be computed for ``roots``, each after its inputs.

    Raises:
        ValueError: one stands for an argument of a function that is being traced.
        RuntimeError: one stood for an argument of a function whose tracing is over.
    """
    order: list[Node] = []
    seen_: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in roots if root.data is None]
    stack.reverse()
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
            continue
        if id(node) in seen_:
            continue
        if node.op is None:
            raise _untraceable()
        seen_.add(id(node))
        stack.append((node, True))
        stack += [(child, False) for child in reversed(node.inputs) if child.data is None and id(child) not in seen_]
    return order


def _untraceable() -> Exception:
    if current.state.tracing:
        return ValueError(
            "[eval] Attempting to eval an array during function transformations like compile or vmap is not allowed. "
            "There the array stands for many values or for none. Evaluate outside of the function."
        )
    return RuntimeError(
        "[eval] Attempting to eval an array without a primitive: it was an argument of a function that was traced by "
        "compile or vmap and is kept beyond it. If you are compiling a function, make sure all the inputs and outputs "
        "are captured."
    )


def compute(roots: list[Node]) -> None:
    """Compute the nodes of ``roots`` and all that they need. All evaluations pass here."""
    state = current.state
    with _lock:
        tape = state.tape
        if settings.plans() and not state.tracing and type(tape) is list and len(tape) <= LONGEST_TAPE:
            state.tape = []
            if State.made > 1:
                _claim(tape, roots)
            try:
                if planner().run(tape, roots, _compute_older):
                    del tape  # and what was only in between, before anything is counted
                    _note(state, roots)
                    return
            except _NotPlannedError:
                pass
            except BaseException:
                seen(tape)
                raise
            seen(tape)
        _compute_singly(roots)
        cut(state)
        _note(state, roots)


def _note(state: State, roots: list[Node]) -> None:
    """Count what was computed towards the peak where torch does not."""
    if state.device.type is cpu:
        memory.note([root.data for root in roots])


def _claim(tape: list[Node], roots: list[Node]) -> None:
    """Take the places off nodes that stand on another thread's tape: on this one they mean nothing."""
    links = [*chain.from_iterable(map(_inputs, tape)), *roots]
    places = list(map(_pos, links))
    here = [*tape, None, None]  # behind SHARED and OWNED
    last = len(tape)
    if max(places, default=0) < last:
        found = sum(map(is_, map(here.__getitem__, places), links))
        if found == len(places) - places.count(SHARED) - places.count(OWNED):
            return
    for link, place in zip(links, places, strict=True):
        if place >= last or (place >= 0 and tape[place] is not link):
            link.pos = SHARED


class _NotPlannedError(Exception):
    """Something that stands on the tape cannot be computed. It may be nothing that is asked for."""


def _compute_older(roots: list[Node]) -> None:
    """Compute what a tape reads from before it."""
    try:
        pending = schedule(roots)
    except (ValueError, RuntimeError) as error:
        raise _NotPlannedError from error
    interpreter.run(pending, keep=False)


def _compute_singly(roots: list[Node]) -> None:
    pending = schedule(roots)
    if pending:
        interpreter.run(pending, keep=current.state.tracing > 0)


def cut(state: State) -> None:
    """Begin a new tape, unless a function is being traced, whose body the tape is."""
    tape = state.tape
    if type(tape) is list and tape:
        state.tape = []
        seen(tape)


def let_go() -> None:
    """Drop the tape if nothing on it can be asked for any more: it holds what it reads until the next evaluation."""
    state = current.state
    with _lock:
        tape = state.tape
        if state.tracing or type(tape) is not list:
            return
        counts = list(map(getrefcount, tape))
        read = Counter(map(id, chain.from_iterable(map(_inputs, tape))))
        if all(count == ALONE + read[id(node)] for node, count in zip(tape, counts, strict=True)):
            cut(state)


def value(node: Node) -> Any:
    """Return a node's tensor, computed if it is not yet. From now on others may see it: it is not written to."""
    if node.data is None:
        compute([node])
    if node.pos == OWNED:
        node.pos = SHARED
    return node.data


def host_value(node: Node) -> Any:
    """Return a node's value as a tensor on the CPU, without waiting for work that was queued after it."""
    if node.data is None:
        compute([node])
    return fetched(node.data)


def evaluate(arrays: Sequence[ArrayOperators], *, wait: bool) -> None:
    """Compute arrays.

    Args:
        arrays: in any state.
        wait: return when they are computed; otherwise when their computation is under way.

    Raises:
        ValueError: they depend on arguments of a function that is being traced, and cannot be computed or not be
            waited for.
    """
    roots = [x._n for x in arrays if x._n.data is None]
    state = current.state
    if roots:
        if not wait and state.tracing:
            _refuse_traced(roots)
        compute(roots)
    elif len(state.tape) > LONGEST_TAPE:
        cut(state)
    if len(roots) < len(arrays):  # what was there before counts too, a file's contents for example
        with _lock:
            _note(state, [x._n for x in arrays])
    if memory.LIMITS:
        memory.trim()
    if wait:
        for device in {x._n.stream.device for x in arrays}:
            device.synchronize()


def _refuse_traced(roots: list[Node]) -> None:
    if any(node.op is IDENTITY for node in schedule(roots)):
        raise ValueError(
            "[async_eval] Not allowed inside a graph transformation. Use eval, which waits, or evaluate outside of it."
        )
