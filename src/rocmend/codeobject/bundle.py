"""Clang offload bundles, plain and compressed: the containers of HIP fat binaries."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import IO, cast

import msgspec
import zstandard

from rocmend.codeobject.isa import SPIRV, entry_target, from_header
from rocmend.codeobject.limits import DEFAULT_LIMITS, MIB, Limits
from rocmend.codeobject.reader import BLOCK_BYTES, PassedError, Reader, SliceReader, StreamReader
from rocmend.codeobject.whole import as_reason, check_code_object, cut_off, zstd_frame
from rocmend.core.errors import DataError

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC = b"CCOB"
ALIGNMENT = 4096
"""Bundles of a fat binary follow each other at multiples of this."""

MAX_ENTRIES = 1024
MAX_ID_BYTES = 1024
_ENTRY = struct.Struct("<QQQ")
_COMMON = struct.Struct("<4sHH")
_SIZES = {1: struct.Struct("<IQ"), 2: struct.Struct("<IIQ"), 3: struct.Struct("<QQQ")}
_METHODS = {0: "zlib", 1: "zstd"}
_OFFLOAD_KINDS = ("host-", "hip", "hcc-", "openmp-", "sycl-")

_MAX_PROBLEMS = 8
_MAX_OTHERS = 8
_CHECK_BYTES = MIB // 4
"""How far a compressed bundle is inflated to compare its code objects with their labels."""

_CHECK_GENERIC_BYTES = 64 * MIB
"""The same where a generic target's version has to be read."""


class CodeObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """One target's code.

    Attributes:
        target: What it was compiled for, e.g. ``gfx90a:xnack-``.
        size_bytes: Its size, uncompressed.
        generic_version: Of a generic target's code; 0 for a specific target or where it was not read.
        code_object_version: 2 … 6; 0 where its header was not read.
        damage: Why it cannot be loaded; "" where nothing speaks against it.
    """

    target: str
    size_bytes: int
    generic_version: int = 0
    code_object_version: int = 0
    damage: str = ""


class Bundle(msgspec.Struct, frozen=True):
    """One offload bundle, that is the device code of one translation unit.

    Attributes:
        offset: Where it begins.
        end: Where it ends.
        code_objects: Device code for AMD GPUs.
        other_entries: Ids of the first entries that are not for AMD GPUs (the host's, as a rule).
        compression: "" or ``zlib`` or ``zstd``.
        format_version: Of a compressed bundle's header, 1 to 3; 0 for a plain one.
        problems: What was wrong inside it.
    """

    offset: int
    end: int
    code_objects: tuple[CodeObject, ...]
    other_entries: tuple[str, ...] = ()
    compression: str = ""
    format_version: int = 0
    problems: tuple[str, ...] = ()


class _Entry(msgspec.Struct, frozen=True):
    entry_id: str
    offset: int
    size: int


def read_bundle(
    reader: Reader, offset: int, *, check_bytes: int | None = None, generic_versions: bool = False
) -> Bundle:
    """Parse a plain bundle.

    Args:
        reader: Where it is.
        offset: Where it begins.
        check_bytes: How far into the bundle code object headers are read; None for all.
        generic_versions: Go farther for those of generic targets.

    Raises:
        DataError: There is none, or its table cannot be right. What is wrong in one entry goes to ``problems``.

    Source:
        https://clang.llvm.org/docs/ClangOffloadBundler.html#bundled-binary-file-layout
    """
    entries, table_end = _read_table(reader, offset)
    objects: list[CodeObject] = []
    others: list[str] = []
    problems: list[str] = []
    end = table_end
    for entry in sorted(entries, key=lambda entry: entry.offset):
        start = offset + entry.offset
        target = entry_target(entry.entry_id)
        if start + entry.size > reader.size:
            there = max(0, reader.size - start)
            damage = as_reason(cut_off("", there, entry.size, "file", f"of its entry {_shown(entry.entry_id)}"))
            problems.append(damage)
            if target is not None:
                objects.append(CodeObject(target, there, damage=damage))
            continue
        end = max(end, start + entry.size)
        if target is None:
            others.append(entry.entry_id[:80])
            if "gfx" in entry.entry_id:
                problems.append(f"{_shown(entry.entry_id)} names no gfx target that we know")
        elif entry.size:
            limit = check_bytes
            if limit is not None and generic_versions and "-generic" in target:
                limit = _CHECK_GENERIC_BYTES
            if target == SPIRV or (limit is not None and entry.offset + 64 > limit):
                objects.append(CodeObject(target, entry.size))
            else:
                inner = SliceReader(reader, start, entry.size, f"entry {_shown(entry.entry_id)}")
                objects.append(_code_object(inner, entry, target, None if limit is None else limit - entry.offset))
                if objects[-1].damage:
                    problems.append(f"{inner.name} {objects[-1].damage}")
    return Bundle(offset, end, tuple(objects), tuple(others[:_MAX_OTHERS]), problems=tuple(problems[:_MAX_PROBLEMS]))


