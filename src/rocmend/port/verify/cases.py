"""Recorded launches of kernels: what went in, and what must come out.

A case is a folder: ``case.json`` and a file of raw bytes for each buffer, little-endian, as the device saw them::

    .rocmend/port/cases/rms_norm-bf16/case.json
                                      arg0.in      the buffer before the launch
                                      arg0.out     the same after it, where the kernel writes to it

Cases are recorded where the original runs (``rocmend.port.verify.recording``), and are compared wherever the port runs
(``compare``).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from rocmend.codeobject.kernarg import Launch
from rocmend.core.beneath import Beneath
from rocmend.core.documents import decode_json
from rocmend.core.errors import DataError

__all__ = ["FOLDER", "Buffer", "Case", "Parameter", "Value", "compare", "read", "read_all", "write"]

FOLDER = ".rocmend/port/cases"
_VERSION = 1
MAX_BUFFER_BYTES = 1 << 30
_MAX_CASE_BYTES = 4 << 20

Kind = Literal["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bytes"]

_FORMATS: Mapping[str, str] = {
    "f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H",
    "u32": "I", "u64": "Q",
}  # fmt: skip
TOLERANCES: Mapping[str, float] = {"f64": 1e-10, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2}
"""Relative and absolute, by type; other types must be equal."""


class Buffer(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag="buffer"):
    """A pointer argument.

    Attributes:
        before: The file of its bytes before the launch.
        after: The file of its bytes after the launch; empty where the kernel does not write to it.
        kind: The type of its elements.
        tolerance: Relative and absolute; None for the type's own.
        offset: Bytes from the buffer's beginning to where the argument points. Arguments that name the same file share
            the memory.
    """

    before: str
    after: str = ""
    kind: Kind = "bytes"
    tolerance: float | None = None
    offset: int = 0


class Value(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag="value"):
    """An argument that is passed by value.

    Attributes:
        data: Its bytes (base64 in the file).
    """

    data: bytes


Parameter = Buffer | Value


class Case(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One launch.

    Attributes:
        kernel: The kernel's name: mangled, or as the source has it where that is clear.
        unit: The translation unit, relative to the project.
        grid: Workgroups in x, y and z.
        block: Work-items of a workgroup in x, y and z.
        parameters: The kernel's arguments, in order.
        dynamic_lds_bytes: LDS that the launch adds.
        recorded_on: The device that it was recorded on.
        schema_version: Of the file.
    """

    kernel: str
    unit: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    parameters: tuple[Parameter, ...]
    dynamic_lds_bytes: int = 0
    recorded_on: str = ""
    schema_version: int = _VERSION

    @property
    def launch(self) -> Launch:
        """Return how it is launched."""
        return Launch(self.grid, self.block, self.dynamic_lds_bytes)


def read(tree: Beneath, folder: str) -> Case:
    """Return a recorded case.

    Args:
        tree: The project's folder.
        folder: Of the case, relative to it.

    Raises:
        DataError: It cannot be read, or is not what a case is.
    """
    path = f"{folder}/case.json".lstrip("/")
    try:
        data = tree.document(path, _MAX_CASE_BYTES)
    except OSError as error:
        raise DataError(path, f"the case cannot be read: {error}.") from error
    case: Case = decode_json(data, Case, subject=path, what="case")
    if case.schema_version != _VERSION:
        raise DataError(folder, f"is a case of version {case.schema_version}; this rocmend reads version {_VERSION}.")
    sizes = (*case.grid, *case.block)
    if min(sizes) < 1 or math.prod(case.block) > 1024 or max(sizes) >= 1 << 31 or case.dynamic_lds_bytes < 0:
        raise DataError(
            folder,
            f"launches {case.grid} workgroups of {case.block} work-items, which is outside the limits of any GPU.",
        )
    return case


def read_all(tree: Beneath) -> list[tuple[str, str, Case]]:
    """Return the cases of a project: name, folder and case, by name.

    Raises:
        DataError: One of them cannot be read.
    """
    try:
        names = tree.names(FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DataError(str(tree.root / FOLDER), f"the cases cannot be read: {error.strerror}.") from error
    folders = {name: f"{FOLDER}/{name}" for name in names if tree.is_file(f"{FOLDER}/{name}/case.json")}
    return [(name, folder, read(tree, folder)) for name, folder in folders.items()]


def buffer(tree: Beneath, folder: str, name: str) -> bytes:
    """Return a buffer's bytes.

    Raises:
        DataError: It is not there, lies outside the case, or is too large.
    """
    path = f"{folder}/{name}"
    if Path(name).name != name:
        raise DataError(folder, f"names a buffer outside of it: {name!r}.")
    try:
        return tree.document(path, MAX_BUFFER_BYTES)
    except OSError as error:
        raise DataError(path, f"the buffer cannot be read: {error.strerror}.") from error


def write(tree: Beneath, folder: str, case: Case, buffers: Mapping[str, bytes]) -> None:
    """Write a case; its JSON last, so that a case that is half written is none.

    Args:
        tree: The project's folder.
        folder: Of the case, relative to it; it is made.
        case: The case.
        buffers: The bytes of each file that the case names.

    Raises:
        DataError: A file that the case names is not among the buffers, or lies outside of the folder.
    """
    named = {name for one in case.parameters if isinstance(one, Buffer) for name in (one.before, one.after) if name}
    absent = sorted(named - buffers.keys())
    if absent:
        raise DataError(folder, f"the case names {absent[0]}, but no bytes were given for it.")
    for name in sorted(named):
        if Path(name).name != name:
            raise DataError(folder, f"names a buffer outside of it: {name!r}.")
        tree.put(f"{folder}/{name}", buffers[name])
    tree.put(f"{folder}/case.json", msgspec.json.format(msgspec.json.encode(case), indent=1) + b"\n")


def compare(expected: bytes, got: bytes, kind: str, tolerance: float | None = None) -> str | None:
    """Return how a buffer differs from what was expected; None where it does not.

    Floating-point values agree where |a - b| <= tolerance * (1 + |b|), or both are the same infinity, or both NaN.

    Args:
        expected: The recorded bytes.
        got: The bytes to compare.
        kind: The type of the elements.
        tolerance: Instead of the type's own (``TOLERANCES``).
    """
    if len(expected) != len(got):
        return f"{len(expected)} bytes expected, got {len(got)}"
    if expected == got:
        return None
    limit = TOLERANCES.get(kind, 0.0) if tolerance is None else tolerance
    wanted, found = _elements(expected, kind), _elements(got, kind)
    wrong = [at for at, (one, other) in enumerate(zip(wanted, found, strict=True)) if not _agree(one, other, limit)]
    if not wrong:
        return None
    at = wrong[0]
    told = f"{wanted[at]!r} expected, got {found[at]!r}"
    return f"{len(wrong)} of {len(wanted)} elements differ, the first at {at}: {told}"


def _elements(data: bytes, kind: str) -> Sequence[float]:
    if kind == "bf16":
        halves = struct.unpack(f"<{len(data) // 2}H", data[: len(data) // 2 * 2])
        return struct.unpack(f"<{len(halves)}f", b"".join(struct.pack("<I", one << 16) for one in halves))
    code = _FORMATS.get(kind, "B")
    size = struct.calcsize(code)
    return struct.unpack(f"<{len(data) // size}{code}", data[: len(data) // size * size])


def _agree(expected: float, got: float, limit: float) -> bool:
    if expected == got or (math.isnan(expected) and math.isnan(got)):
        return True
    if not (math.isfinite(expected) and math.isfinite(got)):
        return False
    return abs(expected - got) <= limit * (1 + abs(expected))
