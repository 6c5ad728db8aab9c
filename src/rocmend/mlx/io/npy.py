"""numpy's ``.npy``, and ``.npz``, a zip file of them.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. MLX writes bfloat16 as ``<V2``.
"""

from __future__ import annotations

import ast
import io
import zipfile
import zlib
from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.io.output import bytes_of
from rocmend.mlx.io.source import Source, array_at, failing
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.array import array
    from rocmend.mlx.device import Stream
    from rocmend.mlx.dtypes import Dtype

__all__ = ["read_npy", "read_npz", "write_npy", "write_npz"]

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 1 << 20
_FREE_BYTES = 1 << 30
_MOST_RATIO = 100
"""A ``.npz`` may unpack to 1 GiB, or to 100 times its size: weights shrink to a half at best, zeros to a thousandth."""
_CODES: dict[str, Dtype] = {
    "b1": dtypes.bool_, "u1": dtypes.uint8, "u2": dtypes.uint16, "u4": dtypes.uint32, "u8": dtypes.uint64,
    "i1": dtypes.int8, "i2": dtypes.int16, "i4": dtypes.int32, "i8": dtypes.int64, "f2": dtypes.float16,
    "f4": dtypes.float32, "f8": dtypes.float64, "V2": dtypes.bfloat16, "c8": dtypes.complex64,
}  # fmt: skip
_NAMES = {dtype: code for code, dtype in _CODES.items()}


def read_npy(source: Source, stream: Stream) -> array:
    """Return the array of a ``.npy`` file, to be read when it is computed.

    Raises:
        RuntimeError: it is no such file.
        ValueError: its elements are of a type that MLX does not have.
    """
    descr, fortran, shape, start = _header(source)
    order, code = descr[:1], descr[1:]
    dtype = _CODES.get(code)
    if dtype is None or order not in "<>|=":
        raise ValueError(f"[load] Unsupported array protocol type-string: {descr}")
    needed = prod(shape) * dtype.size
    if start + needed > len(source):
        have = max(len(source) - start, 0)
        return failing(
            f"[load] {source.name} ends after {have} of {needed} bytes of its array. The file is incomplete.",
            shape,
            dtype,
            stream,
        )
    if order == ">" and dtype.size > 1:
        return _swapped(source, start, shape, dtype, fortran=fortran)
    if not fortran or len(shape) < 2:
        return array_at(source, start, shape, dtype, stream)
    whole: array = ops.transpose(array_at(source, start, shape[::-1], dtype, stream), stream=stream)
    return whole


def _swapped(source: Source, start: int, shape: tuple[int, ...], dtype: Dtype, *, fortran: bool) -> array:
    import numpy as np

    from rocmend.mlx.array import array

    count = prod(shape)
    if dtype.is_complex:
        whole = np.frombuffer(source.data, dtype=">c8", count=count, offset=start).astype("<c8")
    elif dtype is dtypes.bfloat16:
        bits = np.frombuffer(source.data, dtype=">u2", count=count, offset=start).astype("<u2")
        result: array = ops.view(array(bits.reshape(shape, order="F" if fortran else "C")), dtypes.bfloat16)
        return result
    else:
        whole = np.frombuffer(source.data, dtype=f">{_NAMES[dtype]}", count=count, offset=start).astype(dtype.numpy)
    return array(whole.reshape(shape, order="F" if fortran else "C"))


