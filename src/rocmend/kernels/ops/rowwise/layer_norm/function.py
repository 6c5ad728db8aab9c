"""The public functions."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from rocmend.kernels.common.arguments import check_shape
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.ops.rowwise.layer_norm import OP
from rocmend.kernels.ops.rowwise.rms_norm.function import check, problem_of
from rocmend.kernels.plan_cache import cached, cached_plan, plan_of
from rocmend.kernels.select import implementation


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Normalise over the last axis: ``(x - mean(x)) / sqrt(var(x) + eps) · weight + bias``.

    Args:
        x: ``[..., n]``, float32, float16 or bfloat16.
        weight: ``[n]`` of a floating type, or None.
        bias: ``[n]`` of a floating type, or None.
        eps: Added to the variance.

    Returns:
        ``[..., n]`` of the type that x, the weight and (beside a weight) the bias promote to, contiguous;
        differentiable.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: reads and writes x once (reads it twice beyond 16,384 elements a row); 7 operations an element.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.layer_norm.html
    """
    if needs_gradient(x, weight, bias):
        return differentiable(
            lambda x, weight, bias: (_normed((x, weight, bias), float(eps)), (x, weight, bias)),
            lambda grad, x, weight, bias: layer_norm_backward(grad, x, weight, bias, eps),
            x, weight, bias,
        )  # fmt: skip
    return _normed((x, weight, bias), float(eps))


def layer_norm_backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the gradients of ``layer_norm`` for x, the weight and the bias (None without them).

    Args:
        grad: ``[..., n]``, gradient of the output.
        x: As given to ``layer_norm``.
        weight: As given to ``layer_norm``.
        bias: As given to ``layer_norm``.
        eps: As given to ``layer_norm``.

    Returns:
        Gradients of the types of what they belong to. Sums are in fp32 and in a fixed order.

    Raises:
        UsageError: Shapes that do not fit.

    Cost: reads grad and x once, writes one tensor like x.
    """
    return _gradients((grad, x, weight, bias), float(eps))


@cached_plan
def _normed(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Callable[..., Tensor]:
    """Check the arguments and plan calls with such tensors."""
    check("layer_norm", x, weight, bias)
    call = plan_of(implementation(OP, x.device, problem_of(x, weight, bias)), x, weight, bias, eps)
    return lambda x, weight, bias: call(x, weight, bias, eps)


@cached
def _gradients(
    grad: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor | None, ...]:
    """Check arguments and compute the gradients."""
    check("layer_norm_backward", x, weight, bias)
    check_shape("layer_norm_backward", x.shape, grad=grad)
    return implementation(OP, x.device, problem_of(x, weight, bias, backward=True))(grad, x, weight, bias, eps)
