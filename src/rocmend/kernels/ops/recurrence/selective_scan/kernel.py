"""The Triton kernels of Mamba's selective scan: ``h = exp(dt A) h + dt x B``, ``y = h C + D x``, channel by channel.

Long sequences are cut into chunks that run side by side: the first pass finds what each makes of a zero state, the
second carries states from chunk to chunk, the third runs each chunk from its true state.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.tuning import config_for


@triton.jit
def step_at(x_row, dt_row, b_row, c_row, t, ok, in_d, in_n, x_st, dt_st, b_st, c_st):
    """Return x, dt, B and C of one time in fp32; zeros (a step that changes nothing) where it is past the end."""
    here = in_d & ok
    x = tl.load(x_row + t * x_st, mask=here, other=0.0).to(tl.float32)
    dt = tl.load(dt_row + t * dt_st, mask=here, other=0.0).to(tl.float32)
    b = tl.load(b_row + t * b_st, mask=in_n & ok, other=0.0).to(tl.float32)
    c = tl.load(c_row + t * c_st, mask=in_n & ok, other=0.0).to(tl.float32)
    return x, dt, b, c


@triton.jit
def advance(state, a, x, dt, b):
    """Return the state after one step."""
    return state * tl.exp(dt[:, None] * a) + (dt * x)[:, None] * b[None, :]


@triton.jit
def scan_kernel(
    x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, skip_ptr, state_ptr, y_ptr, end_ptr, sum_ptr, T, M, chunks, chunk, x_sb,
    x_st, x_sd, dt_sb, dt_st, dt_sd, b_sb, b_st, b_sn, c_sb, c_st, c_sn,
    N: tl.constexpr, NP: tl.constexpr, BLOCK_D: tl.constexpr, HAS_STATE: tl.constexpr, HAS_SKIP: tl.constexpr,
    OUTPUT: tl.constexpr, ENDS: tl.constexpr,
):  # fmt: skip
    """Run one chunk of a few channels from its state (zero where none): outputs, or its end and the sum of its dt."""
    b = (tl.program_id(0) // chunks).to(tl.int64)
    part = tl.program_id(0) % chunks
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    n = tl.arange(0, NP)
    in_d, in_n = d < M, n < N
    inside = in_d[:, None] & in_n[None, :]
    a = tl.load(a_ptr + d[:, None] * N + n[None, :], mask=inside, other=0.0).to(tl.float32)
    place = ((b * chunks + part) * M + d)[:, None] * N + n[None, :]
    state = tl.zeros((BLOCK_D, NP), tl.float32)
    if HAS_STATE:
        state = tl.load(state_ptr + place, mask=inside, other=0.0).to(tl.float32)
    skip = tl.zeros((BLOCK_D,), tl.float32)
    if HAS_SKIP:
        skip = tl.load(skip_ptr + d, mask=in_d, other=0.0).to(tl.float32)
    x_row = x_ptr + b * x_sb + d * x_sd
    dt_row = dt_ptr + b * dt_sb + d * dt_sd
    b_row = b_ptr + b * b_sb + n * b_sn
    c_row = c_ptr + b * c_sb + n * c_sn
    y_row = y_ptr
    if OUTPUT:
        y_row = y_ptr + b * T * M + d
    total = tl.zeros((BLOCK_D,), tl.float32)
    first = part * chunk
    limit = tl.minimum(first + chunk, T)
    # Four steps are loaded at once: a store between them would hold the next loads back.
    for at in range(0, chunk, 4):
        t = tl.zeros((1,), tl.int64) + first + at
        in0, in1, in2, in3 = t < limit, t + 1 < limit, t + 2 < limit, t + 3 < limit
        x0, t0, b0, c0 = step_at(x_row, dt_row, b_row, c_row, t, in0, in_d, in_n, x_st, dt_st, b_st, c_st)
        x1, t1, b1, c1 = step_at(x_row, dt_row, b_row, c_row, t + 1, in1, in_d, in_n, x_st, dt_st, b_st, c_st)
        x2, t2, b2, c2 = step_at(x_row, dt_row, b_row, c_row, t + 2, in2, in_d, in_n, x_st, dt_st, b_st, c_st)
        x3, t3, b3, c3 = step_at(x_row, dt_row, b_row, c_row, t + 3, in3, in_d, in_n, x_st, dt_st, b_st, c_st)
        if OUTPUT:
            kind: tl.constexpr = y_ptr.dtype.element_ty
            state = advance(state, a, x0, t0, b0)
            tl.store(y_row + t * M, narrow(tl.sum(state * c0[None, :], axis=1) + skip * x0, kind), mask=in_d & in0)
            state = advance(state, a, x1, t1, b1)
            tl.store(
                y_row + (t + 1) * M, narrow(tl.sum(state * c1[None, :], axis=1) + skip * x1, kind), mask=in_d & in1
            )
            state = advance(state, a, x2, t2, b2)
            tl.store(
                y_row + (t + 2) * M, narrow(tl.sum(state * c2[None, :], axis=1) + skip * x2, kind), mask=in_d & in2
            )
            state = advance(state, a, x3, t3, b3)
            tl.store(
                y_row + (t + 3) * M, narrow(tl.sum(state * c3[None, :], axis=1) + skip * x3, kind), mask=in_d & in3
            )
        else:
            state = advance(advance(state, a, x0, t0, b0), a, x1, t1, b1)
            state = advance(advance(state, a, x2, t2, b2), a, x3, t3, b3)
            total += (t0 + t1) + (t2 + t3)
    if ENDS:
        tl.store(end_ptr + place, state, mask=inside)
    if not OUTPUT:
        tl.store(sum_ptr + (b * chunks + part) * M + d, total, mask=in_d)


@triton.jit
def carry_kernel(
    ends_ptr, sum_ptr, a_ptr, state_ptr, new_state_ptr, M, chunks,
    N: tl.constexpr, NP: tl.constexpr, BLOCK_D: tl.constexpr, HAS_STATE: tl.constexpr,
):  # fmt: skip
    """Turn the chunks' ends, each from a zero state, into the states before the chunks; the last is the new state."""
    b = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    n = tl.arange(0, NP)
    inside = (d < M)[:, None] & (n < N)[None, :]
    a = tl.load(a_ptr + d[:, None] * N + n[None, :], mask=inside, other=0.0).to(tl.float32)
    whole = (b * M + d)[:, None] * N + n[None, :]
    state = tl.zeros((BLOCK_D, NP), tl.float32)
    if HAS_STATE:
        state = tl.load(state_ptr + whole, mask=inside, other=0.0).to(tl.float32)
    for part in range(chunks):
        place = ((b * chunks + part) * M + d)[:, None] * N + n[None, :]
        end = tl.load(ends_ptr + place, mask=inside, other=0.0)
        total = tl.load(sum_ptr + (b * chunks + part) * M + d, mask=d < M, other=0.0)
        tl.store(ends_ptr + place, state, mask=inside)
        state = state * tl.exp(total[:, None] * a) + end
    tl.store(new_state_ptr + whole, state, mask=inside)


