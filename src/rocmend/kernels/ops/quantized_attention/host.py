"""Launch the Triton kernels."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.attention_decode.host import (
    choose_splits,
    cut_rows,
    mask_arguments,
    merge,
    power_of_two,
    uses_matrix,
    workspaces,
)
from rocmend.kernels.ops.quantized_attention import Problem, shape_class
from rocmend.kernels.ops.quantized_attention.kernel import quantized_kernel
from rocmend.kernels.tuning import config_for

Quantized = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _dense(quantized: Quantized) -> Quantized:
    """Return words, scales and biases with dense rows, scales and biases of the same strides."""
    words, scales, biases = quantized
    words = words.view(torch.int32) if words.dtype == torch.uint32 else words
    words = words if words.stride(-1) == 1 else words.contiguous()
    if scales.stride(-1) != 1 or scales.stride() != biases.stride():
        scales, biases = scales.contiguous(), biases.contiguous()
    return words, scales, biases


def run(
    q: torch.Tensor,
    k: Quantized,
    v: Quantized,
    scale: float,
    mask: torch.Tensor | str | None = None,
    group_size: int = 64,
    bits: int = 8,
    lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """Launch the kernels; see ``function.quantized_attention``."""
    batch, heads, queries, dim = q.shape
    (kw, ks, kb), (vw, vs, vb) = _dense(k), _dense(v)
    kv_heads, keys, value_dim = kw.shape[1], kw.shape[2], vw.shape[3] * 32 // bits
    out = allocate.empty((batch, heads, queries, value_dim), dtype=q.dtype, device=q.device)
    if out.numel() == 0 or keys == 0:
        return out.zero_()
    q = q if q.stride(-1) == 1 else q.contiguous()
    problem = Problem(NAMES[q.dtype], batch, heads, kv_heads, queries, keys, dim, value_dim, bits, group_size)
    target = executor.target_for(q.device)
    rows = heads // kv_heads * queries
    matrix = uses_matrix(target, problem.dtype, rows)
    config = config_for("quantized_attention", "split" if matrix else "split_vector", shape_class(problem), target)
    matrix = matrix and bool(config.get("matrix", 1))
    tile, row_blocks = cut_rows(rows, int(config.get("most_rows", 16)), matrix=matrix)
    programs = batch * kv_heads * row_blocks
    splits = choose_splits(config, target, programs, keys, int(config.constants["BLOCK_N"]))
    values, strides, kind = mask_arguments(mask, (batch, heads, queries, keys))
    rows_total = batch * heads * queries
    acc, ml = workspaces(rows_total, splits, value_dim, q.device)
    constants: dict[str, object] = {
        "KV": kv_heads, "GROUP": heads // kv_heads, "D": dim, "DV": value_dim, "DG": power_of_two(dim // group_size),
        "DVG": power_of_two(value_dim // group_size), "GROUP_SIZE": group_size, "BITS": bits, "ROWS": tile,
        "DOT": matrix, "CAUSAL": isinstance(mask, str), "MASK": kind, "LENGTHS": lengths is not None,
        "SPLIT": splits > 1,
    }  # fmt: skip
    launch(
        quantized_kernel,
        (splits * batch * kv_heads, row_blocks),
        (
            q, kw, ks, kb, vw, vs, vb, values, lengths, acc, ml, out, float(scale), keys, splits, rows_total, queries,
            *q.stride()[:3], *kw.stride()[:3], *ks.stride()[:3], *vw.stride()[:3], *vs.stride()[:3], *strides,
        ),
        constants,
        config,
    )  # fmt: skip
    if splits > 1:
        merge("quantized_attention", acc, ml, None, lengths, out, splits, target)
    return out
