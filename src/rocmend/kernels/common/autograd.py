"""Gradients of public functions: one ``torch.autograd.Function`` for all ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, forward: Callable[..., Any], backward: Callable[..., Any], *inputs: Tensor | None) -> Any:
        out, saved = forward(*inputs)
        ctx.save_for_backward(*saved)
        ctx.set_materialize_grads(False)
        ctx.of_inputs = backward
        return out

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]  # torch's
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return None, None, *ctx.of_inputs(*grads, *ctx.saved_tensors)


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Return whether autograd must record a call with these tensors."""
    if torch.is_grad_enabled():
        for tensor in tensors:  # any() would take twice as long
            if tensor is not None and tensor.requires_grad:
                return True
    return False


def differentiable(
    forward: Callable[..., tuple[Any, Sequence[Tensor | None]]],
    backward: Callable[..., Sequence[Tensor | None]],
    *inputs: Tensor | None,
) -> Any:
    """Compute a function and record it for autograd.

    Args:
        forward: Called with the inputs; returns the output, or a tuple of several, and the tensors to save.
        backward: Called with the gradient of each output (None where nothing depends on it) and the saved tensors;
            returns the gradient of each input, or None.
        *inputs: The tensors, or None.
    """
    return _Differentiable.apply(forward, backward, *inputs)  # type: ignore[no-untyped-call]  # torch's
