"""The public functions."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_alike, check_floating, check_shape
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rowwise.gated_linear_unit import KINDS, OP, Problem
from rocmend.kernels.plan_cache import cached, cached_plan, plan_of
from rocmend.kernels.select import implementation


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """Return ``gate · sigmoid(gate) · up``, computed in fp32 and rounded once.

    Args:
        gate: Any shape and strides (a half of one tensor, say); float32, float16 or bfloat16.
        up: The shape and type of gate.

    Returns:
        The shape and type of gate, contiguous; differentiable.

    Raises:
        UsageError: Shapes or types that differ.

    Cost: reads gate and up once, writes one tensor like them.

    Source: https://arxiv.org/abs/2002.05202
    """
    return _gated("swiglu", gate, up, "silu")


def geglu(gate: Tensor, up: Tensor, *, approximate: str = "none") -> Tensor:
    """Return ``gelu(gate) · up``, computed in fp32 and rounded once.

    Args:
        gate: Any shape and strides; float32, float16 or bfloat16.
        up: The shape and type of gate.
        approximate: ``none`` for the error function, ``tanh`` for its approximation.

    Returns:
        The shape and type of gate, contiguous; differentiable.

    Raises:
        UsageError: Shapes or types that differ, or another approximation.

    Cost: reads gate and up once, writes one tensor like them.

    Source: https://arxiv.org/abs/2002.05202
    """
    if approximate not in ("none", "tanh"):
        raise UsageError("geglu", f"expected approximate to be none or tanh, got {approximate!r}.")
    return _gated("geglu", gate, up, "gelu_tanh" if approximate == "tanh" else "gelu")


def glu_backward(grad: Tensor, gate: Tensor, up: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Return the gradients of gate and up.

    Args:
        grad: Gradient of the output.
        gate: As given to ``swiglu`` or ``geglu``.
        up: As given to ``swiglu`` or ``geglu``.
        kind: ``silu``, ``gelu`` or ``gelu_tanh``.

    Returns:
        Two tensors of the shape and type of gate.

    Raises:
        UsageError: Shapes or types that differ, or another kind.

    Cost: reads three tensors, writes two.
    """
    return _gradients((grad, gate, up), kind)


def _gated(op: str, gate: Tensor, up: Tensor, kind: str) -> Tensor:
    if needs_gradient(gate, up):
        return differentiable(
            lambda gate, up: (_product((gate, up), op, kind), (gate, up)),
            lambda grad, gate, up: glu_backward(grad, gate, up, kind),
            gate, up,
        )  # fmt: skip
    return _product((gate, up), op, kind)


def _check(op: str, gate: Tensor, up: Tensor) -> None:
    check_alike(op, gate=gate, up=up)
    check_floating(op, gate=gate)


@cached_plan
def _product(gate: Tensor, up: Tensor, op: str, kind: str) -> Callable[..., Tensor]:
    """Check the arguments and plan calls with such tensors."""
    _check(op, gate, up)
    run = implementation(OP, gate.device, Problem(NAMES[gate.dtype], gate.numel(), kind))
    call = plan_of(run, gate, up, kind)
    return lambda gate, up: call(gate, up, kind)


@cached
def _gradients(grad: Tensor, gate: Tensor, up: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Check arguments and compute the gradients."""
    _check("glu_backward", gate, up)
    if kind not in KINDS:
        raise UsageError("glu_backward", f"expected kind to be one of {', '.join(KINDS)}, got {kind!r}.")
    check_shape("glu_backward", gate.shape, grad=grad)
    problem = Problem(NAMES[gate.dtype], gate.numel(), kind, True)
    return implementation(OP, gate.device, problem)(grad, gate, up, kind)
