"""Vision Transformer (Dosovitskiy et al., https://arxiv.org/abs/2010.11929), with a class token and GELU."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from rocmend.bench.networks import options_of
from rocmend.bench.networks.resnet import inputs, loss, packaged, targets

__all__ = ["inputs", "library", "loss", "own", "targets"]


class SelfAttention(nn.Module):
    """Attention of all tokens to all, one product for queries, keys and values."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, hidden = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        out: torch.Tensor = self.out(mixed.transpose(1, 2).reshape(batch, tokens, hidden))
        return out


class _Layer(nn.Module):
    def __init__(self, hidden: int, heads: int, feedforward: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(hidden, 1e-6), SelfAttention(hidden, heads)
        self.norm = nn.LayerNorm(hidden, 1e-6)
        self.mlp = nn.Sequential(nn.Linear(hidden, feedforward), nn.GELU(), nn.Linear(feedforward, hidden))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.norm(x))  # type: ignore[no-any-return]


class VisionTransformer(nn.Module):
    """Patches, layers, the class token's logits."""

    def __init__(
        self, image: int, patch: int, hidden: int, layers: int, heads: int, feedforward: int, classes: int
    ) -> None:
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, hidden))
        self.patches = nn.Conv2d(3, hidden, patch, patch)
        self.positions = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, hidden))
        self.layers = nn.Sequential(*(_Layer(hidden, heads, feedforward) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(hidden, 1e-6), nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of images ``[b, 3, h, w]``."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1) + self.positions
        logits: torch.Tensor = self.head(self.norm(self.layers(x))[:, 0])
        return logits


def own(*, image: int, patch: int, hidden: int, layers: int, heads: int, feedforward: int, classes: int) -> nn.Module:
    """Make the network."""
    return VisionTransformer(image, patch, hidden, layers, heads, feedforward, classes)


def library(*, hidden: int, **_: Any) -> tuple[nn.Module, str]:
    """Make torchvision's or timm's."""
    if hidden != options_of("vit-b-16", tiny=False)["hidden"]:
        raise ImportError("no package has the tiny version")
    return packaged("vit_b_16", "vit_base_patch16_224")
