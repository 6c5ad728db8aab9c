"""The public functions."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_floating
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.common.rows import as_rows, problem_of
from rocmend.kernels.ops.rowwise.cross_entropy import OP
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


def cross_entropy(logits: Tensor, targets: Tensor, *, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """Return ``logsumexp(logits) - logits[target]`` for each row.

    With label smoothing ``s``: ``(1 - s)`` times that, plus ``s`` times the mean of ``logsumexp(logits) - logits``.

    Args:
        logits: ``[..., classes]``, float32, float16 or bfloat16.
        targets: ``[...]`` of an integer type; a class beyond the logits gives NaN.
        ignore_index: Rows with this target have loss 0 and no gradient.
        label_smoothing: From 0 to 1.

    Returns:
        ``[...]`` losses in fp32; differentiable for the logits.

    Raises:
        UsageError: Shapes, types or options that do not fit.

    Cost: reads the logits once; the gradient reads them once more and writes one tensor like them.
    """
    return _losses((logits, targets), ignore_index, label_smoothing)


@cached
def _losses(logits: Tensor, targets: Tensor, ignore_index: int, label_smoothing: float) -> Tensor:
    """Check arguments and compute."""
    _check("cross_entropy", logits, targets, label_smoothing)
    if targets.numel() == 0:
        return logits.new_empty(targets.shape, dtype=torch.float32)
    rows, flat = as_rows(logits), targets.reshape(-1).contiguous()
    options = (ignore_index, label_smoothing)
    if needs_gradient(logits):
        losses = differentiable(
            lambda x, targets: ((found := _forward((x, targets), *options))[0], (x, targets, found[1])),
            lambda grad, x, targets, levels: (_backward((grad, x, targets, levels), *options), None),
            rows, flat,
        )  # fmt: skip
    else:
        losses, _ = _forward((rows, flat), *options)
    return losses.view(targets.shape)


def cross_entropy_backward(
    grad: Tensor, logits: Tensor, targets: Tensor, *, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """Return the gradient of the logits, given that of the losses.

    Args:
        grad: ``[...]``, gradient of the losses.
        logits: As given to ``cross_entropy``.
        targets: As given to ``cross_entropy``.
        ignore_index: As given to ``cross_entropy``.
        label_smoothing: As given to ``cross_entropy``.

    Returns:
        ``[..., classes]`` of the logits' type.

    Raises:
        UsageError: Shapes, types or options that do not fit.

    Cost: reads the logits twice, writes one tensor like them; autograd keeps the sums and reads them once.
    """
    return _gradient((grad, logits, targets), ignore_index, label_smoothing)


@cached
def _gradient(grad: Tensor, logits: Tensor, targets: Tensor, ignore_index: int, label_smoothing: float) -> Tensor:
    """Check arguments and compute the gradient."""
    _check("cross_entropy_backward", logits, targets, label_smoothing)
    if targets.numel() == 0:
        return torch.empty_like(logits)
    rows, flat = as_rows(logits), targets.reshape(-1).contiguous()
    _, levels = _forward((rows, flat), ignore_index, label_smoothing)
    return _backward((grad.reshape(-1), rows, flat, levels), ignore_index, label_smoothing).view(logits.shape)


def _check(op: str, logits: Tensor, targets: Tensor, smoothing: float) -> None:
    check_floating(op, logits=logits)
    if logits.dim() == 0 or logits.shape[:-1] != targets.shape:
        raise UsageError(
            op, f"expected targets of the logits' leading axes, got {tuple(logits.shape)} and {tuple(targets.shape)}."
        )
    if targets.dtype.is_floating_point or targets.dtype == torch.bool:
        raise UsageError(op, f"expected targets of an integer type, got {targets.dtype}.")
    if logits.shape[-1] == 0:
        raise UsageError(op, "expected at least 1 class, got none.")
    if not 0.0 <= smoothing <= 1.0:
        raise UsageError(op, f"expected label_smoothing from 0 to 1, got {smoothing}.")


@cached
def _forward(x: Tensor, targets: Tensor, ignore_index: int, smoothing: float) -> tuple[Tensor, Tensor]:
    return implementation(OP, x.device, problem_of(x))(x, targets, ignore_index, smoothing)


@cached
def _backward(grad: Tensor, x: Tensor, targets: Tensor, levels: Tensor, ignore_index: int, smoothing: float) -> Tensor:
    run = implementation(OP, x.device, problem_of(x, backward=True))
    return run(grad.contiguous(), x, targets, levels, ignore_index, smoothing)
