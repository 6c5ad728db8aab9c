"""``x[index] = value`` and ``x.at[index].add(value)``."""

from __future__ import annotations

from typing import Any

from rocmend.mlx.arguments import broadcast_shapes, shape_text, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.dtypes import bool_, complex64, float32
from rocmend.mlx.ops.index_plan import Plan, plan
from rocmend.mlx.ops.index_read import box, boxed, ordered
from rocmend.mlx.ops.mask import masked
from rocmend.mlx.ops.rearrange import flipped
from rocmend.mlx.ops.scatter import scattered
from rocmend.mlx.ops.shape import reshaped
from rocmend.mlx.ops.shape_axes import permuted
from rocmend.mlx.ops.shape_broadcast import broadcast
from rocmend.mlx.ops.slices import SLICE_UPDATE, ones, sliced, updated
from rocmend.mlx.registry import ops, register

__all__ = ["ArrayAt"]

_JOINS = {"add": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


@register
def setitem(x: array, index: Any, value: Any) -> None:
    """Let ``x`` stand for itself with ``x[index] = value``.

    Args:
        x: any shape and type.
        index: as for reading; or an array of bools whose shape is the beginning of that of ``x``.
        value: an array that broadcasts to what is written, or a number; converted to the type of ``x``, unless the
            index is one for the whole array (``...``, None, any of an array without axes): then ``x`` takes the value's
            type, as in MLX. What an index beyond its axis would write is left out.

    Raises:
        ValueError: an index that is none, or a value that does not broadcast.
    """
    node = x._n
    if type(index) is tuple and type(value) is array:
        update = value._n
        if update.dtype is node.dtype:
            # what a cache of keys and values does
            found = box(node.shape, index)
            if found is not None:
                dyn, middle, out = found
                if update.shape == out == middle:
                    if middle == node.shape:
                        x._n = update
                        return
                    x._n = record(
                        SLICE_UPDATE,
                        (node, update),
                        node.shape,
                        node.dtype,
                        (ones[len(middle)], "assign"),
                        dyn,
                    )._n
                    return
    if is_whole(node.shape, index):
        like = float32 if node.dtype is complex64 and type(value) is float else node.dtype
        x._n = fitted_whole(node.shape, index, to_array(value, like))._n
        return
    x._n = put(x, index, value, "assign")._n


def put(x: array, index: Any, value: Any, mode: str) -> array:
    """Return ``x`` with what an index means written, or joined with what is there.

    Args:
        x: any shape and type.
        index: see ``setitem``.
        value: see ``setitem``.
        mode: ``assign``, ``add``, ``prod``, ``max`` or ``min``.

    Returns:
        The shape and type of ``x``.

    Raises:
        ValueError: see ``setitem``.
    """
    node = x._n
    if type(value) is not array:
        value = to_array(value, node.dtype)
    value = ops.astype(value, node.dtype)
    if index is True or index is False or type(index) is list:
        index = array(index)
    if type(index) is array and index._n.dtype is bool_:
        return masked(x, index, value, mode)
    if type(index) is not tuple:
        index = (index,)
    found = box(node.shape, index)
    if found is not None:
        dyn, middle, out = found
        ndim = len(middle)
        value = reshaped(fitted(value, out), middle)
        starts, stops = dyn[:ndim], dyn[ndim:]
        if mode != "assign":
            value = getattr(ops, _JOINS[mode])(sliced(x, starts, stops, ones[ndim]), value)
        return updated(x, value, starts, stops, ones[ndim])
    understood = plan(node.shape, index, writing=True)
    if understood.outside is not None:
        return wrap(node)  # nothing is there
    value = reshaped(fitted(value, understood.out), understood.bare)
    if understood.arrays:
        value = _read_from(x, understood, value, mode)
    elif mode != "assign":
        value = getattr(ops, _JOINS[mode])(boxed(x, understood), value)
    value = reshaped(value, understood.box)
    if understood.turned:
        value = flipped(value, understood.turned)
    return updated(x, value, understood.starts, understood.stops, understood.strides)


def _read_from(x: array, found: Plan, value: array, mode: str) -> array:
    """Return a plan's box with what arrays mean written."""
    back = permuted(value, _inverse(found.forth))
    places = broadcast_shapes(*[one._n.shape for one in found.arrays])
    arrays = [broadcast(one, places) for one in found.arrays]
    whole = ordered(boxed(x, found), found)
    whole = scattered(whole, arrays, back, found.first, mode)
    return whole if found.order is None else permuted(whole, _inverse(found.order))


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    back = [0] * len(order)
    for place, axis in enumerate(order):
        back[axis] = place
    return tuple(back)


def fitted(value: array, shape: tuple[int, ...]) -> array:
    """Broadcast a value to what is written; axes of size 1 in front of it do not count.

    Raises:
        ValueError: it does not fit.
    """
    old = value._n.shape
    if old == shape:
        return value
    extra = len(old) - len(shape)
    if extra > 0 and all(size == 1 for size in old[:extra]):
        old = old[extra:]
        value = reshaped(value, old)
    if len(old) > len(shape) or broadcast_shapes(old, shape) != shape:
        raise ValueError(f"[index] Cannot broadcast array of shape {shape_text(old)} into shape {shape_text(shape)}.")
    return broadcast(value, shape)


def is_whole(shape: tuple[int, ...], index: Any) -> bool:
    """Return whether an index is one for a whole array, whose type then gives way to that of a value."""
    if type(index) is tuple:
        return not shape and all(item is None or item is Ellipsis for item in index) and index.count(Ellipsis) < 2
    return index is None or index is Ellipsis


def fitted_whole(shape: tuple[int, ...], index: Any, value: array) -> array:
    """Broadcast a value to a whole array.

    Raises:
        ValueError: it does not fit; below a single None, axes of size 1 in front of it count.
    """
    if index is None and len(value._n.shape) > len(shape):
        raise ValueError(
            f"[index] Cannot broadcast array of shape {shape_text(value._n.shape)} into shape {shape_text(shape)}."
        )
    return fitted(value, shape)


class ArrayAt:
    """What ``x.at`` gives: ``x.at[index].add(value)`` returns ``x`` with values joined to what an index means.

    Other than with ``x[index] += value``, each of several updates of one element counts.
    """

    __slots__ = ("_array", "_index", "_told")

    def __init__(self, x: array) -> None:
        self._array = x
        self._index: Any = None
        self._told = False

    def __getitem__(self, indices: Any) -> ArrayAt:
        """Return the same with an index."""
        found = ArrayAt(self._array)
        found._index = indices
        found._told = True
        return found

    def _put(self, value: Any, mode: str) -> array:
        if not self._told:
            raise ValueError("[at] Must give indices to array.at (e.g. `x.at[0].add(4)`).")
        return put(self._array, self._index, value, mode)

    def _whole(self, value: Any, name: str) -> array | None:
        """Return the result for an index that means the whole array by itself: MLX then promotes the types."""
        x, index = self._array, self._index
        shape = x._n.shape
        if not self._told or not is_whole(shape, index):
            return None
        return getattr(ops, name)(x, fitted_whole(shape, index, to_array(value, x._n.dtype)))  # type: ignore[no-any-return]

    def _value(self, value: Any) -> array:
        dtype = self._array._n.dtype
        return ops.astype(to_array(value, dtype), dtype)  # type: ignore[no-any-return]

    def add(self, value: Any) -> array:
        """Return the array with ``value`` added."""
        found = self._whole(value, "add")
        return self._put(value, "add") if found is None else found

    def subtract(self, value: Any) -> array:
        """Return the array with ``value`` subtracted."""
        found = self._whole(value, "subtract")
        return self._put(ops.negative(self._value(value)), "add") if found is None else found

    def multiply(self, value: Any) -> array:
        """Return the array multiplied by ``value``."""
        found = self._whole(value, "multiply")
        return self._put(value, "prod") if found is None else found

    def divide(self, value: Any) -> array:
        """Return the array divided by ``value``: multiplied by its reciprocal in the array's type, as MLX does."""
        found = self._whole(value, "divide")
        return self._put(ops.reciprocal(self._value(value)), "prod") if found is None else found

    def maximum(self, value: Any) -> array:
        """Return the array with the larger of its elements and ``value``."""
        found = self._whole(value, "maximum")
        return self._put(value, "max") if found is None else found

    def minimum(self, value: Any) -> array:
        """Return the array with the smaller of its elements and ``value``."""
        found = self._whole(value, "minimum")
        return self._put(value, "min") if found is None else found
