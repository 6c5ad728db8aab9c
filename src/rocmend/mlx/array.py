"""``array``: the handle that users see. Its methods stand in ``array_methods.py``, its operators in their own file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.accelerated import native
from rocmend.mlx.array_methods import ArrayMethods
from rocmend.mlx.dtypes import DTYPES, Dtype
from rocmend.mlx.node import Node, current
from rocmend.mlx.primitive import ITEM
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from rocmend.mlx.device import Stream
    from rocmend.mlx.primitive import Primitive

__all__ = ["array", "leaf", "record", "record_many", "wrap"]


class array(ArrayMethods):
    """An N-dimensional array: shape, type, and a value that is computed when it is needed.

    Args:
        val: a number, nested lists or tuples of numbers or arrays, a numpy or torch array, an object that speaks
            DLPack, has ``__array__`` or ``__mlx_array__``, or is a buffer.
        dtype: type of the elements; None: bool, int32 (int64 where an integer needs it), float32 or complex64 for
            Python numbers, the type of an array otherwise (float32 for float64).

    Raises:
        TypeError: ``dtype`` is no type of this module, or ``val`` is None.
        ValueError: ``val`` cannot become an array, or its rows differ in length.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, val: Any, dtype: Dtype | None = None) -> None:
        self._n = ops.node_of(val, dtype)

    def __copy__(self) -> array:
        return wrap(self._n)

    def __deepcopy__(self, memo: dict[int, Any]) -> array:
        # values never change: another handle is another array
        return wrap(self._n)

    def __setstate__(self, state: tuple[Any, int]) -> None:
        values, index = state
        dtype = DTYPES[index]
        self._n = (ops.view(array(values), dtype) if dtype.numpy is None else array(values, dtype))._n


_new = array.__new__


def wrap(node: Node) -> array:
    """Return a new handle of a node."""
    handle = _new(array)
    handle._n = node
    return handle


def record(
    op: Primitive,
    inputs: tuple[Node, ...],
    shape: tuple[int, ...],
    dtype: Dtype,
    attrs: Any = None,
    dyn: tuple[int, ...] | None = None,
    stream: Stream | None = None,
) -> array:
    """Record an operation with one output and return its handle."""
    state = current.state
    tape = state.tape
    handle = _new(array)
    handle._n = node = Node(
        op, inputs, attrs, dyn, shape, dtype, state.stream if stream is None else stream, None, len(tape)
    )
    tape.append(node)
    return handle


if native is not None and not TYPE_CHECKING:
    native.bind(array, Dtype)
    wrap, record = native.wrap, native.record


def record_many(
    op: Primitive,
    inputs: tuple[Node, ...],
    outputs: Sequence[tuple[tuple[int, ...], Dtype]],
    attrs: Any = None,
    dyn: tuple[int, ...] | None = None,
    stream: Stream | None = None,
) -> tuple[array, ...]:
    """Record an operation with several outputs, given as (shape, type), and return their handles."""
    if not outputs:
        return ()
    whole = record(op, inputs, None, outputs[0][1], attrs, dyn, stream)._n  # type: ignore[arg-type]
    whole.outputs = tuple(outputs)
    return tuple(
        record(ITEM, (whole,), shape, dtype, index, None, stream) for index, (shape, dtype) in enumerate(outputs)
    )


def leaf(data: torch.Tensor, dtype: Dtype) -> array:
    """Return an array of a tensor, which must not be written to any more."""
    handle = _new(array)
    handle._n = Node(None, (), None, None, tuple(data.shape), dtype, current.state.stream, data, -1)
    return handle
