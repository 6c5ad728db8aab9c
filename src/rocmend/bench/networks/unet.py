"""The first block of Stable Diffusion's UNet on its way down, at 64x64 (an image of 512x512).

Two residual blocks that know the time step, each followed by a transformer that attends to the text, then a convolution
of stride 2 (Rombach et al., https://arxiv.org/abs/2112.10752; ``CrossAttnDownBlock2D`` in diffusers).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class _Residual(nn.Module):
    def __init__(self, channels: int, time: int, groups: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(groups, channels), nn.Conv2d(channels, channels, 3, padding=1)
        self.time = nn.Linear(time, channels)
        self.out_norm, self.out = nn.GroupNorm(groups, channels), nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        silu = nn.functional.silu
        y = self.conv(silu(self.norm(x))) + self.time(silu(time))[:, :, None, None]
        return x + self.out(silu(self.out_norm(y)))  # type: ignore[no-any-return]


class _Attention(nn.Module):
    def __init__(self, hidden: int, context: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key, self.value = (nn.Linear(context, hidden, bias=False) for _ in range(2))
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(x), self.key(context), self.value(context))
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        out: torch.Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out


class _Transformer(nn.Module):
    """Self-attention over all places, attention to the text, a gated feed-forward net."""

    def __init__(self, channels: int, context: int, heads: int, groups: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels, 1e-6)
        self.into, self.out = nn.Conv2d(channels, channels, 1), nn.Conv2d(channels, channels, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(3))
        self.own = _Attention(channels, channels, heads)
        self.text = _Attention(channels, context, heads)
        self.up, self.down = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        y = self.into(self.norm(x)).flatten(2).transpose(1, 2)
        normed = self.norms[0](y)
        y = y + self.own(normed, normed)
        y = y + self.text(self.norms[1](y), context)
        value, gate = self.up(self.norms[2](y)).chunk(2, -1)
        y = y + self.down(value * nn.functional.gelu(gate))
        return x + self.out(y.transpose(1, 2).reshape(x.shape))  # type: ignore[no-any-return]


class UNetBlock(nn.Module):
    """Two residual blocks with a transformer each, then a convolution to half the size."""

    def __init__(self, channels: int, heads: int, context: int, time: int, groups: int) -> None:
        super().__init__()
        self.residuals = nn.ModuleList(_Residual(channels, time, groups) for _ in range(2))
        self.transformers = nn.ModuleList(_Transformer(channels, context, heads, groups) for _ in range(2))
        self.smaller = nn.Conv2d(channels, channels, 3, stride=2, padding=1)

    def forward(self, x: torch.Tensor, time: torch.Tensor, context: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return what goes down, and what goes across to the way up."""
        across = []
        for residual, transformer in zip(self.residuals, self.transformers, strict=True):
            x = transformer(residual(x, time), context)
            across.append(x)
        return self.smaller(x), *across


def own(*, channels: int, heads: int, context: int, time: int, groups: int, **_: Any) -> nn.Module:
    """Make the block."""
    return UNetBlock(channels, heads, context, time, groups)


def inputs(
    batch: int, generator: torch.Generator, *, size: int, channels: int, tokens: int, context: int, time: int, **_: Any
) -> tuple[torch.Tensor, ...]:
    """Draw hidden states, the time step's embedding and the text's."""
    shapes = ((batch, channels, size, size), (batch, time), (batch, tokens, context))
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def targets(batch: int, generator: torch.Generator, *, channels: int, size: int, **_: Any) -> torch.Tensor:
    """Draw noise of the shape of what goes down."""
    return torch.randn(batch, channels, size // 2, size // 2, generator=generator)


def loss(result: tuple[torch.Tensor, ...], noise: torch.Tensor) -> torch.Tensor:
    """Return the mean squared difference from the noise."""
    return nn.functional.mse_loss(result[0].to(noise.dtype), noise)
