"""What a code object says of its kernels: the NT_AMDGPU_METADATA note."""

from __future__ import annotations

from typing import Annotated

import msgspec

from rocmend.codeobject.elf import PT_NOTE, Header, Segment, read_header, read_segments
from rocmend.codeobject.reader import Reader
from rocmend.core.documents import MALFORMED
from rocmend.core.errors import DataError

NT_AMDGPU_METADATA = 32
MAX_NOTE_BYTES = 16 << 20
MIN_KERNEL_BYTES = 64
"""The keys that every kernel must have are longer; a list of empty maps would fill the memory."""

MAX_NOTES = 64


_Count = Annotated[int, msgspec.Meta(ge=0)]


class Kernel(
    msgspec.Struct,
    frozen=True,
    rename={
        "name": ".name",
        "wavefront_size": ".wavefront_size",
        "vgprs": ".vgpr_count",
        "sgprs": ".sgpr_count",
        "agprs": ".agpr_count",
        "lds_bytes": ".group_segment_fixed_size",
        "scratch_bytes": ".private_segment_fixed_size",
        "vgpr_spills": ".vgpr_spill_count",
        "sgpr_spills": ".sgpr_spill_count",
        "max_workgroup_size": ".max_flat_workgroup_size",
    },
):
    """A kernel's resources as its code object states them.

    Attributes:
        name: Its (mangled) name.
        wavefront_size: Lanes of a wavefront.
        vgprs: Vector registers a lane.
        sgprs: Scalar registers a wavefront.
        agprs: Accumulation registers (MFMA targets).
        lds_bytes: Statically allocated local data share of a workgroup.
        scratch_bytes: Private memory of a lane.
        vgpr_spills: Vector registers that were spilled.
        sgpr_spills: Scalar registers that were spilled.
        max_workgroup_size: Most work-items of a workgroup.
    """

    name: str = ""
    wavefront_size: _Count = 0
    vgprs: _Count = 0
    sgprs: _Count = 0
    agprs: _Count = 0
    lds_bytes: _Count = 0
    scratch_bytes: _Count = 0
    vgpr_spills: _Count = 0
    sgpr_spills: _Count = 0
    max_workgroup_size: _Count = 0


class _Metadata(msgspec.Struct, rename={"kernels": "amdhsa.kernels"}):
    """The note's map; keys that are not named here are skipped without being built in memory."""

    kernels: msgspec.Raw = msgspec.Raw(b"\x90")


def read_kernels(reader: Reader) -> tuple[Kernel, ...]:
    """Return the kernels of a code object; none where it carries no metadata.

    Raises:
        DataError: The file is not a code object, or its notes are damaged.

    Source:
        https://llvm.org/docs/AMDGPUUsage.html#code-object-v3-and-above-metadata
    """
    found = read_metadata(reader)
    return () if found is None else parse_metadata(found, reader.name)


def read_metadata(reader: Reader) -> bytes | None:
    """Return the metadata note of a code object as it stands: a MessagePack map; None where it carries none.

    Raises:
        DataError: The file is not a code object, or its notes are damaged.
    """
    header: Header = read_header(reader.read(0, 64), reader.name)
    for segment in read_segments(reader, header):
        if segment.kind == PT_NOTE:
            found = _metadata(reader, segment)
            if found is not None:
                return found
    return None


def _metadata(reader: Reader, segment: Segment) -> bytes | None:
    if segment.size > MAX_NOTE_BYTES:
        raise DataError(reader.name, f"declares {segment.size} bytes of notes.")
    data = reader.read_exactly(segment.offset, segment.size, "its notes")
    at = 0
    for _ in range(MAX_NOTES):
        if at + 12 > len(data):
            return None
        name_bytes, body_bytes, kind = (int.from_bytes(data[at + n : at + n + 4], "little") for n in (0, 4, 8))
        name_end = at + 12 + name_bytes
        body = at + 12 + (name_bytes + 3 & ~3)
        if body + body_bytes > len(data):
            raise DataError(reader.name, "has a note that is longer than the notes together.")
        if kind == NT_AMDGPU_METADATA and data[at + 12 : name_end].rstrip(b"\0") == b"AMDGPU":
            return data[body : body + body_bytes]
        at = body + (body_bytes + 3 & ~3)
    return None


def parse_metadata(data: bytes, name: str) -> tuple[Kernel, ...]:
    """Return the kernels that a metadata note lists.

    Raises:
        DataError: It is not the MessagePack map that it should be.
    """
    try:
        kernels = bytes(msgspec.msgpack.decode(data, type=_Metadata).kernels)
        if _array_length(kernels) * MIN_KERNEL_BYTES > len(kernels):
            raise DataError(
                name, f"has kernel metadata that lists {_array_length(kernels)} kernels in {len(kernels)} bytes."
            )
        return msgspec.msgpack.decode(kernels, type=tuple[Kernel, ...])
    except MALFORMED as error:
        raise DataError(name, f"has kernel metadata that cannot be decoded: {error}.") from error


def _array_length(data: bytes) -> int:
    """Return how many items a MessagePack array announces; 0 for anything else."""
    if data[:1] == b"\xdd":
        return int.from_bytes(data[1:5], "big")
    if data[:1] == b"\xdc":
        return int.from_bytes(data[1:3], "big")
    return data[0] & 0x0F if data and data[0] & 0xF0 == 0x90 else 0
