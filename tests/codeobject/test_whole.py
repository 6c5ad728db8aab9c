"""Nothing is said of code whose bytes are not all there."""

from __future__ import annotations

import io
import json
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from tests.codeobject.conftest import Build

from rocmend.codeobject.hip import HipObject, compile_hip, find_toolchain
from rocmend.codeobject.inspect import inspect_path
from rocmend.codeobject.scan import scan_targets
from rocmend.codeobject.service import Verdict, serve, service_for_targets
from rocmend.core.errors import DataError, RocmendError

TARGET = "gfx1100"
SOURCE = b'extern "C" __global__ void add(float *x, float y) { x[0] += y; }'
ROUNDS = 200


def find_toolchain_or_skip() -> None:
    try:
        find_toolchain()
    except RocmendError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def real(build: type[Build]) -> bytes:
    """A code object that clang and lld made, or, without them, the tests' own."""
    try:
        find_toolchain()
    except RocmendError:
        return build.code_object(TARGET, kernels=[{".name": "add"}])
    made = compile_hip(SOURCE, TARGET)
    assert isinstance(made, HipObject), made
    return made.code


def verdict(path: Path, data: bytes) -> tuple[Verdict, str]:
    path.write_bytes(data)
    try:
        found = serve(inspect_path(path), TARGET)
    except DataError as error:
        return Verdict.UNKNOWN, str(error)
    return found.verdict, found.reason


def containers(real: bytes, build: type[Build]) -> dict[str, bytes]:
    entry = f"hipv4-amdgcn-amd-amdhsa--{TARGET}"
    bundle = build.bundle([(entry, real)])
    return {
        "k.hsaco": real,
        "k.co": bundle,
        "z3.co": build.compressed(bundle),
        "z2.co": build.compressed(bundle, version=2),
        "z1.co": build.compressed(bundle, version=1),
        "zlib.co": build.compressed(bundle, method="zlib"),
        "lib.so": build.hip_library(bundle),
        "libz.so": build.hip_library(build.compressed(bundle)),
        "bare.so": build.library({".rodata": b"x" * 64 + real}),
        "p.kpack": build.kernel_pack({"a.so": {TARGET: 128}}),
    }


NAMES = ("k.hsaco", "k.co", "z3.co", "z2.co", "z1.co", "zlib.co", "lib.so", "libz.so", "bare.so", "p.kpack")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_cut_anywhere_is_never_native(name: str, tmp_path: Path, real: bytes, build: type[Build]) -> None:
    whole = containers(real, build)[name]
    assert verdict(tmp_path / name, whole)[0] is Verdict.NATIVE
    padding = len(whole) - len(whole.rstrip(b"\0")) if name == "k.co" else 0  # after the last object: nothing is lost
    cuts = range(len(whole) - padding) if len(whole) < ROUNDS else random.Random(7).sample(range(len(whole)), ROUNDS)  # noqa: S311
    judged = {cut: verdict(tmp_path / name, whole[:cut]) for cut in cuts if cut < len(whole) - padding}
    assert {cut: found for cut, found in judged.items() if found[0] is not Verdict.UNKNOWN} == {}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_zeros_from_anywhere_on_is_never_native(
    name: str, tmp_path: Path, real: bytes, build: type[Build]
) -> None:
    """As a download that allocates its file first leaves it, or a loss of power; the length is that of the whole."""
    whole = containers(real, build)[name]
    end = len(whole.rstrip(b"\0"))  # what was zero before is not lost
    near = {end - 1, end - 2, end - 8, end - 40, end - 64, end - 200, 64, 500}
    cuts = near | set(random.Random(13).sample(range(64, end), min(ROUNDS, end - 64)))  # noqa: S311
    judged = {cut: verdict(tmp_path / name, whole[:cut].ljust(len(whole), b"\0")) for cut in cuts if 0 < cut < end}
    assert {cut: found for cut, found in judged.items() if found[0] is Verdict.NATIVE} == {}


@pytest.mark.parametrize("at", [64, 500, 4692, 8000])
def test_zeros_say_where_they_begin(at: int, tmp_path: Path, real: bytes) -> None:
    at = min(at, len(real) - 100)
    found, reason = verdict(tmp_path / "k.hsaco", real[:at].ljust(len(real), b"\0"))
    assert found is Verdict.UNKNOWN
    begin = len(real[:at].rstrip(b"\0"))
    assert f"bytes from {begin:,} on are zero" in reason


