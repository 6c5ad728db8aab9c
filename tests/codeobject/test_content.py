from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.codeobject.content import Content, is_candidate, read_content
from rocmend.codeobject.limits import Limits
from rocmend.codeobject.reader import BytesReader, StreamReader

if TYPE_CHECKING:
    from tests.codeobject.conftest import Build


def as_stream(data: bytes, block: int = 5000) -> StreamReader:
    blocks = (data[at : at + block] for at in range(0, len(data), block))
    return StreamReader(blocks, len(data), head_bytes=20_000, window_bytes=20_000)


def in_bundles(content: Content) -> list[list[str]]:
    return [[item.target for item in bundle.code_objects] for bundle in content.bundles]


def test_fat_binary_reads_alike_from_disk_and_from_a_stream(build: type[Build]) -> None:
    data = build.hip_library(
        build.bundle_for("gfx1030", "gfx1100"),
        build.compressed(build.bundle_for("gfx90a:xnack-", "gfx1151")),
        build.compressed(build.bundle_for("gfx1201"), version=2),
        needed=["libamdhip64.so.7", "librocblas.so.5"],
        runpath="/opt/rocm-7.0.2/lib",
    )
    expected = [["gfx1030", "gfx1100"], ["gfx90a:xnack-", "gfx1151"], ["gfx1201"]]
    for reader in (BytesReader(data), as_stream(data)):
        content = read_content(reader)
        assert in_bundles(content) == expected
        assert content.dynamic.needed == ("libamdhip64.so.7", "librocblas.so.5")
        assert content.dynamic.runpath == ("/opt/rocm-7.0.2/lib",)
        assert not content.problems
        assert not content.cuda


def test_quick_reading_leaves_other_sections_alone(build: type[Build]) -> None:
    data = build.library({".rodata": build.code_object("gfx1100") + build.bundle_for("gfx906", version=4)})
    assert [item.target for item in read_content(BytesReader(data)).code_objects] == ["gfx1100"]
    assert in_bundles(read_content(BytesReader(data))) == [["gfx906"]]
    quick = read_content(BytesReader(data), Limits(deep=False))
    assert (quick.bundles, quick.code_objects) == ([], [])
    streamed = read_content(as_stream(data))
    assert [item.target for item in streamed.code_objects] == ["gfx1100"]
    assert in_bundles(streamed) == [["gfx906"]]


def test_marks_in_other_data_are_no_bundles(build: type[Build]) -> None:
    """A compiler library holds the marks as strings."""
    rodata = b"__CLANG_OFFLOAD_BUNDLE__ CCOB CCOB\0\x7fELF\x02\x01\x01\x40 not a code object" + bytes(200)
    for reader in (BytesReader(build.library({".rodata": rodata})), as_stream(build.library({".rodata": rodata}))):
        content = read_content(reader)
        assert (content.bundles, content.code_objects, content.problems) == ([], [], [])


def test_damage_inside_a_fat_binary_is_told(build: type[Build]) -> None:
    damaged = b"CCOB" + struct.pack("<HHQQQ", 9, 1, 100, 100, 0)
    data = build.hip_library(damaged, build.bundle_for("gfx1100"))
    for reader in (BytesReader(data), as_stream(data)):
        content = read_content(reader)
        assert in_bundles(content) == [["gfx1100"]]
        assert "version 9" in content.problems[0]


def test_dynamic_section_far_from_both_ends_of_a_stream(build: type[Build]) -> None:
    data = build.library(
        {"pad" + str(number): b"p" * 30_000 for number in range(10)}, needed=["libamdhip64.so.6"], after=b"s" * 100_000
    )
    content = read_content(as_stream(data))
    assert content.dynamic.needed == ("libamdhip64.so.6",)


def test_section_names_far_from_the_end_of_a_stream(build: type[Build]) -> None:
    data = build.library({".nv_fatbin": b"n" * 100}, after=b"s" * 200_000)
    assert read_content(as_stream(data)).cuda


def test_other_makers_device_code(build: type[Build]) -> None:
    assert read_content(BytesReader(build.library({".nv_fatbin": b"n"}))).cuda
    assert read_content(BytesReader(build.library({"__nv_relfatbin": b"n"}))).cuda
    sycl = read_content(BytesReader(build.library({"__CLANG_OFFLOAD_BUNDLE__sycl-spir64": b"n" * 50})))
    assert (sycl.sycl, sycl.cuda, sycl.bundles, sycl.problems) == (True, False, [], [])


def test_bundle_files(build: type[Build]) -> None:
    for data in (build.bundle_for("gfx1100"), build.compressed(build.bundle_for("gfx1100"))):
        for reader in (BytesReader(data), as_stream(data)):
            content = read_content(reader)
            assert (content.kind, in_bundles(content)) == ("fat-binary", [["gfx1100"]])


def test_bundles_that_are_not_aligned(build: type[Build]) -> None:
    data = build.bundle_for("gfx1100") + bytes(100) + build.bundle_for("gfx1101") + build.bundle_for("gfx1102")
    assert in_bundles(read_content(BytesReader(data))) == [["gfx1100"], ["gfx1101"], ["gfx1102"]]


