"""The cases that a path has to pass: small, and of every kind that users run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

TOLERANCE = {torch.float64: 1e-9, torch.float32: 5e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Largest error allowed, relative to the largest value of the reference; Winograd kernels of float32 reach 7e-5."""


@dataclass(frozen=True, slots=True)
class Case:
    """A function of tensors that a path is compared on, forward and backward.

    Attributes:
        name: What it shows.
        shapes: Shapes of the tensors, all of which want gradients.
        function: What to compute.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    function: Callable[..., Tensor]

    def tensors(self) -> list[Tensor]:
        """Return the tensors, the same in every process: float64 on the CPU, of unit variance over the reduction."""
        generator = torch.Generator().manual_seed(20231005)
        return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in self.shapes]


def convolution_cases(rank: int) -> list[Case]:
    """Return the cases for convolutions over ``rank`` spatial axes."""
    size = (9, 8, 7)[:rank]
    one, three = (1,) * rank, (3,) * rank

    def case(name: str, source: int, weight: tuple[int, ...], **options: object) -> Case:
        transposed = bool(options.pop("transposed", False))
        function = getattr(torch.nn.functional, f"conv{'_transpose' * transposed}{rank}d")
        groups = options.get("groups", 1)
        bias = weight[1] * (groups if isinstance(groups, int) else 1) if transposed else weight[0]
        return Case(name, ((2, source, *size), weight, (bias,)), lambda x, w, b: function(x, w, b, **options))

    return [
        case("a kernel of 3 with padding", 4, (6, 4, *three), padding=1),
        case("a kernel of 1", 8, (5, 8, *one)),
        case("stride 2", 3, (8, 3, *three), stride=2, padding=1),
        case("dilation 2", 4, (4, 4, *three), dilation=2, padding=2),
        case("groups", 6, (4, 3, *three), groups=2, padding=1),
        case("depthwise", 6, (6, 1, *three), groups=6, padding=1),
        case("transposed", 4, (4, 3, *three), transposed=True, stride=2, padding=1, output_padding=1),
        case("many channels", 64, (64, 64, *three), padding=1),
    ]


def timed_convolution(rank: int) -> Case:
    """Return the case that is timed: of a size where kernels, not their start, take the time."""
    size = ((4096,), (56, 56), (16, 16, 16))[rank - 1]
    function = getattr(torch.nn.functional, f"conv{rank}d")
    shapes = ((8, 64, *size), (64, 64, *(3,) * rank), (64,))
    return Case("the timed case", shapes, lambda x, w, b: function(x, w, b, padding=1))


def attention_cases(head_dim: int, *, masks: bool) -> list[Case]:
    """Return the cases for attention; without ``masks`` only what a vendor's library can express.

    Lengths of 4 and 7 and more are where fused kernels that give wrong sums on some devices begin to show it.
    """

    def case(name: str, queries: int, keys: int, key_heads: int = 4, **options: object) -> Case:
        shapes = ((2, 4, queries, head_dim), (2, key_heads, keys, head_dim), (2, key_heads, keys, head_dim))
        function: Callable[..., Tensor] = torch.nn.functional.scaled_dot_product_attention
        return Case(name, shapes, lambda q, k, v: function(q, k, v, **options))

    cases = [
        *(case(f"length {length}", length, length) for length in (1, 4, 7, 64, 130)),
        *(case(f"causal, length {length}", length, length, is_causal=True) for length in (4, 7, 130)),
        case("one query, 65 keys", 1, 65),
        case("keys shared by heads", 64, 64, 2, enable_gqa=True),
    ]
    if masks:

        def masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril(2)
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

        shape = (2, 4, 33, head_dim)
        cases.append(Case("a mask", (shape, shape, shape), masked))
    return cases


def timed_attention(head_dim: int) -> Case:
    """Return the attention case that is timed."""
    shape = (2, 8, 512, head_dim)
    function: Callable[..., Tensor] = torch.nn.functional.scaled_dot_product_attention
    return Case("the timed case", (shape, shape, shape), lambda q, k, v: function(q, k, v, is_causal=True))
