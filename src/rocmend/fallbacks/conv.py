"""``safe_conv``: convolutions go through a path that works on this device."""

from __future__ import annotations

import atexit
from typing import Any

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.fallbacks.choice import Choice, choose, try_path
from rocmend.fallbacks.convolution import FLOATING, convolution, convolution_backward
from rocmend.fallbacks.dispatch import Override, call_original, without_vendor_library
from rocmend.fallbacks.handle import Choices, Handle, device_type_of, mode_of

MODES = ("auto", "native", "aten", "gemm")
"""``native`` is whatever PyTorch chooses (MIOpen or cuDNN), ``aten`` PyTorch's own kernels, ``gemm`` ours."""

_OPERATOR = torch.ops.aten._convolution  # noqa: SLF001  the operator's name
_COMPOSITE = "CompositeExplicitAutograd"


class SafeConv(Handle):
    """Convolutions routed by a mode, until restored. Made by ``safe_conv``; a context manager.

    Attributes:
        mode: auto, native, aten or gemm.
        device_type: The type of device whose convolutions are routed.
        workspace_bytes: Bytes of columns at a time on the gemm path; None for a share of what is free.
    """

    def __init__(self, mode: str, device_type: str, workspace_bytes: int | None) -> None:
        self.workspace_bytes = workspace_bytes
        super().__init__(mode, device_type)

    def path(self, source: Tensor) -> str:
        """Return the path that a convolution over ``source`` takes: native, aten or gemm."""
        if source.dtype not in FLOATING or source.ndim not in {3, 4, 5}:
            return "native"
        return self.mode if self.mode != "auto" else choices.find(source.device, source.dtype, source.ndim - 2).path


def safe_conv(mode: str | None = None, *, device: str | None = None, workspace_bytes: int | None = None) -> SafeConv:
    """Route convolutions through a path that works on this device, from now on or for a ``with`` block.

    Args:
        mode: ``auto`` tries PyTorch's native path once for each dtype and rank, in a child process with a time limit,
            and where it fails takes the fastest path that works; ``native``, ``aten`` and ``gemm`` name a path. None or
            ``auto`` give way to the environment's ``ROCMEND_SAFE_CONV``.
        device: Type of device, ``cuda`` (AMD GPUs too) or ``cpu``; None for the GPU where PyTorch sees one.
        workspace_bytes: Bytes of columns at a time on the gemm path; None for a share of what is free.

    Returns:
        A handle: ``.restore()`` or leaving its ``with`` block puts everything back.

    Raises:
        UsageError: The mode, the device type or the number of bytes is not one that there is.
    """
    mode = mode_of("safe_conv", mode, MODES, "ROCMEND_SAFE_CONV")
    device_type = device_type_of("safe_conv", device)
    if workspace_bytes is not None and workspace_bytes < 1:
        raise UsageError("safe_conv", f"expected workspace_bytes from 1, got {workspace_bytes}.")
    return SafeConv(mode, device_type, workspace_bytes)


def _choose(device: torch.device, dtype: torch.dtype, rank: int) -> Choice:
    name = str(dtype).removeprefix("torch.")
    paths = ("native", "aten", "gemm") if device.type == "cuda" else ("native", "gemm")
    subject = ("conv", name, str(rank))
    return choose(f"conv{rank}d {name} on {device}", paths, lambda path: try_path(device, subject, path), fastest=True)


choices = Choices(_choose, lambda *_: "native")


def settle() -> None:
    """Have autograd's threads finish with our kernels, which are Python, before the interpreter ends under them.

    A backward pass returns a moment before its thread has let go of the last kernel; a thread that wants the
    interpreter while that is being taken down aborts the process. A pass of native kernels through the same thread
    ends after that.
    """
    if not torch.cuda.is_initialized():
        return
    for index in range(torch.cuda.device_count()):
        if torch.cuda.memory_reserved(index):
            leaf = torch.ones(1, device=f"cuda:{index}", requires_grad=True)
            torch.autograd.grad(leaf * 2, leaf)


def _forward(source: Tensor, weight: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
    """Stand for ``aten::_convolution``, to which every convolution comes."""
    handle = SafeConv.deciding(source)
    path = handle.path(source) if handle else "native"
    if handle is not None and path == "gemm":
        return convolution(source, weight, bias, *rest[:6], limit_bytes=handle.workspace_bytes)
    if path == "aten":
        rest = (*rest[:8], False, *rest[9:])  # cudnn_enabled
    result: Tensor = call_original(_OPERATOR.default, _COMPOSITE, source, weight, bias, *rest)
    return result


def _backward(
    gradient: Tensor, source: Tensor, weight: Tensor, *rest: Any
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Stand for ``aten::convolution_backward``."""
    handle = SafeConv.deciding(source)
    path = handle.path(source) if handle else "native"
    if handle is not None and path == "gemm":
        return convolution_backward(gradient, source, weight, *rest, limit_bytes=handle.workspace_bytes)
    operator = torch.ops.aten.convolution_backward.default
    found: tuple[Tensor | None, Tensor | None, Tensor | None]
    if path == "aten":
        with without_vendor_library():
            found = call_original(operator, _COMPOSITE, gradient, source, weight, *rest)
    else:
        found = call_original(operator, _COMPOSITE, gradient, source, weight, *rest)
    return found


atexit.register(settle)
SafeConv.override = Override({"_convolution": _forward, "convolution_backward": _backward})
