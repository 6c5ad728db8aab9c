"""Feeds mutated bytes to every parser of wheels and code objects.

Needs atheris, which is no dependency of the project (it has wheels for CPython on Linux only)::

    python -m venv fuzz-env && fuzz-env/bin/pip install -e . atheris
    fuzz-env/bin/python fuzz/fuzz_codeobject.py -max_total_time=600 -rss_limit_mb=512 corpus/

The corpus folder is created with small valid files of every format where it is empty; atheris keeps what reaches new
code there. The first byte of an input says which parser the rest goes to. Anything but ``DataError`` is a finding, and
so is an input that takes more than ``-rss_limit_mb`` of memory or libFuzzer's ``-timeout`` (25 seconds, say).
"""

# ruff: noqa: INP001  a script, not part of a package

from __future__ import annotations

import io
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import atheris
import msgspec
import zstandard

with atheris.instrument_imports(include=["rocmend"]):
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


PARSERS: tuple[Callable[[bytes], None], ...] = (content, streamed, archive, notes, texts)


def one_input(data: bytes) -> None:
    """Give one input to the parser that its first byte names."""
    if data:
        with suppress(DataError):
            PARSERS[data[0] % len(PARSERS)](data[1:])


def _seeds() -> Iterator[tuple[int, bytes]]:
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
        yield 0, data
        yield 1, data
    yield 2, wheel.getvalue()
    yield 3, msgspec.msgpack.encode({"amdhsa.kernels": [{".name": "k", ".vgpr_count": 4}]})
    yield 3, msgspec.msgpack.encode({"kernel_name": "a.so", "kpack_search_paths": ["../.kpack/a_@GFXARCH@.kpack"]})
    for text in ("torch/lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco", "gfx90a68.kdb", "hip = '6.2.41133'"):
        yield 4, text.encode()


def main() -> None:
    """Make the corpus where it is empty, then fuzz."""
    folders = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")]
    if folders:
        folders[0].mkdir(parents=True, exist_ok=True)
        if not any(folders[0].iterdir()):
            for number, (parser, data) in enumerate(_seeds()):
                (folders[0] / f"seed-{number:02}").write_bytes(bytes([parser]) + data)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
