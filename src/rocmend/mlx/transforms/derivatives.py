"""Functions of functions: ``vjp``, ``jvp``, ``value_and_grad`` and ``grad``."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import shape_text
from rocmend.mlx.array import array
from rocmend.mlx.primitive import STOP_GRADIENT
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms import tree
from rocmend.mlx.transforms.forward import push
from rocmend.mlx.transforms.graph import primal, tracing
from rocmend.mlx.transforms.reverse import pull

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocmend.mlx.node import Node

__all__ = ["jvp_call", "value_and_grad_of", "vjp_call"]


def outputs_of(op: str, value: Any) -> list[array]:
    """Return what a function returned as a list of arrays.

    Raises:
        ValueError: it is neither an array nor a list or tuple of arrays.
    """
    if isinstance(value, array):
        return [value]
    if isinstance(value, list | tuple) and all(isinstance(one, array) for one in value):
        return list(value)
    raise ValueError(
        f"[{op}] The function must return an array or a list or tuple of arrays, but it returned "
        f"{type(value).__name__}."
    )


def arrays_in(op: str, what: str, values: Any) -> list[array]:
    """Return a list of arrays that was given as an argument.

    Raises:
        TypeError: it is no list or tuple of arrays.
    """
    if isinstance(values, list | tuple) and all(isinstance(one, array) for one in values):
        return list(values)
    raise TypeError(f"[{op}] expected a list or tuple of arrays as {what}, got {type(values).__name__}.")


def _checked(outputs: Sequence[array], cotangents: Sequence[array]) -> list[array | None]:
    """Return the cotangent of each output; None for one behind ``stop_gradient``, which takes none.

    Raises:
        ValueError: their number or their shapes differ.
    """
    stopped = [one._n.op is STOP_GRADIENT for one in outputs]
    takes = len(outputs) - sum(stopped)
    if len(cotangents) == len(outputs):
        given: list[array | None] = [None if stop else one for one, stop in zip(cotangents, stopped, strict=True)]
    elif len(cotangents) == takes:
        rest = iter(cotangents)
        given = [None if stop else next(rest) for stop in stopped]
    else:
        raise ValueError(
            f"[vjp] Number of outputs to compute gradients for ({takes}) does not match number of cotangents "
            f"({len(cotangents)})."
        )
    for output, cotangent in zip(outputs, given, strict=True):
        if cotangent is not None and output._n.shape != cotangent._n.shape:
            raise ValueError(
                f"[vjp] Output shape {shape_text(output.shape)} does not match cotangent shape "
                f"{shape_text(cotangent.shape)}. If you are using grad your function must return a scalar."
            )
    return given


def _gradients(outputs: Sequence[array], cotangents: Sequence[array], primals: Sequence[Node]) -> list[array]:
    found = pull([one._n for one in outputs], _checked(outputs, cotangents), primals)
    return [
        ops.zeros(node.shape, node.dtype) if grad is None else grad for grad, node in zip(found, primals, strict=True)
    ]


def vjp_call(fun: Callable[..., Any], primals: Any, cotangents: Any) -> tuple[list[array], list[array]]:
    """Return the outputs of a function and the products of cotangents with its Jacobian."""
    inputs = arrays_in("vjp", "primals", primals)
    given = arrays_in("vjp", "cotangents", cotangents)
    traced = [primal(x) for x in inputs]
    nodes = [x._n for x in traced]
    with tracing():
        outputs = outputs_of("vjp", fun(*traced))
        return outputs, _gradients(outputs, given, nodes)


def jvp_call(fun: Callable[..., Any], primals: Any, tangents: Any) -> tuple[list[array], list[array]]:
    """Return the outputs of a function and the products of its Jacobian with tangents."""
    inputs = arrays_in("jvp", "primals", primals)
    given = arrays_in("jvp", "tangents", tangents)
    if len(inputs) != len(given):
        raise ValueError(
            f"[jvp] Number of inputs does not match number of tangents: {len(inputs)} inputs, {len(given)} tangents."
        )
    for x, t in zip(inputs, given, strict=True):
        if x._n.shape != t._n.shape:
            raise ValueError(
                f"[jvp] Input shape does not match shape of tangent: {shape_text(x.shape)} and {shape_text(t.shape)}."
            )
    traced = [primal(x) for x in inputs]
    nodes = [x._n for x in traced]
    with tracing():
        outputs = outputs_of("jvp", fun(*traced))
        found = push([one._n for one in outputs], nodes, given)
        return outputs, [
            ops.zeros(one._n.shape, one._n.dtype) if t is None else t for one, t in zip(outputs, found, strict=True)
        ]


def _numbers(tag: str, argnums: Any) -> tuple[int, ...]:
    """Return argument numbers, sorted.

    Raises:
        TypeError: they are no integers.
        ValueError: one is negative or there twice.
    """
    given = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(given, list | tuple) or any(not isinstance(n, int) or isinstance(n, bool) for n in given):
        raise TypeError(f"[{tag}] expected argnums as an integer or a sequence of integers, got {argnums!r}.")
    numbers = tuple(sorted(given))
    if numbers and numbers[0] < 0:
        raise ValueError(f"[{tag}] Can't compute the gradient of negative argument index {numbers[0]}.")
    for a, b in pairwise(numbers):
        if a == b:
            raise ValueError(f"[{tag}] Duplicate argument index {a} is not allowed.")
    return numbers


def _names(tag: str, argnames: Any) -> tuple[str, ...]:
    given = (argnames,) if isinstance(argnames, str) else argnames
    if not isinstance(given, list | tuple) or any(not isinstance(name, str) for name in given):
        raise TypeError(f"[{tag}] expected argnames as a string or a sequence of strings, got {argnames!r}.")
    return tuple(dict.fromkeys(given))


def _loss(tag: str, value: Any, *, scalar_only: bool) -> array:
    """Return the loss in what a function returned.

    Raises:
        ValueError: there is none.
    """
    if isinstance(value, array):
        return value
    begin = f"[{tag}] The return value of the function whose gradient we want to compute should be "
    if scalar_only:
        kind = type(value).__name__
        raise ValueError(f"{begin}a scalar array; but {kind} was returned.")
    if not isinstance(value, tuple):
        raise ValueError(  # noqa: TRY004  # MLX's type
            f"{begin}either a scalar array or a tuple with the first value being a scalar array "
            f"(Union[array, tuple[array, Any, ...]]); but {type(value).__name__} was returned."
        )
    if not value:
        raise ValueError(f"{begin}either a scalar array or a non-empty tuple; but an empty tuple was returned.")
    if not isinstance(value[0], array):
        raise ValueError(  # noqa: TRY004  # MLX's type
            f"{begin}either a scalar array or a tuple with the first value being a scalar array; but the first value "
            f"of the tuple is of type {type(value[0]).__name__}."
        )
    return value[0]


def value_and_grad_of(
    tag: str, fun: Callable[..., Any], argnums: Any, argnames: Any, *, scalar_only: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Return the function that ``value_and_grad`` returns; ``tag`` names the caller in errors."""
    if not callable(fun):
        raise TypeError(f"[{tag}] expected a function, got {type(fun).__name__}.")
    names = _names(tag, argnames)
    numbers = ((0,) if not names else ()) if argnums is None else _numbers(tag, argnums)
    if not numbers and not names:
        raise ValueError(f"[{tag}] Gradient wrt no argument requested.")

    @functools.wraps(fun)
    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if numbers and numbers[-1] >= len(args):
            raise ValueError(
                f"[{tag}] Can't compute the gradient of argument index {numbers[-1]} because the function is called "
                f"with only {len(args)} positional arguments."
            )
        for name in names:
            if name not in kwargs:
                raise ValueError(
                    f"[{tag}] Can't compute the gradient of keyword argument '{name}' because the function is called "
                    f"with the following keyword arguments {{{', '.join(kwargs)}}}."
                )
        return _differentiate(tag, fun, args, kwargs, numbers, names, scalar_only=scalar_only)

    return differentiated