def test_version_1_does_not_say_where_it_ends(build: type[Build]) -> None:
    data = build.fatbin(
        build.compressed(build.bundle_for("gfx1100"), version=1),
        build.compressed(build.bundle_for("gfx1030"), version=1),
    )
    assert in_bundles(read_content(BytesReader(data))) == [["gfx1100"], ["gfx1030"]]


def test_windows_library(build: type[Build]) -> None:
    data = b"MZ" + bytes(1000) + build.bundle_for("gfx1151") + bytes(500)
    assert in_bundles(read_content(BytesReader(data))) == [["gfx1151"]]
    assert read_content(BytesReader(data)).kind == "dll"


def test_kernel_pack(build: type[Build]) -> None:
    data = build.kernel_pack({"lib/libtorch_hip.so": {"gfx1151": 900, "gfx90a-xnack+": 5, "not a target": 1}})
    for reader in (BytesReader(data), as_stream(data)):
        content = read_content(reader)
        assert content.pack is not None
        assert [(item.target, item.size_bytes) for item in content.pack.libraries["lib/libtorch_hip.so"]] == [
            ("gfx1151", 900),
            ("gfx90a:xnack+", 5),
        ]
        assert content.pack.group == "torch"


def test_reference_to_kernel_packs(build: type[Build]) -> None:
    reference = build.kernel_pack_reference("lib/libtorch_hip.so", "../.kpack/torch_@GFXARCH@.kpack")
    data = build.library({".hip_fatbin": bytes(8192), ".rocm_kpack_ref": reference})
    for reader in (BytesReader(data), as_stream(data)):
        found = read_content(reader).reference
        assert found is not None
        assert found.search_paths == ("../.kpack/torch_@GFXARCH@.kpack",)


@pytest.mark.parametrize(
    "data",
    [
        b"KPAK" + struct.pack("<IQ", 1, 2**63) + bytes(100),
        b"KPAK" + struct.pack("<IQ", 1, 0) + bytes(100),
        b"KPAK" + struct.pack("<IQ", 2, 16) + bytes(100),
        b"KPAK" + struct.pack("<IQ", 1, 16) + b"\xdd\xff\xff\xff\xff",
        b"KPAK" + struct.pack("<IQ", 1, 16) + b"\x81\xa3toc\x05",
        b"KPAK\x01",
    ],
)
def test_hostile_kernel_packs(data: bytes) -> None:
    content = read_content(BytesReader(data))
    assert content.pack is None
    assert content.problems


def test_section_that_claims_more_than_the_file(build: type[Build]) -> None:
    data = bytearray(build.hip_library(build.bundle_for("gfx1100")))
    header_at = struct.unpack_from("<Q", data, 40)[0] + 4 * 64
    data[header_at + 32 : header_at + 40] = struct.pack("<Q", 2**40)
    content = read_content(BytesReader(bytes(data)))
    assert in_bundles(content) == [["gfx1100"]]
    assert "is cut off" in content.problems[0]


def test_a_flood_of_marks_is_cut_off(build: type[Build]) -> None:
    data = build.library({".hip_fatbin": b"CCOB" * 30_000})
    content = read_content(BytesReader(data))
    assert len(content.problems) <= 100
    assert content.bundles == []


def test_more_bundles_than_the_limit(build: type[Build]) -> None:
    data = build.hip_library(*[build.bundle_for("gfx1100")] * 5)
    content = read_content(BytesReader(data), Limits(bundles_per_file=3))
    assert len(content.bundles) == 3
    assert "more than 3 bundles" in content.problems[-1]


def test_truncated_library(build: type[Build]) -> None:
    data = build.hip_library(build.bundle_for("gfx1100", "gfx1101"))
    content = read_content(BytesReader(data[: len(data) // 2]))
    assert content.problems


def test_large_stream_takes_bounded_memory(build: type[Build]) -> None:
    library = build.hip_library(build.bundle_for("gfx1100"))

    def blocks() -> Iterator[bytes]:
        yield library
        for _ in range(800):
            yield bytes(1 << 18)

    tracemalloc.start()
    content = read_content(StreamReader(blocks(), len(library) + (800 << 18)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert in_bundles(content) == [["gfx1100"]]
    assert peak < 64 << 20


def test_what_can_hold_code_is_told_by_its_first_bytes(build: type[Build]) -> None:
    assert is_candidate(build.library())
    assert is_candidate(build.bundle_for("gfx1100"))
    assert not is_candidate(b"#!/usr/bin/env python3\n")
    assert read_content(BytesReader(b"plain text, nothing else")).kind == "other"


@settings(max_examples=80)
@given(data=st.data())
def test_flipped_bytes_never_crash(data: st.DataObject, build: type[Build]) -> None:
    whole = bytearray(
        build.hip_library(
            build.bundle_for("gfx1100"), build.compressed(build.bundle_for("gfx1101")), needed=["liba.so"]
        )
    )
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    read_content(BytesReader(cut))
    read_content(as_stream(cut))
