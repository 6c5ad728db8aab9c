"""BERT (Devlin et al., https://arxiv.org/abs/1810.04805): the encoder with its pooler, without a head."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class _Layer(nn.Module):
    """Attention and a feed-forward net, each added and then normalized."""

    def __init__(self, hidden: int, heads: int, feedforward: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.out, self.attention_norm = nn.Linear(hidden, hidden), nn.LayerNorm(hidden, 1e-12)
        self.up, self.down = nn.Linear(hidden, feedforward), nn.Linear(feedforward, hidden)
        self.norm = nn.LayerNorm(hidden, 1e-12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, hidden = x.shape
        split = (batch, tokens, self.heads, hidden // self.heads)
        q, k, v = (part(x).view(split).transpose(1, 2) for part in (self.query, self.key, self.value))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = self.attention_norm(x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, hidden)))
        out: torch.Tensor = self.norm(x + self.down(nn.functional.gelu(self.up(x))))
        return out


class Bert(nn.Module):
    """Embeddings, layers, pooler."""

    def __init__(self, vocabulary: int, hidden: int, layers: int, heads: int, feedforward: int, positions: int) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, hidden), nn.Embedding(positions, hidden)
        self.segments, self.norm = nn.Embedding(2, hidden), nn.LayerNorm(hidden, 1e-12)
        self.layers = nn.Sequential(*(_Layer(hidden, heads, feedforward) for _ in range(layers)))
        self.pooler = nn.Linear(hidden, hidden)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the last hidden states and what is pooled of tokens ``[b, s]``."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.positions(places) + self.segments(torch.zeros_like(tokens))
        x = self.layers(self.norm(x))
        return x, torch.tanh(self.pooler(x[:, 0]))


def own(
    *, vocabulary: int, hidden: int, layers: int, heads: int, feedforward: int, positions: int, **_: Any
) -> nn.Module:
    """Make the network."""
    return Bert(vocabulary, hidden, layers, heads, feedforward, positions)


class _Transformers(nn.Module):
    """The model of transformers, called and answering as ours."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, pooled = self.model(tokens, return_dict=False)[:2]
        return hidden, pooled


def library(
    *, vocabulary: int, hidden: int, layers: int, heads: int, feedforward: int, positions: int, **_: Any
) -> tuple[nn.Module, str]:
    """Make that of transformers."""
    import transformers

    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=feedforward,
        max_position_embeddings=positions,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return _Transformers(transformers.BertModel(config)), f"transformers {transformers.__version__}"


def inputs(
    batch: int, generator: torch.Generator, *, sequence: int, vocabulary: int, **_: Any
) -> tuple[torch.Tensor, ...]:
    """Draw tokens."""
    return (torch.randint(vocabulary, (batch, sequence), generator=generator),)


def targets(batch: int, generator: torch.Generator, *, hidden: int, **_: Any) -> torch.Tensor:
    """Draw classes: what is pooled counts as their logits."""
    return torch.randint(hidden, (batch,), generator=generator)


def loss(result: tuple[torch.Tensor, torch.Tensor], classes: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy."""
    return nn.functional.cross_entropy(result[1], classes)
