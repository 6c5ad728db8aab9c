"""The reference."""

from __future__ import annotations

import torch

from rocmend.kernels.common import formats
from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments, Weights


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
    """Dequantize and multiply, in float64 where x is."""
    from rocmend.kernels.ops.moe.gather_qmm.function import arguments

    weights = Weights(w, scales, biases)
    options = (transpose, group_size, bits, mode, sorted_indices)
    return run(arguments(x, weights, None, lhs_indices, rhs_indices, options))


def gather_qmm_swiglu(
    x: torch.Tensor,
    gate: Weights,
    up: Weights,
    lhs_indices: torch.Tensor | None = None,
    rhs_indices: torch.Tensor | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    sorted_indices: bool = False,
) -> torch.Tensor:
    """Dequantize, multiply and gate, in float64 where x is."""
    from rocmend.kernels.ops.moe.gather_qmm.function import arguments

    options = (True, group_size, bits, mode, sorted_indices)
    return run(arguments(x, Weights(*gate), Weights(*up), lhs_indices, rhs_indices, options))


def run(a: Arguments) -> torch.Tensor:
    """Multiply pair by pair; the half types in fp32."""
    wide = torch.float64 if a.x.dtype == torch.float64 else torch.float32
    x = a.x.reshape(-1, *a.x.shape[-2:]).to(wide)
    lhs = a.pairs.lhs
    if lhs is None:
        lhs = torch.arange(a.pairs.count, device=x.device) // a.pairs.divisor
    rhs = a.pairs.rhs.long()
    out = torch.empty((a.pairs.count, x.shape[1], a.n), dtype=wide, device=x.device)
    for expert in range(a.experts):
        mine = (rhs == expert).nonzero()[:, 0]
        if len(mine) == 0:
            continue
        product = x[lhs[mine].long()] @ _matrix(a.weights, expert, a, wide)
        if a.up is not None:
            product = torch.nn.functional.silu(product) * (x[lhs[mine].long()] @ _matrix(a.up, expert, a, wide))
        out[mine] = product
    return out.reshape(*a.pairs.shape, x.shape[1], a.n).to(a.dtype)


def _matrix(weights: Weights, expert: int, a: Arguments, wide: torch.dtype) -> torch.Tensor:
    """Return the matrix of an expert as ``[k, n]``."""
    words, scales = (part.flatten(0, -3)[expert] for part in (weights.words, weights.scales))
    biases = None if weights.biases is None else weights.biases.flatten(0, -3)[expert]
    if biases is not None:
        scales, biases = scales.to(wide), biases.to(wide)
    matrix = formats.dequantize(words, scales, biases, a.form, wide)
    return matrix.T if a.transpose else matrix
