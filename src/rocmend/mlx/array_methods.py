"""What ``array`` can do beside computing: its size, its value in Python, iteration, copies, exchange with others."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx import evaluate
from rocmend.mlx.array_functions import ArrayFunctions
from rocmend.mlx.array_operators import ArrayOperators
from rocmend.mlx.exchange import buffer_of, lent, numpy_of, torch_of, values_of
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from types import ModuleType

    import torch

    from rocmend.mlx.array import array
    from rocmend.mlx.dtypes import Dtype

__all__ = ["ArrayIterator", "ArrayMethods"]


class ArrayIterator:
    """The elements of an array along its first axis, as they were when the iteration began."""

    def __init__(self, whole: array) -> None:
        self.whole = whole.__copy__()
        self.index = 0

    def __next__(self) -> array:
        if self.index >= self.whole._n.shape[0]:
            raise StopIteration
        self.index += 1
        return self.whole[self.index - 1]

    def __iter__(self) -> ArrayIterator:
        return self


class ArrayMethods(ArrayOperators, ArrayFunctions):
    """The base of ``array``."""

    __slots__ = ()

    # -- shape and type

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._n.shape

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        return self._n.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._n.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self._n.shape)

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return self._n.dtype.size

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return prod(self._n.shape) * self._n.dtype.size

    # -- the value in Python

    def item(self) -> Any:
        """Return the only element as a Python number.

        Raises:
            ValueError: there is not exactly one element.
        """
        node = self._n
        if prod(node.shape) != 1:
            raise ValueError("[convert] Only length-1 arrays can be converted to Python scalars.")
        value = evaluate.host_value(node).item()
        return value % (1 << (node.dtype.size * 8)) if node.dtype.is_unsigned else value

    def tolist(self) -> Any:
        """Return the elements as Python numbers in nested lists; a number for an array of no axes."""
        return values_of(self._n, evaluate.value(self._n))

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        node = self._n
        if node.shape or node.dtype.is_inexact or node.dtype.name == "bool_":
            raise TypeError("Only 0-dimensional integer arrays can be converted to an index.")
        return int(self.item())

    def __bytes__(self) -> bytes:
        return self._numpy().tobytes()

    def __repr__(self) -> str:
        return ops.text_of(self._n)

    def __format__(self, spec: str) -> str:
        if not self._n.shape:
            return format(self.item(), spec)
        if spec:
            raise TypeError("unsupported format string passed to mx.array.__format__: format its elements instead.")
        return repr(self)

    # -- elements

    def __len__(self) -> int:
        if not self._n.shape:
            raise TypeError("len() 0-dimensional array.")
        return self._n.shape[0]

    def __iter__(self) -> ArrayIterator:
        if not self._n.shape:
            raise TypeError("iter() 0-dimensional array.")
        return ArrayIterator(self)  # type: ignore[arg-type]

    def __getitem__(self, index: Any) -> array:
        return ops.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        ops.setitem(self, index, value)

    @property
    def at(self) -> Any:
        """Updates that add up where an index comes twice: ``x.at[index].add(value)``."""
        return ops.ArrayAt(self)

    def __getstate__(self) -> tuple[Any, int]:
        if self._n.dtype.numpy is None:
            return ops.view(self, ops.uint16)._numpy(), self._n.dtype.index
        return self._numpy(), self._n.dtype.index

    # -- exchange

    def _numpy(self) -> Any:
        return numpy_of(evaluate.value(self._n), self._n.dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy as np

        whole = self._numpy()
        if dtype is None or whole.dtype == np.dtype(dtype):
            return whole.copy() if copy else lent(whole, self)
        if copy is False:
            raise ValueError("[array] converting to another type needs a copy, which copy=False forbids.")
        return whole.astype(dtype)

    def _buffer(self) -> tuple[Any, bool]:
        """Return an object that lends the array's memory, and whether it calls int16 what is bfloat16."""
        return buffer_of(evaluate.value(self._n), self._n.dtype, self)

    def __buffer__(self, flags: int) -> memoryview:
        # Python 3.12 and later ask for this; where recording is in C, every version has the one of C
        whole, foreign = self._buffer()
        if foreign:
            raise BufferError("bfloat16 has no name in Python's buffers; view the array as int16.")
        return memoryview(whole)

    def _torch(self) -> torch.Tensor:
        return torch_of(evaluate.value(self._n), self._n.dtype)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        whole = self._torch()
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if tuple(dl_device) != (1, 0) or copy is False:
                raise BufferError(f"Cannot export the array to the DLPack device {dl_device!r}; it is elsewhere.")
            whole = whole.cpu()
        if copy:
            whole = whole.clone()
        return whole.__dlpack__() if whole.device.type == "cpu" else whole.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self._torch().__dlpack_device__()
        return int(kind), int(index)

    def __array_namespace__(self, api_version: str | None = None) -> ModuleType:
        """Return the module with the functions of the Python array API."""
        return ops.core
