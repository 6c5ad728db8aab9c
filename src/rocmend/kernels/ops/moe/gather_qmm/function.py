"""The public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.autograd import differentiable
from rocmend.kernels.common.checks import check_quantized
from rocmend.kernels.common.formats import as_int32, format_of
from rocmend.kernels.common.pairs import pairs_of
from rocmend.kernels.ops.moe.gather_qmm import OP
from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments, Weights
from rocmend.kernels.ops.moe.gather_qmm.problem import problem_of
from rocmend.kernels.plan_cache import cached_plan
from rocmend.kernels.select import implementation

Options = tuple[bool, int | None, int | None, str, bool]
Triple = tuple[torch.Tensor, torch.Tensor] | tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


def gather_qmm(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None = None,
    lhs_indices: torch.Tensor | None = None,
    rhs_indices: torch.Tensor | None = None,
    transpose: bool = True,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    sorted_indices: bool = False,
) -> torch.Tensor:
    """Multiply chosen matrices with chosen quantized ones: ``out[i] = x[lhs[i]] @ dequantize(w[rhs[i]]).T``.

    The mixture of experts: ``rhs_indices`` are the experts of each token. With few rows each row is computed by itself
    and only the chosen experts' weights are read; with many, rows of one expert are brought together on the device and
    its weights read once for a tile of them. Nothing is read by the host: the call can be captured in a graph.

    Args:
        x: ``[..., m, k]``, float32, float16 or bfloat16.
        w: Words ``[..., n, k * bits / 32]`` (transpose) or ``[..., k, n * bits / 32]``, uint32 or int32.
        scales: ``[..., n, k / group_size]`` or ``[..., k, n / group_size]``; of a floating type (affine) or uint8.
        biases: Like the scales for affine, else None.
        lhs_indices: Which matrix of x, counted through its batch axes; None for each in turn.
        rhs_indices: Which matrix of w. Both are broadcast, and must be in range.
        transpose: Whether w is multiplied transposed.
        group_size: 32, 64 (default) or 128 for affine; 32 for mxfp4 and mxfp8; 16 for nvfp4.
        bits: 1, 2, 3, 4 (default), 5, 6 or 8 for affine; 4 or 8 as the mode says.
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
        sorted_indices: ``rhs_indices`` ascend (and lhs_indices are None): spares the ordering on the device.

    Returns:
        ``[indices..., m, n]`` of the type that x and the scales have in common (affine) or of x. Where x requires a
        gradient, so does the result; the weights have none.

    Raises:
        UsageError: Shapes, types or parameters that do not fit.

    A row of x whose numbers are not all finite, or reach 2¹¹² (5e33), may give NaN throughout; with few rows, numbers
    from 2⁶³ (9.2e18) on may be taken as infinite with mxfp4 or K of more than 2048. Elsewhere, with 4 or 8 bits,
    numbers of x may be rounded: by less than 2⁻¹⁸ of the largest of 256 that stand together, or of 2⁻⁹⁶.

    Cost: reads the chosen experts' weights once for each tile of rows; ``2 * rows * n * k`` operations.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.gather_qmm.html
    """
    options = (transpose, group_size, bits, mode, sorted_indices)
    if torch.is_grad_enabled() and x.requires_grad:
        a = arguments(x.detach(), Weights(w, scales, biases), None, lhs_indices, rhs_indices, options)
        out: torch.Tensor = differentiable(lambda _: (call(a), ()), lambda grad: (_gradient(grad, a),), x)
        return out
    return _multiply(x, (w, scales, biases), None, lhs_indices, rhs_indices, options)


def _gradient(grad: torch.Tensor, a: Arguments) -> torch.Tensor:
    """Multiply the gradient of each pair with its expert's weights, and add up what came from one matrix of x."""
    m, k = a.x.shape[-2:]
    pairs = a.pairs._replace(shape=(a.pairs.count,), lhs=None, divisor=1)
    back = a._replace(x=grad.reshape(-1, m, a.n), pairs=pairs, transpose=not a.transpose)
    of_x = a.pairs.add_up(call(back).reshape(-1, m, k), a.x.shape[:-2].numel())
    return of_x.reshape(a.x.shape).to(a.x.dtype)


def gather_qmm_swiglu(
    x: torch.Tensor,
    gate: Triple,
    up: Triple,
    lhs_indices: torch.Tensor | None = None,
    rhs_indices: torch.Tensor | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    sorted_indices: bool = False,
) -> torch.Tensor:
    """Multiply with two quantized matrices of each chosen expert and gate: ``silu(x @ gate.T) * (x @ up.T)``.

    In one launch where there are few rows; neither product is rounded or stored. It has no gradient: that is for
    ``gather_qmm``.

    Args:
        x: ``[..., m, k]``, float32, float16 or bfloat16.
        gate: Words ``[..., n, k * bits / 32]``, scales and biases (None but for affine).
        up: Like ``gate``.
        lhs_indices: As in ``gather_qmm``.
        rhs_indices: As in ``gather_qmm``.
        group_size: As in ``gather_qmm``.
        bits: As in ``gather_qmm``.
        mode: As in ``gather_qmm``.
        sorted_indices: As in ``gather_qmm``.

    Returns:
        ``[indices..., m, n]``.

    Raises:
        UsageError: Shapes, types or parameters that do not fit, or x requires a gradient.

    Cost: reads both matrices of the chosen experts once for each tile of rows; ``4 * rows * n * k`` operations.
    """
    if torch.is_grad_enabled() and x.requires_grad:
        raise UsageError(
            "gather_qmm_swiglu",
            "expected x without a gradient.",
            next_step="Train with two calls of gather_qmm and a gate between them.",
        )
    options = (True, group_size, bits, mode, sorted_indices)
    return _multiply(x, gate, up, lhs_indices, rhs_indices, options)


