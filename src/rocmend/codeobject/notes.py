"""What a code object says of its kernels: the NT_AMDGPU_METADATA note."""

from __future__ import annotations

from typing import Any

import msgspec

from rocmend.codeobject.elf import PT_NOTE, Header, Segment, read_header, read_segments
from rocmend.codeobject.reader import Reader
from rocmend.core.errors import DataError

NT_AMDGPU_METADATA = 32
MAX_NOTE_BYTES = 32 << 20
MAX_NOTES = 64


class Kernel(msgspec.Struct, frozen=True):
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

    name: str
    wavefront_size: int = 0
    vgprs: int = 0
    sgprs: int = 0
    agprs: int = 0
    lds_bytes: int = 0
    scratch_bytes: int = 0
    vgpr_spills: int = 0
    sgpr_spills: int = 0
    max_workgroup_size: int = 0


_FIELDS = {
    "wavefront_size": ".wavefront_size",
    "vgprs": ".vgpr_count",
    "sgprs": ".sgpr_count",
    "agprs": ".agpr_count",
    "lds_bytes": ".group_segment_fixed_size",
    "scratch_bytes": ".private_segment_fixed_size",
    "vgpr_spills": ".vgpr_spill_count",
    "sgpr_spills": ".sgpr_spill_count",
    "max_workgroup_size": ".max_flat_workgroup_size",
}


def read_kernels(reader: Reader) -> tuple[Kernel, ...]:
    """Return the kernels of a code object; none where it carries no metadata.

    Raises:
        DataError: The file is not a code object, or its notes are damaged.

    Source:
        https://llvm.org/docs/AMDGPUUsage.html#code-object-v3-and-above-metadata
    """
    header: Header = read_header(reader.read(0, 64), reader.name)
    for segment in read_segments(reader, header):
        if segment.kind == PT_NOTE:
            found = _metadata(reader, segment)
            if found is not None:
                return parse_metadata(found, reader.name)
    return ()


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
        document = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DataError(name, f"has kernel metadata that is not MessagePack: {error}.") from error
    kernels = document.get("amdhsa.kernels", []) if isinstance(document, dict) else None
    if not isinstance(kernels, list):
        raise DataError(name, "has kernel metadata without a list of kernels.")
    return tuple(_kernel(item) for item in kernels if isinstance(item, dict))


def _kernel(item: dict[Any, Any]) -> Kernel:
    numbers = {field: item.get(key) for field, key in _FIELDS.items()}
    name = item.get(".name")
    return Kernel(
        name if isinstance(name, str) else "",
        **{field: value for field, value in numbers.items() if isinstance(value, int) and value >= 0},
    )
