"""``x[index]``: integers, slices, None, ``...``, arrays, and tuples of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.construct import constant
from rocmend.mlx.ops.gather import gathered, usable
from rocmend.mlx.ops.index_plan import integer, no_integers, plan, too_many, twice
from rocmend.mlx.ops.rearrange import flipped
from rocmend.mlx.ops.shape import EXPAND_DIMS, LARGEST_SIZE, SQUEEZE, reshaped
from rocmend.mlx.ops.shape_axes import permuted
from rocmend.mlx.ops.shape_broadcast import broadcast
from rocmend.mlx.ops.slices import SLICE, cut, ones, sliced
from rocmend.mlx.registry import register

if TYPE_CHECKING:
    from rocmend.mlx.ops.index_plan import Plan

__all__: list[str] = []

_slice = slice


@register
def getitem(x: array, index: Any) -> array:
    """Return ``x[index]``.

    Args:
        x: any shape and type.
        index: an integer, a slice, None, ``...``, an array or a list of integers, or a tuple of those.

    Returns:
        The type of ``x``. Without arrays nothing is copied but for negative steps.

    Raises:
        ValueError: too many indices, or one of a kind that does not index.
    """
    node = x._n
    shape = node.shape
    kind = type(index)
    if kind is tuple:
        return _by_tuple(x, index)
    if not shape and index is not None and index is not ...:
        raise too_many(0)
    if kind is _slice:
        if index.step is None:
            try:
                start, stop, _ = index.indices(shape[0])
            except TypeError:
                raise no_integers() from None
            if stop == shape[0] and index.stop is not None and index.stop > LARGEST_SIZE:
                raise _too_far(index.stop)
            return cut(x, 0, start, stop if stop > start else start)  # noqa: FURB136  # a call of max costs more
        return _by_tuple(x, (index,))
    if kind is int:
        size = shape[0]
        if not -size <= index < size:
            if not -LARGEST_SIZE <= index <= LARGEST_SIZE:
                raise _too_far(index)
            if not size:
                raise ValueError("[take] Cannot do a non-empty take from an empty axis.")
            # MLX reads whatever lies there: anything but an error
            index = 0 if index < 0 else size - 1
        elif index < 0:
            index += size
        part = cut(x, 0, index, index + 1)._n
        return record(SQUEEZE, (part,), shape[1:], part.dtype, (0,))
    if kind is array:
        return gathered(x, [usable(index)], 0)
    if index is None:
        return record(EXPAND_DIMS, (node,), (1, *shape), node.dtype, (0,))
    if index is ...:
        return wrap(node)
    if kind is list:
        return gathered(x, [usable(array(index))], 0)
    return getitem(x, integer(index))


Box = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def box(shape: tuple[int, ...], index: tuple[Any, ...]) -> Box | None:  # noqa: PLR0915  # one pass, for speed
    """Understand an index of integers, slices without steps, None and ``...``.

    Returns:
        Starts and stops in one, the shape of the box, and the shape of the result; None: there is more in the index,
        or an integer beyond its axis.
    """
    ndim = len(shape)
    starts: list[int] = []
    stops: list[int] = []
    middle: list[int] = []
    out: list[int] = []
    axis = 0
    try:
        for place, one in enumerate(index):
            kind = type(one)
            if kind is _slice:
                if one.step is not None and one.step != 1:
                    return None
                start, stop, _ = one.indices(shape[axis])
                stop = max(stop, start)
                starts.append(start)
                stops.append(stop)
                middle.append(stop - start)
                out.append(stop - start)
                axis += 1
            elif one is ...:
                left = ndim - axis
                for later in index[place + 1 :]:
                    if later is ...:
                        raise twice()
                    left -= later is not None
                if left > 0:
                    sizes = shape[axis : axis + left]
                    starts += (0,) * left
                    stops += sizes
                    middle += sizes
                    out += sizes
                    axis += left
            elif kind is int:
                size = shape[axis]
                start = one + size if one < 0 else one
                if not 0 <= start < size:
                    return None
                starts.append(start)
                stops.append(start + 1)
                middle.append(1)
                axis += 1
            elif one is None:
                out.append(1)
            else:
                return None
    except IndexError:
        raise too_many(ndim) from None
    except TypeError:
        raise no_integers() from None
    if axis < ndim:
        rest = shape[axis:]
        starts += (0,) * len(rest)
        stops += rest
        middle += rest
        out += rest
    return (*starts, *stops), tuple(middle), tuple(out)


def _by_tuple(x: array, index: tuple[Any, ...]) -> array:
    node = x._n
    shape = node.shape
    found = box(shape, index)
    if found is None:
        return _in_full(x, index)
    dyn, middle, out = found
    if middle != shape:
        x = record(SLICE, (node,), middle, node.dtype, ones[len(shape)], dyn)
    if len(out) == len(middle) and out == middle:
        return x if middle != shape else wrap(node)
    return aligned(x, index, out)


def aligned(x: array, index: tuple[Any, ...], out: tuple[int, ...]) -> array:
    """Leave out the axes that integers cut to one element, and insert those that None asks for."""
    gone: list[int] = []
    new: list[int] = []
    axis = place = 0  # of the box, of the result
    after = sum(type(one) is _slice or type(one) is int for one in index)
    for one in index:
        if one is None:
            new.append(place)
            place += 1
        elif one is ...:
            left = len(x._n.shape) - after
            axis += left
            place += left
        else:
            if type(one) is int:
                gone.append(axis)
            else:
                place += 1
            axis += 1
    node = x._n
    if gone:
        if new:
            shape = tuple([size for one, size in enumerate(node.shape) if one not in gone])
            node = record(SQUEEZE, (node,), shape, node.dtype, tuple(gone))._n
        else:
            return record(SQUEEZE, (node,), out, node.dtype, tuple(gone))
    return record(EXPAND_DIMS, (node,), out, node.dtype, tuple(new))


def _too_far(index: int) -> ValueError:
    return ValueError(f"[index] Index {index} does not fit into 32 bits.")


def _outside(index: int, axis: int, size: int) -> ValueError:
    return ValueError(f"[index] Index {index} is out of bounds for axis {axis} with size {size}.")


def _in_full(x: array, index: tuple[Any, ...]) -> array:
    """Index with what may have arrays, negative steps, and numbers of other kinds."""
    found = plan(x._n.shape, index)
    if found.outside is not None and not found.arrays:
        raise _outside(*found.outside)
    if found.arrays and 0 in x._n.shape:  # there is nothing to take the nearest of
        if 0 in found.out:
            return broadcast(constant(0, x._n.dtype), found.out)
        raise ValueError(
            "[gather] If the input is empty, either the indices must be empty or the total slice size must be 0."
        )
    x = boxed(x, found)
    if found.arrays:
        x = gathered(ordered(x, found), found.arrays, found.first)
        x = permuted(x, found.forth)
    return reshaped(x, found.out)


def boxed(x: array, found: Plan) -> array:
    """Return the box that a plan cuts, turned, without the axes of integers."""
    x = sliced(x, found.starts, found.stops, found.strides)
    if found.turned:
        x = flipped(x, found.turned)
    return reshaped(x, found.kept)


def ordered(x: array, found: Plan) -> array:
    """Return a plan's box with the axes that arrays read beside each other."""
    return x if found.order is None else permuted(x, found.order)