def parts(real: bytes) -> dict[str, tuple[int, int]]:
    """Offset and size of each named section's data."""
    with io.BytesIO(real) as stream:
        return {
            section.name: (section["sh_offset"], section["sh_size"])
            for section in ELFFile(stream).iter_sections()
            if section["sh_type"] not in {"SHT_NULL", "SHT_NOBITS"}
        }


@pytest.mark.parametrize("section", [".text", ".rodata", ".dynstr"])
def test_zeros_between_are_seen_where_a_kernel_should_be(section: str, tmp_path: Path, real: bytes) -> None:
    """As a download that fetches pieces out of order leaves it."""
    if section not in parts(real):
        pytest.skip("no toolchain made this object")
    at, size = parts(real)[section]
    found, reason = verdict(tmp_path / "k.hsaco", real[:at] + bytes(size) + real[at + size :])
    assert found is Verdict.UNKNOWN, reason
    assert "damaged: " in reason


def test_what_has_no_kernels_or_no_sections_is_judged_as_before(
    tmp_path: Path, real: bytes, build: type[Build]
) -> None:
    without_sections = bytearray(real)
    without_sections[40:48] = bytes(8)
    without_sections[60:64] = bytes(4)
    for data in (real, bytes(without_sections), build.code_object(TARGET), build.code_object(TARGET, version=3)):
        assert verdict(tmp_path / "k.hsaco", data)[0] is Verdict.NATIVE
    assert verdict(tmp_path / "k.hsaco", real + bytes(5000))[0] is Verdict.NATIVE  # what follows is not of it


def test_a_cut_says_how_much_is_there(tmp_path: Path, real: bytes, build: type[Build]) -> None:
    find_toolchain_or_skip()
    found, reason = verdict(tmp_path / "k.hsaco", real[:1300])
    assert found is Verdict.UNKNOWN
    assert f"cut off: the file has 1,300 of the {len(real):,} bytes its headers describe" in reason
    bundle = build.bundle([(f"hipv4-amdgcn-amd-amdhsa--{TARGET}", real)])
    found, reason = verdict(tmp_path / "k.co", bundle[: 4096 + 1300])
    assert found is Verdict.UNKNOWN
    assert f"cut off: the file has 1,300 of the {len(real):,} bytes" in reason


def fields(data: bytes) -> list[tuple[int, int]]:
    """Offset and size of the fields that say what is where: of the header, each segment and each section."""
    phoff, shoff = struct.unpack_from("<QQ", data, 32)
    phnum, _, shnum = struct.unpack_from("<HHH", data, 56)
    header = [(16, 2), (18, 2), (32, 8), (40, 8), (54, 2), (56, 2), (58, 2), (60, 2)]
    segments = [(phoff + 56 * n + at, 8) for n in range(phnum) for at in (8, 32)]
    sections = [(shoff + 64 * n + at, 8) for n in range(1, shnum) for at in (24, 32)]
    return header + segments + sections


def test_a_field_that_points_beyond_the_file_is_never_native(tmp_path: Path, real: bytes) -> None:
    nobits = {
        row + at
        for row in range(struct.unpack_from("<Q", real, 40)[0], len(real), 64)
        if struct.unpack_from("<I", real, row + 4)[0] in {0, 8}
        for at in (24, 32)
    }
    judged = {}
    for at, size in fields(real):
        damaged = bytearray(real)
        damaged[at : at + size] = (0xFFFF if size == 2 else len(real) + 1).to_bytes(size, "little")
        if at not in nobits:
            judged[at] = verdict(tmp_path / "k.hsaco", bytes(damaged))[0]
    assert {at: found for at, found in judged.items() if found is Verdict.NATIVE} == {}


