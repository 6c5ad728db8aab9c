"""The ops: one folder of ``rocmend.kernels.ops.<family>`` each, found by walking it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rocmend.core.registry import LoadProblem, Registry
from rocmend.kernels.op import Cost, Implementation, Op, Problem, Tolerance, resolve

_REGISTRY: Registry[Op] = Registry("op", "rocmend.kernels.ops", listed="rocmend kernels list", grouped=True)


def register(op: Op) -> Op:
    """Register an op under its name and return it.

    Raises:
        UnitError: The name is taken.
    """
    return _REGISTRY.register(op.name)(op)


def declare(  # noqa: PLR0913  an op has so many properties
    folder: str,
    *,
    summary: str,
    problem: type,
    implementations: Iterable[Implementation],
    domain: str,
    cost: Callable[[Problem], Cost],
    tolerance: Mapping[str, Tolerance],
    functions: Sequence[str] = (),
    reference: str = "",
    formats: bool = False,
    dtypes: Iterable[str] | None = None,
    shape_class: Callable[[Problem], str] = lambda _problem: "any",
    example: str = "",
    mlx: str | None = None,
    sources: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Op:
    """Register the op of a folder, whose files have their usual names, and return it.

    Args:
        folder: The folder's package; its last part is the op's name.
        summary: See ``Op``, as for the rest.
        problem: The op's NamedTuple.
        implementations: In order of preference; ``run`` begins with the file, e.g. ``kernel:run``.
        domain: Which shapes and options.
        cost: Flops and bytes of a problem.
        tolerance: By output dtype.
        functions: Public functions of ``function.py``, whose references in ``reference.py`` have the same names;
            none for the function named like the op. Those of another file are ``file:name``.
        reference: Function of ``reference.py`` with another name than the first public function.
        formats: Whether ``cases.py`` has ``formats`` too.
        dtypes: Element types; None for those of ``tolerance``.
        shape_class: Class of shapes of a problem.
        example: Fields of a problem of real use.
        mlx: Name in MLX.
        sources: URLs.
        notes: Remarks.

    Raises:
        UnitError: The name is taken.
    """
    name = folder.rpartition(".")[2]
    functions = functions or (name,)
    return register(
        Op(
            name=name,
            summary=summary,
            functions={
                one: f"{folder}.{file or 'function'}:{one}"
                for file, _, one in (function.rpartition(":") for function in functions)
            },
            reference=f"{folder}.reference:{reference or functions[0]}",
            problem=problem,
            implementations=tuple(
                dataclasses.replace(kernel, run=f"{folder}.{kernel.run}") for kernel in implementations
            ),
            dtypes=tuple(tolerance if dtypes is None else dtypes),
            domain=domain,
            cost=cost,
            tolerance=tolerance,
            cases=f"{folder}.cases:cases",
            formats=f"{folder}.cases:formats" if formats else "",
            shape_class=shape_class,
            example=example,
            mlx=mlx,
            sources=sources,
            notes=notes,
        )
    )


def ops() -> Iterator[Op]:
    """Iterate over all ops, by name."""
    for _, op in _REGISTRY:
        yield op


def get(name: str) -> Op:
    """Return the op with this name.

    Raises:
        UsageError: No such op.
    """
    return _REGISTRY.get(name)


def problems() -> list[LoadProblem]:
    """Return the op folders that could not be loaded, with the reason."""
    _REGISTRY.load()
    return list(_REGISTRY.problems)


@functools.cache
def exports() -> dict[str, str]:
    """Return public function name to ``module:function``, over all ops."""
    return {name: reference for op in ops() for name, reference in op.functions.items()}


def exported(name: str) -> Callable[..., Any]:
    """Import and return a public function; raises KeyError."""
    function: Callable[..., Any] = resolve(exports()[name])
    return function
