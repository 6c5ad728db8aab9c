"""Transformations of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.transforms import compiled, derivatives, vectorized
from rocmend.mlx.transforms.custom import checkpoint, custom_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocmend.mlx.array import array

__all__ = [
    "checkpoint", "compile", "custom_function", "disable_compile", "enable_compile", "grad", "jvp", "value_and_grad",
    "vjp", "vmap",
]  # fmt: skip


def vjp(
    fun: Callable[..., Any], primals: Sequence[array], cotangents: Sequence[array]
) -> tuple[list[array], list[array]]:
    """Return a function's outputs, and the products of cotangents with its Jacobian.

    ``vjps[i] = Σ_j cotangents[j] · ∂outputs[j] / ∂primals[i]``

    Args:
        fun: takes arrays, returns an array or a list or tuple of arrays.
        primals: where the Jacobian is taken.
        cotangents: one for each output, of its shape; outputs behind ``stop_gradient`` may be left out.

    Returns:
        The outputs and one product for each primal, of its shape and type; zeros where no output depends on it.

    Raises:
        ValueError: the number or shapes of the cotangents are not those of the outputs.
    """
    return derivatives.vjp_call(fun, primals, cotangents)


def jvp(
    fun: Callable[..., Any], primals: Sequence[array], tangents: Sequence[array]
) -> tuple[list[array], list[array]]:
    """Return a function's outputs, and the products of its Jacobian with tangents.

    ``jvps[j] = Σ_i ∂outputs[j] / ∂primals[i] · tangents[i]``

    Args:
        fun: takes arrays, returns an array or a list or tuple of arrays.
        primals: where the Jacobian is taken.
        tangents: one for each primal, of its shape.

    Returns:
        The outputs and one product for each, of its shape; zeros where it depends on no primal.

    Raises:
        ValueError: the number or shapes of the tangents are not those of the primals.
    """
    return derivatives.jvp_call(fun, primals, tangents)


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()
) -> Callable[..., Any]:
    """Return a function that returns the value of ``fun`` and its gradients.

    Args:
        fun: returns a scalar loss, or a tuple whose first item is one; takes anything.
        argnums: places of the arguments, trees of arrays, that gradients are taken with respect to; None: the first, or
            none where ``argnames`` are given.
        argnames: names of keyword arguments, likewise.

    Returns:
        A function that returns ``(value, gradients)``: of one argument its gradient in a tree like it; of several a
        tuple; with ``argnames`` a pair of that (or None) and a dictionary.

    Raises:
        ValueError: an argument number is negative, there twice or none; on the call: an argument is missing or holds
            something else than arrays, or the loss is no scalar.
    """
    return derivatives.value_and_grad_of("value_and_grad", fun, argnums, argnames)


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] | None = None, argnames: str | Sequence[str] = ()
) -> Callable[..., Any]:
    """Return a function that returns the gradients of ``fun``, whose value must be a scalar.

    Args:
        fun: see ``value_and_grad``.
        argnums: see ``value_and_grad``.
        argnames: see ``value_and_grad``.
    """
    both = derivatives.value_and_grad_of("grad", fun, argnums, argnames, scalar_only=True)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    gradient.__wrapped__ = fun  # type: ignore[attr-defined]
    return gradient


def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return a function that applies ``fun`` to each item of batches at once.

    Args:
        fun: takes and returns trees of arrays.
        in_axes: the axis of the batch in each argument: an integer, None for an argument that is the same for all
            items, or a tree of these that is a prefix of the arguments.
        out_axes: where the batch is to be in what is returned, likewise.

    Raises:
        ValueError: on the call: an axis is not there, sizes of batches differ, or no argument is batched.
    """
    return vectorized.vmap_of(fun, in_axes, out_axes)


def compile(
    fun: Callable[..., Any], inputs: Any = None, outputs: Any = None, shapeless: bool = False
) -> Callable[..., Any]:
    """Return a function that does what ``fun`` does, and calls it only once for each structure of the arguments.

    The structure is the shapes and types of all arrays and the values of everything else. What ``fun`` does besides
    returning arrays is done only while it is traced.

    Args:
        fun: takes trees of arrays and constants (numbers, strings, None), returns a tree.
        inputs: a list or dictionary of arrays that ``fun`` reads besides its arguments.
        outputs: a list or dictionary of arrays that ``fun`` writes; written to by each call.
        shapeless: one trace serves all shapes of the same number of axes.

    Raises:
        ValueError: on the call: an argument is neither array nor constant; ``fun`` reads an argument in another way; or
            a shape cannot be inferred anew.
    """
    return compiled.compiled(fun, inputs, outputs, shapeless=shapeless)


def disable_compile() -> None:
    """Make compiled functions call what they were made of, in all threads. So does ``MLX_DISABLE_COMPILE``."""
    compiled.disable()


def enable_compile() -> None:
    """Undo ``disable_compile``, also where ``MLX_DISABLE_COMPILE`` is set."""
    compiled.enable()
