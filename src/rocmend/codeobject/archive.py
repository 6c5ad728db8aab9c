"""Reading a wheel member by member, without extracting it and without trusting it.

The standard library's reader loads the whole directory into memory and checks less than a hostile file needs; what a
wheel uses of the format (stored and deflated members, zip64) is small. The tests compare the outcome with ``zipfile``.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import msgspec

from rocmend.codeobject.limits import DEFAULT_LIMITS, Limits
from rocmend.codeobject.reader import BLOCK_BYTES, Reader, StreamReader
from rocmend.core.errors import DataError

STORED, DEFLATED = 0, 8
_END = struct.Struct("<4s4H2IH")
_END64_LOCATOR = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQ2H2I4Q")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_MAX_COMMENT = 0xFFFF
_UNSET32 = 0xFFFFFFFF
_FLAG_ENCRYPTED, _FLAG_UTF8 = 0x1, 0x800
_INPUT_BYTES = 1 << 17
_MAX_DIRECTORY_BYTES = 64 << 20
_UNPACK = "Nothing of it was read. If you trust where it comes from, unpack it and inspect the folder."


class Member(msgspec.Struct, frozen=True):
    """An entry of an archive's directory.

    Attributes:
        name: Its path in the archive; bytes that are not valid text are replaced.
        size: Bytes it inflates to.
        stored_size: Bytes it takes in the archive.
        method: 0 stored, 8 deflated.
        header_at: Offset of its local header.
        flags: General-purpose flags.
        checksum: CRC-32 of the data it inflates to.
        name_valid: The name was valid text.
    """

    name: str
    size: int
    stored_size: int
    method: int
    header_at: int
    flags: int
    checksum: int
    name_valid: bool = True

    @property
    def is_dir(self) -> bool:
        """It stands for a folder."""
        return self.name.endswith("/")


class Archive:
    """A zip file.

    Args:
        reader: The file.
        limits: Bounds on what it may inflate to.

    Raises:
        DataError: It is no zip file, or its directory is damaged.
    """

    def __init__(self, reader: Reader, limits: Limits = DEFAULT_LIMITS) -> None:
        self._reader = reader
        self._limits = limits
        self.inflated_bytes = 0
        self.problems: list[tuple[str, str, bool]] = []
        self.members = self._read_directory()

    # -- directory ---------------------------------------------------------------------------------------------------

    def _fail(self, message: str, why: str = "") -> DataError:
        return DataError(self._reader.name, message, why=why)

    def _read_directory(self) -> tuple[Member, ...]:
        end_at, count, size, offset = self._find_end()
        start = end_at - size
        if start < 0 or offset > start:
            raise self._fail(f"has a zip directory of {size} bytes at offset {offset}, which it has no room for.")
        if size > _MAX_DIRECTORY_BYTES:
            raise self._fail(f"has a zip directory of {size} bytes; at most {_MAX_DIRECTORY_BYTES} are read.")
        if count > self._limits.members:
            raise self._fail(
                f"declares {count} members; at most {self._limits.members} are read.",
                _UNPACK,
            )
        prefix = start - offset  # bytes before the archive, as self-extracting files have
        members, at = [], start
        for _ in range(count):
            member, at = self._read_entry(at, end_at, prefix)
            members.append(member)
        return self._without_overlaps(members, start)

    def _find_end(self) -> tuple[int, int, int, int]:
        """Return where the directory ends, its number of entries, its size and its offset as written."""
        size = self._reader.size
        tail_at = max(0, size - _END.size - _MAX_COMMENT)
        tail = self._reader.read(tail_at, size - tail_at)
        found = tail.rfind(b"PK\x05\x06")
        if found < 0 or found + _END.size > len(tail):
            raise self._fail("has no zip directory at its end.", "It is not a wheel, or its download was cut off.")
        _, _, _, _, count, length, offset, _ = _END.unpack_from(tail, found)
        end_at = tail_at + found
        locator = self._reader.read(end_at - _END64_LOCATOR.size, _END64_LOCATOR.size) if end_at >= 20 else b""
        if locator[:4] != b"PK\x06\x07":
            return end_at, count, length, offset
        end64_at = end_at - _END64_LOCATOR.size - _END64.size
        record = self._reader.read(end64_at, _END64.size) if end64_at >= 0 else b""
        if record[:4] != b"PK\x06\x06":
            raise self._fail("has a zip64 locator but no zip64 directory record before it.")
        fields = _END64.unpack(record)
        return end64_at, fields[7], fields[8], fields[9]

    def _read_entry(self, at: int, end: int, prefix: int) -> tuple[Member, int]:
        head = self._reader.read(at, _ENTRY.size)
        if len(head) < _ENTRY.size or head[:4] != b"PK\x01\x02" or at + _ENTRY.size > end:
            raise self._fail(f"has a damaged zip directory: no entry at offset {at}.")
        fields = _ENTRY.unpack(head)
        flags, method, checksum, stored, size = fields[3], fields[4], fields[7], fields[8], fields[9]
        name_bytes, extra_bytes, comment_bytes, header_at = fields[10], fields[11], fields[12], fields[16]
        rest = self._reader.read(at + _ENTRY.size, name_bytes + extra_bytes)
        raw, extra = rest[:name_bytes], rest[name_bytes:]
        size, stored, header_at = _widen(extra, size, stored, header_at)
        name, valid = _decode(raw, utf8=bool(flags & _FLAG_UTF8))
        if not valid:
            self.problems.append((name, "has a name that is not valid UTF-8.", True))
        member = Member(name, size, stored, method, header_at + prefix, flags, checksum, valid)
        return member, at + _ENTRY.size + name_bytes + extra_bytes + comment_bytes

    def _without_overlaps(self, members: list[Member], directory_at: int) -> tuple[Member, ...]:
        """Leave out members that share bytes with another: one kernel of data, inflated a million times."""
        kept, taken = [], 0
        for member in sorted(members, key=lambda item: item.header_at):
            end = member.header_at + _LOCAL.size + member.stored_size
            if member.header_at < taken:
                self.problems.append((member.name, "overlaps the member before it in the archive; not read.", False))
            elif end > directory_at:
                self.problems.append(
                    (member.name, f"would end {end - directory_at} bytes inside the directory; not read.", False)
                )
            else:
                kept.append(member)
                taken = end
        return tuple(kept)

    # -- members -----------------------------------------------------------------------------------------------------

    def open(self, member: Member) -> StreamReader:
        """Return a member's data as a stream; what is wrong with it is raised as it is read."""
        return StreamReader(self._blocks(member), member.size, member.name)

    def read(self, member: Member, max_bytes: int) -> bytes:
        """Return the first ``max_bytes`` of a small member.

        Raises:
            DataError: The member is damaged.
        """
        return self.open(member).read(0, min(max_bytes, member.size))

    def _blocks(self, member: Member) -> Iterator[bytes]:
        self._check(member)
        at = self._data_at(member)
        end = at + member.stored_size
        blocks = self._stored(at, end) if member.method == STORED else self._inflated(member, at, end)
        produced = checksum = 0
        for block in blocks:
            produced += len(block)
            checksum = zlib.crc32(block, checksum)
            self.inflated_bytes += len(block)
            if produced > member.size:
                raise DataError(
                    member.name, f"inflates to more than the {member.size} bytes that the directory promises."
                )
            if self.inflated_bytes > self._limits.total_bytes:
                raise DataError(
                    member.name,
                    f"takes the archive beyond {self._limits.total_bytes} inflated bytes.",
                    next_step="Allow more with --max-size.",
                )
            yield block
        if produced < member.size:
            raise DataError(member.name, f"is cut off: {produced} of {member.size} bytes are there.")
        if checksum != member.checksum:
            raise DataError(member.name, "is damaged: its bytes are not those that the archive's checksum was made of.")

    def _check(self, member: Member) -> None:
        if member.flags & _FLAG_ENCRYPTED:
            raise DataError(member.name, "is encrypted.")
        if member.method not in {STORED, DEFLATED}:
            raise DataError(member.name, f"is compressed by method {member.method}; stored and deflated can be read.")
        if member.size > self._limits.member_bytes:
            raise DataError(
                member.name,
                f"would inflate to {member.size} bytes; at most {self._limits.member_bytes} are read.",
                next_step=_UNPACK,
            )
        if member.size > self._limits.ratio_from_bytes and member.size > self._limits.ratio * max(
            member.stored_size, 1
        ):
            raise DataError(
                member.name,
                f"would inflate {member.stored_size} bytes to {member.size}: more than {self._limits.ratio:g} times.",
                why="That is how a zip bomb looks.",
                next_step=_UNPACK,
            )

    def _data_at(self, member: Member) -> int:
        head = self._reader.read(member.header_at, _LOCAL.size)
        if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
            raise DataError(member.name, f"has no local header at offset {member.header_at}.")
        fields = _LOCAL.unpack(head)
        return member.header_at + _LOCAL.size + int(fields[9]) + int(fields[10])

    def _stored(self, at: int, end: int) -> Iterator[bytes]:
        while at < end:
            block = self._reader.read(at, min(BLOCK_BYTES, end - at))
            if not block:
                return
            at += len(block)
            yield block

    def _inflated(self, member: Member, at: int, end: int) -> Iterator[bytes]:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        pending = b""
        try:
            while not inflater.eof:
                if not pending:
                    pending = self._reader.read(at, min(_INPUT_BYTES, end - at))
                    at += len(pending)
                if not pending:
                    return
                block = inflater.decompress(pending, BLOCK_BYTES)
                pending = inflater.unconsumed_tail
                if block:
                    yield block
        except zlib.error as error:
            raise DataError(member.name, f"does not inflate: {error}.") from error


def _widen(extra: bytes, size: int, stored: int, header_at: int) -> tuple[int, int, int]:
    """Replace 32-bit fields that are all ones by those of the zip64 extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            body = extra[at + 4 : at + 4 + length]
            values = iter(struct.iter_unpack("<Q", body[: len(body) // 8 * 8]))
            fields = [next(values, (field,))[0] if field == _UNSET32 else field for field in (size, stored, header_at)]
            return fields[0], fields[1], fields[2]
        at += 4 + length
    return size, stored, header_at


def _decode(raw: bytes, *, utf8: bool) -> tuple[str, bool]:
    try:
        return raw.decode("utf-8" if utf8 else "cp437"), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), False
