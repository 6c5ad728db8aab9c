"""Steps with who makes and who uses each value: what patterns look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.execute.step import Step
    from rocmend.mlx.execute.trace import Tape
    from rocmend.mlx.node import Node

__all__ = ["View"]


class View:
    """A plan's steps and what they stand for.

    Attributes:
        steps: in order.
        tape: what they were made for.
        kept: places that get a value.
        makers: of a place: the number of the step that makes it.
        users: of a place: the numbers of the steps that use it.
    """

    __slots__ = ("kept", "makers", "steps", "tape", "users")

    def __init__(self, steps: Sequence[Step], tape: Tape, kept: Sequence[int]) -> None:
        self.steps = list(steps)
        self.tape = tape
        self.kept = frozenset(kept)
        self.makers = {place: number for number, step in enumerate(self.steps) for place in step.outs}
        self.users: dict[int, list[int]] = {}
        for number, step in enumerate(self.steps):
            for place in step.ins:
                self.users.setdefault(place, []).append(number)

    def of(self, steps: Sequence[Step]) -> View:
        """Return the view of other steps for the same tape."""
        return View(steps, self.tape, tuple(self.kept))

    def node(self, place: int) -> Node:
        """Return the node of a place, inside or outside of the tape."""
        count = len(self.tape.nodes)
        return self.tape.nodes[place] if place < count else self.tape.links[place - count]

    def name(self, number: int) -> str:
        """Return the primitive's name of a step that is one node, else an empty string."""
        step = self.steps[number]
        if len(step.outs) != 1 or step.merged is not None or step.rule is not None or step.kernel is not None:
            return ""
        op = self.tape.nodes[step.outs[0]].op
        return "" if op is None else op.name

    def maker(self, place: int, name: str) -> int | None:
        """Return the number of the step that makes a place, if it is one node of that primitive."""
        number = self.makers.get(place)
        return number if number is not None and self.name(number) == name else None

    def only_user(self, place: int) -> int | None:
        """Return the number of the one step that uses a place which nothing else needs."""
        users = self.users.get(place, [])
        return users[0] if len(users) == 1 and place not in self.kept else None

    def there(self, place: int, number: int) -> bool:
        """Return whether a place has its value before a step."""
        return self.makers.get(place, -1) < number

    def replaced(self, placed: dict[int, Step], gone: set[Any]) -> list[Step]:
        """Return the steps with some put in the place of others, and some left out."""
        return [placed.get(k, step) for k, step in enumerate(self.steps) if k in placed or k not in gone]
