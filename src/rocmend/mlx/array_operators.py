"""The operators of ``array``. In-place forms give the handle another node, which every name of the handle sees."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.accelerated import native
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.array import array
    from rocmend.mlx.node import Node

__all__ = ["ArrayOperators"]


def _no_floats(name: str, *operands: Any) -> None:
    for value in operands:
        kind = getattr(value, "_n", None)
        if isinstance(value, float | complex) or (kind is not None and kind.dtype.is_inexact):
            raise ValueError(f"Floating point types not allowed with {name}.")


def comparable(value: Any) -> bool:
    """Return whether a value can be an operand beside an array."""
    return isinstance(value, bool | int | float | complex) or any(
        hasattr(value, name) for name in ("_n", "__mlx_array__", "__array__", "__array_interface__", "__dlpack__")
    )


# what holds ``_n``: in C where there is one
if TYPE_CHECKING or native is None:  # noqa: SIM108  mypy wants it so
    _Base = object
else:
    _Base = native.Handle


class ArrayOperators(_Base):
    """Operators, as functions of ``ops``."""

    __slots__ = ("_n",) if native is None else ()

    _n: Node  # the value that the handle stands for

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> array:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> array:
        return ops.add(other, self)

    def __iadd__(self, other: Any) -> array:
        self._n = ops.add(self, other)._n
        return self  # type: ignore[return-value]

    def __sub__(self, other: Any) -> array:
        return ops.subtract(self, other)

    def __rsub__(self, other: Any) -> array:
        return ops.subtract(other, self)

    def __isub__(self, other: Any) -> array:
        self._n = ops.subtract(self, other)._n
        return self  # type: ignore[return-value]

    def __mul__(self, other: Any) -> array:
        return ops.multiply(self, other)

    def __rmul__(self, other: Any) -> array:
        return ops.multiply(other, self)

    def __imul__(self, other: Any) -> array:
        self._n = ops.multiply(self, other)._n
        return self  # type: ignore[return-value]

    def __truediv__(self, other: Any) -> array:
        return ops.divide(self, other)

    def __rtruediv__(self, other: Any) -> array:
        return ops.divide(other, self)

    def __itruediv__(self, other: Any) -> array:
        if not self._n.dtype.is_inexact:
            raise ValueError(
                "[divide] In place division cannot cast to non-floating point type: integers stay integers. "
                "Use x = x / y, or //= for whole quotients."
            )
        self._n = ops.divide(self, other)._n
        return self  # type: ignore[return-value]

    def __floordiv__(self, other: Any) -> array:
        return ops.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> array:
        return ops.floor_divide(other, self)

    def __ifloordiv__(self, other: Any) -> array:
        self._n = ops.floor_divide(self, other)._n
        return self  # type: ignore[return-value]

    def __mod__(self, other: Any) -> array:
        return ops.remainder(self, other)

    def __rmod__(self, other: Any) -> array:
        return ops.remainder(other, self)

    def __imod__(self, other: Any) -> array:
        self._n = ops.remainder(self, other)._n
        return self  # type: ignore[return-value]

    def __pow__(self, other: Any) -> array:
        return ops.power(self, other)

    def __rpow__(self, other: Any) -> array:
        return ops.power(other, self)

    def __ipow__(self, other: Any) -> array:
        self._n = ops.power(self, other)._n
        return self  # type: ignore[return-value]

    def __matmul__(self, other: Any) -> array:
        return ops.matmul(self, other)

    def __imatmul__(self, other: Any) -> array:
        self._n = ops.matmul(self, other)._n
        return self  # type: ignore[return-value]

    def __and__(self, other: Any) -> array:
        _no_floats("bitwise and", self, other)
        return ops.bitwise_and(self, other)

    def __iand__(self, other: Any) -> array:
        _no_floats("bitwise and", self, other)
        self._n = ops.bitwise_and(self, other)._n
        return self  # type: ignore[return-value]

    def __or__(self, other: Any) -> array:
        _no_floats("bitwise or", self, other)
        return ops.bitwise_or(self, other)

    def __ior__(self, other: Any) -> array:
        _no_floats("bitwise or", self, other)
        self._n = ops.bitwise_or(self, other)._n
        return self  # type: ignore[return-value]

    def __xor__(self, other: Any) -> array:
        _no_floats("bitwise xor", self, other)
        return ops.bitwise_xor(self, other)

    def __ixor__(self, other: Any) -> array:
        _no_floats("bitwise xor", self, other)
        self._n = ops.bitwise_xor(self, other)._n
        return self  # type: ignore[return-value]

    def __lshift__(self, other: Any) -> array:
        _no_floats("left shift", self, other)
        return ops.left_shift(self, other)

    def __ilshift__(self, other: Any) -> array:
        _no_floats("left shift", self, other)
        self._n = ops.left_shift(self, other)._n
        return self  # type: ignore[return-value]

    def __rshift__(self, other: Any) -> array:
        _no_floats("right shift", self, other)
        return ops.right_shift(self, other)

    def __irshift__(self, other: Any) -> array:
        _no_floats("right shift", self, other)
        self._n = ops.right_shift(self, other)._n
        return self  # type: ignore[return-value]

    __div__ = __truediv__
    __rdiv__ = __rtruediv__

    def __eq__(self, other: object) -> Any:
        if other is None:
            raise TypeError(
                "[eq] expected an array or a number, got None. Use `is None` to ask whether there is an array."
            )
        return ops.equal(self, other) if type(other) is type(self) or comparable(other) else False

    def __ne__(self, other: object) -> Any:
        if other is None:
            raise TypeError("[ne] expected an array or a number, got None. Use `is not None` instead.")
        return ops.not_equal(self, other) if type(other) is type(self) or comparable(other) else True

    def __lt__(self, other: Any) -> array:
        return ops.less(self, other)

    def __le__(self, other: Any) -> array:
        return ops.less_equal(self, other)

    def __gt__(self, other: Any) -> array:
        return ops.greater(self, other)

    def __ge__(self, other: Any) -> array:
        return ops.greater_equal(self, other)

    def __neg__(self) -> array:
        return ops.negative(self)

    def __pos__(self) -> array:
        return ops.positive(self)

    def __abs__(self) -> array:
        return ops.abs(self)

    def __invert__(self) -> array:
        _no_floats("bitwise inversion", self)
        return ops.bitwise_invert(self)
