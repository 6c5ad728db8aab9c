"""What the kernels are given: constants and strides that the forward and backward launches share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from rocmend.kernels import executor
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention import Problem, shape_class, split
from rocmend.kernels.tuning import Config, config_for

LOG2E = 1.4426950408889634
KINDS = {"none": 0, "causal": 0, "boolean": 1, "additive": 2}
# An offset within a tile is a row or column number below this times a stride.
TILE = 1024
# A second piece of 16 columns gave wrong values and illegal accesses on an H200 under Triton 3.6, for dimensions of 48
# (32 and 16) and 272 (256 and 16); of 80 it did not, but that is no proof.
# Pieces of 32 and more passed the suite there where loads are asynchronous: unaligned tensors are computed in one.
NVIDIA_PIECE = 32


class Options(NamedTuple):
    """The options of a call, as the kernels take them.

    Args:
        mask: The mask tensor expanded to [B, H, L, S] with strides of 0, or None.
        mask_strides: Its strides, 0 without one.
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


def record(kernel: str, problem: Problem, device: torch.device) -> Config:
    """Return the tuning record of a kernel."""
    return config_for("attention", kernel, shape_class(problem), executor.target_for(device))


def least_piece(tensors: Sequence[torch.Tensor], vendor: str) -> int:
    """Return how many columns the second piece of a head dimension must have; see ``split``."""
    if vendor != "nvidia":
        return 16
    aligned = all(
        one.stride(3) == 1 and one.storage_offset() % 8 == 0 and not any(stride % 16 for stride in one.stride()[:3])
        for one in tensors
    )
    return NVIDIA_PIECE if aligned else TILE


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
) -> Options:
    """Return a call's options for the kernels."""
    shape = (*q.shape[:3], k.shape[2])
    tensor = mask if isinstance(mask, torch.Tensor) else None
    kind = 0 if tensor is None else 1 if tensor.dtype == torch.bool else 2
    if tensor is not None:
        tensor = (tensor.view(torch.uint8) if kind == 1 else tensor.detach()).expand(shape)
    strides = (0, 0, 0, 0) if tensor is None else tensor.stride()
    least = least_piece((q, k, v, *others), executor.target_for(q.device).vendor)
    d1, d2 = split(q.shape[3], least)
    v1, v2 = split(v.shape[3], least)
    widest = max(stride for one in (q, k, v, *others) for stride in one.stride()[2:])
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
