"""``vmap``: a function of one item applied to many."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import AxisError, shape_text
from rocmend.mlx.array import array
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms import tree
from rocmend.mlx.transforms.batch import spread
from rocmend.mlx.transforms.graph import apart, placeholder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["spread_call", "vmap_of"]


def _axis(x: array, axis: Any, *, output: bool) -> int | None:
    """Return a valid axis of a batched input, or one of a batched output of which ``x`` is one item."""
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if axis is None:
        return None
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise ValueError(f"[vmap] axis must be int or None, got {axis!r}.")  # noqa: TRY004  # MLX's type
    ndim = len(x._n.shape) + output
    if not -ndim <= axis < ndim:
        raise AxisError(
            f"[vmap] Invalid {'output ' if output else ''}vectorization axis {axis} for array with shape "
            f"{shape_text(x._n.shape)}."
        )
    return axis + ndim if axis < 0 else axis


def _flat(values: Any, axes: Any, *, output: bool) -> tuple[list[array], list[int | None]]:
    found: list[tuple[array, int | None]] = []
    tree.prefix(values, axes, lambda x, axis: found.append((x, _axis(x, axis, output=output))))
    return [x for x, _ in found], [axis for _, axis in found]


def spread_call(
    fun: Callable[[list[array]], Sequence[array]], arrays: Sequence[array], axes: Sequence[int | None]
) -> tuple[list[tuple[array, int | None]], int]:
    """Trace a function of one item of each array, and record it for all items.

    Returns:
        The batched outputs with their axes, and the size of the batch.

    Raises:
        ValueError: no array is batched, or the sizes of the batches differ.
    """
    sizes = [x._n.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None]
    if not sizes:
        raise ValueError("[vmap] At least one of in_axes must be non-None.")
    for size in sizes:
        if size != sizes[0]:
            raise ValueError(f"[vmap] Inconsistent axis sizes: {sizes[0]} and {size}.")
    traced = []
    for x, axis in zip(arrays, axes, strict=True):
        shape = x._n.shape
        traced.append(placeholder(shape if axis is None else (*shape[:axis], *shape[axis + 1 :]), x._n))
    nodes = [x._n for x in traced]
    with apart():
        outputs = [one._n for one in fun(traced)]
    return spread(outputs, nodes, arrays, axes, sizes[0]), sizes[0]


def vmap_of(fun: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
    """Return the function that ``vmap`` returns."""
    if not callable(fun):
        raise TypeError(f"[vmap] expected a function, got {type(fun).__name__}.")

    @functools.wraps(fun)
    def batched(*args: Any) -> Any:
        given: Any = args[0] if len(args) == 1 else args
        prefix = in_axes[0] if len(args) == 1 and isinstance(in_axes, tuple) and len(in_axes) == 1 else in_axes
        arrays, axes = _flat(given, prefix, output=False)
        value: Any = None

        def one_item(traced: list[array]) -> list[array]:
            nonlocal value
            value = fun(*tree.rebuild(args, iter(traced)))
            return tree.flatten(value, "vmap")

        found, size = spread_call(one_item, arrays, axes)
        _, wanted = _flat(value, out_axes, output=True)
        placed = iter([_placed(x, axis, where, size) for (x, axis), where in zip(found, wanted, strict=True)])
        return tree.rebuild(value, placed)

    return batched


def _placed(x: array, axis: int | None, where: int | None, size: int) -> array:
    """Return an output with its batch where it is wanted."""
    if axis is None:
        shape = x._n.shape
        where = len(shape) if where is None else where  # as MLX has it
        return ops.broadcast_to(ops.expand_dims(x, where), (*shape[:where], size, *shape[where:]))  # type: ignore[no-any-return]
    return x if where is None or where == axis else ops.moveaxis(x, axis, where)
