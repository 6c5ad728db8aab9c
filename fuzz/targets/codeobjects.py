"""Every parser of wheels and code objects; the first byte of an input says which."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator
from contextlib import suppress

import msgspec
import zstandard

from fuzz.target import Target, choice
from rocmend.codeobject import naming, versions
from rocmend.codeobject.archive import Archive
from rocmend.codeobject.content import read_content
from rocmend.codeobject.isa import entry_target, from_flags
from rocmend.codeobject.kpack import parse_reference
from rocmend.codeobject.limits import Limits
from rocmend.codeobject.notes import parse_metadata
from rocmend.codeobject.reader import BytesReader, StreamReader
from rocmend.core.errors import DataError

SMALL = Limits(members=1000, total_bytes=64 << 20, zstd_window_bytes=16 << 20)


def _blocks(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 997] for at in range(0, len(data), 997))


def content(data: bytes) -> None:
    """Libraries, code objects, fat binaries and kernel packs, on disk."""
    read_content(BytesReader(data), SMALL)


def streamed(data: bytes) -> None:
    """The same out of a wheel."""
    read_content(StreamReader(_blocks(data), len(data), head_bytes=4096, window_bytes=4096), SMALL)


def archive(data: bytes) -> None:
    """A zip file and the code in it."""
    opened = Archive(BytesReader(data), SMALL)
    for member in opened.members:
        with suppress(DataError):
            read_content(opened.open(member), SMALL)


def notes(data: bytes) -> None:
    """Metadata of kernels and references to kernel packs."""
    with suppress(DataError):
        parse_metadata(data, "fuzz")
    parse_reference(data, "fuzz")


def texts(data: bytes) -> None:
    """Names, ids and the texts that state versions."""
    text = data.decode(errors="replace")
    entry_target(text)
    naming.by_path(text)
    naming.database_target(text)
    naming.expand(text)
    list(versions.from_metadata(text, "fuzz"))
    list(versions.from_version_file(text, "fuzz"))
    list(versions.from_soname(text, "fuzz"))
    list(versions.from_runpath((text,), "fuzz"))
    versions.match_rocm(text, text[::-1])
    if len(data) >= 5:
        from_flags(int.from_bytes(data[:4], "little"), data[4])


def seeds() -> Iterator[bytes]:
    """Yield small valid files of every format, each behind the byte that names its parser."""
    entry = b"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+"
    code = b"\x7fELF\x02\x01\x01\x40\x03" + bytes(7)
    code += struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 64, 120, 0x33F, 64, 56, 1, 64, 2, 1) + bytes(200)
    bundle = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 128, len(code), len(entry)) + entry
    bundle = bundle.ljust(128, b"\0") + code
    packed = zstandard.ZstdCompressor().compress(bundle)
    compressed = b"CCOB" + struct.pack("<HHQQQ", 3, 1, 32 + len(packed), len(bundle), 0) + packed
    library = b"\x7fELF\x02\x01\x01" + bytes(9)
    library += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    library += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 500, 500, 4096) + bundle + compressed
    pack = msgspec.msgpack.encode({"toc": {"a.so": {"gfx1100": {"original_size": 1}}}})
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("m/a.so", library)
        opened.writestr("m-1.dist-info/METADATA", "Name: m\nVersion: 1+rocm7.1\n\n")
    for data in (code, bundle, compressed, library, b"KPAK" + struct.pack("<IQ", 1, 16) + pack):
        yield b"\x00" + data
        yield b"\x01" + data
    yield b"\x02" + wheel.getvalue()
    yield b"\x03" + msgspec.msgpack.encode({"amdhsa.kernels": [{".name": "k", ".vgpr_count": 4}]})
    yield b"\x03" + msgspec.msgpack.encode(
        {"kernel_name": "a.so", "kpack_search_paths": ["../.kpack/a_@GFXARCH@.kpack"]}
    )
    for text in ("torch/lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco", "gfx90a68.kdb", "hip = '6.2.41133'"):
        yield b"\x04" + text.encode()


def run(data: bytes) -> None:
    """Give one input to the parser that its first byte names."""
    with suppress(DataError):
        _parsers(data)


_parsers = choice((content, streamed, archive, notes, texts))
TARGET = Target(run, seeds, max_bytes=16 << 10)
