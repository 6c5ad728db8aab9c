"""A language model of Qwen3's kind (https://arxiv.org/abs/2505.09388), in the shape of Qwen3-0.6B."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

_EPSILON, _THETA = 1e-6, 1e6


class RmsNorm(nn.Module):
    """Root mean square norm, computed in float32 at least, as these models do."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalized rows."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + _EPSILON)
        return self.weight * normed.to(x.dtype)


def _rotated(x: torch.Tensor, start: int) -> torch.Tensor:
    """Rotate pairs ``(i, i + d/2)`` of ``[b, h, s, d]`` by their position."""
    half, count = x.shape[-1] // 2, x.shape[-2]
    rates = _THETA ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = torch.arange(start, start + count, device=x.device, dtype=torch.float32)[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class _Layer(nn.Module):
    def __init__(self, hidden: int, heads: int, key_heads: int, head_dim: int, feedforward: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.query = nn.Linear(hidden, heads * head_dim, bias=False)
        self.key, self.value = (nn.Linear(hidden, key_heads * head_dim, bias=False) for _ in range(2))
        self.out = nn.Linear(heads * head_dim, hidden, bias=False)
        self.query_norm, self.key_norm = RmsNorm(head_dim), RmsNorm(head_dim)
        self.gate, self.up = (nn.Linear(hidden, feedforward, bias=False) for _ in range(2))
        self.down = nn.Linear(feedforward, hidden, bias=False)
        self.attention_norm, self.norm = RmsNorm(hidden), RmsNorm(hidden)

    def forward(self, x: torch.Tensor, cache: torch.Tensor | None, past: int) -> torch.Tensor:
        normed = self.attention_norm(x)
        q, k, v = (part(normed).unflatten(-1, (-1, self.head_dim)) for part in (self.query, self.key, self.value))
        q, k = _rotated(self.query_norm(q).transpose(1, 2), past), _rotated(self.key_norm(k).transpose(1, 2), past)
        v = v.transpose(1, 2)
        if cache is not None:
            cache[:, 0, :, past:], cache[:, 1, :, past:] = k, v
            k, v = cache[:, 0], cache[:, 1]
        many = q.shape[1] // k.shape[1]
        k, v = (part.repeat_interleave(many, 1) for part in (k, v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        normed = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))  # type: ignore[no-any-return]


class LanguageModel(nn.Module):
    """Embedding, layers, norm, and the embedding again as the head."""

    def __init__(
        self, vocabulary: int, hidden: int, layers: int, heads: int, key_heads: int, head_dim: int, feedforward: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(_Layer(hidden, heads, key_heads, head_dim, feedforward) for _ in range(layers))
        self.norm = RmsNorm(hidden)

    def forward(self, tokens: torch.Tensor, cache: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits of tokens ``[b, s]``: of the last one alone in inference, of all in training.

        Args:
            tokens: The tokens.
            cache: Keys and values before them, ``[b, layers, 2, heads, past + s, d]``; theirs are written at its end.
        """
        past = 0 if cache is None else cache.shape[4] - tokens.shape[1]
        x = self.words(tokens)
        for number, layer in enumerate(self.layers):
            x = layer(x, None if cache is None else cache[:, number], past)
        if not self.training:
            x = x[:, -1:]
        return nn.functional.linear(self.norm(x), self.words.weight)


def own(
    *,
    vocabulary: int,
    hidden: int,
    layers: int,
    heads: int,
    key_heads: int,
    head_dim: int,
    feedforward: int,
    **_: Any,
) -> nn.Module:
    """Make the model."""
    return LanguageModel(vocabulary, hidden, layers, heads, key_heads, head_dim, feedforward)


def inputs(
    batch: int,
    generator: torch.Generator,
    *,
    vocabulary: int,
    tokens: int,
    past: int,
    layers: int,
    key_heads: int,
    head_dim: int,
    **_: Any,
) -> tuple[torch.Tensor, ...]:
    """Draw tokens, and keys and values where there are tokens before them."""
    drawn = torch.randint(vocabulary, (batch, tokens), generator=generator)
    if not past:
        return (drawn,)
    return drawn, torch.randn(batch, layers, 2, key_heads, past + tokens, head_dim, generator=generator)


def targets(batch: int, generator: torch.Generator, *, vocabulary: int, tokens: int, **_: Any) -> torch.Tensor:
    """Draw the tokens that should follow."""
    return torch.randint(vocabulary, (batch, tokens), generator=generator)


def loss(logits: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy over all tokens."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())
