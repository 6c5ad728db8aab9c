"""Nodes from values: Python numbers and lists, numpy and torch arrays, buffers."""

from __future__ import annotations

from math import copysign
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import dtypes
from rocmend.mlx.array import array, leaf, record
from rocmend.mlx.conversion import cast_node, converted
from rocmend.mlx.dtypes import Dtype, bool_, complex64, float32, float64, int32, int64, uint64
from rocmend.mlx.exchange import tensor_from
from rocmend.mlx.node import current
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.node import Node

__all__ = ["checked", "constant", "default_dtype", "filled", "imported", "key_of", "node_of"]


# -- numbers


def number_of(attrs: Any) -> Any:
    """Return the number that ``attrs`` of a constant stands for; see ``key_of``."""
    return complex(attrs) if type(attrs) is str else attrs


def key_of(value: Any) -> Any:
    """Return what stands for a number in ``attrs``.

    The number itself; text where numbers that differ compare equal or equal ones do not (-0.0, NaN, complex numbers).
    """
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        whole = float(value)  # numpy's float64 is a float with a text of its own
        return whole if whole > 0 or whole < 0 or (whole == 0 and copysign(1.0, whole) > 0) else repr(whole)
    return repr(complex(value))


def filled(shape: tuple[int, ...], attrs: Any, dtype: Dtype, device: torch.device) -> torch.Tensor:
    """Return a tensor of ``shape`` whose elements are all the number that ``attrs`` stands for."""
    value = number_of(attrs)
    if not dtype.is_complex and isinstance(value, complex):
        value = value.real
    if dtype.is_inexact:
        return torch.full(shape, value, dtype=dtype.storage, device=device)
    if dtype is bool_:
        return torch.full(shape, bool(value), dtype=torch.bool, device=device)
    return torch.full(shape, wrapped(value, dtype), dtype=dtype.storage, device=device)


def wrapped(value: Any, dtype: Dtype) -> int:
    """Return the integer of ``dtype``'s storage that has the low bits of a number."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  (NaN)
        return 0
    bits = dtype.size * 8
    low = int(value) & ((1 << bits) - 1)
    return low if dtype is dtypes.uint8 or low < 1 << (bits - 1) else low - (1 << bits)


def _constant(node: Node) -> torch.Tensor:
    return filled((), node.attrs, node.dtype, node.stream.device.torch)


# A number written in the program: known when a graph is planned, so that no tensor need be made of it.
CONSTANT = Primitive("Constant", _constant)


def constant(value: bool | complex, dtype: Dtype) -> array:
    """Return a 0-d array of a number."""
    kind = type(value)
    # what most numbers are, without a call
    plain = kind is int or (kind is float and (value > 0 or value < 0))  # type: ignore[operator]
    return record(CONSTANT, (), (), dtype, value if plain else key_of(value))


# -- anything


@register
def node_of(value: Any, dtype: Dtype | None = None) -> Node:
    """Return a node of any value that ``array`` takes.

    Raises:
        TypeError: ``dtype`` is no type of this module, or ``value`` is None.
        ValueError: ``value`` cannot become an array, or its rows differ in length.
    """
    if dtype is not None and type(dtype) is not Dtype:
        raise TypeError(f"[array] expected a Dtype such as mlx.core.float32, got {dtype!r}.")
    if isinstance(value, array):
        return _converted(value._n, dtype)
    if isinstance(value, bool | int | float | complex):
        natural = default_dtype(value) if dtype is None or isinstance(value, int) else dtype
        return constant(value, dtype or natural)._n
    if isinstance(value, list | tuple):
        return _of_rows(value, dtype)
    if value is None:
        raise TypeError("[array] expected a number, a list, a tuple or an array, got None.")
    accessor = getattr(value, "__mlx_array__", None)
    if accessor is not None:
        return _converted(accessor()._n, dtype)
    return imported(value, dtype)._n


def default_dtype(value: Any) -> Dtype:
    """Return the type that a Python number takes by itself."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return int32
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"[array] the integer {value} does not fit into 64 bits.")
        return int64 if value < 2**63 else uint64
    return float32 if isinstance(value, float) else complex64


def _converted(node: Node, dtype: Dtype | None) -> Node:
    if dtype is None or node.dtype is dtype:
        return node
    return cast_node(node, dtype)


# -- rows