def _multiply(
    x: torch.Tensor,
    weights: Triple,
    up: Triple | None,
    lhs: torch.Tensor | None,
    rhs: torch.Tensor | None,
    options: Options,
) -> torch.Tensor:
    tensors = (x, lhs, rhs, *weights) if up is None else (x, lhs, rhs, *weights, *up)
    counts = (len(weights), 0 if up is None else len(up))
    out: torch.Tensor = _product(tensors, counts, options)
    return out


@cached_plan
def _product(
    x: torch.Tensor, lhs: torch.Tensor | None, rhs: torch.Tensor | None, *more: Any
) -> Callable[..., torch.Tensor]:
    """Check the arguments and plan calls with such tensors.

    Args:
        x: See ``gather_qmm``.
        lhs: Likewise.
        rhs: Likewise.
        more: The weights, the second ones, how many tensors these are, and the options.
    """
    *tensors, (first, second), options = more

    def up_of(tensors: Sequence[Any]) -> Any:
        return tensors[first:] if second else None

    run = _plan(x, tuple(tensors[:first]), up_of(tuple(tensors)), lhs, rhs, options)

    def call(
        x: torch.Tensor, lhs: torch.Tensor | None, rhs: torch.Tensor | None, *tensors: torch.Tensor | None
    ) -> torch.Tensor:
        return run(x, tensors[:first], up_of(tensors), lhs, rhs)

    return call


def _plan(
    x: torch.Tensor,
    weights: Triple,
    up: Triple | None,
    lhs: torch.Tensor | None,
    rhs: torch.Tensor | None,
    options: Options,
) -> Callable[..., torch.Tensor]:
    """Check the arguments and plan calls like this one."""

    def whole(
        x: torch.Tensor, weights: Triple, up: Triple | None, lhs: torch.Tensor | None, rhs: torch.Tensor | None
    ) -> torch.Tensor:
        return run(arguments(x, Weights(*weights), None if up is None else Weights(*up), lhs, rhs, options))

    a = arguments(x, Weights(*weights), None if up is None else Weights(*up), lhs, rhs, options)
    run: Callable[[Arguments], torch.Tensor] = implementation(OP, a.x.device, problem_of(a))
    plan_call = getattr(run, "plan_call", None)  # the reference plans nothing
    return (plan_call and plan_call(a, lhs, rhs, whole)) or whole


def call(a: Arguments) -> torch.Tensor:
    """Choose an implementation and call it."""
    out: torch.Tensor = implementation(OP, a.x.device, problem_of(a))(a)
    return out


def arguments(
    x: torch.Tensor,
    weights: Weights,
    up: Weights | None,
    lhs: torch.Tensor | None,
    rhs: torch.Tensor | None,
    options: Options,
) -> Arguments:
    """Check arguments and bring them into one form.

    Raises:
        UsageError: Shapes, types or parameters that do not fit.
    """
    op = "gather_qmm" if up is None else "gather_qmm_swiglu"
    transpose, group_size, bits, mode, ordered = options
    form = format_of(op, mode, bits, group_size)
    for quantized in (weights, *(() if up is None else (up,))):
        check_quantized(op, quantized.words, quantized.scales, quantized.biases, form)
    if up is not None and (up.words.shape != weights.words.shape or up.scales.dtype != weights.scales.dtype):
        raise UsageError(op, "expected gate and up of one shape and type.")
    if not x.dtype.is_floating_point or x.dim() < 2:
        raise UsageError(op, f"expected x with at least 2 axes, of a floating type, got {tuple(x.shape)} {x.dtype}.")
    inner = form.columns(weights.words.shape[-1]) if transpose else weights.words.shape[-2]
    if x.shape[-1] != inner:
        raise UsageError(
            op,
            f"expected x with a last axis of {inner}, got {tuple(x.shape)}.",
            why=f"The words have the shape {tuple(weights.words.shape)} and transpose is {transpose}.",
        )
    pairs = pairs_of(op, tuple(x.shape[:-2]), tuple(weights.words.shape[:-2]), lhs, rhs, x.device)
    dtype = torch.promote_types(x.dtype, weights.scales.dtype) if form.affine else x.dtype
    words = weights._replace(words=as_int32(weights.words))
    other = None if up is None else up._replace(words=as_int32(up.words))
    # Sorted experts are of use only where rows of x follow the same order.
    return Arguments(x, words, other, pairs, form, transpose, ordered and lhs is None, dtype)
