"""The references; half types are computed in fp32 and rounded once."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from rocmend.kernels.common.reference import wide

_TWICE_ROOT = 1.5957691216057308  # 2 sqrt(2 / pi): 0.5 + 0.5 tanh(u) is sigmoid(2u)


def _value(gate: Tensor, up: Tensor, kind: str) -> Tensor:
    """Return activation(gate) · up. torch's own fp32 gelu is NaN for inf, and its gradients lose small numbers."""
    if kind == "silu":
        return functional.silu(gate) * up
    if kind == "gelu":
        return gate * (0.5 * torch.erfc(gate * -(0.5**0.5))) * up
    # The derivative of the logarithm does not cancel where the sigmoid is near 1.
    return gate * functional.logsigmoid(_TWICE_ROOT * (gate + 0.044715 * gate**3)).exp() * up


def run(gate: Tensor, up: Tensor, kind: str) -> Tensor:
    """Return activation(gate) · up."""
    return _value(wide(gate), wide(up), kind).to(gate.dtype)


def glu_backward(grad: Tensor, gate: Tensor, up: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Return the gradients of gate and up, by torch's autograd."""
    with torch.enable_grad():
        left, right = wide(gate.detach()).requires_grad_(), wide(up.detach()).requires_grad_()
        dgate, dup = torch.autograd.grad(_value(left, right, kind), (left, right), wide(grad))
    return dgate.to(gate.dtype), dup.to(up.dtype)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """Return silu(gate) · up."""
    return run(gate, up, "silu")


def geglu(gate: Tensor, up: Tensor, *, approximate: str = "none") -> Tensor:
    """Return gelu(gate) · up."""
    return run(gate, up, "gelu_tanh" if approximate == "tanh" else "gelu")
