"""The Triton kernels of linear attention with a decaying state ``S`` [Dv, Dk]; Mamba-2's recurrence is one of them.

Step by step: ``S = decay · S + u kᵀ``, ``y = S q``, where ``u`` is ``β (v - decay · S k)`` (delta rule) or ``dt · v``
(Mamba-2). In chunks, with G the running sum of log-decays in the chunk and S0 the state before it:

    A[t, i] = β_t exp(G_t - G_i) k_t·k_i for i < t;   U = (I + A)⁻¹ (β V) - (I + A)⁻¹ (β exp(G) K) S0ᵀ
    y_t = exp(G_t) S0 q_t + Σ_{i ≤ t} exp(G_t - G_i) (k_i·q_t) u_i
    S   = exp(G_end) S0 + Σ_i exp(G_end - G_i) u_i k_iᵀ

Source: https://arxiv.org/abs/2412.06464, https://arxiv.org/abs/2405.21060
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.language import dot, narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.tuning import config_for

# Below this many steps they are taken one by one.
LEAST_CHUNKED = 24

# exp(-40) is below fp32's resolution of anything it could be added to; a decay of 0 has no logarithm.
LEAST_LOG = tl.constexpr(-40.0)


@triton.jit
def softplus(x):
    """Return log(1 + exp(x)), accurate at both ends."""
    z = tl.exp(-tl.abs(x))
    return tl.maximum(x, 0.0) + tl.where(z < 1e-3, z * (1.0 - z * (0.5 - z * 0.33333334)), tl.log(1.0 + z))


@triton.jit
def gate_at(g_ptr, beta_ptr, a_ptr, bias_ptr, head, g_place, beta_place, ok, low, high, SSD: tl.constexpr):
    """Return the log-decay and the weight (β, or dt for Mamba-2) at places, in fp32."""
    g = tl.load(g_ptr + g_place, mask=ok, other=0.0).to(tl.float32)
    if SSD:
        dt = softplus(g + tl.load(bias_ptr + head).to(tl.float32))
        weight = tl.where(ok, tl.minimum(tl.maximum(dt, low), high), 0.0)
        log_decay = -tl.exp(tl.load(a_ptr + head).to(tl.float32)) * weight
    else:
        weight = tl.load(beta_ptr + beta_place, mask=ok, other=0.0).to(tl.float32)
        logarithm = tl.log(tl.where(g == 0.0, 1e-30, g))
        log_decay = tl.where(ok, tl.where(logarithm < LEAST_LOG, LEAST_LOG, logarithm), 0.0)
    return log_decay, weight


@triton.jit
def recurrent_kernel(
    q_ptr, k_ptr, v_ptr, g_ptr, beta_ptr, a_ptr, bias_ptr, skip_ptr, mask_ptr, state_ptr, y_ptr, new_state_ptr, T,
    low, high, q_sb, q_st, q_sh, k_sb, k_st, k_sh, v_sb, v_st, v_sh, g_sb, g_st, g_sh, b_sb, b_st, b_sh,
    HV: tl.constexpr, HK: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, DKP: tl.constexpr,
    BLOCK_V: tl.constexpr, SSD: tl.constexpr, VECTOR: tl.constexpr, HAS_STATE: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """Step by step: a few rows of one head's state a program."""
    pair = tl.program_id(0)
    b = (pair // HV).to(tl.int64)
    head = pair % HV
    hk = head // (HV // HK)
    dk = tl.arange(0, DKP)
    dv = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    in_k, in_v = dk < DK, dv < DV
    place = (pair.to(tl.int64) * DV + dv)[:, None] * DK + dk[None, :]
    inside = in_v[:, None] & in_k[None, :]
    state = tl.zeros((BLOCK_V, DKP), tl.float32)
    if HAS_STATE:
        state = tl.load(state_ptr + place, mask=inside, other=0.0).to(tl.float32)
    q_row = q_ptr + b * q_sb + hk * q_sh + dk
    k_row = k_ptr + b * k_sb + hk * k_sh + dk
    v_row = v_ptr + b * v_sb + head * v_sh + dv
    g_row = g_ptr + b * g_sb + head * g_sh
    b_row = beta_ptr
    if not SSD:
        b_row = beta_ptr + b * b_sb + head * b_sh
    y_row = y_ptr + (b * T * HV + head) * DV + dv
    for step in range(T):
        t = tl.zeros((1,), tl.int64) + step
        k = tl.load(k_row + t * k_st, mask=in_k, other=0.0).to(tl.float32)
        q = tl.load(q_row + t * q_st, mask=in_k, other=0.0).to(tl.float32)
        v = tl.load(v_row + t * v_st, mask=in_v, other=0.0).to(tl.float32)
        if SSD:
            log_decay, dt = gate_at(g_row, b_row, a_ptr, bias_ptr, head, t * g_st, t * b_st, t >= 0, low, high, True)
            new = state * tl.exp(log_decay)[:, None] + (v * dt)[:, None] * k[None, :]
        else:
            beta = tl.load(b_row + t * b_st).to(tl.float32)
            if VECTOR:
                decayed = state * tl.load(g_row + t * g_st + dk, mask=in_k, other=0.0).to(tl.float32)[None, :]
            else:
                decayed = state * tl.load(g_row + t * g_st).to(tl.float32)[:, None]
            u = (v - tl.sum(decayed * k[None, :], axis=1)) * beta
            new = decayed + u[:, None] * k[None, :]
        y = tl.sum(new * q[None, :], axis=1)
        if SSD:
            y += v * tl.load(skip_ptr + head).to(tl.float32)
        if HAS_MASK:
            seen = tl.load(mask_ptr + b * T + t) != 0
            new = tl.where(seen[:, None], new, state)
            y = tl.where(seen, y, 0.0)
        state = new
        tl.store(y_row + t * (HV * DV), narrow(y, y_ptr.dtype.element_ty), mask=in_v)
    tl.store(new_state_ptr + place, state, mask=inside)


@triton.jit
def solve_kernel(
    k_ptr, v_ptr, g_ptr, beta_ptr, mask_ptr, w_ptr, u_ptr, T, chunks, k_sb, k_st, k_sh, v_sb, v_st, v_sh, g_sb,
    g_st, g_sh, b_sb, b_st, b_sh,
    HV: tl.constexpr, HK: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, DKP: tl.constexpr, DVP: tl.constexpr,
    CHUNK: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """``(I + A)⁻¹ (β exp(G) K)`` and ``(I + A)⁻¹ (β V)`` of one chunk of one head."""
    chunk = tl.program_id(0) % chunks
    pair = tl.program_id(0) // chunks
    b = (pair // HV).to(tl.int64)
    head = pair % HV
    i = tl.arange(0, CHUNK)
    t = (chunk * CHUNK + i).to(tl.int64)
    ok = t < T
    seen = ok
    if HAS_MASK:
        seen = ok & (tl.load(mask_ptr + b * T + t, mask=ok, other=0) != 0)
    log_decay, beta = gate_at(
        g_ptr + b * g_sb + head * g_sh, beta_ptr + b * b_sb + head * b_sh, None, None, head, t * g_st, t * b_st, seen,
        0.0, 0.0, False,
    )  # fmt: skip
    total = tl.cumsum(log_decay, axis=0)
    dk = tl.arange(0, DKP)
    k_row = k_ptr + b * k_sb + (head // (HV // HK)) * k_sh
    k = tl.load(k_row + t[:, None] * k_st + dk[None, :], mask=ok[:, None] & (dk[None, :] < DK), other=0.0)
    a = dot(k, tl.trans(k), tl.zeros((CHUNK, CHUNK), tl.float32))
    below = i[:, None] > i[None, :]
    a = tl.where(below, a * beta[:, None] * tl.exp(tl.where(below, total[:, None] - total[None, :], 0.0)), 0.0)
    # Row by row: row r of the inverse is e_r - Σ_j a[r, j] · row j.
    inverse = tl.where(i[:, None] == i[None, :], 1.0, 0.0)
    for r in range(1, CHUNK):
        row = tl.sum(tl.where(i[:, None] == r, a, 0.0), axis=0)
        change = tl.sum(tl.expand_dims(row, 1) * inverse, axis=0)
        inverse = tl.where(i[:, None] == r, inverse - change[None, :], inverse)
    inverse = narrow(inverse, k_ptr.dtype.element_ty)
    far = (pair.to(tl.int64) * T + t)[:, None]
    kb = narrow(k.to(tl.float32) * (beta * tl.exp(total))[:, None], k_ptr.dtype.element_ty)
    w = dot(inverse, kb, tl.zeros((CHUNK, DKP), tl.float32))
    tl.store(w_ptr + far * DK + dk[None, :], narrow(w, w_ptr.dtype.element_ty), mask=ok[:, None] & (dk[None, :] < DK))
    dv = tl.arange(0, DVP)
    v_row = v_ptr + b * v_sb + head * v_sh
    v = tl.load(v_row + t[:, None] * v_st + dv[None, :], mask=ok[:, None] & (dv[None, :] < DV), other=0.0)
    vb = narrow(v.to(tl.float32) * beta[:, None], v_ptr.dtype.element_ty)
    u = dot(inverse, vb, tl.zeros((CHUNK, DVP), tl.float32))
    tl.store(u_ptr + far * DV + dv[None, :], narrow(u, u_ptr.dtype.element_ty), mask=ok[:, None] & (dv[None, :] < DV))


@triton.jit
def chunk_kernel(
    q_ptr, k_ptr, v_ptr, w_ptr, g_ptr, beta_ptr, a_ptr, bias_ptr, skip_ptr, mask_ptr, state_ptr, y_ptr,
    new_state_ptr, T, low, high, q_sb, q_st, q_sh, k_sb, k_st, k_sh, v_sb, v_st, v_sh, g_sb, g_st, g_sh, b_sb, b_st,
    b_sh,
    HV: tl.constexpr, HK: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, DKP: tl.constexpr,
    BLOCK_V: tl.constexpr, CHUNK: tl.constexpr, SSD: tl.constexpr, HAS_STATE: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """Chunk after chunk: a few columns of one head's state, transposed [Dk, Dv], a program.

    ``v`` is what ``solve_kernel`` made of it where the rule is the delta rule.
    """
    pair = tl.program_id(0)
    b = (pair // HV).to(tl.int64)
    head = pair % HV
    hk = head // (HV // HK)
    i = tl.arange(0, CHUNK)
    dk = tl.arange(0, DKP)
    dv = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    in_k, in_v = dk < DK, dv < DV
    place = (pair.to(tl.int64) * DV + dv)[None, :] * DK + dk[:, None]
    inside = in_k[:, None] & in_v[None, :]
    state = tl.zeros((DKP, BLOCK_V), tl.float32)
    if HAS_STATE:
        state = tl.load(state_ptr + place, mask=inside, other=0.0).to(tl.float32)
    q_row = q_ptr + b * q_sb + hk * q_sh
    k_row = k_ptr + b * k_sb + hk * k_sh
    v_row = v_ptr + b * v_sb + head * v_sh
    b_row = beta_ptr
    if not SSD:
        b_row = beta_ptr + b * b_sb + head * b_sh
    half: tl.constexpr = q_ptr.dtype.element_ty
    for start in range(0, T, CHUNK):
        t = (start + i).to(tl.int64)
        ok = t < T
        seen = ok
        if HAS_MASK:
            seen = ok & (tl.load(mask_ptr + b * T + t, mask=ok, other=0) != 0)
        log_decay, weight = gate_at(
            g_ptr + b * g_sb + head * g_sh, b_row, a_ptr, bias_ptr, head, t * g_st, t * b_st, seen, low, high, SSD
        )
        total = tl.cumsum(log_decay, axis=0)
        end = tl.sum(log_decay, axis=0)
        tile = ok[:, None] & in_k[None, :]
        v = tl.load(v_row + t[:, None] * v_st + dv[None, :], mask=ok[:, None] & in_v[None, :], other=0.0).to(tl.float32)
        before = narrow(state, half)
        if SSD:
            u = v * weight[:, None]
        else:
            w = tl.load(w_ptr + (pair.to(tl.int64) * T + t)[:, None] * DK + dk[None, :], mask=tile, other=0.0)
            u = v - dot(w, before, tl.zeros((CHUNK, BLOCK_V), tl.float32))
        q = tl.load(q_row + t[:, None] * q_st + dk[None, :], mask=tile, other=0.0)
        y = dot(q, before, tl.zeros((CHUNK, BLOCK_V), tl.float32)) * tl.exp(total)[:, None]
        k = tl.load(k_row + t[:, None] * k_st + dk[None, :], mask=tile, other=0.0)
        scores = dot(q, tl.trans(k), tl.zeros((CHUNK, CHUNK), tl.float32))
        upto = i[:, None] >= i[None, :]
        scores = tl.where(upto, scores * tl.exp(tl.where(upto, total[:, None] - total[None, :], 0.0)), 0.0)
        y = dot(narrow(scores, half), narrow(u, half), y)
        if SSD:
            y += v * tl.load(skip_ptr + head).to(tl.float32)
        if HAS_MASK:
            y = tl.where(seen[:, None], y, 0.0)
        y_place = ((b * T + t) * HV + head)[:, None] * DV + dv[None, :]
        tl.store(y_ptr + y_place, narrow(y, y_ptr.dtype.element_ty), mask=ok[:, None] & in_v[None, :])
        late = narrow(u * tl.exp(end - total)[:, None], half)
        state = dot(tl.trans(k), late, state * tl.exp(end))
    tl.store(new_state_ptr + place, state, mask=inside)


def dense(tensor: Tensor) -> Tensor:
    """Return a tensor whose last axis is dense."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def outputs(
    batch: int, times: int, heads: int, dk: int, v: Tensor, state: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Allocate y and the new state; return the old state dense."""
    y = allocate.empty((batch, times, heads, v.shape[3]), dtype=v.dtype, device=v.device)
    new_state = allocate.empty((batch, heads, v.shape[3], dk), dtype=torch.float32, device=v.device)
    return y, new_state, None if state is None else state.contiguous()


def run(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, *, state: Tensor | None = None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Launch the kernels; see ``function.gated_delta``."""
    batch, times, hk, dk = k.shape
    hv, dv = v.shape[2:]
    q, k, v = dense(q), dense(k), dense(v)
    vector = g.dim() == 4
    g = dense(g) if vector else g
    y, new_state, state = outputs(batch, times, hv, dk, v, state)
    if new_state.numel() == 0 or times == 0:
        new_state.zero_() if state is None else new_state.copy_(state)
        return y, new_state
    target = executor.target_for(v.device)
    seen = None if mask is None else mask.contiguous().view(torch.uint8)
    shape = {"HV": hv, "HK": hk, "DK": dk, "DV": dv, "DKP": next_power_of_2(dk, 16)}
    options = {"SSD": False, "HAS_STATE": state is not None, "HAS_MASK": mask is not None}
    gate_strides = (*g.stride()[:3], *beta.stride())
    kind = f"{NAMES[v.dtype]}-{'wide' if max(dk, dv) > 128 else 'usual'}"
    config = config_for("gated_delta", "chunk", kind, target)
    if vector or times < config.get("least_times", LEAST_CHUNKED):
        config = config_for("gated_delta", "recurrent", "step" if times == 1 else "steps", target)
        rows = min(int(config.constants["BLOCK_V"]), next_power_of_2(dv))
        launch(
            recurrent_kernel,
            (batch * hv, -(-dv // rows)),
            (
                q, k, v, g, beta, None, None, None, seen, state, y, new_state, times, 0.0, 0.0,
                *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *gate_strides,
            ),
            {**shape, **options, "VECTOR": vector, "BLOCK_V": rows},
            config,
        )  # fmt: skip
        return y, new_state
    solve = config_for("gated_delta", "solve", kind, target)
    chunk = int(config.constants["CHUNK"])
    chunks = -(-times // chunk)
    w = allocate.empty((batch, hv, times, dk), dtype=v.dtype, device=v.device)
    u = allocate.empty((batch, hv, times, dv), dtype=v.dtype, device=v.device)
    launch(
        solve_kernel,
        (batch * hv * chunks,),
        (
            k, v, g, beta, seen, w, u, times, chunks, *k.stride()[:3], *v.stride()[:3], *gate_strides,
        ),
        {**shape, "DVP": next_power_of_2(dv, 16), "CHUNK": chunk, "HAS_MASK": mask is not None},
        solve,
    )  # fmt: skip
    columns = min(int(config.constants["BLOCK_V"]), next_power_of_2(dv, 16))
    launch(
        chunk_kernel,
        (batch * hv, -(-dv // columns)),
        (
            q, k, u, w, g, beta, None, None, None, seen, state, y, new_state, times, 0.0, 0.0,
            *q.stride()[:3], *k.stride()[:3], hv * times * dv, dv, times * dv, *gate_strides,
        ),
        {**shape, **options, "BLOCK_V": columns, "CHUNK": chunk},
        config,
    )  # fmt: skip
    return y, new_state
