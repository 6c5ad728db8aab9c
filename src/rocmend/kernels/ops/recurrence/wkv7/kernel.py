"""The Triton kernel of RWKV-7's recurrence: ``S = S diag(w) + v kᵀ + (S a) bᵀ``, ``y = S r``, step by step."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.tuning import config_for


@triton.jit
def wkv7_kernel(
    r_ptr, w_ptr, k_ptr, v_ptr, a_ptr, b_ptr, state_ptr, y_ptr, new_state_ptr, T, H,
    D: tl.constexpr, DP: tl.constexpr, BLOCK_V: tl.constexpr, HAS_STATE: tl.constexpr,
):  # fmt: skip
    """A few rows of one head's state a program."""
    pair = tl.program_id(0)
    batch = (pair // H).to(tl.int64)
    head = pair % H
    dk = tl.arange(0, DP)
    dv = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    in_k, in_v = dk < D, dv < D
    place = (pair.to(tl.int64) * D + dv)[:, None] * D + dk[None, :]
    inside = in_v[:, None] & in_k[None, :]
    state = tl.zeros((BLOCK_V, DP), tl.float32)
    if HAS_STATE:
        state = tl.load(state_ptr + place, mask=inside, other=0.0).to(tl.float32)
    for step in range(T):
        row = ((batch * T + step) * H + head) * D
        r = tl.load(r_ptr + row + dk, mask=in_k, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + row + dk, mask=in_k, other=0.0).to(tl.float32)
        k = tl.load(k_ptr + row + dk, mask=in_k, other=0.0).to(tl.float32)
        a = tl.load(a_ptr + row + dk, mask=in_k, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + row + dk, mask=in_k, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + row + dv, mask=in_v, other=0.0).to(tl.float32)
        turned = tl.sum(state * a[None, :], axis=1)
        state = state * w[None, :] + v[:, None] * k[None, :] + turned[:, None] * b[None, :]
        tl.store(y_ptr + row + dv, narrow(tl.sum(state * r[None, :], axis=1), y_ptr.dtype.element_ty), mask=in_v)
    tl.store(new_state_ptr + place, state, mask=inside)


def run(
    r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, *, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Launch the kernel; see ``function.wkv7``."""
    batch, times, heads, dim = r.shape
    y = allocate.empty(r.shape, dtype=r.dtype, device=r.device)
    new_state = allocate.empty((batch, heads, dim, dim), dtype=torch.float32, device=r.device)
    config = config_for("wkv7", "recurrent", "*", executor.target_for(r.device))
    rows = min(int(config.constants["BLOCK_V"]), next_power_of_2(dim))
    launch(
        wkv7_kernel,
        (batch * heads, -(-dim // rows)),
        (
            *(tensor.contiguous() for tensor in (r, w, k, v, a, b)),
            None if state is None else state.contiguous(), y, new_state, times, heads,
        ),
        {"D": dim, "DP": next_power_of_2(dim, 16), "BLOCK_V": rows, "HAS_STATE": state is not None},
        config,
    )  # fmt: skip
    return y, new_state
