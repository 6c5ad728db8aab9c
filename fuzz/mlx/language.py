"""Programs over ``mlx.core`` as data, and running one. Needs nothing but numpy and an ``mlx.core``.

A program is a list of statements ``{"do": NAME, "args": [...], "kw": {...}}``; each gives one variable, in order (or
None). An argument is a JSON value, or one of::

    {"v": 3}  a variable       {"d": "int8"}  a type      {"s": [a, b, c]}  a slice      {"e": 0}  an Ellipsis
    {"t": [...]}  a tuple      {"f": "nan"}   a float that JSON has not    {"c": [re, im]}  a complex number
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

Statement = dict[str, Any]
Program = list[Statement]

_INPUTS = {
    "small": lambda rng, n: rng.integers(-4, 5, n),
    "wide": lambda rng, n: rng.integers(-(2**31), 2**31, n),
    "normal": lambda rng, n: rng.standard_normal(n) * 2,
    "positive": lambda rng, n: rng.uniform(0.01, 3, n),
    "unit": lambda rng, n: rng.uniform(-1, 1, n),
    "bits": lambda rng, n: rng.integers(0, 2, n),
    "special": lambda rng, n: rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, 65504.0, 1e-3], n),
}


def make_input(mx: Any, shape: list[int], dtype: str, kind: str, seed: int) -> Any:
    """Return an array of numbers that depend on the seed only."""
    count = int(np.prod(shape))
    raw = _INPUTS[kind](np.random.default_rng(seed), count).reshape(shape)
    target = getattr(mx, dtype)
    if dtype == "complex64":
        raw = np.nan_to_num(raw, posinf=9, neginf=-9)  # libraries differ in what complex infinities become
        other = _INPUTS[kind](np.random.default_rng(seed + 1), count).reshape(shape)
        return mx.array((raw + 1j * np.nan_to_num(other, posinf=9, neginf=-9)).astype(np.complex64))
    if dtype in ("float32", "float16", "bfloat16"):
        return mx.array(raw.astype(np.float32)).astype(target)
    if dtype == "bool_":
        return mx.array(np.nan_to_num(raw, posinf=1, neginf=0).astype(np.int64) % 2 == 1)
    with np.errstate(invalid="ignore"):
        return mx.array(np.nan_to_num(raw.astype(np.float64), posinf=7, neginf=-7).astype(np.int64).astype(dtype))


def decoded(mx: Any, value: Any, variables: list[Any]) -> Any:  # noqa: PLR0911  one for each kind
    """Return the Python value of an argument."""
    if isinstance(value, list):
        return [decoded(mx, item, variables) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "v":
        return variables[inner]
    if kind == "d":
        return getattr(mx, inner)
    if kind == "s":
        return slice(*inner)
    if kind == "e":
        return Ellipsis
    if kind == "t":
        return tuple(decoded(mx, item, variables) for item in inner)
    if kind == "f":
        return float(inner)
    if kind == "c":
        return complex(*inner)
    raise ValueError(f"{kind} is no kind of argument")


def used(value: Any) -> set[int]:
    """Return the variables that an argument names."""
    if isinstance(value, list):
        return set().union(*map(used, value)) if value else set()
    if isinstance(value, dict):
        if "v" in value:
            return {value["v"]}
        return set().union(*map(used, value.values())) if value else set()
    return set()


def _function(mx: Any, name: str) -> Any:
    found = mx
    for part in name.split("."):
        found = getattr(found, part)
    return found


def chain(mx: Any, steps: list[list[Any]], others: list[Any]) -> Any:
    """Return a function of one array that applies steps ``[NAME, second operand or None]`` in order."""

    def run(x: Any) -> Any:
        for name, second in steps:
            function = _function(mx, name)
            x = function(x) if second is None else function(x, decoded(mx, second, others))
        return x

    return run


def apply(mx: Any, statement: Statement, variables: list[Any]) -> Any:  # noqa: PLR0911  one for each kind
    """Run one statement and return its variable."""
    name = statement["do"]
    args = [decoded(mx, item, variables) for item in statement.get("args", [])]
    kw = {key: decoded(mx, item, variables) for key, item in statement.get("kw", {}).items()}
    if name == "input":
        return make_input(mx, *args)
    if name == "literal":  # values of a variable, given in full
        dtype, shape, values = statement["args"]
        return literal(mx, dtype, shape, values)
    if name == "alias":
        return args[0]
    if name == "getitem":
        return args[0][args[1]]
    if name == "setitem":
        args[0][args[1]] = args[2]
        return args[0]
    if name.startswith("at."):
        return getattr(args[0].at[args[1]], name[3:])(args[2])
    if name.startswith("method."):
        return getattr(args[0], name[7:])(*args[1:], **kw)
    if name.startswith("inplace."):
        target = args[0]
        return getattr(target, f"__i{name[8:]}__")(args[1])
    if name.startswith("first."):  # of several outputs
        return _function(mx, name[6:])(*args, **kw)[0]
    if name.startswith("transform."):
        return _transformed(mx, name[10:], statement, variables)
    return _function(mx, name)(*args, **kw)


def _transformed(mx: Any, kind: str, statement: Statement, variables: list[Any]) -> Any:  # noqa: PLR0911  one for each kind
    x = variables[statement["args"][0]["v"]]
    run = chain(mx, statement["chain"], variables)
    if kind == "grad":
        return mx.grad(lambda v: run(v).sum())(x)
    if kind == "second":
        return mx.grad(lambda v: mx.grad(lambda w: run(w).sum())(v).sum())(x)
    if kind == "jvp":
        return mx.jvp(run, [x], [mx.ones_like(x)])[1][0]
    if kind == "vjp":
        y = run(x)
        return mx.vjp(run, [x], [mx.ones_like(y)])[1][0]
    if kind == "vmap":
        return mx.vmap(run, in_axes=statement.get("axis", 0))(x)
    if kind == "vmap_grad":
        return mx.vmap(mx.grad(lambda v: run(v).sum()))(x)
    if kind == "compile":
        return mx.compile(run)(x)
    if kind == "checkpoint":
        return mx.grad(lambda v: mx.checkpoint(run)(v).sum())(x)
    raise ValueError(f"{kind} is no transformation")


def value_of(mx: Any, x: Any) -> tuple[str, list[int], bytes]:
    """Return an array as (type, shape, bytes); bfloat16 and bool as wider types."""
    name = str(x.dtype).rpartition(".")[2]
    whole = np.array(x.astype(mx.float32) if name == "bfloat16" else x)
    return name, list(x.shape), np.ascontiguousarray(whole).tobytes()


def array_of(value: tuple[str, list[int], bytes]) -> Any:
    """Return what ``value_of`` gave as a numpy array."""
    name, shape, data = value
    kind = {"bfloat16": "float32", "bool_": "bool"}.get(name, name)
    return np.frombuffer(data, dtype=kind).reshape(shape)


def literal(mx: Any, dtype: str, shape: list[int], data: str) -> Any:
    """Return the array of a value whose bytes are given in hexadecimal digits."""
    x = mx.array(array_of((dtype, shape, bytes.fromhex(data))).copy())
    return x.astype(mx.bfloat16) if dtype == "bfloat16" else x


def run_program(mx: Any, program: Program, *, eager: bool) -> list[Any]:
    """Run a program.

    Args:
        mx: ``mlx.core``.
        program: the statements.
        eager: compute each variable at once, and not all at the end.

    Returns:
        For each variable its value as of the end, ``("error", type, text)``, or ``("skipped",)`` where a variable that
        it needs is not there.
    """
    variables: list[Any] = []
    outcomes: list[Any] = []
    for statement in program:
        needs = used(statement.get("args", [])) | used(list(statement.get("kw", {}).values()))
        needs |= used(statement.get("chain", []))
        if any(outcomes[item] is not None for item in needs):
            variables.append(None)
            outcomes.append(("skipped",))
            continue
        try:
            x = apply(mx, statement, variables)
            if eager:
                mx.eval(x)
            variables.append(x)
            outcomes.append(None)
        except Exception as error:  # noqa: BLE001  whatever it is, it is what the program does
            variables.append(None)
            outcomes.append(("error", type(error).__name__, str(error)[:200]))
    alive = [x for x, outcome in zip(variables, outcomes, strict=True) if outcome is None]
    with contextlib.suppress(Exception):  # told one by one below
        mx.eval(alive)
    for at, x in enumerate(variables):
        if outcomes[at] is None:
            try:
                outcomes[at] = value_of(mx, x)
            except Exception as error:  # noqa: BLE001
                outcomes[at] = ("error", type(error).__name__, str(error)[:200])
    return outcomes
