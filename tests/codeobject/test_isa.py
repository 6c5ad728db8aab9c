from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.codeobject.isa import MACH, entry_target, from_flags, from_header, normalise
from rocmend.core.errors import DataError
from rocmend.core.gfx import targets

if TYPE_CHECKING:
    from tests.codeobject.conftest import Build


@pytest.mark.parametrize(
    ("number", "processor"),
    [  # llvm/test/CodeGen/AMDGPU/elf-header-flags-mach.ll, spot checks over the whole range
        (0x20, "gfx600"), (0x2A, "gfx803"), (0x2C, "gfx900"), (0x32, "gfx90c"), (0x33, "gfx1010"), (0x35, "gfx1012"),
        (0x36, "gfx1030"), (0x3D, "gfx1035"), (0x3F, "gfx90a"), (0x41, "gfx1100"), (0x42, "gfx1013"), (0x44, "gfx1103"),
        (0x47, "gfx1102"), (0x48, "gfx1200"), (0x49, "gfx1250"), (0x4A, "gfx1151"), (0x4C, "gfx942"), (0x4E, "gfx1201"),
        (0x4F, "gfx950"), (0x51, "gfx9-generic"), (0x54, "gfx11-generic"), (0x55, "gfx1152"), (0x58, "gfx1153"),
        (0x59, "gfx12-generic"), (0x5F, "gfx9-4-generic"), (0x62, "gfx11-7-generic"), (0x63, "gfx13-generic"),
    ],
)  # fmt: skip
def test_processor_numbers(number: int, processor: str) -> None:
    assert MACH[number] == processor


@pytest.mark.parametrize("number", [0x27, 0x4D, 0x56, 0x60, 0x61])
def test_reserved_numbers_are_no_processor(number: int) -> None:
    with pytest.raises(DataError, match="no name for"):
        from_flags(number, 3)


def test_every_target_of_the_table_has_a_number() -> None:
    assert {target.name for target in targets()} <= set(MACH.values())
    assert {target.generic_class for target in targets()} - {None} <= set(MACH.values())


@pytest.mark.parametrize(
    ("flags", "target"),
    [
        (0x3F, "gfx90a"),
        (0x3F | 0x100 | 0x400, "gfx90a"),
        (0x3F | 0x200, "gfx90a:xnack-"),
        (0x3F | 0x300, "gfx90a:xnack+"),
        (0x3F | 0x800 | 0x300, "gfx90a:sramecc-:xnack+"),
        (0x3F | 0xC00 | 0x200, "gfx90a:sramecc+:xnack-"),
    ],
)
def test_settings_of_version_4_and_later(flags: int, target: str) -> None:
    assert from_flags(flags, 2).target == target
    assert from_flags(flags, 3).target == target
    assert from_flags(flags, 3).code_object_version == 5


def test_version_3_means_on_or_off_and_nothing_else() -> None:
    assert from_flags(0x2F, 1).target == "gfx906:sramecc-:xnack-"
    assert from_flags(0x2F | 0x300, 1).target == "gfx906:sramecc+:xnack+"
    assert from_flags(0x36, 1).target == "gfx1030"


def test_generic_version_stands_in_the_top_byte() -> None:
    found = from_flags(0x54 | 3 << 24, 4)
    assert (found.target, found.generic_version, found.code_object_version) == ("gfx11-generic", 3, 6)
    assert from_flags(0x41 | 3 << 24, 4).generic_version == 0


def test_unknown_abi_version() -> None:
    with pytest.raises(DataError, match="ABI version 5"):
        from_flags(0x41, 5)


@pytest.mark.parametrize(
    ("entry", "target"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-"),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-:sramecc+", "gfx90a:sramecc+:xnack-"),
        ("hip-amdgcn-amd-amdhsa-gfx803", "gfx803"),
        ("hipv4-amdgcn-amd-amdhsa--gfx11-generic", "gfx11-generic"),
        ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-", "gfx9-4-generic:sramecc+:xnack-"),
        ("openmp-amdgcn-amd-amdhsa--gfx906", "gfx906"),
        ("hip-spirv64-amd-amdhsa--amdgcnspirv", "amdgcnspirv"),
        ("host-x86_64-unknown-linux-gnu-", None),
        ("sycl-spir64-unknown-unknown", None),
        ("hipv4-amdgcn-amd-amdhsa--gfx7777", None),
        ("hipv4-nvptx64-nvidia-cuda--sm_90", None),
        ("", None),
    ],
)
def test_bundle_entry_ids(entry: str, target: str | None) -> None:
    assert entry_target(entry) == target


def test_headers_of_other_files_are_told_apart(build: type[Build]) -> None:
    good = build.code_object("gfx1151")
    assert from_header(good).target == "gfx1151"
    with pytest.raises(DataError, match="machine 62"):
        from_header(build.library())
    with pytest.raises(DataError, match="64-bit little-endian"):
        from_header(good[:40])
    with pytest.raises(DataError, match="OS ABI 65"):
        from_header(build.code_object(os_abi=65))


@given(st.integers(0, 2**32 - 1), st.integers(0, 255))
def test_flags_are_named_or_refused(flags: int, abi_version: int) -> None:
    try:
        found = from_flags(flags, abi_version)
    except DataError:
        return
    assert normalise(found.target) == found.target


@given(st.text(max_size=300))
def test_any_text_is_an_entry_id_or_none(text: str) -> None:
    found = entry_target(text)
    assert found is None or found.startswith(("gfx", "amdgcnspirv"))