@triton.jit
def backward_kernel(
    x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, skip_ptr, starts_ptr, grad_ptr, state_grad_ptr, history_ptr, dx_ptr,
    ddt_ptr, da_ptr, db_ptr, dc_ptr, dskip_ptr, dstate_ptr, T, M, chunks, chunk, d_blocks,
    N: tl.constexpr, NP: tl.constexpr, BLOCK_D: tl.constexpr, HAS_SKIP: tl.constexpr, HAS_STATE_GRAD: tl.constexpr,
):  # fmt: skip
    """Chunk after chunk from the last: run it again, keep its states, then go back through it.

    All inputs are dense. Gradients of B and C are parts, one a block of channels; those of A and D one a batch entry.
    """
    b = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    d = block * BLOCK_D + tl.arange(0, BLOCK_D)
    n = tl.arange(0, NP)
    in_d, in_n = d < M, n < N
    inside = in_d[:, None] & in_n[None, :]
    a = tl.load(a_ptr + d[:, None] * N + n[None, :], mask=inside, other=0.0).to(tl.float32)
    skip = tl.zeros((BLOCK_D,), tl.float32)
    if HAS_SKIP:
        skip = tl.load(skip_ptr + d, mask=in_d, other=0.0).to(tl.float32)
    whole = (b * M + d)[:, None] * N + n[None, :]
    back = tl.zeros((BLOCK_D, NP), tl.float32)
    if HAS_STATE_GRAD:
        back = tl.load(state_grad_ptr + whole, mask=inside, other=0.0).to(tl.float32)
    da = tl.zeros((BLOCK_D, NP), tl.float32)
    dskip = tl.zeros((BLOCK_D,), tl.float32)
    x_row, dt_row = x_ptr + b * T * M + d, dt_ptr + b * T * M + d
    b_row, c_row = b_ptr + b * T * N + n, c_ptr + b * T * N + n
    for behind in range(chunks):
        part = chunks - 1 - behind
        first = part * chunk
        steps = tl.minimum(chunk, T - first)
        state = tl.load(starts_ptr + ((b * chunks + part) * M + d)[:, None] * N + n[None, :], mask=inside, other=0.0)
        for at in range(steps):
            t = tl.zeros((1,), tl.int64) + first + at
            # The state before each step is kept.
            tl.store(history_ptr + ((b * chunk + at) * M + d)[:, None] * N + n[None, :], state, mask=inside)
            x, dt, bt, _c = step_at(x_row, dt_row, b_row, c_row, t, t < T, in_d, in_n, M, M, N, N)
            state = advance(state, a, x, dt, bt)
        tl.debug_barrier()
        for gone in range(steps):
            at = steps - 1 - gone
            t = tl.zeros((1,), tl.int64) + first + at
            x, dt, bt, ct = step_at(x_row, dt_row, b_row, c_row, t, t < T, in_d, in_n, M, M, N, N)
            before = tl.load(history_ptr + ((b * chunk + at) * M + d)[:, None] * N + n[None, :], mask=inside, other=0.0)
            grad = tl.load(grad_ptr + (b * T + t) * M + d, mask=in_d, other=0.0).to(tl.float32)
            decay = tl.exp(dt[:, None] * a)
            now = before * decay + (dt * x)[:, None] * bt[None, :]
            back += grad[:, None] * ct[None, :]
            through = back * before * decay
            along = tl.sum(back * bt[None, :], axis=1)
            dx = along * dt + grad * skip
            ddt = along * x + tl.sum(through * a, axis=1)
            da += through * dt[:, None]
            dskip += grad * x
            place = (b * T + t) * M + d
            tl.store(dx_ptr + place, narrow(dx, dx_ptr.dtype.element_ty), mask=in_d)
            tl.store(ddt_ptr + place, narrow(ddt, ddt_ptr.dtype.element_ty), mask=in_d)
            row = ((b * d_blocks + block) * T + t) * N + n
            tl.store(db_ptr + row, tl.sum(back * (dt * x)[:, None], axis=0), mask=in_n)
            tl.store(dc_ptr + row, tl.sum(now * grad[:, None], axis=0), mask=in_n)
            back = back * decay
        tl.debug_barrier()
    tl.store(da_ptr + whole, da, mask=inside)
    tl.store(dstate_ptr + whole, back, mask=inside)
    tl.store(dskip_ptr + b * M + d, dskip, mask=in_d)