def _shape_of(rows: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(rows, list | tuple):
        shape.append(len(rows))
        if not rows:
            return tuple(shape)
        rows = rows[0]
    return (*shape, *rows.shape) if isinstance(rows, array) else tuple(shape)


class _Kinds:
    """What stands in nested rows: the widest kind of number, whether an integer needs 64 bits, whether arrays."""

    def __init__(self) -> None:
        self.rank = 0  # bool, int, float, complex
        self.wide = False
        self.arrays = False

    def scan(self, rows: Sequence[Any], shape: tuple[int, ...]) -> None:
        if not shape:
            raise ValueError("Initialization encountered extra dimension.")
        if len(rows) != shape[0]:
            raise ValueError("Initialization encountered non-uniform length.")
        if not rows:
            self.rank = max(self.rank, 2)
            return
        inner = shape[1:]
        for item in rows:
            kind = type(item)
            if kind is float:
                rank = 2
            elif kind is int:
                rank = 1
                if not -(2**31) <= item < 2**31:
                    self.wide = True
            elif isinstance(item, list | tuple):
                self.scan(item, inner)
                continue
            elif isinstance(item, array):
                self.arrays = True
                if item._n.shape != inner:
                    raise ValueError("Initialization encountered non-uniform length.")
                continue
            else:
                rank = _rank_of(item)
            self.rank = max(rank, self.rank)
            if inner:
                raise ValueError("Initialization encountered non-uniform length.")


def _rank_of(item: Any) -> int:
    for rank, kind in enumerate((bool, int, float, complex)):
        if isinstance(item, kind):
            return rank
    raise ValueError(f"Invalid type {type(item).__name__} received in array initialization.")


def _of_rows(rows: Any, dtype: Dtype | None) -> Node:
    shape = _shape_of(rows)
    kinds = _Kinds()
    kinds.scan(rows, shape)
    if kinds.arrays:
        return ops.stack([array(row, dtype) for row in rows])._n  # type: ignore[no-any-return]
    natural = (bool_, int64 if kinds.wide else int32, float32, complex64)[kinds.rank]
    return leaf(tensor_of(rows, shape, kinds.rank, dtype or natural), dtype or natural)._n


def tensor_of(rows: Any, shape: tuple[int, ...], rank: int, dtype: Dtype) -> torch.Tensor:
    """Return a tensor, stored as ``dtype``, of nested rows of numbers of a kind."""
    scratch = float64 if dtype is float64 and rank == 2 else (bool_, int64, float32, complex64)[rank]
    try:
        whole = torch.tensor(rows, dtype=scratch.storage).reshape(shape)
    except (OverflowError, RuntimeError, ValueError) as error:
        raise ValueError(f"[array] an integer of the list does not fit into 64 bits: {error}") from error
    return here(converted(whole, scratch, dtype))


def here(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor on the device that operations run on by default."""
    return tensor.to(current.state.stream.device.torch)


# -- other libraries' arrays


def imported(value: Any, dtype: Dtype | None = None, *, copy: bool | None = None) -> array:
    """Return an array of a numpy or torch array, of what speaks DLPack, or of a buffer.

    Values never change here, so memory that its owner may write to is copied. Only memory of the GPU that computes is
    taken as it is, and only on demand.

    Args:
        value: the object.
        dtype: type of the result; None: the object's, but float32 for float64 and complex64 for complex128.
        copy: False: take the memory or raise; True or None: copy.

    Raises:
        ValueError: the object is no array, or ``copy`` is False and its memory cannot be taken.
        OverflowError: an axis has 2**31 elements or more.
    """
    tensor, source = tensor_from(value)
    checked(tensor.shape)
    target = dtype or (float32 if source is float64 else source)
    moved = here(tensor)
    final = converted(moved, source, target)
    shared = final.data_ptr() == tensor.data_ptr()
    if copy is False:
        if not shared or final.device.type == "cpu":
            raise ValueError("[convert] Cannot import the array without a copy, which copy=False forbids.")
    elif shared:
        final = final.clone(memory_format=torch.contiguous_format)
    return leaf(final, target)


def checked(shape: Sequence[int]) -> None:
    """Raise OverflowError if a size is none that a 32-bit integer can say."""
    for size in shape:
        if not -(2**31) <= size < 2**31:
            raise OverflowError(
                f"Shape dimension {size} is outside the supported range [-2147483648, 2147483647]. "
                "MLX currently uses 32-bit integers for shape dimensions."
            )
