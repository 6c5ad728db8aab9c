"""Kernel packs: the archives that TheRock's multi-architecture wheels keep device code in, outside the libraries."""

from __future__ import annotations

import re
import struct
from typing import Any

import msgspec

from rocmend.codeobject.bundle import CodeObject
from rocmend.codeobject.isa import normalise
from rocmend.codeobject.reader import MAX_READ_BYTES, Reader
from rocmend.core.errors import DataError

MAGIC = b"KPAK"
REFERENCE_SECTION = ".rocm_kpack_ref"
_HEADER = struct.Struct("<4sIQ")
_MAX_REFERENCE_BYTES = 1 << 20
_TENSILE_STYLE = re.compile(r"-(xnack|sramecc)([+-])")


class Pack(msgspec.Struct, frozen=True):
    """A kernel pack's table of contents.

    Attributes:
        group: Its build slice, e.g. ``torch`` or ``blas_lib``.
        libraries: Library (as named in the table) to its code objects.
    """

    group: str
    libraries: dict[str, tuple[CodeObject, ...]]


class PackReference(msgspec.Struct, frozen=True):
    """Where a library without device code of its own looks for it.

    Attributes:
        library: Its key in the packs' tables.
        search_paths: Pack files relative to the library; ``@GFXARCH@`` stands for the GPU's target.
    """

    library: str
    search_paths: tuple[str, ...]


def _decode(data: bytes, name: str, what: str) -> dict[Any, Any]:
    try:
        document = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DataError(name, f"has {what} that is not MessagePack: {error}.") from error
    if not isinstance(document, dict):
        raise DataError(name, f"has {what} that is not a map.")
    return document


def read_pack(reader: Reader) -> Pack:
    """Return what a kernel pack holds.

    Raises:
        DataError: It is none, of an unknown version, or damaged.

    Source:
        https://github.com/ROCm/rocm-systems (shared/kpack: format of .kpack files, version 1)
    """
    head = reader.read(0, _HEADER.size)
    if len(head) < _HEADER.size or head[:4] != MAGIC:
        raise DataError(reader.name, "is not a kernel pack.")
    _, version, at = _HEADER.unpack(head)
    if version != 1:
        raise DataError(reader.name, f"is a kernel pack of version {version}; version 1 is known.")
    length = reader.size - at
    if not 0 < length <= MAX_READ_BYTES or at < _HEADER.size:
        raise DataError(reader.name, f"is a kernel pack whose table of contents would stand at offset {at}.")
    document = _decode(reader.read_exactly(at, length, "its table of contents"), reader.name, "a table of contents")
    table = document.get("toc")
    if not isinstance(table, dict):
        raise DataError(reader.name, "is a kernel pack without a table of contents.")
    libraries = {}
    for library, targets in table.items():
        if isinstance(library, str) and isinstance(targets, dict):
            objects = [_code_object(target, entry) for target, entry in targets.items()]
            libraries[library] = tuple(item for item in objects if item is not None)
    group = document.get("group_name")
    return Pack(group if isinstance(group, str) else "", libraries)


def _code_object(target: object, entry: object) -> CodeObject | None:
    name = normalise(_TENSILE_STYLE.sub(r":\1\2", target)) if isinstance(target, str) else None
    size = entry.get("original_size") if isinstance(entry, dict) else None
    return CodeObject(name, size if isinstance(size, int) and size >= 0 else 0) if name else None


def parse_reference(data: bytes, name: str) -> PackReference:
    """Return what a library's ``.rocm_kpack_ref`` section says.

    Raises:
        DataError: It is damaged.
    """
    if len(data) > _MAX_REFERENCE_BYTES:
        raise DataError(name, f"has a kernel pack reference of {len(data)} bytes.")
    document = _decode(data.rstrip(b"\0"), name, "a kernel pack reference")
    library, paths = document.get("kernel_name"), document.get("kpack_search_paths")
    if not isinstance(library, str) or not isinstance(paths, list):
        raise DataError(name, "has a kernel pack reference without a library name or search paths.")
    return PackReference(library, tuple(path for path in paths if isinstance(path, str)))
