"""Finding chains of element-wise operations in a plan's steps, and putting one step in the place of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.execute.fusion.expressions import EXPRESSIONS, LOGICAL, TYPES
from rocmend.mlx.execute.fusion.kernel import Chain, Micro
from rocmend.mlx.execute.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocmend.mlx.node import Node

__all__ = ["fused"]

LONGEST = 64  # operations of one kernel


@dataclass(slots=True)
class _Group:
    """Steps that become one.

    Attributes:
        steps: their numbers, in order.
        micros: their operations.
        shape: of what they compute.
    """

    steps: list[int]
    micros: list[Micro]
    shape: tuple[int, ...]
    originals: list[Step] = field(default_factory=list)


def fused(steps: Sequence[Step], nodes: Sequence[Node], links: Sequence[Node], kept: Sequence[int]) -> list[Step]:
    """Return steps in which chains of element-wise operations are one step each.

    Args:
        steps: a plan's, in order; what they free is not kept up.
        nodes: of its tape.
        links: of its tape.
        kept: places of the nodes that must get a value.
    """
    users: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        for place in step.ins:
            users.setdefault(place, []).append(number)
    values = dict(enumerate(nodes)) | dict(enumerate(links, len(nodes)))
    # A buffer that is written in place may not be read later than the program reads it.
    writes = [number for number, step in enumerate(steps) if getattr(step.call, "in_place", False)]
    group_of: dict[int, _Group] = {}  # of a place: the group that computes it
    groups: list[_Group] = []
    for number, step in enumerate(steps):
        micros = _micros(step, nodes, values)
        if micros is None:
            continue
        mine = _Group([number], micros, nodes[step.outs[-1]].shape, [step])
        for place in step.ins:
            other = group_of.get(place)
            if other is not None and other is not mine and _may_join(other, mine, users, writes):
                _absorb(mine, other)
                groups.remove(other)
                for one in mine.originals:
                    group_of.update(dict.fromkeys(one.outs, mine))
        groups.append(mine)
        group_of.update(dict.fromkeys(step.outs, mine))
    return _rebuilt(steps, groups, users, set(kept), values)


def _may_join(other: _Group, mine: _Group, users: dict[int, list[int]], writes: Sequence[int]) -> bool:
    """Return whether an earlier group can be computed where the later one is."""
    now = mine.steps[-1]
    if other.shape != mine.shape or len(other.micros) + len(mine.micros) > LONGEST:
        return False
    if any(other.steps[0] < write < now for write in writes):
        return False
    inside = {*other.steps, *mine.steps}
    made = [out for one in other.originals for out in one.outs]
    return all(user in inside or user > now for out in made for user in users.get(out, ()))


def _absorb(mine: _Group, other: _Group) -> None:
    """Put another group's steps among one's own, in the order of the program."""
    merged = sorted(
        zip((*other.steps, *mine.steps), (*other.originals, *mine.originals), strict=True), key=lambda one: one[0]
    )
    mine.steps = [number for number, _ in merged]
    mine.originals = [step for _, step in merged]
    mine.micros = [*other.micros, *mine.micros]


def _number(node: Node) -> bool:
    """Return whether a node is a number that a kernel can hold.

    Numbers of the tape are part of its structure. One from before is not: the next tape may come with another.
    """
    return node.pos >= 0 and node.op is not None and node.op.name == "Constant" and node.dtype in TYPES


def _micros(step: Step, nodes: Sequence[Node], values: dict[int, Node]) -> list[Micro] | None:
    """Return a step's operations, or None where a kernel cannot compute it."""
    node = nodes[step.outs[0]]
    merged: list[Micro] | None = step.merged
    if node.op is None or merged is not None:
        return merged
    if len(step.outs) > 1 or not node.shape or not _computable(node, values, step.ins):
        return None
    return [Micro(step.outs[0], node.op.name, step.ins, node.dtype)]


def _computable(node: Node, values: dict[int, Node], ins: Sequence[int]) -> bool:
    name = node.op.name  # type: ignore[union-attr]
    if name not in EXPRESSIONS or node.dtype not in TYPES:
        return False
    types = [values[place].dtype for place in ins]
    if any(dtype not in TYPES for dtype in types):
        return False
    return name not in LOGICAL or all(dtype is dtypes.bool_ for dtype in types)


def _rebuilt(
    steps: Sequence[Step],
    groups: Sequence[_Group],
    users: dict[int, list[int]],
    wanted: set[int],
    values: dict[int, Node],
) -> list[Step]:
    """Put one step in the place of each group's last one."""
    gone: set[int] = set()
    placed: dict[int, Step] = {}
    for group in groups:
        if len(group.micros) < 2:
            continue
        inside = set(group.steps)
        made = [out for one in group.originals for out in one.outs]
        outs = [out for out in made if out in wanted or any(user not in inside for user in users.get(out, ()))]
        computed = {micro.out for micro in group.micros}
        ins: list[int] = []
        numbers: list[Micro] = []
        for micro in group.micros:
            for name in micro.ins:
                if name in computed or name in ins or any(one.out == name for one in numbers):
                    continue
                node = values[name]  # type: ignore[index]
                if _number(node):
                    numbers.append(Micro(name, "Constant", (), node.dtype, node.attrs))
                else:
                    ins.append(name)  # type: ignore[arg-type]
        if not ins or not outs:
            continue
        chain = Chain([*numbers, *group.micros], ins, [values[name].dtype for name in ins], outs)
        gone |= inside
        placed[group.steps[-1]] = Step(
            _call(chain, ins, outs, group.originals, {one.out: values[one.out] for one in numbers}),  # type: ignore[index]
            tuple(ins),
            tuple(outs),
        )
    return [placed.get(number, step) for number, step in enumerate(steps) if number in placed or number not in gone]


def _call(
    chain: Chain, ins: Sequence[int], outs: Sequence[int], originals: Sequence[Step], numbers: dict[Any, Node]
) -> Callable[..., Any]:
    last = outs[-1]
    if len(outs) == 1:
        return lambda nodes, *tensors: chain(nodes[last].shape, tensors)[0]

    def call(nodes: list[Node], *tensors: Any) -> Any:
        # a plan holds for other shapes too: where one of them is stretched there, each operation has its own
        if any(nodes[out].shape != nodes[last].shape for out in outs):
            given = {place: node.op.run(node) for place, node in numbers.items()}  # type: ignore[union-attr]
            return _apart(nodes, originals, {**given, **dict(zip(ins, tensors, strict=True))}, outs)
        return chain(nodes[last].shape, tensors)

    return call


def _apart(nodes: list[Node], steps: Sequence[Step], values: dict[int, Any], outs: Sequence[int]) -> list[Any]:
    """Compute steps one after another."""
    for step in steps:
        result = step.call(nodes, *[values[place] for place in step.ins])
        values.update(zip(step.outs, (result,) if len(step.outs) == 1 else result, strict=True))
    return [values[out] for out in outs]
