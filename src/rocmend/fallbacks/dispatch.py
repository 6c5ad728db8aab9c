"""Putting our kernels under PyTorch's operators for one device type, and taking them away again.

An override in the dispatcher stands below autograd, autocast, ``torch.func`` and compiled graphs, and above every
library: whoever calls the operator, from whatever thread and language, comes through it.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

_KEYS = {"cpu": "CPU", "cuda": "CUDA"}
"""Device type to dispatch key; AMD GPUs are ``cuda`` to PyTorch."""

DEVICE_TYPES = tuple(_KEYS)

vendor_lock = threading.Lock()


class Override:
    """Kernels for operators of ``aten``, in force for a device type as long as someone holds them.

    Args:
        kernels: Operator name to function, with the operator's own arguments.
        above_autograd: The functions are made of differentiable operators and stand in autograd's place too.
    """

    def __init__(self, kernels: Mapping[str, Callable[..., Any]], *, above_autograd: bool = False) -> None:
        self._kernels = dict(kernels)
        self._above_autograd = above_autograd
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}
        self._libraries: dict[str, Any] = {}

    def hold(self, device_type: str) -> None:
        """Put the kernels in force for a device type, unless they are."""
        with self._lock:
            self._held[device_type] = self._held.get(device_type, 0) + 1
            if self._held[device_type] == 1:
                self._libraries[device_type] = self._register(_KEYS[device_type])

    def release(self, device_type: str) -> None:
        """Let go; the last to do so takes the kernels away."""
        with self._lock:
            self._held[device_type] -= 1
            if self._held[device_type] == 0:
                self._libraries.pop(device_type)._destroy()  # noqa: SLF001  torch.library has no public end

    def _register(self, key: str) -> Any:
        library = torch.library.Library("aten", "IMPL")
        keys = (key, f"Autograd{key}") if self._above_autograd else (key,)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # PyTorch says that a kernel is overridden: that is the purpose
            for name, function in self._kernels.items():
                for one in keys:
                    library.impl(name, function, one)
        return library


def call_original(operator: Any, kernel: str, *arguments: Any, **options: Any) -> Any:
    """Call an operator's own kernel, whatever is registered over it.

    Args:
        operator: An overload, e.g. ``torch.ops.aten._convolution.default``.
        kernel: The dispatch key under which PyTorch itself registered the kernel.
        *arguments: The operator's.
        **options: The operator's.
    """
    key = getattr(torch._C.DispatchKey, kernel)  # noqa: SLF001  no public way to a kernel under an override
    return operator._op_dk(key, *arguments, **options)  # noqa: SLF001  same


@contextlib.contextmanager
def without_vendor_library() -> Iterator[None]:
    """Have PyTorch choose its own kernels instead of MIOpen's or cuDNN's; a setting of the whole process."""
    with vendor_lock:
        before = torch._C._get_cudnn_enabled()  # noqa: SLF001  the public setter may be frozen
        torch._C._set_cudnn_enabled(False)  # noqa: SLF001  same
        try:
            yield
        finally:
            torch._C._set_cudnn_enabled(before)  # noqa: SLF001  same
