"""The ``.safetensors`` format: 8 bytes of length, a JSON header, the tensors.

Format: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from rocmend.core.documents import MALFORMED
from rocmend.mlx import dtypes
from rocmend.mlx.io.output import bytes_of
from rocmend.mlx.io.source import Source, array_at

if TYPE_CHECKING:
    from rocmend.mlx.array import array
    from rocmend.mlx.device import Stream
    from rocmend.mlx.dtypes import Dtype

__all__ = ["read_safetensors", "write_safetensors"]

_MAX_HEADER = 32 << 20  # the format's own library takes 100 MB; the headers of real models have less than 1 MB
_MAX_DIMENSIONS = 64  # torch's
_MAX_SIZE = 1 << 48
_CODES: dict[str, Dtype] = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "U16": dtypes.uint16, "U32": dtypes.uint32, "U64": dtypes.uint64,
    "I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32, "I64": dtypes.int64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "C64": dtypes.complex64,
    "F8_E4M3": dtypes.uint8, "F8_E8M0": dtypes.uint8,
}  # fmt: skip
_NAMES = {dtype: code for code, dtype in _CODES.items() if not code.startswith("F8")}
_Size = Annotated[int, msgspec.Meta(ge=0, le=_MAX_SIZE)]
_Offset = Annotated[int, msgspec.Meta(ge=0)]


def read_safetensors(source: Source, stream: Stream) -> tuple[dict[str, array], dict[str, str]]:
    """Return the arrays of a file by name, to be read when they are computed, and its metadata.

    Float8 elements come as their bits, in uint8.

    Raises:
        RuntimeError: it is no such file, or an array does not fit into it.
    """
    header, begin = _header(source)
    space = len(source) - begin
    metadata = _metadata(source, header.pop("__metadata__", msgspec.Raw(b"{}")))
    found = {}
    for name, entry in header.items():
        dtype, shape, start, stop = _entry(name, entry)
        needed = prod(shape) * dtype.size
        if stop - start != needed:
            raise RuntimeError(
                f"[load_safetensors] Tensor '{name}' invalid data offsets ({start}, {stop}). Expecting {needed} bytes."
            )
        if not 0 <= start <= stop <= space:
            raise RuntimeError(
                f"[load_safetensors] Tensor '{name}' invalid data offsets ({start}, {stop}) exceeding the size of "
                f"{source.name}, {len(source)} bytes. Perhaps an incomplete download or corrupt file?"
            )
        found[name] = array_at(source, begin + start, shape, dtype, stream)
    return found, metadata


class _Entry(msgspec.Struct):
    """What a header says of a tensor."""

    dtype: str
    shape: Annotated[list[_Size], msgspec.Meta(max_length=_MAX_DIMENSIONS)]
    data_offsets: tuple[_Offset, _Offset]


def _metadata(source: Source, text: msgspec.Raw) -> dict[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str] | None) or {}
    except MALFORMED:
        raise RuntimeError(f"[load_safetensors] The metadata of {source.name} is no mapping of strings.") from None


def _header(source: Source) -> tuple[dict[str, msgspec.Raw], int]:
    """Return the header with its entries as they stand there, and where the tensors begin."""
    length = int.from_bytes(source.bytes(0, 8), "little")
    if len(source) < 8 or length < 2 or length > min(_MAX_HEADER, len(source) - 8):
        raise RuntimeError(
            f"[load_safetensors] Invalid json header length file {source.name}. It is no safetensors file, or it was "
            "not downloaded whole (a text file of a few lines is a pointer of git-lfs)."
        )
    try:
        return msgspec.json.decode(source.bytes(8, 8 + length), type=dict[str, msgspec.Raw]), 8 + length
    except MALFORMED:
        raise RuntimeError(f"[load_safetensors] Invalid json metadata file {source.name}") from None


def _entry(name: str, text: msgspec.Raw) -> tuple[Dtype, tuple[int, ...], int, int]:
    """Return type, shape and offsets of a tensor."""
    try:
        entry = msgspec.json.decode(text, type=_Entry)
    except MALFORMED:
        raise RuntimeError(
            f"[load_safetensors] Tensor '{name}' needs a dtype, a shape and data_offsets of non-negative integers."
        ) from None
    dtype = _CODES.get(entry.dtype)
    if dtype is None:
        raise RuntimeError(f"[safetensor] unsupported dtype {entry.dtype} of tensor '{name}'.")
    return dtype, tuple(entry.shape), *entry.data_offsets


def write_safetensors(out: Any, arrays: dict[str, array], metadata: dict[str, str]) -> None:
    """Write arrays and metadata; wide elements first and the header padded, so that each array is aligned.

    Raises:
        RuntimeError: an array is of a type that the format does not have.
    """
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.size, name))
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name in order:
        x = arrays[name]
        size = prod(x.shape) * x.dtype.size
        header[name] = {"dtype": _NAMES[x.dtype], "shape": list(x.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    out.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        out.write(bytes_of(arrays[name]))
