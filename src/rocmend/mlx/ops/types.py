"""The element types by name, their limits, and questions about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import dtypes
from rocmend.mlx.array import array
from rocmend.mlx.dtypes import (
    Dtype,
    DtypeCategory,
    bfloat16,
    bool_,
    complex64,
    complexfloating,
    float16,
    float32,
    float64,
    floating,
    generic,
    inexact,
    int8,
    int16,
    int32,
    int64,
    integer,
    number,
    signedinteger,
    uint8,
    uint16,
    uint32,
    uint64,
    unsignedinteger,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Dtype",
    "DtypeCategory",
    "bfloat16",
    "bool_",
    "can_cast",
    "complex64",
    "complexfloating",
    "finfo",
    "float16",
    "float32",
    "float64",
    "floating",
    "generic",
    "iinfo",
    "inexact",
    "int8",
    "int16",
    "int32",
    "int64",
    "integer",
    "isdtype",
    "issubdtype",
    "number",
    "result_type",
    "signedinteger",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsignedinteger",
]


def _named(dtype: Dtype) -> str:
    return dtype.name.removesuffix("_")


class finfo:
    """The limits of a floating type; those of float32 for complex64.

    Attributes:
        bits: size of an element.
        min: the smallest number.
        max: the largest number.
        eps: the distance from 1 to the next larger number.
        smallest_normal: the smallest positive number of full precision.
        dtype: the type.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "smallest_normal")

    def __init__(self, arg: Dtype, /) -> None:
        if not arg.is_inexact:
            raise ValueError(f"[finfo] dtype {_named(arg)} is not inexact.")
        self.dtype = float32 if arg is complex64 else arg
        limits = torch.finfo(self.dtype.storage)
        self.bits: int = limits.bits
        self.min: float = limits.min
        self.max: float = limits.max
        self.eps: float = limits.eps
        self.smallest_normal: float = limits.smallest_normal

    def __repr__(self) -> str:
        return f"finfo(min={self.min:g}, max={self.max:g}, dtype={_named(self.dtype)})"


class iinfo:
    """The limits of an integer type.

    Attributes:
        min: the smallest number.
        max: the largest number.
        dtype: the type.
    """

    __slots__ = ("dtype", "max", "min")

    def __init__(self, arg: Dtype, /) -> None:
        if not arg.category.within(integer):
            raise ValueError(f"[iinfo] Only integer types supported but {_named(arg)} was provided.")
        self.dtype = arg
        self.min, self.max = dtypes.limits(arg)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={_named(self.dtype)})"


def issubdtype(arg1: Dtype | DtypeCategory, arg2: Dtype | DtypeCategory) -> bool:
    """Return whether a type or category is, or stands below, another.

    Args:
        arg1: a type or category.
        arg2: a type or category.

    Returns:
        True if it does. A category never stands below a type.
    """
    if isinstance(arg2, Dtype):
        return arg1 is arg2
    return (arg1.category if isinstance(arg1, Dtype) else arg1).within(arg2)


def result_type(*arrays_and_dtypes: Any) -> Dtype:
    """Return the type in which arrays and types meet.

    Args:
        arrays_and_dtypes: arrays and types.

    Returns:
        The type that an operation on them would compute in.

    Raises:
        ValueError: nothing was given.
        TypeError: something is neither an array nor a type.
    """
    if not arrays_and_dtypes:
        raise ValueError("[result_type] At least one array or dtype is required.")
    found = bool_
    for value in arrays_and_dtypes:
        found = dtypes.promote(found, _dtype_of("result_type", value))
    return found


def _dtype_of(op: str, value: Any) -> Dtype:
    if isinstance(value, Dtype):
        return value
    if isinstance(value, array):
        return value._n.dtype
    raise TypeError(f"[{op}] expected an array or a Dtype, got {type(value).__name__}.")


def can_cast(from_: Any, to: Dtype) -> bool:
    """Return whether an array or type becomes another by promotion alone.

    Args:
        from_: an array or type.
        to: a type.

    Returns:
        True if ``to`` is where the two meet.
    """
    return dtypes.promote(_dtype_of("can_cast", from_), to) is to


_KINDS: dict[str, Callable[[Dtype], bool]] = {
    "bool": lambda dtype: dtype is bool_,
    "signed integer": lambda dtype: dtype.category is signedinteger,
    "unsigned integer": lambda dtype: dtype.category is unsignedinteger,
    "integral": lambda dtype: dtype.category.within(integer),
    "real floating": lambda dtype: dtype.is_float,
    "complex floating": lambda dtype: dtype.is_complex,
    "numeric": lambda dtype: dtype.category.within(number),
}


def isdtype(dtype: Dtype, kind: Any) -> bool:
    """Return whether a type is of a kind, as the Python array API defines it.

    Args:
        dtype: the type.
        kind: a type, the name of a kind (``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
            ``"real floating"``, ``"complex floating"``, ``"numeric"``), or a tuple of those.

    Returns:
        True if it is.

    Raises:
        ValueError: there is no such kind.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, Dtype):
        return dtype is kind
    test = _KINDS.get(kind)
    if test is None:
        raise ValueError(f"[isdtype] Unknown data type kind: '{kind}'. Known: {', '.join(_KINDS)}.")
    return test(dtype)
