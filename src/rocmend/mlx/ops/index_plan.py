"""What an index asks of an array: a box, axes that arrays read, and where all of it stands in the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import broadcast_shapes
from rocmend.mlx.array import array
from rocmend.mlx.ops.gather import usable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__: list[str] = []

_slice = slice
_NEW = -1  # in a layout: an axis of size 1
_ARRAYS = -2  # the axes of the arrays


def too_many(ndim: int) -> ValueError:
    """Return the error for more indices than axes."""
    if not ndim:
        return ValueError("[index] too many indices for array: array is 0-dimensional.")
    return ValueError(f"[index] Too many indices for array with {ndim} dimensions.")


def no_integers() -> ValueError:
    """Return the error for a slice of something else."""
    return ValueError("[index] Slice indices must be integers or None.")


def twice() -> ValueError:
    """Return the error for a second ``...``."""
    return ValueError("[index] An index can only have a single ellipsis (...).")


def integer(value: Any) -> int:
    """Return an index that is no Python integer as one.

    Raises:
        ValueError: it is no index.
    """
    if not isinstance(value, bool) and hasattr(value, "__index__") and not getattr(value, "ndim", 0):
        return int(value.__index__())
    raise ValueError(
        f"[index] Cannot index mlx array using the given type: {type(value).__name__}. "
        "Use integers, slices, None, ... or arrays of integers."
    )


class Plan:
    """An index, understood for an array of some shape.

    The array is cut to a box, turned where steps are negative, and stripped of the axes of integers (``kept``). Then
    arrays read along ``axes`` of it, and what they give is brought to its place.

    Attributes:
        starts: where the box begins; all of them stand inside of the array.
        stops: where it ends.
        strides: its steps, positive.
        box: its shape.
        turned: axes whose steps were negative.
        kept: the box without the axes of integers.
        arrays: the arrays.
        order: how the axes of ``kept`` are transposed so that those of the arrays stand beside each other; None: as is.
        first: the first of them then.
        forth: how the axes of what is read are transposed to stand as in the result.
        bare: the result's shape without new axes of size 1.
        out: the result's shape.
        outside: an integer beyond its axis, the axis and its size.
    """

    __slots__ = (
        "arrays", "bare", "box", "first", "forth", "kept", "order", "out", "outside", "starts", "stops", "strides",
        "turned",
    )  # fmt: skip

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    kept: tuple[int, ...]
    forth: tuple[int, ...]
    bare: tuple[int, ...]
    out: tuple[int, ...]

    def __init__(self) -> None:
        self.turned: list[int] = []
        self.arrays: list[array] = []
        self.order: tuple[int, ...] | None = None
        self.first = 0
        self.outside: tuple[int, int, int] | None = None


def expanded(index: tuple[Any, ...], ndim: int) -> list[Any]:
    """Return an index with slices in place of ``...``, arrays in place of lists, and no integers of other kinds.

    Raises:
        ValueError: something does not index, or there is too much of it.
    """
    items: list[Any] = []
    fill = None
    used = 0
    for one in index:
        if one is ...:
            if fill is not None:
                raise twice()
            fill = len(items)
            continue
        if one is None:
            items.append(one)
            continue
        used += 1
        if isinstance(one, array):
            items.append(usable(one))
        elif isinstance(one, list):
            items.append(usable(array(one)))
        elif isinstance(one, _slice):
            items.append(one)
        else:
            items.append(integer(one))
    if used > ndim:
        raise too_many(ndim)
    rest = [_slice(None)] * (ndim - used)
    at = len(items) if fill is None else fill
    return items[:at] + rest + items[at:]


def plan(  # noqa: PLR0915  # one pass over the index
    shape: Sequence[int], index: tuple[Any, ...], *, writing: bool = False
) -> Plan:
    """Understand an index.

    Args:
        shape: of the array.
        index: what stands in the brackets.
        writing: values are written. Then an integer is no array of one place, so that values for
            ``x[0, :, [1, 2]]`` are shaped as those for ``x[0][:, [1, 2]]``; what is read is turned, as numpy has it.

    Raises:
        ValueError: it is none for an array of this shape.
    """
    items = expanded(index, len(shape))
    found = Plan()
    starts: list[int] = []
    stops: list[int] = []
    strides: list[int] = []
    box: list[int] = []
    kept: list[int] = []
    layout: list[int] = []  # axes of ``kept``, _NEW, _ARRAYS
    axes: list[int] = []  # of ``kept``, read by arrays
    reading = any(type(item) is array for item in items)
    begun = left = apart = False  # arrays and integers stand apart: what they give stands in front
    for item in items:
        if item is None:
            layout.append(_NEW)
            left |= begun
            continue
        axis = len(starts)
        size = shape[axis]
        if type(item) is _slice:
            left |= begun
            start, stop, step = _bounds(item, size)
            count = (stop - start + step - (1 if step > 0 else -1)) // step
            count = max(count, 0)
            if step < 0:
                # from the last element that is meant upwards
                found.turned.append(axis)
                start, step = (start + (count - 1) * step if count else 0), -step
            starts.append(start if count else 0)
            stops.append(start + (count - 1) * step + 1 if count else 0)
            strides.append(step)
            box.append(count)
            layout.append(len(kept))
            kept.append(count)
            continue
        if reading and not (writing and type(item) is int):
            apart |= left
            if not begun:
                layout.append(_ARRAYS)
            begun = True
        if type(item) is array:
            starts.append(0)
            stops.append(size)
            strides.append(1)
            box.append(size)
            axes.append(len(kept))
            kept.append(size)
            found.arrays.append(item)
            continue
        place = item + size if item < 0 else item
        if not 0 <= place < size:
            found.outside = (item, axis, size)
            place = min(max(place, 0), max(size - 1, 0))
        starts.append(place)
        stops.append(min(place + 1, size))
        strides.append(1)
        box.append(stops[-1] - place)
    found.starts, found.stops, found.strides = tuple(starts), tuple(stops), tuple(strides)
    found.box, found.kept = tuple(box), tuple(kept)
    if apart:
        layout.remove(_ARRAYS)
        layout.insert(0, _ARRAYS)
    _finish(found, layout, axes)
    return found


def _bounds(item: slice, size: int) -> tuple[int, int, int]:
    try:
        return item.indices(size)
    except TypeError:
        raise no_integers() from None
    except ValueError:
        raise ValueError("[index] A slice needs a step that is not 0.") from None


def _finish(found: Plan, layout: list[int], axes: list[int]) -> None:
    """Find where what is read stands, and the shape of the result."""
    places: tuple[int, ...] = ()
    if axes:
        places = broadcast_shapes(*[one._n.shape for one in found.arrays])
        found.first = axes[0]
        if axes[-1] - axes[0] + 1 != len(axes):
            found.order = (*axes, *[axis for axis in range(len(found.kept)) if axis not in axes])
            found.first = 0
        ahead = sum(axis >= 0 for axis in layout[: layout.index(_ARRAYS)])
        rest = len(found.kept) - len(axes)
        count = len(places)
        others = [*range(found.first), *range(found.first + count, count + rest)]
        read = range(found.first, found.first + count)
        found.forth = (*others[:ahead], *read, *others[ahead:])
    bare: list[int] = []
    out: list[int] = []
    for one in layout:
        if one == _NEW:
            out.append(1)
            continue
        sizes = places if one == _ARRAYS else (found.kept[one],)
        bare += sizes
        out += sizes
    found.bare, found.out = tuple(bare), tuple(out)