def _shown(entry_id: str) -> str:
    return repr(entry_id if len(entry_id) <= 80 else entry_id[:80] + "…")


def _read_table(reader: Reader, offset: int) -> tuple[list[_Entry], int]:
    head = reader.read(offset, len(MAGIC) + 8)
    if head[: len(MAGIC)] != MAGIC:
        raise DataError(reader.name, f"has no offload bundle at offset {offset}.")
    if len(head) < len(MAGIC) + 8:
        raise DataError(reader.name, f"ends inside the header of the offload bundle at offset {offset}.")
    count = int.from_bytes(head[len(MAGIC) :], "little")
    if not 1 <= count <= MAX_ENTRIES:
        raise DataError(
            reader.name, f"has an offload bundle at offset {offset} that declares {count} entries; 1 to {MAX_ENTRIES}."
        )
    at = offset + len(head)
    entries = []
    for _ in range(count):
        fields = reader.read_exactly(at, _ENTRY.size, "an offload bundle's table")
        start, size, id_bytes = _ENTRY.unpack(fields)
        if id_bytes > MAX_ID_BYTES:
            raise DataError(reader.name, f"has an offload bundle entry whose id is {id_bytes} bytes long.")
        raw = reader.read_exactly(at + _ENTRY.size, id_bytes, "an offload bundle's table")
        entry_id = raw.decode("utf-8", "replace")
        if not entry_id.startswith(_OFFLOAD_KINDS):
            raise DataError(reader.name, f"has an offload bundle entry of no known kind: {_shown(entry_id)}.")
        entries.append(_Entry(entry_id, start, size))
        at += _ENTRY.size + id_bytes
    return entries, at


def _code_object(inner: Reader, entry: _Entry, target: str, readable: int | None) -> CodeObject:
    """Return an entry's code object; with its damage where it is not whole or not what its label says."""
    try:
        isa = from_header(inner.read(0, 64), inner.name)
        if isa.processor != target.partition(":")[0]:
            return CodeObject(target, entry.size, damage=f"holds code for {isa.target}: the runtime would not load it")
        check_code_object(inner, readable=readable, what="entry")
    except DataError as error:
        return CodeObject(target, entry.size, damage=as_reason(error))
    named = target if ":" in target else isa.target  # before V4, a label without settings meant "off", not "any"
    return CodeObject(named, entry.size, isa.generic_version, isa.code_object_version)