def _differentiate(
    tag: str,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    numbers: tuple[int, ...],
    names: tuple[str, ...],
    *,
    scalar_only: bool,
) -> tuple[Any, Any]:
    """Call a function with traced arguments and return its value and its gradients."""
    wanted: list[Any] = [args[i] for i in numbers] + [kwargs[name] for name in names]
    originals = [x for one in wanted for x in tree.flatten(one, "tree_flatten")]
    traced: list[array] = []
    nodes: list[Node] = []

    def trace(x: array) -> array:
        traced.append(primal(x))
        nodes.append(traced[-1]._n)
        return traced[-1]

    with tracing():
        try:
            # The containers are the caller's: what the function writes into them is to be seen there.
            filled = [tree.fill(one, trace) for one in wanted]
            new_args = list(args)
            for i, one in zip(numbers, filled, strict=False):
                new_args[i] = one
            value = fun(*new_args, **{**kwargs, **dict(zip(names, filled[len(numbers) :], strict=True))})
        finally:
            for one in wanted:
                tree.restore(one, traced, nodes, originals[: len(traced)])
        loss = _loss(tag, value, scalar_only=scalar_only)
        if loss._n.shape != ():
            raise ValueError(
                f"[{tag}] The function whose gradient we want to compute must return a scalar, but it returned an "
                f"array of shape {shape_text(loss._n.shape)}."
            )
        one_ = ops.ones((), loss._n.dtype)
        gradients = _gradients([loss], [one_] if loss._n.op is not STOP_GRADIENT else [], nodes)
    found = iter(gradients)
    parts = [tree.rebuild(one, found) for one in wanted]
    by_number = parts[0] if len(numbers) == 1 else (tuple(parts[: len(numbers)]) if numbers else None)
    if not names:
        return value, by_number
    return value, (by_number, dict(zip(names, parts[len(numbers) :], strict=True)))
