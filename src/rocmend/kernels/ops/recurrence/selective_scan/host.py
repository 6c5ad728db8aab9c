"""Launch the Triton kernels."""

from __future__ import annotations

from typing import NamedTuple

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.recurrence.selective_scan.kernel import backward_kernel, carry_kernel, scan_kernel
from rocmend.kernels.tuning import config_for


class Gradients(NamedTuple):
    """Gradients of the inputs, in their order and types; ``d`` is None where there was none."""

    x: torch.Tensor
    dt: torch.Tensor
    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor
    d: torch.Tensor | None
    state: torch.Tensor


def _sizes(n: int, block: int, channels: int) -> tuple[dict[str, object], int]:
    """Return the tile as constants and the number of blocks of channels."""
    return {"N": n, "NP": max(1 << max(n - 1, 0).bit_length(), 1), "BLOCK_D": block}, -(-channels // block)


def run(
    x: torch.Tensor,
    dt: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    d: torch.Tensor | None = None,
    *,
    state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Launch the kernels; see ``function.selective_scan``."""
    y, new_state, _ = forward(x, dt, a, b, c, d, state)
    return y, new_state


def forward(
    x: torch.Tensor,
    dt: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    d: torch.Tensor | None,
    state: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
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
            scan_kernel,
            grid,
            (x, dt, a, b, c, None, None, None, starts, sums, times, channels, chunks, chunk, *strides),
            {**tile, "HAS_STATE": False, "HAS_SKIP": False, "OUTPUT": False, "ENDS": True},
            config,
        )
        launch(
            carry_kernel,
            (batch, blocks),
            (starts, sums, a, state, new_state, channels, chunks),
            {**tile, "HAS_STATE": state is not None},
            config,
        )
    launch(
        scan_kernel,
        grid,
        (x, dt, a, b, c, d, starts, y, new_state, None, times, channels, chunks, chunk, *strides),
        {**tile, "HAS_STATE": used, "HAS_SKIP": d is not None, "OUTPUT": True, "ENDS": chunks == 1},
        config,
    )
    return y, new_state, starts if chunks > 1 else None


def _only_skip(y: torch.Tensor, x: torch.Tensor, d: torch.Tensor | None) -> torch.Tensor:
    """A state of no size: what is left is ``D x``."""
    return y.zero_() if d is None else y.copy_(x.float() * d.float())


def run_gradients(
    x: torch.Tensor,
    dt: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    d: torch.Tensor | None,
    state: torch.Tensor | None,
    grad: torch.Tensor,
    state_grad: torch.Tensor | None,
) -> Gradients:
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

    def room(*shape: int) -> torch.Tensor:
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
