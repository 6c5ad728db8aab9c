"""The ``.gguf`` format of llama.cpp: metadata, descriptions of tensors, the tensors.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.io import gguf_blocks
from rocmend.mlx.io.output import bytes_of
from rocmend.mlx.io.source import Source, array_at

if TYPE_CHECKING:
    from rocmend.mlx.array import array
    from rocmend.mlx.device import Stream
    from rocmend.mlx.dtypes import Dtype

__all__ = ["encoded", "read_gguf"]

_MAGIC = b"GGUF"
_ALIGNMENT = 32
_MAX_AXES = 8
_MAX_DEPTH = 4  # of arrays of arrays
_PLAIN: dict[int, Dtype] = {
    0: dtypes.float32, 1: dtypes.float16, 24: dtypes.int8, 25: dtypes.int16, 26: dtypes.int32, 27: dtypes.int64,
    28: dtypes.float64, 30: dtypes.bfloat16,
}  # fmt: skip
_WRITTEN = {dtype: kind for kind, dtype in _PLAIN.items() if kind in (0, 1, 24, 25, 26)}
# type of a value in the metadata → (struct's letter, type of an array)
_NUMBERS: dict[int, tuple[str, Dtype]] = {
    0: ("B", dtypes.uint8), 1: ("b", dtypes.int8), 2: ("H", dtypes.uint16), 3: ("h", dtypes.int16),
    4: ("I", dtypes.uint32), 5: ("i", dtypes.int32), 6: ("f", dtypes.float32), 7: ("?", dtypes.bool_),
    10: ("Q", dtypes.uint64), 11: ("q", dtypes.int64), 12: ("d", dtypes.float64),
}  # fmt: skip
_STRING, _ARRAY = 8, 9


class _Reader:
    """Goes through the bytes of a file; what does not fit into it is an error, and nothing is allocated before that."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.at = 0

    def error(self, why: str) -> RuntimeError:
        return RuntimeError(f"[load_gguf] {self.source.name}: {why}")

    def take(self, size: int) -> bytes:
        if size > len(self.source) - self.at:
            raise self.error(f"the file ends at byte {len(self.source)}, within its header.")
        self.at += size
        return self.source.bytes(self.at - size, self.at)

    def number(self, letter: str) -> Any:
        return struct.unpack("<" + letter, self.take(struct.calcsize("<" + letter)))[0]

    def text(self) -> str:
        return self.take(self.number("Q")).decode(errors="replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        """Return a value: an array of a number or of numbers, a string, or a list."""
        if kind in _NUMBERS:
            return self.numbers(kind, 1, ())
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY or depth >= _MAX_DEPTH:
            raise self.error(f"a value of the metadata is of type {kind}, which the format does not have.")
        kind, count = self.number("I"), self.number("Q")
        if kind in _NUMBERS:
            return self.numbers(kind, count, (count,))
        if count > len(self.source) - self.at:
            raise self.error(f"an array of the metadata claims {count} values.")
        return [self.value(kind, depth + 1) for _ in range(count)]

    def numbers(self, kind: int, count: int, shape: tuple[int, ...]) -> array:
        import numpy as np

        from rocmend.mlx.array import array

        dtype = _NUMBERS[kind][1]
        raw = np.frombuffer(self.take(count * dtype.size), dtype=np.dtype(dtype.numpy).newbyteorder("<"))
        return array(raw.astype(dtype.numpy).reshape(shape))


def read_gguf(source: Source, stream: Stream) -> tuple[dict[str, array], dict[str, Any]]:
    """Return the arrays of a file by name, to be read when they are computed, and its metadata.

    Raises:
        RuntimeError: it is no such file, or holds what cannot be read here.
    """
    reader = _Reader(source)
    if source.bytes(0, 4) != _MAGIC:
        raise reader.error("it is not a GGUF file.")
    reader.at = 4
    version, tensors, values = reader.number("I"), reader.number("Q"), reader.number("Q")
    if version not in (2, 3):
        raise reader.error(f"version {version} of the format; 2 and 3 can be read.")
    metadata: dict[str, Any] = {}
    for _ in range(values):
        name = reader.text()
        metadata[name] = reader.value(reader.number("I"))
    infos = []
    for _ in range(tensors):
        name, axes = reader.text(), reader.number("I")
        if axes > _MAX_AXES:
            raise reader.error(f"tensor '{name}' has {axes} axes; at most {_MAX_AXES} can be read.")
        shape = tuple(reader.number("Q") for _ in range(axes))[::-1]
        infos.append((name, shape, reader.number("I"), reader.number("Q")))
    alignment = _alignment(metadata, reader)
    begin = -(-reader.at // alignment) * alignment
    found: dict[str, array] = {}
    for name, shape, kind, offset in infos:
        found.update(_tensor(reader, name, shape, kind, begin + offset, stream))
    return found, metadata


def _alignment(metadata: dict[str, Any], reader: _Reader) -> int:
    given = metadata.get("general.alignment")
    if given is None:
        return _ALIGNMENT
    alignment = given.item() if hasattr(given, "item") and given.shape == () else 0
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise reader.error(f"general.alignment is {given}, not a power of two.")
    return alignment


def _tensor(
    reader: _Reader, name: str, shape: tuple[int, ...], kind: int, start: int, stream: Stream
) -> dict[str, array]:
    source = reader.source
    plain = _PLAIN.get(kind)
    block = gguf_blocks.BLOCKS.get(kind)
    count = prod(shape)
    if plain is not None:
        size = count * plain.size
    elif block is not None:
        if not shape or shape[-1] % block.elements:
            raise reader.error(f"tensor '{name}' of type {block.name} needs a last axis divisible by {block.elements}.")
        size = count // block.elements * block.size
    else:
        raise reader.error(f"tensor '{name}' is of ggml's type {kind}, which cannot be read here.")
    if start + size > len(source):
        raise reader.error(f"tensor '{name}' ends at byte {start + size}, the file at {len(source)}. It is incomplete.")
    if plain is not None:
        return {name: array_at(source, start, shape, plain, stream)}
    assert block is not None  # noqa: S101  for the type checker
    raw = array_at(source, start, (*shape[:-1], shape[-1] // block.elements, block.size), dtypes.uint8, stream)
    return gguf_blocks.arrays(block, name, raw, stream)


# -- writing


def encoded(arrays: dict[str, array], metadata: dict[str, Any]) -> Iterator[Any]:
    """Return the parts of a file in order, the arrays computed one by one.

    Raises:
        ValueError: metadata of a type that cannot be written.
        RuntimeError: an array of a type that cannot be written, or metadata with more than one axis.
    """
    for x in arrays.values():
        if x.dtype not in _WRITTEN:
            raise RuntimeError(f"[save_gguf] dtype {x.dtype!r} is not supported".replace("mlx.core.", ""))
    head = [_MAGIC, struct.pack("<IQQ", 3, len(arrays), len(metadata))]
    head += [_text(name) + _value(name, value) for name, value in metadata.items()]
    offset = 0
    for name, x in arrays.items():
        head.append(_text(name) + struct.pack("<I", x.ndim) + struct.pack(f"<{x.ndim}Q", *x.shape[::-1]))
        head.append(struct.pack("<IQ", _WRITTEN[x.dtype], offset))
        size = prod(x.shape) * x.dtype.size
        offset += size + -size % _ALIGNMENT
    whole = b"".join(head)
    return _parts(whole + b"\0" * (-len(whole) % _ALIGNMENT), arrays)


def _parts(head: bytes, arrays: dict[str, array]) -> Iterator[Any]:
    yield head
    for x in arrays.values():
        data = bytes_of(x)
        yield data
        yield b"\0" * (-len(data) % _ALIGNMENT)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(name: str, value: Any) -> bytes:
    from rocmend.mlx.array import array

    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + b"".join(map(_text, value))
    if not isinstance(value, array):
        raise RuntimeError(  # noqa: TRY004  MLX's type
            f"[save_gguf] metadata '{name}' is of type {type(value).__name__}; arrays, strings and lists of strings "
            "can be written."
        )
    kinds = [kind for kind, (_, dtype) in _NUMBERS.items() if dtype is value.dtype]
    if not kinds:
        raise ValueError(f"[save_gguf] metadata '{name}' is of dtype {value.dtype!r}, which GGUF does not have.")
    if value.ndim > 1:
        raise RuntimeError("[save_gguf] Cannot save arrays with more than one dimension.")
    data = bytes(bytes_of(value))
    if value.ndim == 0:
        return struct.pack("<I", kinds[0]) + data
    return struct.pack("<IIQ", _ARRAY, kinds[0], value.shape[0]) + data