def _header(source: Source) -> tuple[str, bool, tuple[int, ...], int]:
    """Return type string, order, shape, and where the elements begin."""
    start = source.bytes(0, 12)
    wide = len(start) == 12 and start[6] in (2, 3)
    if start[:6] != _MAGIC or len(start) < 10 or start[6] not in (1, 2, 3):
        raise RuntimeError(f"[load] Invalid header in file {source.name}")
    at = 12 if wide else 10
    length = int.from_bytes(start[8:at], "little")
    if length > _MAX_HEADER:
        raise RuntimeError(f"[load] Invalid header in file {source.name}: it claims {length} bytes.")
    try:
        header = ast.literal_eval(source.bytes(at, at + length).decode("utf-8" if start[6] == 3 else "latin-1").strip())
        descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
        if not isinstance(descr, str) or type(fortran) is not bool or type(shape) is not tuple:
            raise TypeError  # noqa: TRY301  one error for all
        if not all(type(size) is int and 0 <= size < 1 << 31 for size in shape) or prod(shape) >= 1 << 60:
            raise TypeError  # noqa: TRY301  one error for all
    except (ValueError, SyntaxError, KeyError, TypeError, UnicodeDecodeError, RecursionError, MemoryError):
        raise RuntimeError(f"[load] Invalid header in file {source.name}") from None
    return descr, fortran, shape, at + length


def write_npy(out: Any, x: array) -> None:
    """Write an array as ``.npy``."""
    dtype = x.dtype
    order = "|" if dtype.size == 1 else "<"
    header = f"{{'descr': '{order}{_NAMES[dtype]}', 'fortran_order': False, 'shape': {x.shape!r}, }}".encode()
    header += b" " * (-(len(_MAGIC) + 4 + len(header) + 1) % 64) + b"\n"
    version = b"\x01\x00" + len(header).to_bytes(2, "little")
    out.write(_MAGIC + version + header)
    out.write(bytes_of(x))


def read_npz(file: Any, stream: Stream) -> dict[str, array]:
    """Return the arrays of a ``.npz`` file by name.

    Raises:
        ValueError: it is no zip file.
        RuntimeError: a member is no ``.npy``, is damaged, or unpacks to more than any array that was saved would.
    """
    try:
        archive = zipfile.ZipFile(file)
    except (OSError, zipfile.BadZipFile, AttributeError, ValueError) as error:
        raise ValueError(
            "[load_npz] Input must be a zip file or a file-like object that can be opened with zipfile.ZipFile: "
            f"{error}."
        ) from error
    with archive:
        found = {}
        members = archive.infolist()
        left = max(_FREE_BYTES, _MOST_RATIO * sum(min(one.compress_size, _end(archive)) for one in members))
        for one in members:
            source = _member(archive, one, left)
            left -= len(source)
            found[one.filename.removesuffix(".npy")] = read_npy(source, stream)
        return found


def _end(archive: zipfile.ZipFile) -> int:
    """Return the size of the archive's own file: a member says that it is larger at will."""
    file: Any = archive.fp
    at = file.tell()
    end: int = file.seek(0, io.SEEK_END)
    file.seek(at)
    return end


def _member(archive: zipfile.ZipFile, one: zipfile.ZipInfo, left: int) -> Source:
    """Return a member's bytes: what it says of its size is not believed.

    Raises:
        RuntimeError: it is damaged, is compressed otherwise than numpy does, or has more than ``left`` bytes.
    """
    name = one.filename
    if one.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise RuntimeError(f"[load_npz] {name} is compressed in a way that numpy does not write.")
    try:
        if one.file_size > left:
            raise RuntimeError(f"it unpacks to {one.file_size:,} bytes, and {left:,} are left for it")  # noqa: TRY301
        with archive.open(one) as member:
            source = Source(member, "load_npz", most=left)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
        raise RuntimeError(f"[load_npz] {name} cannot be read: {error}.") from error
    source.name = name
    return source


def write_npz(out: Any, arrays: dict[str, array], *, compressed: bool) -> None:
    """Write arrays as ``.npz``."""
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", kind, allowZip64=True) as archive:
        for name, x in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write_npy(_Flat(member), x)


class _Flat(io.RawIOBase):
    """Hands bytes on; a zip member counts what it is given in items, so views of bytes only."""

    def __init__(self, out: Any) -> None:
        self.out = out

    def write(self, data: Any) -> int:
        """Write bytes."""
        self.out.write(memoryview(data).cast("B"))
        return len(data)
