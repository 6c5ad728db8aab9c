"""Where arrays are read from: a mapped file or bytes; and nodes whose values are there, not yet read."""

from __future__ import annotations

import io
import mmap
import os
import platform
import stat
import sys
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.array import leaf, record
from rocmend.mlx.dtypes import bool_, uint8
from rocmend.mlx.primitive import Primitive

if TYPE_CHECKING:
    from rocmend.mlx.array import array
    from rocmend.mlx.device import Stream
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["Source", "array_at", "failing"]

_CHUNK_BYTES = 1 << 20
# Linux's MAP_NORESERVE, which Python has no name for: nothing is set aside for writes into a map. Otherwise a file
# larger than the memory cannot be mapped, though it is read a tensor at a time.
_NO_RESERVE = 0x4000 if sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"} else 0


class Source:
    """The bytes of a file, or of a file object from where it stands.

    A file is mapped, privately: nothing is read before it is needed, an array may lie in the map itself, and a write
    into such an array never reaches the file. The map lives as long as a tensor over it.

    Args:
        file: a path or a file object opened in binary mode.
        op: name of the function that reads, for errors.
        most: bytes that are read of a file object; all where there is no limit.

    Raises:
        RuntimeError: the file cannot be read, or has more than ``most`` bytes.
    """

    def __init__(self, file: Any, op: str, *, most: int | None = None) -> None:
        self.op = op
        if isinstance(file, str | os.PathLike):
            self.name = os.fspath(file)
            try:
                with Path(self.name).open("rb") as opened:
                    self.data = _contents(opened)
            except OSError as error:
                raise RuntimeError(f"[{op}] Failed to open file {self.name}: {error.strerror}.") from error
        else:
            self.name = str(getattr(file, "name", "stream"))
            try:
                read = file.read() if most is None else _at_most(file, most)
            except (OSError, ValueError, io.UnsupportedOperation) as error:
                raise RuntimeError(f"[{op}] Failed to read from python stream: {error}.") from error
            if not isinstance(read, bytes | bytearray | memoryview):
                raise RuntimeError(f"[{op}] Failed to read from python stream: it is not opened in binary mode.")  # noqa: TRY004  MLX's type
            self.data = read if isinstance(read, bytearray) else bytearray(read)
            if most is not None and len(self.data) > most:
                raise RuntimeError(f"[{op}] {self.name} has more than {most:,} bytes.")

    def __len__(self) -> int:
        return len(self.data)

    def bytes(self, start: int, stop: int) -> bytes:
        """Return a copy of a part, shorter where the file ends before ``stop``."""
        return bytes(self.data[start:stop])

    def tensor(self, start: int, size: int) -> torch.Tensor:
        """Return a part as bytes, ``(size,)`` of uint8, in the source's own memory."""
        if not size:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self.data, dtype=torch.uint8, count=size, offset=start)


def _at_most(file: Any, most: int) -> bytearray:
    """Return what a file object holds; a little more than ``most`` bytes where it holds more."""
    data = bytearray()
    while len(data) <= most and (part := file.read(_CHUNK_BYTES)):
        data += part
    return data


def _contents(opened: Any) -> Any:
    """Map an opened file; read it where it cannot be mapped (a pipe, an empty file, too little address space)."""
    if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        try:
            return _mapped(opened.fileno())
        except (OSError, ValueError):
            pass
    return bytearray(opened.read())


def _mapped(file: int) -> mmap.mmap:
    if not _NO_RESERVE:
        return mmap.mmap(file, 0, access=mmap.ACCESS_COPY)
    return mmap.mmap(file, 0, flags=mmap.MAP_PRIVATE | _NO_RESERVE, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def _loaded(node: Node, raw: torch.Tensor) -> torch.Tensor:
    if node.dtype is bool_:
        return (raw != 0).reshape(node.shape)
    if raw.data_ptr() % node.dtype.size:
        raw = raw.clone()
    return raw.view(node.dtype.storage).reshape(node.shape)


LOAD = Primitive("Load", _loaded)


def _fails(node: Node) -> torch.Tensor:
    raise RuntimeError(node.attrs)


LOAD_FAILS = Primitive("LoadFails", _fails)


def array_at(source: Source, start: int, shape: tuple[int, ...], dtype: Dtype, stream: Stream) -> array:
    """Return an array whose elements stand at ``start`` of a source, little-endian, the last axis varying fastest.

    On the CPU it lies in the source's memory where that is aligned. Else it is copied, to the stream's device, when it
    is computed.
    """
    count = prod(shape)
    raw = source.tensor(start, count * dtype.size)
    if stream.device.torch.type == "cpu" and count and dtype is not bool_ and raw.data_ptr() % dtype.size == 0:
        return leaf(torch.frombuffer(source.data, dtype=dtype.storage, count=count, offset=start).reshape(shape), dtype)
    return record(LOAD, (leaf(raw, uint8)._n,), shape, dtype, None, None, stream)


def failing(text: str, shape: tuple[int, ...], dtype: Dtype, stream: Stream) -> array:
    """Return an array that raises ``RuntimeError`` when it is computed."""
    return record(LOAD_FAILS, (), shape, dtype, text, None, stream)
