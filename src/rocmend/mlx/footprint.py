"""How much memory a language model takes while it generates, by its configuration. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Footprint", "footprint_of"]

RUNTIME_BYTES = 1 << 28
"""For compiled kernels, small values, and what an allocator rounds up."""
UNKNOWN_BYTES = 1 << 29
"""For activations and a short cache, where the configuration does not tell their sizes."""
CACHE_STEP = 256
"""Tokens by which mlx_lm's caches grow."""
_WIDE = {"float32", "torch.float32"}


@dataclass(frozen=True)
class Footprint:
    """What a model takes, in bytes.

    Attributes:
        weights: of all tensors.
        token: of the cache, for each token of a context; None: the configuration does not tell it.
        window_token: the same of layers that see only the last ``window`` tokens.
        window: tokens that these layers see.
        row: of the largest activations, for each token of a prompt that is taken at once.
        logits: of the last token's.
    """

    weights: int
    token: float | None = None
    window_token: float = 0.0
    window: int = 0
    row: int = 0
    logits: int = 0

    def cache(self, context: int) -> int:
        """Return the bytes of the cache of so many tokens."""
        rows = -(-context // CACHE_STEP) * CACHE_STEP
        return round(rows * (self.token or 0.0) + min(rows, self.window) * self.window_token)

    def activations(self, context: int, step: int) -> int:
        """Return the bytes of the largest activations, with a prompt that is taken ``step`` tokens at a time."""
        if self.token is None:
            return UNKNOWN_BYTES
        return min(context, step) * self.row + self.logits + RUNTIME_BYTES

    def needed(self, context: int, step: int) -> int:
        """Return the bytes of everything."""
        return self.weights + self.cache(context) + self.activations(context, step)

    def longest(self, room: int, step: int) -> int:
        """Return the most tokens of context that fit into so many bytes, at most 2²⁴; 0: none do."""
        low, high = 0, 1 << 24
        while low < high:
            middle = (low + high + 1) // 2
            if self.needed(middle, step) <= room:
                low = middle
            else:
                high = middle - 1
        return low


def footprint_of(config: Mapping[str, Any], weights: int, *, kv_bits: int = 0, kv_group: int = 64) -> Footprint:
    """Return what a model takes.

    Args:
        config: ``config.json``; of a model of text and images, that of the text.
        weights: bytes of all tensors.
        kv_bits: of an element of the cache; 0: it is not quantized.
        kv_group: elements of the cache that share a scale and a bias.
    """
    text = config.get("text_config")
    if isinstance(text, Mapping):
        config = {**config, **text}
    layers = _number(config, "num_hidden_layers", "n_layers", "num_layers", "n_layer")
    hidden = _number(config, "hidden_size", "d_model", "n_embd", "dim")
    heads = _number(config, "num_attention_heads", "n_heads", "n_head")
    if not layers or not hidden or not heads:
        return Footprint(weights)
    size = 4 if str(config.get("dtype") or config.get("torch_dtype")) in _WIDE else 2
    element = kv_bits / 8 + 2 * size / kv_group if kv_bits else float(size)
    head = _number(config, "head_dim") or hidden // heads
    keys = _number(config, "num_key_value_heads", "n_kv_heads") or heads
    of_layer = 2 * keys * head * element
    latent = _number(config, "kv_lora_rank")
    if latent:  # multi-head latent attention: one vector for keys and values of all heads
        of_layer = (latent + _number(config, "qk_rope_head_dim")) * element
    kinds = config.get("layer_types")
    whole, windowed = layers, 0
    if isinstance(kinds, list) and len(kinds) == layers:
        whole = sum(kind in ("full_attention", "attention", "global_attention") for kind in kinds)
        windowed = sum(kind in ("sliding_attention", "chunked_attention") for kind in kinds)
    window = _number(config, "sliding_window") if windowed else 0
    if windowed and not window:
        whole, windowed = whole + windowed, 0
    wide = _number(config, "intermediate_size", "hidden_dim", "n_inner") or 4 * hidden
    chosen = _number(config, "num_experts_per_tok", "num_experts_per_token", "moe_top_k", "top_k_experts")
    if chosen:
        wide = max(wide, chosen * (_number(config, "moe_intermediate_size") or wide))
    row = (3 * wide + 4 * hidden + (heads + 2 * keys) * head) * size
    logits = 2 * 4 * _number(config, "vocab_size")
    return Footprint(weights, whole * of_layer, windowed * of_layer, window, row, logits)


def _number(config: Mapping[str, Any], *names: str) -> int:
    """Return the first of some numbers that there is; 0: none is."""
    return next((value for name in names if type(value := config.get(name)) is int and value > 0), 0)
