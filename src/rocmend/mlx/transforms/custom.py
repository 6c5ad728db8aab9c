"""Functions with derivative and batching rules of their own, and checkpoints."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import array, record_many, wrap
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms import tree
from rocmend.mlx.transforms.derivatives import jvp_call, vjp_call
from rocmend.mlx.transforms.graph import CUSTOM, tracing
from rocmend.mlx.transforms.vectorized import spread_call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocmend.mlx.node import Node

__all__ = ["checkpoint", "custom_function"]


class Call:
    """One call of a function with rules of its own; the ``attrs`` of its node.

    Attributes:
        rules: of the function, as they are when a transformation asks for them.
        args: the positional arguments, whose arrays are the node's first inputs.
        kwargs: the keyword arguments, which count as constants.
        count: number of the arrays in ``args``.
        value: what the function returned, whose arrays are the node's outputs.
    """

    __slots__ = ("args", "count", "kwargs", "rules", "value")

    def __init__(self, rules: Rules, args: tuple[Any, ...], kwargs: dict[str, Any], count: int, value: Any) -> None:
        self.rules = rules
        self.args = args
        self.kwargs = kwargs
        self.count = count
        self.value = value

    def function(self, *arrays: array) -> list[array]:
        """Call the function itself on other arrays and return its arrays."""
        return tree.flatten(self.rules.fun(*tree.rebuild(self.args, iter(arrays)), **self.kwargs))

    def primals(self, arrays: Sequence[Any]) -> Any:
        """Return values in the structure of the arguments: of one argument alone, of several a tuple."""
        built = tree.rebuild(self.args, iter(arrays))
        return built[0] if len(built) == 1 else built

    def pull(self, node: Node, cotangents: Sequence[array | None]) -> list[array | None]:
        """Return the cotangents of the arguments."""
        primals = [wrap(child) for child in node.inputs[: self.count]]
        given = [
            ops.zeros(shape, dtype) if one is None else one
            for one, (shape, dtype) in zip(cotangents, node.outputs, strict=True)
        ]
        if self.rules.vjp_rule is None:
            return list(vjp_call(self.function, primals, given)[1])
        outputs = [wrap(child) for child in node.inputs[self.count :]]
        found = self.rules.vjp_rule(
            self.primals(primals), tree.rebuild(self.value, iter(given)), tree.rebuild(self.value, iter(outputs))
        )
        return _matching("vjp", found, self.primals(primals), self.count)

    def push(self, node: Node, tangents: Sequence[array | None]) -> list[array | None]:
        """Return the tangents of the outputs."""
        primals = [wrap(child) for child in node.inputs[: self.count]]
        given = tangents[: self.count]
        if self.rules.jvp_rule is None:
            full = [ops.zeros_like(x) if t is None else t for x, t in zip(primals, given, strict=True)]
            return list(jvp_call(self.function, primals, full)[1])
        found = self.rules.jvp_rule(self.primals(primals), self.primals(given))
        return _matching("jvp", found, self.value, len(node.outputs))

    def spread(self, node: Node, arrays: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, Any]:
        """Return the outputs for batches, and where their batches are."""
        inputs, where = list(arrays[: self.count]), list(axes[: self.count])
        if self.rules.vmap_rule is None:
            found, _ = spread_call(lambda traced: self.function(*traced), inputs, where)
            return tuple(x for x, _ in found), tuple(axis for _, axis in found)
        found = self.rules.vmap_rule(self.primals(inputs), self.primals(where))
        if not isinstance(found, tuple) or len(found) != 2:
            raise ValueError(
                "[custom vmap] The function must return the outputs and their axes, but it returned "
                f"{type(found).__name__}."
            )
        outputs = _matching("vmap", found[0], self.value, len(node.outputs))
        placed: list[int | None] = []
        tree.prefix(found[0], found[1], lambda _, axis: placed.append(axis))
        return tuple(outputs), tuple(placed)


def _matching(kind: str, found: Any, like: Any, count: int) -> list[Any]:
    """Return the arrays of what a rule returned; None stands for an array that it has nothing for.

    Raises:
        ValueError: there are more or fewer than in ``like``.
    """
    arrays = _with_none(found, like)
    if len(arrays) != count:
        raise ValueError(
            f"[custom {kind}] The function must return {count} arrays in the structure of "
            f"{'the arguments' if kind == 'vjp' else 'the outputs'}, but it returned {len(arrays)}."
        )
    return arrays


def _with_none(found: Any, like: Any) -> list[Any]:
    """Return the arrays of a tree, and None where it has None for an array of ``like``."""
    if isinstance(like, array):
        return [found] if found is None or isinstance(found, array) else tree.flatten(found)
    if isinstance(like, list | tuple) and isinstance(found, list | tuple) and len(found) == len(like):
        return [x for one, its in zip(found, like, strict=True) for x in _with_none(one, its)]
    if isinstance(like, dict) and isinstance(found, dict):
        return [x for key, its in like.items() for x in _with_none(found.get(key), its)]
    if found is None:
        return [None for _ in tree.flatten(like)]
    return tree.flatten(found)


class Rules:
    """A function and the rules that replace its own."""

    __slots__ = ("fun", "jvp_rule", "vjp_rule", "vmap_rule")

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.vjp_rule: Callable[..., Any] | None = None
        self.jvp_rule: Callable[..., Any] | None = None
        self.vmap_rule: Callable[..., Any] | None = None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function so that transformations find the rules."""
        if self.vjp_rule is None and self.jvp_rule is None and self.vmap_rule is None:
            return self.fun(*args, **kwargs)
        arrays = tree.flatten(args)
        with tracing():
            value = self.fun(*args, **kwargs)
        outputs = tree.flatten(value)
        if not outputs or not arrays:
            return value
        inputs = (*(x._n for x in arrays), *(x._n for x in outputs))
        call = Call(self, args, kwargs, len(arrays), value)
        found = record_many(CUSTOM, inputs, [(x._n.shape, x._n.dtype) for x in outputs], call)
        return tree.rebuild(value, iter(found))


