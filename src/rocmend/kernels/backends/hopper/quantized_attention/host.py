"""Plan the launches of ``quantized_attention`` on Hopper."""

from __future__ import annotations

import torch

from rocmend.kernels.backends.hopper.quantized_attention.streams import GROUP_SIZE
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.attention.attention_decode.host import choose_splits, early_merge
from rocmend.kernels.ops.attention.quantized_attention import NAME, Problem, rows_of, shape_class
from rocmend.kernels.ops.attention.quantized_attention.asked import Asked, Computes, Mask, Quantized
from rocmend.kernels.ops.attention.quantized_attention.host import kernel, merging_of, workspace_of
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for


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
    config = config_for(NAME, "streams", shape_class(problem), target)
    tile = 16 * 4 * GROUP_SIZE // problem.head_dim * int(config["num_warps"])
    per_unit = config["programs_per_unit" if problem.bits == 4 else "programs_per_unit_8bit"]
    return choose_splits(config, target, problem.batch * problem.kv_heads, problem.keys, tile, per_unit)


def plan_streams(asked: Asked) -> Computes | None:
    """Cut the cache into parts, and plan the launches."""
    groups = asked.problem.head_dim // GROUP_SIZE
    if not all(_fits(one, asked.q.dtype, groups) for one in (asked.k, asked.v)):
        return None
    # Gluon's kernels are for NVIDIA alone: nothing else is to load them.
    from rocmend.kernels.backends.hopper.quantized_attention.kernels.streams import streams_kernel

    q, k, v, scale, _, lengths, problem, target, output = asked
    splits = splits_of(problem, target)
    config = config_for(NAME, "streams", shape_class(problem), target)
    rows = rows_of(problem)
    early = splits > 1 and early_merge(NAME, target)
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
    split = LaunchPlan(streams_kernel, grid, constants, config, numbers, types)
    merged, workspace = merging_of(asked, splits), workspace_of(asked, splits)

    def computes(
        q: torch.Tensor, k: Quantized, v: Quantized, _mask: Mask, lengths: torch.Tensor | None
    ) -> torch.Tensor:
        out = output()
        if merged is None:
            split((q, *k, *v, lengths, None, out))
            return out
        some = workspace()
        split((q, *k, *v, lengths, some, out))
        merged((some, None, lengths, out))
        return out

    return computes


streams = kernel(plan_streams, aligned=True)
