"""Element types: MLX's names, order and promotion, and how each is stored in torch.

torch computes little on unsigned integers of 16, 32 and 64 bits, so these are stored as the signed integers of the
same bits. Operations that tell a sign (comparison, division, conversion, order, right shift) look at the ``Dtype``.
"""

from __future__ import annotations

import enum

import torch

__all__ = ["DTYPES", "Dtype", "DtypeCategory", "limits", "of_storage", "promote"]


class DtypeCategory(enum.Enum):
    """A node of the tree of types: ``generic``, ``number``, ``integer`` and so on."""

    complexfloating = 0
    floating = 1
    inexact = 2
    signedinteger = 3
    unsignedinteger = 4
    integer = 5
    number = 6
    generic = 7

    def __repr__(self) -> str:
        return f"DtypeCategory.{self.name}"

    __str__ = __repr__

    def within(self, other: DtypeCategory) -> bool:
        """Return whether this category is ``other`` or stands below it."""
        node: DtypeCategory | None = self
        while node is not None:
            if node is other:
                return True
            node = _above.get(node)
        return False


complexfloating = DtypeCategory.complexfloating
floating = DtypeCategory.floating
inexact = DtypeCategory.inexact
signedinteger = DtypeCategory.signedinteger
unsignedinteger = DtypeCategory.unsignedinteger
integer = DtypeCategory.integer
number = DtypeCategory.number
generic = DtypeCategory.generic

_above = {
    complexfloating: inexact,
    floating: inexact,
    inexact: number,
    signedinteger: integer,
    unsignedinteger: integer,
    integer: number,
    number: generic,
}


class Dtype:
    """An element type. There is one object of each: compare with ``is`` or ``==``."""

    __slots__ = (
        "category", "index", "is_complex", "is_float", "is_inexact", "is_unsigned", "name", "numpy", "size", "storage",
    )  # fmt: skip

    def __init__(self, name: str, size: int, storage: torch.dtype, category: DtypeCategory, numpy: str | None) -> None:
        self.name = name
        self.size = size  # bytes
        self.storage = storage
        self.category = category
        self.numpy = numpy  # numpy's name of it; None: numpy has no such type
        self.index = 0  # place in DTYPES
        self.is_float = category is floating
        self.is_complex = category is complexfloating
        self.is_inexact = self.is_float or self.is_complex
        # stored as signed integers of the same bits; uint8 is torch's own
        self.is_unsigned = category is unsignedinteger and size > 1

    def __repr__(self) -> str:
        return f"mlx.core.{self.name.removesuffix('_')}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (_by_name, (self.name,))

    def __copy__(self) -> Dtype:
        return self

    def __deepcopy__(self, memo: object) -> Dtype:
        return self


bool_ = Dtype("bool_", 1, torch.bool, generic, "bool")
uint8 = Dtype("uint8", 1, torch.uint8, unsignedinteger, "uint8")
uint16 = Dtype("uint16", 2, torch.int16, unsignedinteger, "uint16")
uint32 = Dtype("uint32", 4, torch.int32, unsignedinteger, "uint32")
uint64 = Dtype("uint64", 8, torch.int64, unsignedinteger, "uint64")
int8 = Dtype("int8", 1, torch.int8, signedinteger, "int8")
int16 = Dtype("int16", 2, torch.int16, signedinteger, "int16")
int32 = Dtype("int32", 4, torch.int32, signedinteger, "int32")
int64 = Dtype("int64", 8, torch.int64, signedinteger, "int64")
float16 = Dtype("float16", 2, torch.float16, floating, "float16")
float32 = Dtype("float32", 4, torch.float32, floating, "float32")
float64 = Dtype("float64", 8, torch.float64, floating, "float64")
bfloat16 = Dtype("bfloat16", 2, torch.bfloat16, floating, None)
complex64 = Dtype("complex64", 8, torch.complex64, complexfloating, "complex64")

# MLX's order
DTYPES = (
    bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64, bfloat16, complex64,
)  # fmt: skip
for _index, _dtype in enumerate(DTYPES):
    _dtype.index = _index
_names = {dtype.name: dtype for dtype in DTYPES}
_stored = {
    dtype.storage: dtype for dtype in (*DTYPES[:2], int8, int16, int32, int64, *DTYPES[9:])
}  # signed where two share a storage


def _by_name(name: str) -> Dtype:
    return _names[name]


def of_storage(storage: torch.dtype) -> Dtype:
    """Return the type stored as ``storage``; integers are taken for signed ones."""
    return _stored[storage]


def limits(dtype: Dtype) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type."""
    bits = dtype.size * 8
    return (0, (1 << bits) - 1) if dtype.category is unsignedinteger else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _promoted(a: Dtype, b: Dtype) -> Dtype:
    """MLX's rule for two types, written out; ``promote`` looks it up."""
    if a is b:
        return a
    if bool_ in (a, b):
        return b if a is bool_ else a
    for top in (complex64, float64, float32):
        if top in (a, b):
            return top
    if a.is_float and b.is_float:  # float16 with bfloat16
        return float32
    if a.is_float or b.is_float:
        return a if a.is_float else b
    if a.category is b.category:
        return a if a.size > b.size else b
    unsigned, signed = (a, b) if a.category is unsignedinteger else (b, a)
    if signed.size > unsigned.size:
        return signed
    if unsigned is uint64:
        return float32
    return _names[f"int{unsigned.size * 16}"]


_table = tuple(tuple(_promoted(a, b) for b in DTYPES) for a in DTYPES)


def promote(a: Dtype, b: Dtype) -> Dtype:
    """Return the type in which ``a`` and ``b`` meet, as MLX decides it."""
    return a if a is b else _table[a.index][b.index]