def read_compressed(
    reader: Reader, offset: int, limits: Limits = DEFAULT_LIMITS, *, generic_versions: bool = True
) -> Bundle:
    """Parse a compressed bundle, inflating no more of it than its table and the first code objects.

    Args:
        reader: Where it is.
        offset: Where it begins.
        limits: Bounds on the window.
        generic_versions: Inflate as far as the code of generic targets, to read its version.

    Raises:
        DataError: There is none, its header cannot be right, or it does not inflate to a bundle.

    Source:
        https://clang.llvm.org/docs/ClangOffloadBundler.html#compressed-device-binary-format (versions 1 to 3)
    """
    head = reader.read(offset, 32)
    if len(head) < 20 or head[:4] != COMPRESSED_MAGIC:
        raise DataError(reader.name, f"has no compressed offload bundle at offset {offset}.")
    _, version, method = _COMMON.unpack_from(head)
    if version not in _SIZES or method not in _METHODS:
        raise DataError(
            reader.name,
            f"has a compressed offload bundle at offset {offset} of version {version}, method {method}; "
            "versions 1 to 3 and methods 0 (zlib) and 1 (zstd) are known.",
        )
    sizes = _SIZES[version]
    if len(head) < _COMMON.size + sizes.size:
        raise DataError(reader.name, f"ends inside the header of the compressed offload bundle at offset {offset}.")
    fields = sizes.unpack_from(head, _COMMON.size)
    uncompressed: int = fields[-2]
    payload = offset + _COMMON.size + sizes.size
    end: int = offset + fields[0] if version > 1 else reader.size  # version 1 does not say where it ends
    if end <= payload:
        raise DataError(
            reader.name, f"has a compressed offload bundle at offset {offset} that claims {end - offset} bytes."
        )
    if end > reader.size:
        whose = f"of its compressed offload bundle at offset {offset}"
        raise cut_off(reader.name, reader.size - offset, end - offset, "file", whose)
    blocks = _inflated(reader, payload, end, _METHODS[method], limits)
    name = f"{reader.name}, compressed bundle at offset {offset}"
    inner = StreamReader(blocks, uncompressed, name, head_bytes=MIB, window_bytes=MIB)
    bundle = read_bundle(inner, 0, check_bytes=_CHECK_BYTES, generic_versions=generic_versions)
    objects, problems = bundle.code_objects, bundle.problems
    try:
        _check_payload(reader, (payload, end), inner, (version, _METHODS[method]), limits)
    except DataError as error:
        damage = as_reason(error)
        objects = tuple(msgspec.structs.replace(item, damage=item.damage or damage) for item in objects)
        problems = (*problems, damage)
    after = end if version > 1 else payload
    return Bundle(offset, after, objects, bundle.other_entries, _METHODS[method], version, problems)


def _check_payload(
    reader: Reader, span: tuple[int, int], inner: StreamReader, form: tuple[int, str], limits: Limits
) -> None:
    """Check that a payload fills its place and inflates to what is promised; inflate it whole only where need be.

    Raises:
        DataError: It does not.
    """
    (start, end), (version, method) = span, form
    found: int | None = None
    if method == "zstd":
        try:
            frame_end, found = zstd_frame(reader, start, end)
        except PassedError:
            return  # a payload larger than a stream's window, whose bytes the stream itself counts
        if version > 1 and frame_end != end:
            raise DataError(
                reader.name,
                f"is damaged: {frame_end - start:,} of a compressed bundle's {end - start:,} bytes are used.",
            )
    if found is None and limits.deep:
        if inner.size > limits.ratio_from_bytes and inner.size > limits.ratio * (end - start):
            raise DataError(reader.name, f"holds a compressed bundle of {end - start:,} bytes for {inner.size:,}.")
        found = inner.drain(inner.size)
    if found is not None and found != inner.size:
        raise cut_off(reader.name, found, inner.size, "bundle", "when it is inflated")


class _Span:
    """A part of a reader as the file object that zstandard wants."""

    def __init__(self, reader: Reader, start: int, end: int) -> None:
        self._reader, self._at, self._end = reader, start, end

    def read(self, size: int) -> bytes:
        data = self._reader.read(self._at, min(size, self._end - self._at))
        self._at += len(data)
        return data


def _inflated(reader: Reader, start: int, end: int, method: str, limits: Limits) -> Iterator[bytes]:
    """Yield a payload in blocks of bounded size, however well it is compressed."""
    span = _Span(reader, start, end)
    try:
        if method == "zstd":
            context = zstandard.ZstdDecompressor(max_window_size=limits.zstd_window_bytes)
            source = cast("IO[bytes]", span)  # it only ever calls read
            stream = context.stream_reader(source, read_size=1 << 14)
            while block := stream.read(BLOCK_BYTES):
                yield block
            return
        inflater = zlib.decompressobj()
        pending = span.read(1 << 14)
        while pending and not inflater.eof:
            if block := inflater.decompress(pending, BLOCK_BYTES):
                yield block
            pending = inflater.unconsumed_tail or span.read(1 << 14)
    except (zstandard.ZstdError, zlib.error, MemoryError) as error:
        raise DataError(reader.name, f"holds a compressed offload bundle that does not inflate: {error}.") from error
