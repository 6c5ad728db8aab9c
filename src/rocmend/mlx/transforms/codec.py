"""What stands in an exported file: attributes of operations as JSON, and the file's frame.

A file is ``MAGIC``, the length of a header as eight bytes (little endian), the header as JSON, and the bytes of the
constants. Reading one runs nothing of it but operations of this package.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import struct
from typing import TYPE_CHECKING, Any, BinaryIO

from rocmend.core.documents import decode_json, open_regular
from rocmend.core.errors import DataError
from rocmend.core.files import write_atomic
from rocmend.mlx.dtypes import DTYPES, Dtype
from rocmend.mlx.primitive import PRIMITIVES, Primitive

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["decode", "encode", "read", "write"]

MAGIC = b"rocmend-mlx-function\n"
VERSION = 1
_MAX_HEADER = 64 << 20
_ROOM = "rocmend.mlx."

_dtypes = {dtype.name: dtype for dtype in DTYPES}


def encode(value: Any) -> Any:
    """Return an attribute as JSON.

    Raises:
        NotImplementedError: it is of a type that cannot be written to a file.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if hasattr(type(value), "_fields"):
        kind = type(value)
        return {"record": [f"{kind.__module__}:{kind.__qualname__}", [encode(one) for one in value]]}
    if isinstance(value, tuple):
        return {"tuple": [encode(one) for one in value]}
    if isinstance(value, Dtype):
        return {"dtype": value.name}
    if isinstance(value, Primitive):
        return {"op": value.name}
    if isinstance(value, slice):
        return {"slice": [encode(value.start), encode(value.stop), encode(value.step)]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    raise NotImplementedError(
        f"[export_function] an operation that depends on a value of type {type(value).__name__} cannot be exported."
    )


def decode(value: Any) -> Any:
    """Return the attribute that ``encode`` wrote.

    Raises:
        ValueError: it was not written by ``encode``, or names an operation or type that is not there.
    """
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "float":
        return float.fromhex(content)
    if kind == "complex":
        return complex(float.fromhex(content[0]), float.fromhex(content[1]))
    if kind == "tuple":
        return tuple(decode(one) for one in content)
    if kind == "record":
        return _record(content[0])(*map(decode, content[1]))
    if kind == "slice":
        return slice(*map(decode, content))
    if kind == "bytes":
        return bytes.fromhex(content)
    table: Any = _dtypes if kind == "dtype" else PRIMITIVES
    if content not in table:
        raise ValueError(f"[import_function] the file names {kind} {content!r}, which this version does not have.")
    return table[content]


def _record(name: str) -> Any:
    """Return a named tuple of this package by module and name.

    Raises:
        ValueError: there is none.
    """
    module, _, kind = name.partition(":")
    if module.startswith(_ROOM):
        try:
            found = getattr(importlib.import_module(module), kind)
        except (ImportError, AttributeError):
            found = None
        if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
            return found
    raise ValueError(f"[import_function] the file names record {name!r}, which this version does not have.")


def write(path: Path, header: dict[str, Any], blob: bytes) -> None:
    """Write a file.

    Args:
        path: where.
        header: anything that JSON takes.
        blob: bytes of the constants.
    """
    text = json.dumps({"version": VERSION, **header}).encode()
    write_atomic(path, MAGIC + struct.pack("<Q", len(text)) + text + blob)


def read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the header and the bytes of the constants of a file.

    Raises:
        RuntimeError: it cannot be read, or is no exported function of this version.
    """
    try:
        with open_regular(path) as file:
            begin = len(MAGIC) + 8
            start = file.read(begin)
            if start.startswith(MAGIC) and len(start) == begin:
                return _parts(file, path, *struct.unpack("<Q", start[len(MAGIC) :]))
    except OSError as error:
        raise RuntimeError(f"[import_function] Failed to open {path}: {error.strerror}.") from error
    except DataError as error:
        raise RuntimeError(f"[import_function] Failed to open {path}: it {error.message}") from error
    raise RuntimeError(
        f"[import_function] {path} is no function exported by rocmend. Files that MLX itself exported cannot be read: "
        "export the function again with this package."
    )


def _parts(file: BinaryIO, path: Path, length: int) -> tuple[dict[str, Any], bytes]:
    """Return the header, of as many bytes as the file says, and the rest of the file."""
    header: dict[str, Any] | None = None
    if length <= _MAX_HEADER:
        with contextlib.suppress(DataError):
            header = decode_json(file.read(length), dict[str, Any], subject=str(path))
    if header is None:
        raise RuntimeError(f"[import_function] {path} is damaged: its header cannot be read.")
    if header.get("version") != VERSION:
        raise RuntimeError(
            f"[import_function] {path} is of version {header.get('version')}; this package reads version {VERSION}."
        )
    return header, file.read()