class Gradients(NamedTuple):
    """Gradients of the inputs, in their order and types; ``d`` is None where there was none."""

    x: Tensor
    dt: Tensor
    a: Tensor
    b: Tensor
    c: Tensor
    d: Tensor | None
    state: Tensor


def _sizes(n: int, block: int, channels: int) -> tuple[dict[str, object], int]:
    """Return the tile as constants and the number of blocks of channels."""
    return {"N": n, "NP": max(1 << max(n - 1, 0).bit_length(), 1), "BLOCK_D": block}, -(-channels // block)


def run(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None = None, *, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Launch the kernels; see ``function.selective_scan``."""
    y, new_state, _ = forward(x, dt, a, b, c, d, state)
    return y, new_state


def forward(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Run the scan; also return the states before the chunks, where it was cut into any."""
    batch, times, channels = x.shape
    n = a.shape[1]
    y = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    new_state = allocate.empty((batch, channels, n), dtype=torch.float32, device=x.device)
    state = None if state is None else state.contiguous()
    if times == 0 or n == 0 or new_state.numel() == 0:
        new_state.zero_() if state is None else new_state.copy_(state)
        return y if n else _only_skip(y, x, d), new_state, None
    target = executor.target_for(x.device)
    config = config_for("selective_scan", "scan", "step" if times <= 4 else "long", target)
    chunk = int(config.get("chunk", 64))
    chunks = -(-times // chunk) if times > 2 * chunk else 1
    chunk = chunk if chunks > 1 else times
    tile, blocks = _sizes(n, int(config.constants["BLOCK_D"]), channels)
    a, d = a.contiguous(), None if d is None else d.contiguous()
    strides = (*x.stride(), *dt.stride(), *b.stride(), *c.stride())
    grid = (batch * chunks, blocks)
    starts, used = state, state is not None
    if chunks > 1:
        starts, used = allocate.empty((batch, chunks, channels, n), dtype=torch.float32, device=x.device), True
        sums = allocate.empty((batch, chunks, channels), dtype=torch.float32, device=x.device)
        launch(
            scan_kernel, grid,
            (x, dt, a, b, c, None, None, None, starts, sums, times, channels, chunks, chunk, *strides),
            {**tile, "HAS_STATE": False, "HAS_SKIP": False, "OUTPUT": False, "ENDS": True}, config,
        )  # fmt: skip
        launch(
            carry_kernel, (batch, blocks), (starts, sums, a, state, new_state, channels, chunks),
            {**tile, "HAS_STATE": state is not None}, config,
        )  # fmt: skip
    launch(
        scan_kernel, grid, (x, dt, a, b, c, d, starts, y, new_state, None, times, channels, chunks, chunk, *strides),
        {**tile, "HAS_STATE": used, "HAS_SKIP": d is not None, "OUTPUT": True, "ENDS": chunks == 1}, config,
    )  # fmt: skip
    return y, new_state, starts if chunks > 1 else None


def _only_skip(y: Tensor, x: Tensor, d: Tensor | None) -> Tensor:
    """A state of no size: what is left is ``D x``."""
    return y.zero_() if d is None else y.copy_(x.float() * d.float())


def selective_scan_gradients(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, state: Tensor | None, grad: Tensor,
    state_grad: Tensor | None,
) -> Gradients:  # fmt: skip
    """Launch the backward kernels: the states before the chunks again, then back through them."""
    batch, times, channels = x.shape
    n = a.shape[1]
    x, dt, a, b, c, grad = (tensor.contiguous() for tensor in (x, dt, a, b, c, grad))
    _, _, starts = forward(x, dt, a, b, c, d, state)
    target = executor.target_for(x.device)
    chunk = int(config_for("selective_scan", "scan", "step" if times <= 4 else "long", target).get("chunk", 64))
    config = config_for("selective_scan", "backward", "*", target)
    chunks = -(-times // chunk) if times > 2 * chunk else 1
    chunk = chunk if chunks > 1 else times
    if starts is None:
        fresh = torch.zeros((batch, channels, n), dtype=torch.float32, device=x.device)
        starts = fresh if state is None else state.contiguous().float()
    tile, blocks = _sizes(n, int(config.constants["BLOCK_D"]), channels)

    def room(*shape: int) -> Tensor:
        return allocate.empty(shape, dtype=torch.float32, device=x.device)

    dx, ddt = allocate.empty_like(x), allocate.empty_like(dt)
    da, dstate, dskip = room(batch, channels, n), room(batch, channels, n), room(batch, channels)
    db, dc = room(batch, blocks, times, n), room(batch, blocks, times, n)
    history = room(batch, chunk, channels, n)
    launch(
        backward_kernel,
        (batch, blocks),
        (
            x, dt, a, b, c, None if d is None else d.contiguous(), starts, grad,
            None if state_grad is None else state_grad.contiguous(), history, dx, ddt, da, db, dc, dskip, dstate,
            times, channels, chunks, chunk, blocks,
        ),
        {**tile, "HAS_SKIP": d is not None, "HAS_STATE_GRAD": state_grad is not None},
        config,
    )  # fmt: skip
    return Gradients(
        dx, ddt, da.sum(0).to(a.dtype), db.sum(1).to(b.dtype), dc.sum(1).to(c.dtype),
        None if d is None else dskip.sum(0).to(d.dtype), dstate,
    )  # fmt: skip
