"""The Triton kernel."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for

Result = tuple[Tensor, Tensor]


@triton.jit
def router_kernel(
    x_ptr, scores_ptr, places_ptr, x_stride, experts, K: tl.constexpr, NORM: tl.constexpr, BLOCK: tl.constexpr,
    SLOTS: tl.constexpr,
):  # fmt: skip
    """One row a program: softmax as ``softmax`` rounds it, then one largest value after another."""
    dtype: tl.constexpr = scores_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    inside = place < experts
    x = tl.load(x_ptr + row * x_stride + place, mask=inside, other=float("-inf")).to(tl.float32)
    below = x - tl.max(x, axis=0)
    power = tl.where(inside, tl.exp(below), 0.0)
    value = narrow(power * (1.0 / tl.sum(power, axis=0)), dtype).to(tl.float32)
    # NaN is the largest, whatever its bits; the others are not negative and stand in the order of their bits. Of equal
    # ones the last comes first, as from the end of a stable sort.
    bits = tl.where(value != value, 0x7FC00000, value.to(tl.int32, bitcast=True))
    keys = tl.where(inside, (bits.to(tl.int64) << 32) | place, -1)
    slot = tl.arange(0, SLOTS)
    chosen = tl.zeros((SLOTS,), tl.int64)
    for k in tl.static_range(K):
        best = tl.max(keys, axis=0)
        chosen = tl.where(slot == K - 1 - k, best, chosen)
        keys = tl.where(keys == best, -1, keys)
    scores = (chosen >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    if NORM:
        total = narrow(tl.sum(tl.where(slot < K, scores, 0.0), axis=0), dtype).to(tl.float32)
        scores = tl.div_rn(scores, tl.zeros((SLOTS,), tl.float32) + total)
    tl.store(scores_ptr + row * K + slot, narrow(scores, dtype), mask=slot < K)
    tl.store(places_ptr + row * K + slot, chosen.to(tl.int32), mask=slot < K)


@Planner
def run(x: Tensor, k: int, *, normalise: bool) -> Callable[..., Result]:
    """Plan one launch; see ``function.router``."""
    experts = x.shape[-1]
    rows = x.numel() // experts
    shape = (*x.shape[:-1], k)
    scores_of = allocate.Output(shape, x.dtype, x.device)
    places_of = allocate.Output(shape, torch.int32, x.device)
    if rows == 0:
        return lambda *_, **__: (scores_of(), places_of())
    flat = _rows(x, rows, experts)
    constants = {"K": k, "NORM": normalise, "BLOCK": next_power_of_2(experts), "SLOTS": next_power_of_2(k)}
    config = config_for("router", "rows", "*", executor.target_for(x.device))
    plan = LaunchPlan(router_kernel, (rows,), constants, config, (flat.stride(0), experts))

    def call(x: Tensor, *_: object, **__: object) -> Result:
        scores, places = scores_of(), places_of()
        plan((_rows(x, rows, experts), scores, places))
        return scores, places

    return call


def _rows(x: Tensor, rows: int, experts: int) -> Tensor:
    flat = x.reshape(rows, experts)
    return flat if flat.stride(-1) == 1 or experts == 1 else flat.contiguous()
