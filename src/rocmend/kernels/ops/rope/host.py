"""Launch the Triton kernel."""

from __future__ import annotations

import functools
import math

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.common.plans import Plan, carry_out, plan
from rocmend.kernels.common.rows import ceil_div, power_of_2
from rocmend.kernels.ops.rope import Options
from rocmend.kernels.ops.rope.kernel import rope_kernel
from rocmend.kernels.tuning import Config, config_for


def _as_heads(x: torch.Tensor) -> torch.Tensor:
    """Return ``[batch, heads, tokens, size]``, a view where strides allow one."""
    if x.dim() == 4:
        return x
    return x.reshape(x.shape[0], math.prod(x.shape[1:-2]), *x.shape[-2:])


def _exponent(options: Options) -> float:
    """Return the power of two that one pair's frequency stands to the next one's."""
    return 0.0 if options.base is None else -math.log2(options.base) / (options.dims // 2)


@functools.lru_cache(maxsize=4096)
def _plan(
    config: Config,
    batch: int,
    heads: int,
    others: int,
    tokens: int,
    size: int,
    options: Options,
    offset: bool,
    freqs: bool,
) -> Plan:
    per_program = min(power_of_2(max(heads, others)), config["HEADS"])
    pairs = power_of_2(options.dims // 2)
    together = min(power_of_2(tokens), max(1, config["tile"] // pairs))
    tiles = ceil_div(heads, per_program) + ceil_div(others, per_program)
    constants = {
        "HAS_OFFSET": offset, "HAS_FREQS": freqs, "HAS_SECOND": others > 0,
        "INVERSE": options.inverse, "TRADITIONAL": options.traditional, "TOKENS": together, "PAIRS": pairs,
        "REST": power_of_2(size - options.dims) if size > options.dims else 0, "HEADS": per_program,
    }  # fmt: skip
    return plan(rope_kernel, (batch * ceil_div(tokens, together) * tiles,), constants, config)


def run(
    x: torch.Tensor,
    second: torch.Tensor | None,
    offset: int | torch.Tensor,
    freqs: torch.Tensor | None,
    options: Options,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rotate x, and a second tensor with the same batch, tokens and head size, or None."""
    out = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    second_out = None if second is None else allocate.empty(second.shape, dtype=second.dtype, device=x.device)
    if x.numel() == 0 and (second is None or second.numel() == 0):
        return out, second_out
    wide = _as_heads(x)
    other = None if second is None else _as_heads(second)
    batch, heads, tokens, size = wide.shape
    others = 0 if other is None else other.shape[1]
    config = config_for("rope", "rope", "decode" if tokens < 16 else "*", executor.target_for(x.device))
    in_memory = isinstance(offset, torch.Tensor)
    carry_out(
        _plan(config, batch, heads, others, tokens, size, options, in_memory, freqs is not None),
        (
            wide, out, other, second_out, offset if in_memory else None, freqs, 0 if in_memory else offset,
            offset.stride(0) if isinstance(offset, torch.Tensor) and offset.numel() > 1 else 0,
            _exponent(options), float(options.scale), heads, others, tokens,
            *wide.stride(), *((0, 0, 0, 0) if other is None else other.stride()),
            options.dims, size, 0 if freqs is None else freqs.stride(0),
        ),
    )  # fmt: skip
    return out, second_out
