"""The networks that the probes run; imported only inside the child."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class _Residual(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Module):
    """Convolution, batch norm, residual blocks, pooling, classes."""

    def __init__(self, widths: tuple[int, ...] = (16, 32, 48), classes: int = 10) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, widths[0], 7, 2, 3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU())
        self.pool = nn.MaxPool2d(3, 2, 1)
        pairs = zip((widths[0], *widths), widths, strict=False)
        self.blocks = nn.Sequential(*(_Residual(before, after, 2 if before != after else 1) for before, after in pairs))
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return class scores of images."""
        result: torch.Tensor = self.head(self.blocks(self.pool(self.first(x))).mean((2, 3)))
        return result


class _Encoder(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = self.project(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.merge(mixed.transpose(1, 2).reshape(batch, length, width))
        result: torch.Tensor = x + self.feed(self.after(x))
        return result


class VisionTransformer(nn.Module):
    """Patches, positions, encoder blocks, classes."""

    def __init__(self, width: int = 64, heads: int = 4, layers: int = 2, patch: int = 8, classes: int = 10) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.positions = nn.Parameter(torch.randn(1, (32 // patch) ** 2 + 1, width) * 0.02)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.blocks = nn.Sequential(*(_Encoder(width, heads) for _ in range(layers)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return class scores of images."""
        parts = self.patches(x).flatten(2).transpose(1, 2)
        joined = torch.cat([self.token.expand(len(x), -1, -1), parts], 1) + self.positions
        result: torch.Tensor = self.head(self.blocks(joined)[:, 0])
        return result


class TextEncoder(nn.Module):
    """Token and position embeddings, encoder blocks, a score for each token."""

    def __init__(self, vocabulary: int = 211, width: int = 64, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(64, width)
        self.blocks = nn.Sequential(nn.LayerNorm(width), *(_Encoder(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return vocabulary scores of each token."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        result: torch.Tensor = self.head(self.blocks(self.tokens(tokens) + self.positions(places)))
        return result


def _rotate(x: torch.Tensor, start: int) -> torch.Tensor:
    """Return x with rotary positions applied from position ``start`` on."""
    half = x.shape[-1] // 2
    places = torch.arange(start, start + x.shape[-2], device=x.device, dtype=torch.float64)
    rates = 10_000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
    angles = places[:, None] * rates
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    left, right = x[..., :half], x[..., half:]
    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], -1)


Cache = list[tuple[torch.Tensor, torch.Tensor]]


class _Decoder(nn.Module):
    def __init__(self, width: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, width // heads
        self.before, self.after = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * key_heads * self.size, bias=False)
        self.merge = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(
        self, x: torch.Tensor, past: tuple[torch.Tensor, torch.Tensor] | None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        batch, length, width = x.shape
        normed, start = self.before(x), past[0].shape[-2] if past else 0
        query = self.query(normed).view(batch, length, self.heads, self.size).transpose(1, 2)
        both = self.key_value(normed).view(batch, length, 2, self.key_heads, self.size)
        key, value = both.permute(2, 0, 3, 1, 4)
        query, key = _rotate(query, start), _rotate(key, start)
        if past:
            key, value = torch.cat([past[0], key], -2), torch.cat([past[1], value], -2)
        groups = self.heads // self.key_heads
        wide = (key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1))
        mixed = functional.scaled_dot_product_attention(query, *wide, is_causal=past is None)
        x = x + self.merge(mixed.transpose(1, 2).reshape(batch, length, width))
        normed = self.after(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed)), (key, value)


class LanguageModel(nn.Module):
    """A decoder: RMS norm, rotary positions, grouped heads, gated feed-forward, tied scores."""

    def __init__(
        self, vocabulary: int = 211, width: int = 64, heads: int = 4, key_heads: int = 2, layers: int = 2
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(_Decoder(width, heads, key_heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return vocabulary scores of each token."""
        return self.step(tokens, None)[0]

    def step(self, tokens: torch.Tensor, cache: Cache | None) -> tuple[torch.Tensor, Cache]:
        """Return the scores of further tokens and the cache that holds them too."""
        x, kept = self.tokens(tokens), []
        for number, block in enumerate(self.blocks):
            x, pair = block(x, cache[number] if cache else None)
            kept.append(pair)
        return self.norm(x) @ self.tokens.weight.t(), kept


class Decoding(nn.Module):
    """A language model run on a prompt of half of the tokens, then one token at a time with its cache."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return vocabulary scores of each token; in float64, the reference, of all tokens at once."""
        if self.model.tokens.weight.dtype == torch.float64:
            return self.model(tokens)  # type: ignore[no-any-return]
        prompt = tokens.shape[1] // 2
        scores, cache = self.model.step(tokens[:, :prompt], None)
        parts = [scores]
        for place in range(prompt, tokens.shape[1]):
            scores, cache = self.model.step(tokens[:, place : place + 1], cache)
            parts.append(scores)
        return torch.cat(parts, 1)
