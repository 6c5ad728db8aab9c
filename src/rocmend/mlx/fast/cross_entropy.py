"""Cross entropy of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.kernels.ops.rowwise.cross_entropy import reference
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.primitive import Primitive

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["cross_entropy"]


def _run(_: Node, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    if kernel_use.fits(logits):
        out: torch.Tensor = kernels.cross_entropy(logits, targets)
        return out
    return reference.cross_entropy(logits, targets).float()


def _run_back(_: Node, grad: torch.Tensor, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    plain = torch.is_grad_enabled() or not kernel_use.fits(logits)
    run = reference.cross_entropy_backward if plain else kernels.cross_entropy_backward
    out: torch.Tensor = run(grad, logits, targets)
    return out


CROSS_ENTROPY = Primitive("CrossEntropy", _run)
CROSS_ENTROPY_BACK = Primitive("CrossEntropyVJP", _run_back)


def cross_entropy(logits: Any, targets: array, *, stream: Any = None) -> array:
    """Return ``logsumexp(logits) - logits[target]`` along the last axis, computed in float32.

    Args:
        logits: ``[..., classes]`` of a floating type.
        targets: ``[...]`` integers, from 0 to below ``classes``.
        stream: where it is computed.

    Returns:
        ``[...]`` losses, float32.

    Raises:
        ValueError: shapes or types that do not fit.
    """
    logits, targets = to_array(logits), to_array(targets)
    shape = logits.shape
    if not shape:
        raise ValueError("[cross_entropy] logits must have at least 1 dimension but got input with 0 dimensions.")
    if not logits.dtype.is_float:
        raise ValueError(f"[cross_entropy] Received unsupported logits type {logits.dtype}.")
    if targets.dtype.is_inexact or targets.dtype is dtypes.bool_:
        raise ValueError(f"[cross_entropy] targets must be integer class indices but got {targets.dtype}.")
    if targets.shape != shape[:-1]:
        raise ValueError(
            f"[cross_entropy] targets shape {shape_text(targets.shape)} does not match logits shape "
            f"{shape_text(shape)} with the last axis removed."
        )
    where = stream if stream is None else as_stream(stream)
    return record(CROSS_ENTROPY, (logits._n, targets._n), shape[:-1], dtypes.float32, None, None, where)


@CROSS_ENTROPY.rule("vjp")
def _vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    logits, targets = primals
    inputs = (cotangent._n, logits._n, targets._n)
    return record(CROSS_ENTROPY_BACK, inputs, logits.shape, logits.dtype, None, None, node.stream), None