class custom_function:
    """A function whose derivatives and batching can be defined by hand, as a decorator.

    It is pure to transformations: arrays that it captures count as constants. Rules that are not defined follow from
    the function.

    Args:
        f: takes and returns trees of arrays.
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise TypeError(f"[custom_function] expected a function, got {type(f).__name__}.")
        self._rules = Rules(f)
        functools.update_wrapper(self, f)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._rules.call(args, kwargs)

    def vjp(self, f: Callable[..., Any]) -> custom_function:
        """Define the reverse derivative.

        Args:
            f: ``f(primals, cotangents, outputs)`` returns the cotangents of the primals, in their structure. Primals
                are the positional arguments: one alone, or a tuple.
        """
        self._rules.vjp_rule = f
        return self

    def jvp(self, f: Callable[..., Any]) -> custom_function:
        """Define the forward derivative.

        Args:
            f: ``f(primals, tangents)`` returns the tangents of the outputs, in their structure; a tangent may be None.
        """
        self._rules.jvp_rule = f
        return self

    def vmap(self, f: Callable[..., Any]) -> custom_function:
        """Define the batching.

        Args:
            f: ``f(inputs, axes)`` returns the outputs and their axes; an axis is None where there is no batch.
        """
        self._rules.vmap_rule = f
        return self


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes its intermediate values again for the derivative, and keeps none of them.

    Args:
        fun: takes and returns trees of arrays.
    """
    if not callable(fun):
        raise TypeError(f"[checkpoint] expected a function, got {type(fun).__name__}.")

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        rules = Rules(fun)

        def again(primals: Any, cotangents: Any, outputs: Any) -> Any:
            given = tree.flatten(cotangents)
            arrays = tree.flatten(primals)
            # computed again only once the cotangents are there, not beside the first time
            later = ops.depends(arrays, given)
            structure = (primals,) if len(args) == 1 else primals

            def arrays_only(*traced: array) -> list[array]:
                return tree.flatten(fun(*tree.rebuild(structure, iter(traced)), **kwargs))

            found = vjp_call(arrays_only, later, given)[1]
            return tree.rebuild(primals, iter(found))

        rules.vjp_rule = again
        return rules.call(args, kwargs)

    return call
