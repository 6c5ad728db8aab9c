"""Plan the kernel whose wavefronts walk over keys of their own: few rows, 4 or 8 bits in groups of 64, on NVIDIA."""

from __future__ import annotations

import torch

from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.attention.attention_decode.host import choose_splits
from rocmend.kernels.ops.attention.quantized_attention import Problem, shape_class
from rocmend.kernels.ops.attention.quantized_attention.asked import Asked, Quantized
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for

DIMS = (128, 256)
MOST_ROWS = 8
"""Columns of a matrix instruction."""
GROUP_SIZE = 64


def suits(asked: Asked, *, masked: bool) -> bool:
    """Return whether the kernel takes a call; ``masked`` says whether anything is hidden but by its length."""
    problem = asked.problem
    return (
        gluon.on_target(asked.target, "quantized_attention.streams")
        and problem.dtype in ("float16", "bfloat16")
        and problem.bits in (4, 8)
        and problem.group_size == GROUP_SIZE
        and problem.head_dim == problem.value_dim
        and problem.head_dim in DIMS
        and problem.heads // problem.kv_heads * problem.queries <= MOST_ROWS
        and not masked
        and all(_fits(one, asked.q.dtype, problem.head_dim // GROUP_SIZE) for one in (asked.k, asked.v))
    )


def _fits(quantized: Quantized, dtype: torch.dtype, groups: int) -> bool:
    """Return whether words can be read by fours, and scales and biases of neighbouring keys."""
    words, scales, biases = quantized
    return (
        scales.dtype == biases.dtype == dtype
        and scales.stride(2) == groups
        and not any(stride % 8 for stride in scales.stride()[:2])
        and not any(stride % 4 for stride in words.stride()[:3])
    )


def splits_of(problem: Problem, target: Target) -> int:
    """Return into how many parts the cache is cut."""
    config = config_for("quantized_attention", "streams", shape_class(problem), target)
    tile = 16 * 4 * GROUP_SIZE // problem.head_dim * int(config["num_warps"])
    per_unit = config["programs_per_unit" if problem.bits == 4 else "programs_per_unit_8bit"]
    return choose_splits(config, target, problem.batch * problem.kv_heads, problem.keys, tile, per_unit)


def plan(asked: Asked, *, early_merge: bool) -> tuple[int, LaunchPlan]:
    """Cut the cache into parts, and plan a launch; return how many parts, and the launch.

    It takes ``q, words, scales and biases of k and of v, lengths, sums of the parts, output``.

    Args:
        asked: The call.
        early_merge: Whether the kernel that merges them is launched while they are computed.
    """
    # Gluon's kernels are for NVIDIA alone: nothing else is to load them.
    from rocmend.kernels.backends.hopper.quantized_attention.kernels.streams import streams_kernel

    q, k, v, scale, _, lengths, problem, target, _ = asked
    splits = splits_of(problem, target)
    config = config_for("quantized_attention", "streams", shape_class(problem), target)
    rows = problem.heads // problem.kv_heads * problem.queries
    early = splits > 1 and early_merge
    constants: dict[str, object] = {
        "KV": problem.kv_heads, "GROUP": problem.heads // problem.kv_heads, "D": problem.head_dim,
        "BITS": problem.bits, "WAVES": int(config["num_warps"]), "ROWS": rows, "LENGTHS": lengths is not None,
        "SPLIT": splits > 1, "PDL": early, "EARLY": bool(config.get("launch_pdl", 0)),
        "STAGES": int(config["stages" if problem.bits == 4 else "stages_8bit"]),
    }  # fmt: skip
    numbers = (
        float(scale), problem.keys, splits, asked.parts(splits) * problem.value_dim, problem.queries, *q.stride()[:3],
        *k[0].stride()[:3], *k[1].stride()[:2], *v[0].stride()[:3], *v[1].stride()[:2],
    )  # fmt: skip
    types = (None, torch.int32, None, None, torch.int32, None, None, None, torch.float32, None)
    grid = (splits * problem.batch * problem.kv_heads, 1)
    return splits, LaunchPlan(streams_kernel, grid, constants, config, numbers, types)
