"""ggml's quantized blocks: as MLX's affine quantization where that is the same numbers, else as float16.

Layouts: ``block_q4_0`` and its like in https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from rocmend.mlx.array import record, record_many
from rocmend.mlx.dtypes import float16, uint32
from rocmend.mlx.primitive import Primitive

if TYPE_CHECKING:
    from rocmend.mlx.array import array
    from rocmend.mlx.device import Stream
    from rocmend.mlx.node import Node

__all__ = ["BLOCKS", "Block", "arrays"]


class Block(NamedTuple):
    """A format.

    Attributes:
        name: ggml's name.
        elements: elements of a block.
        size: bytes of a block.
        bits: of an element where the format is affine in groups of 32, else 0.
        values: from blocks ``[..., size]`` of uint8: (elements in order, scale, bias) where it is affine, else the
            values ``[..., elements]`` in float32.
    """

    name: str
    elements: int
    size: int
    bits: int
    values: Callable[[torch.Tensor], Any]


def _half(blocks: torch.Tensor, at: int) -> torch.Tensor:
    return blocks[..., at : at + 2].contiguous().view(torch.float16)


def _nibbles(packed: torch.Tensor) -> torch.Tensor:
    """Low halves, then high halves: ``[..., n]`` → ``[..., 2 n]``."""
    return torch.cat([packed & 15, packed >> 4], -1)


def _q4_0(blocks: torch.Tensor) -> Any:
    scale = _half(blocks, 0)
    return _nibbles(blocks[..., 2:]), scale, -8 * scale


def _q4_1(blocks: torch.Tensor) -> Any:
    return _nibbles(blocks[..., 4:]), _half(blocks, 0), _half(blocks, 2)


def _q8_0(blocks: torch.Tensor) -> Any:
    scale = _half(blocks, 0)
    return blocks[..., 2:] ^ 128, scale, -128 * scale


def _six_bits(scales: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Unpack the eight 6-bit scales and minima of Q4_K and Q5_K: ``[..., 12]`` → two of ``[..., 8]``."""
    first, second, mixed = scales[..., :4], scales[..., 4:8], scales[..., 8:]
    scale = torch.cat([first & 63, (mixed & 15) | (first >> 6 << 4)], -1)
    least = torch.cat([second & 63, (mixed >> 4) | (second >> 6 << 4)], -1)
    return scale.float(), least.float()


def _q4_k(blocks: torch.Tensor) -> torch.Tensor:
    scale, least = _six_bits(blocks[..., 4:16])
    packed = blocks[..., 16:].unflatten(-1, (4, 1, 32))  # pairs of groups: low halves, then high halves
    codes = torch.cat([packed & 15, packed >> 4], -2).flatten(-3, -2).float()
    return _with_minima(blocks, codes, scale, least)


def _q5_k(blocks: torch.Tensor) -> torch.Tensor:
    scale, least = _six_bits(blocks[..., 4:16])
    high = blocks[..., 16:48].unsqueeze(-2)
    fifth = (high >> torch.arange(8, device=blocks.device, dtype=torch.uint8)[:, None]) & 1
    packed = blocks[..., 48:].unflatten(-1, (4, 1, 32))
    codes = torch.cat([packed & 15, packed >> 4], -2).flatten(-3, -2) | (fifth << 4)
    return _with_minima(blocks, codes.float(), scale, least)


def _with_minima(blocks: torch.Tensor, codes: torch.Tensor, scale: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
    d, dmin = _half(blocks, 0).float(), _half(blocks, 2).float()
    return ((d * scale)[..., None] * codes - (dmin * least)[..., None]).flatten(-2)


def _q6_k(blocks: torch.Tensor) -> torch.Tensor:
    low = blocks[..., :128].unflatten(-1, (2, 2, 32))  # two halves of 128 elements, each four rows of 32
    high = blocks[..., 128:192].unflatten(-1, (2, 1, 32))
    four = torch.cat([low & 15, low >> 4], -2)
    two = torch.cat([(high >> shift) & 3 for shift in (0, 2, 4, 6)], -2)
    codes = (four | (two << 4)).flatten(-3).float() - 32
    scale = blocks[..., 192:208].contiguous().view(torch.int8).float() * _half(blocks, 208).float()
    values: torch.Tensor = (codes.unflatten(-1, (16, 16)) * scale[..., None]).flatten(-2)
    return values


BLOCKS = {
    2: Block("Q4_0", 32, 18, 4, _q4_0),
    3: Block("Q4_1", 32, 20, 4, _q4_1),
    8: Block("Q8_0", 32, 34, 8, _q8_0),
    12: Block("Q4_K", 256, 144, 0, _q4_k),
    13: Block("Q5_K", 256, 176, 0, _q5_k),
    14: Block("Q6_K", 256, 210, 0, _q6_k),
}
"""The formats that can be read, by ggml's number of the type."""


def _affine(node: Node, blocks: torch.Tensor) -> tuple[torch.Tensor, ...]:
    block = BLOCKS[node.attrs]
    codes, scale, bias = block.values(blocks)
    if block.bits == 4:
        codes = codes[..., ::2] | (codes[..., 1::2] << 4)
    words = codes.contiguous().view(torch.int32).flatten(-2)
    return words, scale.flatten(-2), bias.flatten(-2)


def _widened(node: Node, blocks: torch.Tensor) -> torch.Tensor:
    values: torch.Tensor = BLOCKS[node.attrs].values(blocks)
    return values.to(torch.float16).reshape(node.shape)


AFFINE_BLOCKS = Primitive("AffineBlocks", _affine, outputs=3)
WIDENED_BLOCKS = Primitive("WidenedBlocks", _widened)


def arrays(block: Block, name: str, raw: array, stream: Stream) -> dict[str, array]:
    """Return the arrays that a tensor of blocks becomes.

    Args:
        block: the format.
        name: the tensor's name.
        raw: ``[..., blocks, size]`` of uint8.
        stream: where it is computed.
    """
    kind = next(number for number, one in BLOCKS.items() if one is block)
    lead, count = raw.shape[:-2], raw.shape[-2]
    if not block.bits:
        shape = (*lead, count * block.elements)
        return {name: record(WIDENED_BLOCKS, (raw._n,), shape, float16, kind, None, stream)}
    outputs = [((*lead, count * block.bits), uint32), ((*lead, count), float16), ((*lead, count), float16)]
    weight, scales, biases = record_many(AFFINE_BLOCKS, (raw._n,), outputs, kind, None, stream)
    stem = name.removesuffix(".weight")
    return {name: weight, f"{stem}.scales": scales, f"{stem}.biases": biases}
