"""Launch the Triton kernel."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.attention.rope import Options
from rocmend.kernels.ops.attention.rope.kernel import rope_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for


def _as_heads(x: torch.Tensor) -> torch.Tensor:
    """Return ``[batch, heads, tokens, size]``, a view where strides allow it."""
    if x.dim() == 4:
        return x
    return x.reshape(x.shape[0], math.prod(x.shape[1:-2]), *x.shape[-2:])


def _exponent(options: Options) -> float:
    """Return the power of two by which a pair's frequency differs from the next pair's."""
    return 0.0 if options.base is None else -math.log2(options.base) / (options.dims // 2)


@Planner
def run(
    x: torch.Tensor,
    second: torch.Tensor | None,
    offset: int | torch.Tensor,
    freqs: torch.Tensor | None,
    options: Options,
) -> Callable[..., tuple[torch.Tensor, torch.Tensor | None]]:
    """Plan to rotate x, and a second tensor with the same batch, tokens and head size, or None."""
    output = allocate.Output(x.shape, x.dtype, x.device)
    second_output = None if second is None else allocate.Output(second.shape, second.dtype, second.device)
    if x.numel() == 0 and (second is None or second.numel() == 0):
        return lambda *_: (output(), None if second_output is None else second_output())
    wide = _as_heads(x)
    other = None if second is None else _as_heads(second)
    batch, heads, tokens, size = wide.shape
    others = 0 if other is None else other.shape[1]
    config = config_for("rope", "rope", "decode" if tokens < 16 else "*", executor.target_for(x.device))
    per_program = min(next_power_of_2(max(heads, others)), config["HEADS"])
    pairs = next_power_of_2(options.dims // 2)
    together = min(next_power_of_2(tokens), max(1, config["tile"] // pairs))
    tiles = cdiv(heads, per_program) + cdiv(others, per_program)
    four = x.dim() == 4 and (second is None or second.dim() == 4)
    in_memory = isinstance(offset, torch.Tensor)
    constants = {
        "HAS_OFFSET": in_memory, "HAS_FREQS": freqs is not None, "HAS_SECOND": others > 0,
        "INVERSE": options.inverse, "TRADITIONAL": options.traditional, "TOKENS": together, "PAIRS": pairs,
        "REST": next_power_of_2(size - options.dims) if size > options.dims else 0, "HEADS": per_program,
    }  # fmt: skip
    numbers = (
        offset.stride(0) if isinstance(offset, torch.Tensor) and offset.numel() > 1 else 0,
        _exponent(options), float(options.scale), heads, others, tokens,
        *wide.stride(), *((0, 0, 0, 0) if other is None else other.stride()),
        options.dims, size, 0 if freqs is None else freqs.stride(0),
    )  # fmt: skip
    plan = LaunchPlan(rope_kernel, (batch * cdiv(tokens, together) * tiles,), constants, config, numbers)

    def call(
        x: torch.Tensor,
        second: torch.Tensor | None,
        offset: int | torch.Tensor,
        freqs: torch.Tensor | None,
        *_: Options,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        out = output()
        second_out = None if second_output is None else second_output()
        if not four:
            x, second = _as_heads(x), None if second is None else _as_heads(second)
        if in_memory:
            plan((x, out, second, second_out, offset, freqs), (0,))  # type: ignore[arg-type]  # by in_memory
        else:
            plan((x, out, second, second_out, None, freqs), (offset,))
        return out, second_out

    return call