def test_any_field_of_zeros_and_any_flipped_byte_is_survived(tmp_path: Path, real: bytes) -> None:
    """Whatever is judged native then still has every byte that its headers describe."""
    rolls = random.Random(11)  # noqa: S311
    for at, size in fields(real):
        damaged = bytearray(real)
        damaged[at : at + size] = bytes(size)
        found, _ = verdict(tmp_path / "k.hsaco", bytes(damaged))
        assert found is not Verdict.NATIVE or at > 64 or at in {40, 58, 60}, at
        assert found is Verdict.UNKNOWN or at not in {18, 32, 54, 56}, at
    for _ in range(ROUNDS):
        damaged = bytearray(real)
        damaged[rolls.randrange(len(real))] ^= 1 << rolls.randrange(8)
        whole, _ = verdict(tmp_path / "k.hsaco", bytes(damaged))
        cut, _ = verdict(tmp_path / "k.hsaco", bytes(damaged[:-65]))
        assert cut is not Verdict.NATIVE or whole is not Verdict.NATIVE


def test_one_damaged_object_among_good_ones_decides_where_it_would_be_loaded(
    tmp_path: Path, real: bytes, build: type[Build]
) -> None:
    entry = "hipv4-amdgcn-amd-amdhsa--"
    good = build.bundle([(f"{entry}{TARGET}", real), (f"{entry}gfx900", build.code_object("gfx900"))])
    bad = bytearray(good)
    at = good.index(b"\x7fELF")
    bad[at + 56 : at + 58] = bytes(2)  # no program headers
    path = tmp_path / "lib.so"
    path.write_bytes(build.hip_library(good, bytes(bad), good))
    inspection = inspect_path(path)
    hit = serve(inspection, TARGET)
    assert hit.verdict is Verdict.UNKNOWN
    assert "1 of its 3 code objects for gfx1100 cannot be loaded: damaged: it has no program headers" in hit.reason
    assert serve(inspection, "gfx900").verdict is Verdict.NATIVE
    scanned = scan_targets(tmp_path)
    quick = service_for_targets(scanned["targets"], TARGET, components=scanned["components"])
    assert quick.verdict is Verdict.UNKNOWN
    assert service_for_targets(scanned["targets"], "gfx900", components=scanned["components"]).verdict is Verdict.NATIVE


def test_a_kernel_file_is_not_believed_for_its_name(tmp_path: Path, build: type[Build]) -> None:
    code = build.code_object(TARGET)
    folder = tmp_path / "rocblas" / "library"
    folder.mkdir(parents=True)
    for size in (0, 10, 100, len(code) - 1):
        (folder / f"Kernels.so-000-{TARGET}.hsaco").write_bytes(code[:size])
        assert serve(inspect_path(tmp_path), TARGET).verdict is Verdict.UNKNOWN, size


def wheel_with(tmp_path: Path, build: type[Build], spoil: Callable[[bytearray, bytes], None]) -> Path:
    members = {
        "m/a.so": build.hip_library(build.bundle_for(TARGET)),
        "m/b.so": build.hip_library(build.bundle_for(TARGET), soname="b"),
    }
    path = build.wheel(tmp_path / "m-1.0.whl", members, name="m", stored=True)
    data = bytearray(path.read_bytes())
    spoil(data, members["m/b.so"])
    path.write_bytes(bytes(data))
    return path


def test_a_wheel_with_a_damaged_member_is_not_native(tmp_path: Path, build: type[Build]) -> None:
    def flip(data: bytearray, member: bytes) -> None:
        data[data.index(member) + 300] ^= 1

    found = serve(inspect_path(wheel_with(tmp_path, build, lambda *_: None)), TARGET)
    assert found.verdict is Verdict.NATIVE
    found = serve(inspect_path(wheel_with(tmp_path, build, flip)), TARGET)
    assert found.verdict is Verdict.UNKNOWN
    assert "1 of its 2 files cannot be relied on (m/b.so: damaged: its bytes are not those" in found.reason


def test_the_command_says_so(tmp_path: Path, real: bytes, build: type[Build]) -> None:
    find_toolchain_or_skip()
    for name, data in (("k.hsaco", real[:1300]), ("lib.so", build.hip_library(build.bundle_for(TARGET))[:9000])):
        (tmp_path / name).write_bytes(data)
        run = subprocess.run(
            [sys.executable, "-m", "rocmend", "wheel", "inspect", str(tmp_path / name), "--target", TARGET, "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 1, run.stderr
        service = json.loads(run.stdout)["data"]["services"][0]
        assert service["verdict"] == "unknown"
        assert "cut off: the file has" in service["reason"]
