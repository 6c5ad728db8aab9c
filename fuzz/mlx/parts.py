"""Programs made of other programs: one statement alone, a program without a statement, chains that round otherwise."""

from __future__ import annotations

from typing import Any

from compare import EPSILON
from language import Program, used

TENDS_TO_ONE = {"sigmoid", "tanh", "erf", "logaddexp"}


def needed(program: Program, at: int) -> set[int]:
    """Return the variables that a statement needs."""
    statement = program[at]
    return used([statement.get("args", []), list(statement.get("kw", {}).values()), statement.get("chain", [])])


def changed(program: Program) -> set[int]:
    """Return the variables that some statement writes to: what they were is not what they are at the end."""
    first: dict[int, int] = {}
    written: set[int] = set()
    for at, statement in enumerate(program):
        if statement["do"] in ("alias", "setitem") or statement["do"].startswith("inplace."):
            (target,) = used(statement["args"][:1])
            first[at] = first.get(target, target)
            if statement["do"] != "alias":
                written.add(first[at])
    return {at for at in range(len(program)) if first.get(at, at) in written}


def alone(program: Program, at: int, values: list[Any]) -> Program | None:
    """Return a program of one statement on given values of the variables before it; None where it needs one without."""
    statement = program[at]
    name = statement["do"]
    needs = sorted(needed(program, at))
    if name in ("alias", "input") or any(values[item][0] in ("error", "skipped") for item in needs):
        return None
    literals: Program = [{"do": "literal", "args": [values[i][0], values[i][1], values[i][2].hex()]} for i in needs]
    return [*literals, _renumbered(statement, {old: new for new, old in enumerate(needs)})]


def _renumbered(value: Any, numbers: dict[int, int]) -> Any:
    if isinstance(value, list):
        return [_renumbered(item, numbers) for item in value]
    if isinstance(value, dict):
        if "v" in value:
            return {"v": numbers[value["v"]]}
        return {key: _renumbered(item, numbers) for key, item in value.items()}
    return value


def without(program: Program, at: int) -> Program | None:
    """Return a program without a statement, None where another needs it."""
    if any(at in needed(program, later) for later in range(at + 1, len(program))):
        return None
    numbers = {old: old - (old > at) for old in range(len(program))}
    return [_renumbered(statement, numbers) for old, statement in enumerate(program) if old != at]


def unbounded(program: Program) -> Program:
    """Return a program whose last statement is a chain without the functions that tend to a bound.

    What a derivative of these is multiplied by, their own rounding is multiplied by: it is one of terms of size 1.
    """
    statement = program[-1]
    return [*program[:-1], {**statement, "chain": [step for step in statement["chain"] if step[0] not in TENDS_TO_ONE]}]


def nudged(program: Program) -> list[Program]:
    """Return programs whose last statement, a chain of functions, is off by two places of rounding before a step of it.

    They tell how well the result is known: two right implementations may differ as much.
    """
    statement = program[-1]
    dtype = program[0]["args"][0]
    steps = statement["chain"]
    by = [1 + 2 * EPSILON[dtype], 1 - 2 * EPSILON[dtype]]
    chains = [[*steps[:at], ["multiply", factor], *steps[at:]] for at in range(len(steps)) for factor in by]
    for at, (name, _) in enumerate(steps):
        if name == "erf":  # MLX's has an error of that size, however small its value is
            chains += [[*steps[: at + 1], ["add", error], *steps[at + 1 :]] for error in (6e-7, -6e-7)]
    return [[*program[:-1], {**statement, "chain": chain}] for chain in chains]
