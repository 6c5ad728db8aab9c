"""The public functions."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_floating, check_shape
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rowwise.rms_norm import OP, Problem
from rocmend.kernels.plan_cache import cached, cached_plan, plan_of
from rocmend.kernels.select import implementation


def problem_of(x: Tensor, *affine: Tensor | None, backward: bool = False) -> Problem:
    """Return the problem of x ``[..., n]`` with a weight, and for ``layer_norm`` a bias, or None."""
    n = x.shape[-1]
    vectors = [vector for vector in affine if vector is not None]
    promoted = any(vector.dtype != x.dtype for vector in vectors)
    return Problem(NAMES[x.dtype], x.numel() // n if n else 0, n, bool(vectors), promoted, backward)


def check(op: str, x: Tensor, weight: Tensor | None, bias: Tensor | None = None) -> None:
    """Check x against the weight and the bias.

    Raises:
        UsageError: Shapes or types that do not fit; ``op`` opens the message.
    """
    if x.dim() == 0:
        raise UsageError(op, "expected x with at least 1 axis, got a scalar.")
    check_floating(op, x=x, weight=weight, bias=bias)
    check_shape(op, x.shape[-1:], weight=weight, bias=bias)


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Normalise over the last axis: ``x / sqrt(mean(x²) + eps) · weight``.

    Args:
        x: ``[..., n]``, float32, float16 or bfloat16.
        weight: ``[n]`` of a floating type, or None.
        eps: Added to the mean of squares.

    Returns:
        ``[..., n]`` of the type that x and the weight promote to, contiguous; differentiable.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: reads and writes x once (reads it twice beyond 16,384 elements a row); 4 operations an element.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.rms_norm.html
    """
    if needs_gradient(x, weight):
        return differentiable(
            lambda x, weight: (_normed((x, weight), float(eps)), (x, weight)),
            lambda grad, x, weight: rms_norm_backward(grad, x, weight, eps),
            x, weight,
        )  # fmt: skip
    return _normed((x, weight), float(eps))


def rms_norm_backward(grad: Tensor, x: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of ``rms_norm`` for x and for the weight (None without one).

    Args:
        grad: ``[..., n]``, gradient of the output.
        x: As given to ``rms_norm``.
        weight: As given to ``rms_norm``.
        eps: As given to ``rms_norm``.

    Returns:
        Gradients of the types of x and of the weight. Sums are in fp32 and in a fixed order: two runs agree bit by bit.

    Raises:
        UsageError: Shapes that do not fit.

    Cost: reads grad and x once, writes one tensor like x.
    """
    return _gradients((grad, x, weight), float(eps))


@cached_plan
def _normed(x: Tensor, weight: Tensor | None, eps: float) -> Callable[..., Tensor]:
    """Check the arguments and plan calls with such tensors."""
    check("rms_norm", x, weight)
    call = plan_of(implementation(OP, x.device, problem_of(x, weight)), x, weight, eps)
    return lambda x, weight: call(x, weight, eps)


@cached
def _gradients(grad: Tensor, x: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor | None]:
    """Check arguments and compute the gradients."""
    check("rms_norm_backward", x, weight)
    check_shape("rms_norm_backward", x.shape, grad=grad)
    return implementation(OP, x.device, problem_of(x, weight, backward=True))(grad, x, weight, eps)
