"""The public function."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.common.pairs import Pairs, pairs_of
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.moe.gather_mm import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


class Arguments(NamedTuple):
    """Arguments that were checked.

    Args:
        a: ``[matrices, m, k]``, contiguous.
        b: ``[experts, k, n]``, of any strides.
        pairs: Which matrix of a meets which of b.
        ordered: Whether the experts of the pairs ascend.
    """

    a: Tensor
    b: Tensor
    pairs: Pairs
    ordered: bool


def gather_mm(
    a: Tensor, b: Tensor, lhs_indices: Tensor | None = None, rhs_indices: Tensor | None = None, *,
    sorted_indices: bool = False,
) -> Tensor:  # fmt: skip
    """Multiply chosen matrices with chosen ones: ``out[i] = a[lhs[i]] @ b[rhs[i]]``.

    Args:
        a: ``[..., m, k]``, float32, float16 or bfloat16.
        b: ``[..., k, n]`` of the type of a; the last two axes may be transposed without a copy.
        lhs_indices: Which matrix of a, counted through its batch axes; None for each in turn.
        rhs_indices: Which matrix of b. Both are broadcast, and must be in range.
        sorted_indices: ``rhs_indices`` ascend (and lhs_indices are None): spares the ordering on the device.

    Returns:
        ``[indices..., m, n]``.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: reads the chosen matrices of b once for each tile of rows; ``2 * rows * n * k`` operations.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.gather_mm.html
    """
    return _product((a, b, lhs_indices, rhs_indices), sorted_indices)


@cached
def _product(
    a: Tensor, b: Tensor, lhs_indices: Tensor | None, rhs_indices: Tensor | None, sorted_indices: bool
) -> Tensor:
    """Check arguments and compute."""
    given = arguments(a, b, lhs_indices, rhs_indices, ordered=sorted_indices)
    if b.requires_grad and torch.is_grad_enabled():
        raise UsageError("gather_mm", "expected b without a gradient; only a can have a gradient.")
    out = _differentiable(given) if needs_gradient(a) else _call(given)
    return out.reshape(*given.pairs.shape, *out.shape[1:])


def arguments(a: Tensor, b: Tensor, lhs: Tensor | None, rhs: Tensor | None, *, ordered: bool) -> Arguments:
    """Check arguments and bring them into one form.

    Raises:
        UsageError: Shapes or types that do not fit.
    """
    if a.dim() < 2 or b.dim() < 2:
        raise UsageError("gather_mm", f"expected at least 2 axes each, got {a.dim()} and {b.dim()}.")
    if a.dtype != b.dtype or not a.dtype.is_floating_point:
        raise UsageError("gather_mm", f"expected a and b of one floating type, got {a.dtype} and {b.dtype}.")
    if a.shape[-1] != b.shape[-2]:
        raise UsageError(
            "gather_mm",
            f"expected the last axis of a to be the last but one of b, got {a.shape[-1]} and {b.shape[-2]}.",
        )
    pairs = pairs_of("gather_mm", tuple(a.shape[:-2]), tuple(b.shape[:-2]), lhs, rhs, a.device)
    flat_a = a.contiguous().reshape(-1, *a.shape[-2:]) if a.numel() else a.reshape(a.shape[:-2].numel(), *a.shape[-2:])
    flat_b = b if b.dim() == 3 else b.reshape(b.shape[:-2].numel(), *b.shape[-2:])
    return Arguments(flat_a, flat_b, pairs, ordered and lhs is None)


def _call(given: Arguments) -> Tensor:
    """Choose an implementation and call it."""
    (_, m, k), (experts, _, n) = given.a.shape, given.b.shape
    problem = Problem(NAMES[given.a.dtype], given.pairs.count, m, n, k, experts)
    return implementation(OP, given.a.device, problem)(given)


def _differentiable(given: Arguments) -> Tensor:
    """Multiply, with a gradient for a."""
    a, plain = given.a, given._replace(a=given.a.detach(), b=given.b.detach())

    def backward(grad: Tensor) -> tuple[Tensor]:
        """Multiply the gradient of each pair with its matrix transposed, and add up what came from one matrix of a."""
        pairs = plain.pairs._replace(lhs=None, divisor=1)
        of_pairs = _call(Arguments(grad.contiguous(), plain.b.transpose(1, 2), pairs, plain.ordered))
        return (plain.pairs.add_up(of_pairs, a.shape[0]).to(a.dtype),)

    return differentiable(lambda _: (_call(plain), ()), backward, a)
