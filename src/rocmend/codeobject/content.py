"""What one file holds, judged by its bytes."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from rocmend.codeobject import elf
from rocmend.codeobject.bundle import (
    ALIGNMENT,
    COMPRESSED_MAGIC,
    MAGIC,
    Bundle,
    CodeObject,
    read_bundle,
    read_compressed,
)
from rocmend.codeobject.isa import ELFOSABI_AMDGPU_HSA, EM_AMDGPU, from_header
from rocmend.codeobject.kpack import MAGIC as KPACK_MAGIC
from rocmend.codeobject.kpack import REFERENCE_SECTION, Pack, PackReference, parse_reference, read_pack
from rocmend.codeobject.limits import DEFAULT_LIMITS, Limits
from rocmend.codeobject.reader import PassedError, Reader, SliceReader
from rocmend.codeobject.scanner import Scanner
from rocmend.codeobject.whole import as_reason, check_code_object, check_library, check_tables
from rocmend.core.errors import DataError

CODE_OBJECT_MARK = elf.MAGIC + bytes((2, 1, 1, ELFOSABI_AMDGPU_HSA))
PE_MAGIC = b"MZ"
FATBIN_SECTION = ".hip_fatbin"
_MAGICS = (elf.MAGIC, MAGIC, COMPRESSED_MAGIC, KPACK_MAGIC, PE_MAGIC)
_CUDA_SECTIONS = frozenset({".nv_fatbin", "__nv_relfatbin", ".nvFatBinSegment"})
_SYCL_SECTION = MAGIC.decode() + "sycl"
_NO_CODE_IN = (".eh_frame", ".gcc_except_table", ".rela", ".dyn", ".gnu", ".init", ".fini", ".nv", "__nv", ".got")
_MAX_FALSE_MARKS = 10_000
_MAX_NAME_MARKS = 8
_MAX_PROBLEMS = 100
_BUNDLES_FOR_GENERIC_VERSIONS = 4
"""All bundles of a file come from one compiler; inflating hundreds of them to read the same version takes long."""

_MIN_CODE_OBJECT_BYTES = 64


class Content(msgspec.Struct):
    """What one file holds.

    Attributes:
        kind: ``library`` (ELF for a processor), ``dll`` (PE), ``code-object``, ``fat-binary``, ``kernel-pack`` or
            ``other``.
        bundles: Its offload bundles.
        code_objects: Code objects outside bundles: the file itself, or embedded in a library's data.
        kernels: Number of kernels, where the file is a code object.
        dynamic: What it is linked against.
        cuda: It carries NVIDIA device code.
        sycl: It carries Intel device code.
        pack: Its table of contents, where it is a kernel pack.
        reference: Where it looks for its device code, where that stands in kernel packs.
        problems: What was wrong.
        damage: Why the file as a whole cannot be judged by what was found in it; "" where nothing speaks against it.
    """

    kind: str
    bundles: list[Bundle] = []
    code_objects: list[CodeObject] = []
    kernels: int | None = None
    dynamic: elf.Dynamic = elf.Dynamic()
    cuda: bool = False
    sycl: bool = False
    pack: Pack | None = None
    reference: PackReference | None = None
    problems: list[str] = []
    damage: str = ""

    def damaged(self, error: DataError) -> None:
        """Note why the file is not what its headers say."""
        self.problems.append(error.message)
        self.damage = self.damage or as_reason(error)


def is_candidate(head: bytes) -> bool:
    """Whether a file that begins so can hold device code or be a library."""
    return head.startswith(_MAGICS)


def read_content(reader: Reader, limits: Limits = DEFAULT_LIMITS) -> Content:
    """Find the device code in a file.

    Args:
        reader: The file. A stream is read to its end where it is a library, else no farther than needed.
        limits: ``deep`` false leaves out code objects embedded in the data of libraries on disk.

    Returns:
        What was found; whatever is damaged goes to ``problems``, and what can be read beside it is.

    Raises:
        DataError: The container that a stream comes from is damaged.
    """
    head = reader.read(0, elf.HEADER_BYTES)
    if head.startswith(elf.MAGIC):
        return _read_elf(reader, head, limits)
    if head.startswith((MAGIC, COMPRESSED_MAGIC)):
        content = Content("fat-binary")
        _Walk(reader, limits, content).over(0, reader.size, sure=True)
        return content
    if head.startswith(KPACK_MAGIC):
        return _read_kpack(reader)
    if head.startswith(PE_MAGIC):
        content = Content("dll")
        if limits.deep or not reader.seekable:
            _Walk(reader, limits, content).over(0, reader.size, sure=False)
        return content
    return Content("other")


def _read_kpack(reader: Reader) -> Content:
    content = Content("kernel-pack")
    try:
        content.pack = read_pack(reader)
    except DataError as error:
        content.damaged(error)
    return content


def _read_elf(reader: Reader, head: bytes, limits: Limits) -> Content:
    try:
        header = elf.read_header(head, reader.name)
    except DataError as error:
        content = Content("other")
        content.damaged(error)
        return content
    if header.machine == EM_AMDGPU:
        return _read_code_object(reader, head)
    content = Content("library")
    if header.wide:
        read = _read_library if reader.seekable else _read_library_stream
        read(reader, header, limits, content)
    return content


def _read_code_object(reader: Reader, head: bytes) -> Content:
    content = Content("code-object")
    try:
        isa = from_header(head, reader.name)
    except DataError as error:
        content.damaged(error)
        return content
    made = CodeObject(isa.target, reader.size, isa.generic_version, isa.code_object_version)
    try:
        content.kernels = check_code_object(reader)
    except DataError as error:
        content.problems.append(error.message)
        made = msgspec.structs.replace(made, damage=as_reason(error))
    content.code_objects.append(made)
    return content


def _read_library(reader: Reader, header: elf.Header, limits: Limits, content: Content) -> None:
    sections = _describe(reader, header, content)
    walk = _Walk(reader, limits, content)
    if not sections:
        if limits.deep:
            walk.over(elf.HEADER_BYTES, reader.size, sure=False)
        return
    for section in sections:
        if section.name == FATBIN_SECTION and section.kind != elf.SHT_NOBITS and content.reference is None:
            walk.over(section.offset, min(section.end, reader.size), sure=True)
        elif limits.deep and section.is_data and not section.name.startswith((FATBIN_SECTION, *_NO_CODE_IN)):
            walk.over(section.offset, min(section.end, reader.size), sure=False)


def _read_library_stream(reader: Reader, header: elf.Header, limits: Limits, content: Content) -> None:
    with suppress(DataError):  # reported when it is read for what it says
        for segment in elf.read_segments(reader, header):
            if segment.kind == elf.PT_DYNAMIC:
                reader.keep(segment.offset, segment.size)
    walk = _Walk(reader, limits, content, notice=elf.SECTION_NAMES_MARK)
    walk.over(elf.HEADER_BYTES, reader.size, sure=False)
    sections = _describe(reader, header, content)
    fat = [section for section in sections if section.name == FATBIN_SECTION]
    for offset, error in walk.doubtful:
        if any(section.offset <= offset < section.end for section in fat):
            content.damaged(error)


def _describe(reader: Reader, header: elf.Header, content: Content) -> tuple[elf.Section, ...]:
    """Read what the headers and tables say of a library; what a stream has lost of them is left out."""
    sections: tuple[elf.Section, ...] = ()
    try:
        content.dynamic = elf.read_dynamic(reader, elf.read_segments(reader, header))
    except PassedError:
        pass
    except DataError as error:
        content.damaged(error)
    try:
        check_tables(reader, header)
        sections = elf.read_sections(reader, header)
        check_library(reader, header, sections)
    except PassedError:
        pass
    except DataError as error:
        content.damaged(error)
    content.cuda = any(section.name in _CUDA_SECTIONS for section in sections)
    content.sycl = any(section.name.startswith(_SYCL_SECTION) for section in sections)
    mark = next((section for section in sections if section.name == REFERENCE_SECTION), None)
    if mark is not None:
        content.reference = PackReference("", ())
        try:
            content.reference = parse_reference(reader.read(mark.offset, mark.size), reader.name)
        except PassedError:
            pass
        except DataError as error:
            content.damaged(error)
    return sections


class _Walk:
    """Collects bundles and embedded code objects from ranges of a file, in ascending order."""

    def __init__(self, reader: Reader, limits: Limits, content: Content, notice: bytes = b"") -> None:
        self._reader = reader
        self._limits = limits
        self._content = content
        self._notice = notice
        self._kept_names = 0
        self._objects = 0
        marks = [MAGIC, COMPRESSED_MAGIC, CODE_OBJECT_MARK, *([notice] if notice else [])]
        self._scanner = Scanner(reader, marks)
        self.doubtful: list[tuple[int, DataError]] = []

    def over(self, start: int, end: int, *, sure: bool) -> None:
        """Walk a range; ``sure`` means that it is a fat binary, so that what cannot be read is a problem."""
        at = start
        while at < end:
            hit = self._next(at, end)
            if hit is None:
                return
            offset, mark = hit
            if mark == self._notice:
                self._keep_names(offset)
                at = offset + len(mark)
                continue
            if self._full():
                return
            try:
                after = self._take(offset, mark)
            except DataError as error:
                self.doubtful.append((offset, error))
                if sure and len(self._content.problems) < _MAX_PROBLEMS:
                    self._content.damaged(error)
                if len(self.doubtful) >= _MAX_FALSE_MARKS:
                    self._problem(
                        f"holds {_MAX_FALSE_MARKS} marks of bundles that are none; the rest was not searched."
                    )
                    return
                after = offset + len(mark)
            at = max(after, offset + len(mark))

    def _full(self) -> bool:
        bundles = len(self._content.bundles) + len(self._content.code_objects)
        if bundles >= self._limits.bundles_per_file or self._objects >= self._limits.code_objects_per_file:
            self._problem(f"holds more than {bundles} bundles or {self._objects} code objects; the rest was not read.")
            return True
        return False

    def _next(self, at: int, end: int) -> tuple[int, bytes] | None:
        """On disk, look behind the padding first: that saves reading a whole block to find the next bundle."""
        if self._reader.seekable:
            ahead = self._reader.read(at, ALIGNMENT + len(MAGIC))
            rest = ahead.lstrip(b"\0")
            for mark in (MAGIC, COMPRESSED_MAGIC):
                if rest.startswith(mark) and at + len(ahead) - len(rest) < end:
                    return at + len(ahead) - len(rest), mark
        return self._scanner.find(at, end)

    def _take(self, offset: int, mark: bytes) -> int:
        """Read what begins at a mark and return where to go on."""
        if mark == CODE_OBJECT_MARK:
            return self._take_code_object(offset)
        if mark == MAGIC:
            bundle = read_bundle(self._reader, offset)
        else:
            deep = len(self._content.bundles) < _BUNDLES_FOR_GENERIC_VERSIONS
            bundle = read_compressed(self._reader, offset, self._limits, generic_versions=deep)
        self._content.bundles.append(bundle)
        self._objects += len(bundle.code_objects)
        for text in bundle.problems:
            self._problem(f"bundle at offset {offset}: {text}.")
        return bundle.end

    def _take_code_object(self, offset: int) -> int:
        head = self._reader.read(offset, elf.HEADER_BYTES)
        isa = from_header(head, self._reader.name)
        header = elf.read_header(head, self._reader.name)
        size = header.sections_at + header.section_size * header.section_count
        left = self._reader.size - offset
        inner = SliceReader(self._reader, offset, min(size, left) if size > _MIN_CODE_OBJECT_BYTES else left, "object")
        made = CodeObject(isa.target, inner.size, isa.generic_version, isa.code_object_version)
        after = offset + size
        try:
            check_code_object(inner)
        except DataError as error:
            made = msgspec.structs.replace(made, damage=as_reason(error))
            self._problem(f"code object at offset {offset}: {made.damage}.")
            after = offset + elf.HEADER_BYTES
        self._content.code_objects.append(made)
        self._objects += 1
        return after

    def _keep_names(self, offset: int) -> None:
        if self._kept_names < _MAX_NAME_MARKS:
            self._kept_names += 1
            start = max(0, offset - elf.NAMES_MAX_BYTES)
            self._reader.keep(start, offset - start + elf.NAMES_MAX_BYTES)

    def _problem(self, message: str) -> None:
        if len(self._content.problems) < _MAX_PROBLEMS:
            self._content.problems.append(message)
