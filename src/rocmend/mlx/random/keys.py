"""Keys, the streams of bits that they stand for, and the key that a thread draws from where none is given.

Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, shape_text
from rocmend.mlx.array import array, leaf, record
from rocmend.mlx.node import current
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["bits", "key", "next_key", "seed", "shape_of", "split", "state"]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF
_FEW = 32  # words
_CHUNK = 1 << 17  # counters that stay in a cache through all rounds
_BY_WIDTH = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32}
_TORCH_BY_WIDTH = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def _threefry(schedule: tuple[Any, Any, Any], a: torch.Tensor, b: torch.Tensor) -> None:
    """Turn counters ``(a, b)`` into two words each, in place; all int32, whose sums wrap around as uint32's do."""
    a += schedule[0]
    b += schedule[1]
    for step in range(5):
        for turn in _ROTATIONS[step % 2]:
            a += b
            low = (b >> (32 - turn)).bitwise_and_((1 << turn) - 1)
            b.bitwise_left_shift_(turn).bitwise_or_(low).bitwise_xor_(a)
        a += schedule[(step + 1) % 3]
        b += schedule[(step + 2) % 3] + (step + 1)


def _threefry_of_one(key: tuple[int, int], a: int, b: int) -> tuple[int, int]:
    """Return the two words of one counter."""
    schedule = (*key, key[0] ^ key[1] ^ _PARITY)
    a, b = (a + key[0]) & _WORD, (b + key[1]) & _WORD
    for step in range(5):
        for turn in _ROTATIONS[step % 2]:
            a = (a + b) & _WORD
            b = (((b << turn) & _WORD) | (b >> (32 - turn))) ^ a
        a = (a + schedule[(step + 1) % 3]) & _WORD
        b = (b + schedule[(step + 2) % 3] + step + 1) & _WORD
    return a, b


def _few_words(keys: torch.Tensor, count: int) -> torch.Tensor:
    """Return what ``words`` does for keys on the CPU: for few words, Python's numbers are faster than tensors."""
    half, odd = count // 2, count % 2
    rows = []
    for one, two in keys.tolist():
        key = (one & _WORD, two & _WORD)
        pairs = [_threefry_of_one(key, i, i + count - half) for i in range(half)]
        middle = [_threefry_of_one(key, half, 0)[0]] if odd else []
        rows.append([low for low, _ in pairs] + middle + [high for _, high in pairs])
    signed = [[word - (1 << 32) if word >> 31 else word for word in row] for row in rows]
    return torch.tensor(signed, dtype=torch.int32).reshape(len(rows), count)


def words(keys: torch.Tensor, count: int) -> torch.Tensor:
    """Return ``count`` words for each key of ``[keys, 2]``: ``[keys, count]`` int32.

    A stream is cut in halves: word i of the first and of the second come from one counter. Where its length is odd,
    the word in the middle is alone, with the counter ``(half, 0)``.
    """
    if keys.device.type == "cpu" and keys.shape[0] * count <= _FEW:
        return _few_words(keys, count)
    half, odd = divmod(count, 2)
    one, two = keys[:, :1], keys[:, 1:]
    schedule = (one, two, one ^ two ^ _PARITY)
    drawn = torch.empty((keys.shape[0], count), dtype=torch.int32, device=keys.device)
    for at in range(0, half + odd, _CHUNK):
        low = torch.arange(at, min(at + _CHUNK, half + odd), device=keys.device).to(torch.int32)
        high = low + (count - half)
        if odd and at + _CHUNK >= half + odd:
            high[-1] = 0
        low, high = low.repeat(keys.shape[0], 1), high.repeat(keys.shape[0], 1)
        _threefry(schedule, low, high)
        drawn[:, at : at + low.shape[1]] = low
        drawn[:, half + odd + at : half + odd + at + high.shape[1]] = high[:, : half - at]
    return drawn


