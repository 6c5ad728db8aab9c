"""Arrays of other libraries: numpy, torch, DLPack, buffers. Both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils.dlpack import from_dlpack

from rocmend.mlx import dtypes
from rocmend.mlx.dtypes import Dtype, complex64, of_storage

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["buffer_of", "lent", "numpy_of", "tensor_from", "torch_of", "values_of"]

_UNSIGNED = {
    torch.uint16: (dtypes.uint16, torch.int16),
    torch.uint32: (dtypes.uint32, torch.int32),
    torch.uint64: (dtypes.uint64, torch.int64),
}
_OF_NUMPY = {dtype.numpy: dtype for dtype in dtypes.DTYPES if dtype.numpy}


def tensor_from(value: Any) -> tuple[torch.Tensor, Dtype]:
    """Return a tensor that shares the memory of an array where it can, and the type of its elements.

    Raises:
        ValueError: ``value`` is no array, or its elements are of a type that has no counterpart.
    """
    if isinstance(value, torch.Tensor):
        return _stored(value.detach())
    kind = type(value)
    if kind.__module__ == "numpy" or hasattr(value, "__array_interface__"):
        return _from_numpy(value)
    if hasattr(value, "__dlpack__"):
        return _stored(from_dlpack(value))
    if hasattr(value, "__array__"):
        import numpy as np

        return _from_numpy(np.asarray(value))
    try:
        view = memoryview(value)
    except TypeError:
        raise ValueError(f"Invalid type {kind.__name__} received in array initialization.") from None
    import numpy as np

    return _from_numpy(np.asarray(view))


def _stored(tensor: torch.Tensor) -> tuple[torch.Tensor, Dtype]:
    if tensor.dtype in _UNSIGNED:
        dtype, storage = _UNSIGNED[tensor.dtype]
        return tensor.view(storage), dtype
    if tensor.dtype is torch.complex128:
        return tensor.to(torch.complex64), complex64
    try:
        return tensor.resolve_conj().resolve_neg(), of_storage(tensor.dtype)
    except KeyError:
        raise ValueError(
            f"[array] elements of type {tensor.dtype} have no counterpart here; convert them before."
        ) from None


def _from_numpy(value: Any) -> tuple[torch.Tensor, Dtype]:
    import numpy as np

    whole = np.asarray(value)
    name = whole.dtype.name
    if name == "bfloat16":  # of the ml_dtypes package
        return _shared(whole.view(np.int16)).view(torch.bfloat16), dtypes.bfloat16
    if name == "complex128":
        return _shared(whole.astype(np.complex64)), complex64
    dtype = _OF_NUMPY.get(name)
    if dtype is None or not whole.dtype.isnative:
        raise ValueError(f"[array] elements of numpy type {whole.dtype} have no counterpart here; convert them before.")
    if dtype.is_unsigned:
        whole = whole.view(f"int{dtype.size * 8}")
    return _shared(whole), dtype


def _shared(whole: Any) -> torch.Tensor:
    """Return a tensor of a numpy array's memory; of a copy where torch cannot take the layout."""
    import numpy as np

    if not whole.flags.writeable or any(stride < 0 or stride % whole.itemsize for stride in whole.strides):
        whole = np.array(whole, order="C")
    return torch.from_numpy(whole) if whole.ndim else torch.from_numpy(whole.reshape(1)).reshape(())


# -- the other way


def numpy_of(tensor: torch.Tensor, dtype: Dtype) -> Any:
    """Return a numpy array of a tensor's memory (of a copy if it is on a GPU).

    Raises:
        TypeError: numpy has no such type (bfloat16).
    """
    if dtype.numpy is None:
        raise TypeError(f"[array] {dtype.name} arrays cannot be converted to NumPy; convert to float32 before.")
    whole = tensor.detach().resolve_conj().cpu().numpy()
    return whole.view(dtype.numpy) if dtype.is_unsigned else whole


class _Lent:
    """Memory that numpy looks at, and the array that it belongs to."""

    def __init__(self, whole: Any, owner: Any) -> None:
        self.__array_interface__ = whole.__array_interface__
        self.kept = (whole, owner)


def lent(whole: Any, owner: Any) -> Any:
    """Return a numpy array of the same memory that keeps ``owner`` alive as long as it lives."""
    import numpy as np

    return np.asarray(_Lent(whole, owner))


def buffer_of(tensor: torch.Tensor, dtype: Dtype, owner: Any) -> tuple[Any, bool]:
    """Return a numpy array of the memory that keeps ``owner`` alive, and whether bfloat16 is called int16 in it."""
    import numpy as np

    if dtype is dtypes.bfloat16:
        return lent(tensor.detach().cpu().view(torch.int16).numpy(), owner), True
    whole = lent(numpy_of(tensor, dtype), owner)
    wide = {"int64": np.longlong, "uint64": np.ulonglong}.get(dtype.name)  # q and Q, whose size no platform changes
    return (whole if wide is None else whole.view(wide)), False


def torch_of(tensor: torch.Tensor, dtype: Dtype) -> torch.Tensor:
    """Return a tensor of the same memory whose type says that unsigned integers are unsigned."""
    kind = getattr(torch, dtype.name) if dtype.is_unsigned else None
    whole = tensor.detach().resolve_conj()
    return whole if kind is None else whole.view(kind)


def values_of(node: Node, tensor: torch.Tensor) -> Any:
    """Return a tensor's values as Python numbers, in nested lists."""
    whole = tensor.tolist()
    return unsigned(whole, 1 << (node.dtype.size * 8)) if node.dtype.is_unsigned else whole


def unsigned(values: Any, modulus: int) -> Any:
    """Return nested lists of integers with the negative ones brought into ``0 … modulus - 1``."""
    if isinstance(values, list):
        return [unsigned(value, modulus) for value in values]
    return values % modulus
