"""What the kernels are given: constants and strides that the forward and backward launches share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from rocmend.kernels import executor
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention.attention import Problem, shape_class, split
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

LOG2E = 1.4426950408889634
KINDS = {"none": 0, "causal": 0, "boolean": 1, "additive": 2}
# An offset within a tile is a row or column number below this times a stride.
TILE = 1024
# Under Triton 3.6 on an H200 outputs were wrong where the second piece of the values came through registers (tensors
# not aligned to 16 bytes, or one stage): 48, 96, 160 and 272 columns, the last with an illegal access. Where it is
# copied asynchronously, 96 and 192 passed the suite.
NVIDIA_PIECE = 32


class Options(NamedTuple):
    """The options of a call, as the kernels take them.

    Args:
        mask: The mask tensor expanded to [B, H, L, S] with strides of 0, or None.
        mask_strides: Its strides, 0 without a mask.
        factor: What scores are multiplied by.
        cap: What tanh is multiplied by; both lead to units of log2.
        window: Keys that a query sees at most.
        constants: Compile-time constants.
    """

    mask: torch.Tensor | None
    mask_strides: tuple[int, ...]
    factor: float
    cap: float
    window: int
    constants: dict[str, object]


def problem_of(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | str | None, window: int | None
) -> Problem:
    """Return the part of a problem that tuning records depend on."""
    kind = mask if isinstance(mask, str) else "none" if mask is None else "additive"
    batch, heads, queries, dim = q.shape
    kv_heads, keys, dim_v = v.shape[1:]
    del k
    return Problem(NAMES[q.dtype], batch, heads, kv_heads, queries, keys, dim, dim_v, kind, window or 0)


def records(kernels: Sequence[str], problem: Problem, tensors: Sequence[torch.Tensor]) -> tuple[list[Config], int]:
    """Return the tuning records of kernels, and what the second piece of a head dimension must have at least.

    Where that makes one piece of two, the records are those of the dimension that is computed then.
    """
    target = executor.target_for(tensors[0].device)
    found = [config_for("attention", kernel, shape_class(problem), target) for kernel in kernels]
    # With mask tensors two pieces have not been run on NVIDIA.
    stages = 1 if problem.mask == "additive" else min(config.get("num_stages", 1) for config in found)
    least = least_piece(tensors, target, stages)
    wide = problem._replace(dim=sum(split(problem.dim, least)), dim_v=sum(split(problem.dim_v, least)))
    return [config_for("attention", kernel, shape_class(wide), target) for kernel in kernels], least


def least_piece(tensors: Sequence[torch.Tensor], target: Target, stages: int) -> int:
    """Return how many columns the second piece of a head dimension must have; see ``split``."""
    if target.vendor != "nvidia":
        return 16
    aligned = all(
        tensor.stride(3) == 1
        and tensor.storage_offset() % 8 == 0
        and not any(stride % 16 for stride in tensor.stride()[:3])
        for tensor in tensors
    )
    return NVIDIA_PIECE if target.name == "sm90" and aligned and stages > 1 else TILE


def options(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    others: Sequence[torch.Tensor],
    *,
    scale: float,
    mask: torch.Tensor | str | None,
    soft_cap: float | None,
    window: int | None,
    least: int,
) -> Options:
    """Return a call's options for the kernels; ``least`` as ``records`` gives it."""
    shape = (*q.shape[:3], k.shape[2])
    tensor = mask if isinstance(mask, torch.Tensor) else None
    kind = 0 if tensor is None else 1 if tensor.dtype == torch.bool else 2
    if tensor is not None:
        tensor = (tensor.view(torch.uint8) if kind == 1 else tensor.detach()).expand(shape)
    strides = (0, 0, 0, 0) if tensor is None else tensor.stride()
    d1, d2 = split(q.shape[3], least)
    v1, v2 = split(v.shape[3], least)
    widest = max(stride for tensor in (q, k, v, *others) for stride in tensor.stride()[2:])
    constants: dict[str, object] = {
        "CAUSAL": mask == "causal" if isinstance(mask, str) else False,
        "WINDOW": window is not None,
        "KIND": kind,
        "CAP": soft_cap is not None,
        "WIDE": max(widest, *strides[2:]) * TILE >= 1 << 31,
        "D1": d1,
        "D2": d2,
        "V1": v1,
        "V2": v2,
        "PAD_D": d1 + d2 != q.shape[3],
        "PAD_V": v1 + v2 != v.shape[3],
    }
    factor = scale * LOG2E if soft_cap is None else scale / soft_cap
    return Options(tensor, strides, factor, (soft_cap or 0.0) * LOG2E, window or 0, constants)
