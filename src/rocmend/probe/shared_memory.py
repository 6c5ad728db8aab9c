"""Host memory that the GPU's kernels reach directly, taken from the runtime that torch has loaded.

Source: hipHostMalloc and hipHostGetDevicePointer in the HIP runtime API, cudaHostAlloc in the CUDA runtime API.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmend.probe.case import SkipProbe

if TYPE_CHECKING:
    import torch

_MAPPED = 0x2
_HIP_COHERENT = 0x40000000  # fine-grained: both sides see each other's writes


class SharedBlock:
    """A block of float32 in mapped (under HIP: fine-grained) host memory.

    Args:
        count: Number of elements.
        device: The GPU that is to reach it.

    Raises:
        SkipProbe: The runtime's library is not loaded as a file of its own.
        RuntimeError: The runtime refuses the memory.
    """

    def __init__(self, count: int, device: torch.device) -> None:
        self.count = count
        self.device = device
        self._library, prefix = _runtime()
        self._free = getattr(self._library, f"{prefix}HostFree" if prefix == "hip" else f"{prefix}FreeHost")
        self._host = ctypes.c_void_p()
        allocate = getattr(self._library, "hipHostMalloc" if prefix == "hip" else "cudaHostAlloc")
        flags = _MAPPED | (_HIP_COHERENT if prefix == "hip" else 0)
        self._call(allocate, ctypes.byref(self._host), ctypes.c_size_t(count * 4), ctypes.c_uint(flags))
        self._pointer = ctypes.c_void_p()
        get = getattr(self._library, f"{prefix}HostGetDevicePointer")
        self._call(get, ctypes.byref(self._pointer), self._host, ctypes.c_uint(0))

    @staticmethod
    def _call(function: Any, *arguments: Any) -> None:
        status = function(*arguments)
        if status:
            raise RuntimeError(f"{function.__name__} returned error {status}")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where the block is, as the GPU sees it."""
        return {"shape": (self.count,), "typestr": "<f4", "data": (self._pointer.value, False), "version": 2}

    def on_device(self) -> torch.Tensor:
        """Return the block as a tensor of the device, without a copy."""
        import torch

        return torch.as_tensor(self, device=self.device)

    def write(self, values: torch.Tensor) -> None:
        """Write the values from the CPU's side."""
        ctypes.memmove(self._host, values.contiguous().data_ptr(), self.count * 4)

    def read(self) -> torch.Tensor:
        """Return a copy, read from the CPU's side."""
        import torch

        copied = torch.empty(self.count)
        ctypes.memmove(copied.data_ptr(), self._host, self.count * 4)
        return copied

    def free(self) -> None:
        """Give the block back."""
        self._call(self._free, self._host)


def _runtime() -> tuple[ctypes.CDLL, str]:
    """Return the GPU runtime that this process has loaded, and the prefix of its functions."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    for name, prefix in (("libamdhip64", "hip"), ("libcudart", "cuda")):
        found = re.search(rf"\s(/\S*{name}[^/\s]*\.so[^/\s]*)", maps)
        if found:
            return ctypes.CDLL(found.group(1)), prefix
    raise SkipProbe("the GPU runtime is not loaded as a library of its own")
