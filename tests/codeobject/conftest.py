"""Builds the binary formats that the code-object tests read, field by field."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from rocmend.codeobject.isa import MACH

PAGE = 4096
NUMBERS = {name: number for number, name in MACH.items()}


REQUIRED_OF_A_KERNEL = {
    ".kernarg_segment_align": 8,
    ".kernarg_segment_size": 24,
    ".group_segment_fixed_size": 0,
    ".private_segment_fixed_size": 0,
    ".args": [{".offset": 0, ".size": 8, ".value_kind": "global_buffer"}],
}


def _pad(data: bytes, to: int) -> bytes:
    return data + bytes(-len(data) % to)


class Build:
    """Makes files in memory; every method returns bytes."""

    @staticmethod
    def flags(target: str, *, v3: bool = False, generic: int = 0) -> int:
        processor, *settings = target.split(":")
        value = NUMBERS[processor] | generic << 24
        for setting in settings:
            on = setting.endswith("+")
            if v3:
                value |= {"xnack": 0x100, "sramecc": 0x200}[setting[:-1]] if on else 0
            else:
                value |= (3 if on else 2) << {"xnack": 8, "sramecc": 10}[setting[:-1]]
        return value

    @classmethod
    def code_object(
        cls,
        target: str = "gfx1100",
        *,
        version: int = 5,
        generic: int = 0,
        kernels: Sequence[Mapping[str, Any]] = (),
        text: bytes = bytes(256),
        machine: int = 224,
        os_abi: int = 64,
    ) -> bytes:
        """An AMDGPU ELF file: header, a note segment, a loaded one, code, two section headers at the end."""
        note = b""
        if kernels:
            every = [REQUIRED_OF_A_KERNEL | dict(kernel) for kernel in kernels]
            body = msgspec.msgpack.encode({"amdhsa.kernels": every, "amdhsa.version": [1, 2]})
            note = struct.pack("<III", 7, len(body), 32) + b"AMDGPU\0\0" + _pad(body, 4)
        ident = b"\x7fELF\x02\x01\x01" + bytes((os_abi, version - 2)) + bytes(7)
        names = b"\0.shstrtab\0"
        body_at = 64 + 2 * 56
        names_at = body_at + len(note) + len(text)
        sections_at = names_at + len(names) + (-(names_at + len(names)) % 8)
        flags = cls.flags(target, v3=version == 3, generic=generic)
        header = ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, sections_at, flags, 64, 56, 2, 64, 2, 1)
        segment = struct.pack("<IIQQQQQQ", 4, 4, body_at, body_at, body_at, len(note), len(note), 4)
        segment += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, names_at, names_at, PAGE)
        data = header + segment + note + text + names
        data = data.ljust(sections_at, b"\0")
        data += bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, names_at, len(names), 0, 0, 1, 0)
        return data

    @staticmethod
    def bundle(entries: Sequence[tuple[str, bytes]], *, align: int = PAGE) -> bytes:
        """A plain offload bundle, host entry included."""
        every = [("host-x86_64-unknown-linux-gnu-", b""), *entries]
        table = 32 + sum(24 + len(name.encode()) for name, _ in every)
        at = table + (-table % align)
        rows, blobs = b"", bytes(at - table)
        for name, data in every:
            rows += struct.pack("<QQQ", at, len(data), len(name.encode())) + name.encode()
            blobs += _pad(data, align)
            at += len(_pad(data, align))
        return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(every)) + rows + blobs

    @classmethod
    def bundle_for(cls, *targets: str, generic: int = 0, version: int = 5) -> bytes:
        """A bundle with one code object for each target."""
        made = []
        for target in targets:
            is_generic = "-generic" in target
            code = cls.code_object(target, version=6 if is_generic else version, generic=generic if is_generic else 0)
            made.append((f"hipv4-amdgcn-amd-amdhsa--{target}", code))
        return cls.bundle(made)

    @staticmethod
    def compressed(bundle: bytes, *, version: int = 3, method: str = "zstd") -> bytes:
        """A compressed bundle."""
        payload = zstandard.ZstdCompressor().compress(bundle) if method == "zstd" else zlib.compress(bundle)
        number = {"zlib": 0, "zstd": 1}[method]
        total = len(payload) + {1: 20, 2: 24, 3: 32}[version]
        sizes = {
            1: struct.pack("<IQ", len(bundle) & 0xFFFFFFFF, 7),
            2: struct.pack("<IIQ", total, len(bundle) & 0xFFFFFFFF, 7),
            3: struct.pack("<QQQ", total, len(bundle), 7),
        }
        return b"CCOB" + struct.pack("<HH", version, number) + sizes[version] + payload

    @staticmethod
    def fatbin(*bundles: bytes) -> bytes:
        """Bundles one after another, as a linker lays them into a section."""
        return b"".join(_pad(bundle, PAGE) for bundle in bundles)

    @staticmethod
    def library(
        sections: Mapping[str, bytes] | None = None,
        *,
        needed: Sequence[str] = (),
        soname: str = "",
        runpath: str = "",
        after: bytes = b"",
        with_sections: bool = True,
    ) -> bytes:
        """A host shared library (ELF x86-64) with a dynamic section and these sections, each on a page of its own.

        ``after`` stands between the section names and the section headers, as ``.strtab`` can.
        """
        strings = b"\0"
        tags = b""
        for tag, text in [*((1, name) for name in needed), (14, soname), (29, runpath)]:
            if text:
                tags += struct.pack("<qQ", tag, len(strings))
                strings += text.encode() + b"\0"
        strings_at = 64 + 2 * 56
        tags += struct.pack("<qQqQqQ", 5, strings_at, 10, len(strings), 0, 0)
        dynamic_at = strings_at + len(_pad(strings, 8))
        data = bytearray(dynamic_at) + tags
        data[strings_at : strings_at + len(strings)] = strings
        rows = [
            ("", 0, 0, 0, 0),
            (".dynstr", 3, 2, strings_at, len(strings)),
            (".dynamic", 6, 3, dynamic_at, len(tags)),
        ]
        for name, body in (sections or {}).items():
            data += bytes(-len(data) % PAGE)
            rows.append((name, 1, 2, len(data), len(body)))
            data += body
        names = b"".join(name.encode() + b"\0" for name, *_ in rows) + b".shstrtab\0"
        rows.append((".shstrtab", 3, 0, len(data), len(names)))
        data += names + after
        data += bytes(-len(data) % 8)
        sections_at, at = len(data), 0
        for name, kind, flags, offset, size in rows:
            link = 1 if kind == 6 else 0  # .dynamic names .dynstr
            data += struct.pack("<IIQQQQIIQQ", at, kind, flags, offset, offset, size, link, 0, 1, 16 if link else 0)
            at += len(name.encode()) + 1
        count = len(rows) if with_sections else 0
        data[:64] = (
            b"\x7fELF\x02\x01\x01"
            + bytes(9)
            + struct.pack(
                "<HHIQQQIHHHHHH",
                3,
                62,
                1,
                0,
                64,
                sections_at if count else 0,
                0,
                64,
                56,
                2,
                64,
                count,
                max(count - 1, 0),
            )
        )
        data[64:176] = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, sections_at, sections_at, PAGE) + struct.pack(
            "<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, dynamic_at, len(tags), len(tags), 8
        )
        return bytes(data)

    @classmethod
    def hip_library(cls, *bundles: bytes, **more: Any) -> bytes:
        """A host library with a HIP fat binary."""
        return cls.library({".rodata": b"x" * 100, ".hip_fatbin": cls.fatbin(*bundles)}, **more)

    @staticmethod
    def kernel_pack(libraries: Mapping[str, Mapping[str, int]], *, group: str = "torch", version: int = 1) -> bytes:
        """A kernel pack: library to target to size."""
        blob = bytes(128)
        table = {
            "format_version": 1,
            "group_name": group,
            "gfx_arches": [],
            "toc": {
                library: {name: {"type": "hsaco", "ordinal": 0, "original_size": size} for name, size in held.items()}
                for library, held in libraries.items()
            },
        }
        return struct.pack("<4sIQ", b"KPAK", version, 64 + len(blob)) + bytes(48) + blob + msgspec.msgpack.encode(table)

    @staticmethod
    def kernel_pack_reference(library: str, *paths: str) -> bytes:
        return msgspec.msgpack.encode({"kernel_name": library, "kpack_search_paths": list(paths)})

    @staticmethod
    def metadata(name: str, version: str, **fields: str) -> bytes:
        lines = [
            f"Name: {name}",
            f"Version: {version}",
            *(f"{key.replace('_', '-')}: {text}" for key, text in fields.items()),
        ]
        return ("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n\nA long description: with a colon.\n").encode()

    @classmethod
    def wheel(
        cls, path: Path, members: Mapping[str, bytes], *, name: str = "", version: str = "1.0", stored: bool = False
    ) -> Path:
        """A wheel on disk; with a name, it has metadata as its last member."""
        method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(path, "w", method) as archive:
            for member, data in members.items():
                archive.writestr(member, data)
            if name:
                archive.writestr(f"{name}-{version}.dist-info/METADATA", cls.metadata(name, version))
        return path


@pytest.fixture(scope="session")
def build() -> type[Build]:
    return Build