def _run(node: Node, keys: torch.Tensor) -> torch.Tensor:
    width, sizes = node.attrs
    storage = _TORCH_BY_WIDTH[width]
    if kernel_use.on_gpu(keys):
        out: torch.Tensor = kernels.random_bits(keys.contiguous(), sizes, width=width)
        return out.view(storage)
    elements = math.prod(sizes)
    drawn = words(keys.reshape(-1, 2), -(-elements * width // 4))
    return drawn.view(storage)[:, :elements].reshape(node.shape)


def _run_one_of_two(node: Node, key: torch.Tensor) -> torch.Tensor:
    if kernel_use.on_gpu(key):
        both: torch.Tensor = kernels.random_bits(key.contiguous(), (2, 2), width=4)
        return both.view(torch.int32)[node.attrs]
    return words(key.reshape(1, 2), 4)[0].view(2, 2)[node.attrs].clone()


RANDOM_BITS = Primitive("RandomBits", _run)
# One of the two keys that a key is split into: a draw needs the second at once, the first only at the next draw.
ONE_OF_TWO = Primitive("RandomKey", _run_one_of_two)


@RANDOM_BITS.rule("vmap")
def _vmap(node: Node, arrays: Any, axes: Any) -> Any:
    keys = ops.moveaxis(arrays[0], axes[0], 0, stream=node.stream)
    shape = (keys.shape[0], *node.shape)
    return record(RANDOM_BITS, (keys._n,), shape, node.dtype, node.attrs, None, node.stream), 0


@RANDOM_BITS.rule("vjp")
@ONE_OF_TWO.rule("vjp")
def _vjp(_: Node, primals: Any, __: array, ___: array) -> Any:
    return tuple(None for _ in primals)


@RANDOM_BITS.rule("jvp")
def _jvp(_: Node, __: Any, ___: Any, output: array) -> array:
    return ops.zeros_like(output)  # type: ignore[no-any-return]


class _RandomState(list[array]):
    """The key that a thread draws from: a list of one array, each thread's own behind one object."""

    __slots__ = ("_local",)

    def __init__(self) -> None:
        super().__init__()
        self._local = threading.local()

    def _held(self) -> list[array]:
        try:
            return self._local.keys  # type: ignore[no-any-return]
        except AttributeError:
            self._local.keys = [key(time.time_ns() // 1000)]
            return self._local.keys  # type: ignore[no-any-return]

    def __getitem__(self, at: Any) -> Any:
        return self._held()[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        self._held()[at] = value

    def __iter__(self) -> Iterator[array]:
        return iter(self._held())

    def __len__(self) -> int:
        return len(self._held())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return repr(self._held())

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


state = _RandomState()


def key(seed: int) -> array:
    """Return the key of a seed.

    Args:
        seed: its upper and lower 32 bits are the key.

    Returns:
        ``[2]`` uint32.

    Raises:
        TypeError: not an integer from 0 to below 2⁶⁴.
    """
    seed = index(seed)
    if not 0 <= seed < 1 << 64:
        raise TypeError(f"[key] Expected a seed from 0 to below 2**64, got {seed}.")
    halves = [seed >> 32, seed & 0xFFFFFFFF]
    signed = [half - (1 << 32) if half >> 31 else half for half in halves]
    device = current.state.stream.device.torch
    return leaf(torch.tensor(signed, dtype=torch.int32, device=device), dtypes.uint32)


def seed(seed: int) -> None:
    """Set the key that this thread draws from.

    Args:
        seed: see ``key``.
    """
    state[0] = key(seed)


def split(key: array, num: int = 2, stream: Any = None) -> array:
    """Split a key into others.

    Args:
        key: ``[2]`` uint32.
        num: how many.
        stream: where it is computed.

    Returns:
        ``[num, 2]`` uint32.

    Raises:
        ValueError: it is no key.
    """
    return bits((num, 2), 4, key, stream)


def next_key(stream: Any = None) -> array:
    """Return a key that was not drawn from, and go on to the next."""
    before = state[0]
    where = stream if stream is None else as_stream(stream)
    state[0] = record(ONE_OF_TWO, (before._n,), (2,), dtypes.uint32, 0, None, where)
    return record(ONE_OF_TWO, (before._n,), (2,), dtypes.uint32, 1, None, where)


def shape_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape as a tuple.

    Raises:
        ValueError: a size is negative.
    """
    sizes = tuple(map(index, shape))
    if sizes and min(sizes) < 0:
        raise ValueError(f"[bits] Negative dimensions not allowed, got {shape_text(sizes)}.")
    return sizes


def bits(shape: Sequence[int], width: int = 4, key: array | None = None, stream: Any = None) -> array:
    """Draw random bits.

    Args:
        shape: of the result.
        width: bytes of an element: 1, 2 or 4.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        uint8, uint16 or uint32 of ``shape``.

    Raises:
        ValueError: a negative size, or what is no key.
    """
    sizes = shape_of(shape)
    if key is None:
        key = next_key(stream)
    if key.dtype is not dtypes.uint32:
        raise ValueError(f"[bits] Expected key type uint32 but received {key.dtype}.")
    if key.shape != (2,):
        raise ValueError(f"[bits] Expected key shape (2) but received {shape_text(key.shape)}.")
    where = stream if stream is None else as_stream(stream)
    return record(RANDOM_BITS, (key._n,), sizes, _BY_WIDTH[width], (width, sizes), None, where)
