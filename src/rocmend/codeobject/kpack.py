"""Kernel packs: the archives that TheRock's multi-architecture wheels keep device code in, outside the libraries."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Annotated, TypeVar

import msgspec

from rocmend.codeobject.bundle import CodeObject
from rocmend.codeobject.isa import normalise
from rocmend.codeobject.reader import Reader
from rocmend.codeobject.whole import cut_off
from rocmend.core.documents import MALFORMED
from rocmend.core.errors import DataError

MAGIC = b"KPAK"
REFERENCE_SECTION = ".rocm_kpack_ref"
_HEADER = struct.Struct("<4sIQ")
_MAX_TABLE_BYTES = 8 << 20
_MAX_REFERENCE_BYTES = 1 << 16
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


_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Entry(msgspec.Struct):
    original_size: _Count = 0
    ordinal: _Count = 0


class _Blob(msgspec.Struct):
    offset: _Count = 0
    size: _Count = 0


class _Table(msgspec.Struct):
    """A pack's table of contents; keys that are not named here are skipped without being built in memory."""

    toc: dict[str, dict[str, _Entry]]
    group_name: str = ""
    blobs: list[_Blob] = []
    zstd_offset: _Count = 0
    zstd_size: _Count = 0


class _Reference(msgspec.Struct):
    kernel_name: str
    kpack_search_paths: tuple[str, ...]


_T = TypeVar("_T", _Table, _Reference)


def _decode(data: bytes, kind: type[_T], name: str, what: str) -> _T:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except MALFORMED as error:
        raise DataError(name, f"has {what} that cannot be decoded: {error}.") from error


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
    if length <= 0:
        raise cut_off(reader.name, reader.size, at + 1, "kernel pack")
    if not 0 < length <= _MAX_TABLE_BYTES or at < _HEADER.size:
        raise DataError(
            reader.name, f"is a kernel pack whose table of contents would be {length} bytes at offset {at}."
        )
    table = _decode(
        reader.read_exactly(at, length, "its table of contents"), _Table, reader.name, "a table of contents"
    )
    if table.zstd_offset + table.zstd_size > at:
        raise DataError(reader.name, "is damaged: its compressed code would end inside its table of contents.")
    libraries = {}
    for library, targets in table.toc.items():
        objects = (_code_object(target, entry, table.blobs, at) for target, entry in targets.items())
        libraries[library] = tuple(item for item in objects if item is not None)
    return Pack(table.group_name, libraries)


def _code_object(target: str, entry: _Entry, blobs: Sequence[_Blob], end: int) -> CodeObject | None:
    name = normalise(_TENSILE_STYLE.sub(r":\1\2", target))
    damage = "" if entry.original_size else "the pack's table says that it has no bytes"
    if blobs:
        blob = blobs[entry.ordinal] if entry.ordinal < len(blobs) else None
        if blob is None or blob.offset + blob.size > end or blob.size != entry.original_size:
            damage = "the pack's table names bytes for it that are not there"
    return CodeObject(name, entry.original_size, damage=damage) if name else None


def parse_reference(data: bytes, name: str) -> PackReference:
    """Return what a library's ``.rocm_kpack_ref`` section says.

    Raises:
        DataError: It is damaged.
    """
    if len(data) > _MAX_REFERENCE_BYTES:
        raise DataError(name, f"has a kernel pack reference of {len(data)} bytes.")
    found = _decode(data.rstrip(b"\0"), _Reference, name, "a kernel pack reference")
    return PackReference(found.kernel_name, found.kpack_search_paths)
