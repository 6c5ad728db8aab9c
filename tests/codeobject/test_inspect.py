from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmend.codeobject.inspect import inspect_path
from rocmend.codeobject.limits import Limits
from rocmend.codeobject.model import Inspection, Problem
from rocmend.codeobject.scan import scan_targets
from rocmend.codeobject.service import Verdict, serve
from rocmend.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from tests.codeobject.conftest import Build

VERSION_PY = b"__version__ = '2.9.1+rocm7.1'\ncuda = None\nhip = '7.1.25424-abcdef'\n"


def torch_tree(build: type[Build]) -> dict[str, bytes]:
    """A ROCm torch in small: kernels, rocBLAS with its Tensile library, MIOpen's database, AOTriton's images."""
    blas = "torch/lib/rocblas/library"
    return {
        "torch/__init__.py": b"raise SystemExit('imported!')\n",
        "torch/version.py": VERSION_PY,
        "torch/lib/libtorch_hip.so": build.hip_library(
            build.compressed(build.bundle_for("gfx942", "gfx1100", "gfx1151")),
            build.compressed(build.bundle_for("gfx942", "gfx1100", "gfx1151")),
            needed=["libamdhip64.so.7", "librocblas.so.5"],
        ),
        "torch/lib/libamdhip64.so.7": build.library(soname="libamdhip64.so.7"),
        "torch/lib/librocblas.so.5.1.70100": build.hip_library(
            build.bundle_for("gfx942", "gfx1100"), soname="librocblas.so.5"
        ),
        f"{blas}/TensileLibrary_lazy_gfx1100.dat": b"\x81\xa1x\x01" * 30,
        f"{blas}/Kernels.so-000-gfx1100.hsaco": build.code_object("gfx1100", kernels=[{".name": "Cijk"}]),
        f"{blas}/Kernels.so-000-gfx90a-xnack-.hsaco": build.code_object("gfx90a:xnack-"),
        f"{blas}/TensileLibrary_gfx942.co": build.compressed(build.bundle_for("gfx942")),
        "torch/share/miopen/db/gfx942130.HIP.fdb.txt": b"x" * 100,
        "torch/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2": b"AKS2" + bytes(100),
    }


def write_tree(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def check_torch(found: Inspection) -> None:
    parts = {part.name: [use.target for use in part.targets] for part in found.components}
    assert parts["PyTorch"] == ["gfx942", "gfx1100", "gfx1151"]
    assert parts["rocBLAS"] == ["gfx942", "gfx1100"]
    assert parts["rocBLAS kernels"] == ["gfx90a:xnack-", "gfx942", "gfx1100"]
    assert parts["MIOpen database"] == ["gfx942"]
    assert "gfx1151" in parts["AOTriton"]
    assert found.backends == ("rocm",)
    assert (found.hip_version, found.rocm_version) == ("7.1.25424-abcdef", "7.1.0")
    assert found.external == ()
    assert not found.problems
    kernels = next(file for file in found.files if file.path.endswith("gfx1100.hsaco"))
    assert (kernels.kernels, kernels.kind, kernels.code_object_version) == (1, "tensile", 5)
    library = next(file for file in found.files if file.path.endswith("libtorch_hip.so"))
    assert (library.bundles, library.compressed) == (2, "zstd")
    assert [(use.target, use.objects) for use in library.targets] == [("gfx942", 2), ("gfx1100", 2), ("gfx1151", 2)]


@pytest.mark.parametrize("stored", [False, True])
def test_wheel(tmp_path: Path, build: type[Build], stored: bool) -> None:
    path = build.wheel(
        tmp_path / "torch-2.9.1.whl", torch_tree(build), name="torch", version="2.9.1+rocm7.1", stored=stored
    )
    found = inspect_path(path)
    check_torch(found)
    assert (found.kind, found.name, found.version) == ("wheel", "torch", "2.9.1+rocm7.1")
    assert found.totals.files == 12
    assert found.totals.code_objects > 0
    assert msgspec.json.decode(msgspec.json.encode(found), type=Inspection) == found


def test_directory_and_quick_scan(tmp_path: Path, build: type[Build]) -> None:
    root = write_tree(tmp_path, torch_tree(build)) / "torch"
    check_torch(inspect_path(root))
    quick = scan_targets(root)
    assert quick["components"]["PyTorch"] == {
        "targets": {"gfx942": 2, "gfx1100": 2, "gfx1151": 2},
        "units": 2,
        "files": 1,
    }
    assert set(quick["targets"]) >= {"gfx942", "gfx1100", "gfx1151", "gfx90a:xnack-"}
    assert quick["versions"] == {"rocm": "7.1.0", "hip": "7.1.25424-abcdef"}
    assert quick["files"] == 11
    assert quick["problems"] == []
    assert msgspec.json.decode(msgspec.json.encode(quick)) == quick


def test_quick_scan_of_generic_code(tmp_path: Path, build: type[Build]) -> None:
    write_tree(
        tmp_path, {"x/lib_a.so": build.hip_library(build.bundle_for("gfx11-generic", "gfx12-generic", generic=1))}
    )
    found = scan_targets(tmp_path / "x")
    assert (found["targets"], found["generic"]) == ([], {"gfx11-generic": 1, "gfx12-generic": 1})


def test_service_part_by_part(tmp_path: Path, build: type[Build]) -> None:
    path = build.wheel(tmp_path / "t.whl", torch_tree(build), name="torch")
    found = serve(inspect_path(path), "gfx1100")
    assert found.verdict is Verdict.NATIVE
    without = serve(inspect_path(path), "gfx1151")
    assert (without.verdict, without.override) == (Verdict.OVERRIDE, "11.0.0")
    assert serve(inspect_path(path), "gfx1010").verdict is Verdict.NONE


def test_cuda_xpu_cpu_and_pure_wheels(tmp_path: Path, build: type[Build]) -> None:
    cuda = build.wheel(
        tmp_path / "c.whl", {"m/a.so": build.library({".nv_fatbin": b"n" * 64}, needed=["libcudart.so.12"])}, name="m"
    )
    found = inspect_path(cuda)
    assert (found.backends, found.cuda_version, found.targets) == (("cuda",), "12", ())
    assert serve(found, "gfx1100").verdict is Verdict.NONE
    assert "NVIDIA" in serve(found, "gfx1100").reason
    xpu = build.wheel(tmp_path / "x.whl", {"m/a.so": build.library(needed=["libsycl.so.8"])}, name="m")
    assert "Intel" in serve(inspect_path(xpu), "gfx1100").reason
    cpu = build.wheel(tmp_path / "p.whl", {"m/a.so": build.library(needed=["libc.so.6"])}, name="m")
    assert inspect_path(cpu).backends == ()
    assert serve(inspect_path(cpu), "gfx1100").verdict is Verdict.NOT_APPLICABLE
    linked = build.wheel(tmp_path / "l.whl", {"m/a.so": build.library(needed=["libamdhip64.so.6"])}, name="m")
    found = inspect_path(linked)
    assert (found.backends, found.external, found.hip_version) == (("rocm",), ("libamdhip64.so.6",), "6")
    assert serve(found, "gfx1100").verdict is Verdict.NOT_APPLICABLE


def test_what_cannot_be_read_is_not_called_harmless(tmp_path: Path, build: type[Build]) -> None:
    cut = tmp_path / "cut.so"
    cut.write_bytes(b"\x7fELF")
    found = serve(inspect_path(cut), "gfx1151")
    assert found.verdict is Verdict.UNKNOWN
    assert "cut.so" in found.reason
    damaged = {"m/a.so": build.library({".hip_fatbin": build.bundle_for("gfx1100")})[:200]}
    assert serve(inspect_path(write_tree(tmp_path / "d", damaged)), "gfx1100").verdict is Verdict.UNKNOWN
    half = damaged | {"m/c.so": build.hip_library(build.bundle_for("gfx1100"))}
    service = serve(inspect_path(write_tree(tmp_path / "h", half)), "gfx1100")
    assert service.verdict is Verdict.UNKNOWN
    assert "1 of its 2 files cannot be relied on (m/a.so: cut off: the file has 200 of the" in service.reason


def test_a_damaged_source_file_decides_nothing(tmp_path: Path, build: type[Build]) -> None:
    missing = msgspec.structs.replace(
        inspect_path(build.wheel(tmp_path / "p.whl", {"m/__init__.py": b""}, name="m")),
        problems=(Problem("m/__pycache__/a.pyc", "is listed by the distribution but not there."),),
    )
    assert serve(missing, "gfx1100").verdict is Verdict.NOT_APPLICABLE


def test_device_code_in_kernel_packs(tmp_path: Path, build: type[Build]) -> None:
    reference = build.kernel_pack_reference("lib/libtorch_hip.so", "../.kpack/torch_@GFXARCH@.kpack")
    host = {"torch/lib/libtorch_hip.so": build.library({".rocm_kpack_ref": reference})}
    found = inspect_path(build.wheel(tmp_path / "host.whl", host, name="torch"))
    service = serve(found, "gfx1151")
    assert service.verdict is Verdict.NONE
    assert "device-gfx1151" in service.reason
    both = host | {"torch/.kpack/torch_gfx1151.kpack": build.kernel_pack({"lib/libtorch_hip.so": {"gfx1151": 10}})}
    root = write_tree(tmp_path / "site", both)
    assert serve(inspect_path(root / "torch"), "gfx1151").verdict is Verdict.NATIVE
    assert scan_targets(root / "torch")["packs"] == ["../.kpack/torch_@GFXARCH@.kpack"]


def test_one_library_for_each_hip_version(tmp_path: Path, build: type[Build]) -> None:
    path = build.wheel(
        tmp_path / "b.whl",
        {
            "bnb/libbnb_rocm72.so": build.hip_library(build.bundle_for("gfx1100")),
            "bnb/libbnb_rocm714.so": build.hip_library(build.bundle_for("gfx1100", "gfx1012")),
        },
        name="bnb",
    )
    found = inspect_path(path)
    assert [(part.name, part.variant) for part in found.components] == [("bnb", "7.2"), ("bnb", "7.14")]
    assert (found.rocm_version, found.hip_version) == ("", "")


def test_single_files(tmp_path: Path, build: type[Build]) -> None:
    for name, data in {
        "k.hsaco": build.code_object("gfx1201"),
        "fat.co": build.bundle_for("gfx1201"),
        "libx.so": build.hip_library(build.bundle_for("gfx1201")),
        "x.kpack": build.kernel_pack({"libx.so": {"gfx1201": 1}}),
    }.items():
        (tmp_path / name).write_bytes(data)
        found = inspect_path(tmp_path / name)
        assert (found.kind, found.targets) == ("file", ("gfx1201",)), name
        assert serve(found, "gfx1201").verdict is Verdict.NATIVE, name


def test_files_of_other_kinds(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"hello world, this is no wheel" * 10)
    with pytest.raises(DataError, match="neither a wheel nor"):
        inspect_path(tmp_path / "a.txt")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(DataError):
        inspect_path(tmp_path / "empty")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        inspect_path(tmp_path / "fifo")
    for name in ("no-such-package-anywhere", "no/such/file.whl", "nul\0byte"):
        with pytest.raises(UsageError):
            inspect_path(name)


def test_truncated_wheel(tmp_path: Path, build: type[Build]) -> None:
    path = build.wheel(tmp_path / "t.whl", torch_tree(build), name="torch")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(DataError):
        inspect_path(path)


def test_damaged_members_are_listed_and_the_rest_is_read(tmp_path: Path, build: type[Build]) -> None:
    path = build.wheel(tmp_path / "t.whl", torch_tree(build), name="torch")
    data = bytearray(path.read_bytes())
    at = data.index(b"torch/lib/libtorch_hip.so") + 200
    data[at : at + 50] = b"\xff" * 50
    path.write_bytes(bytes(data))
    found = inspect_path(path)
    assert [problem.path for problem in found.problems] == ["torch/lib/libtorch_hip.so"]
    assert any(part.name == "rocBLAS" for part in found.components)


@pytest.mark.slow
def test_wheel_bomb(tmp_path: Path, build: type[Build]) -> None:
    bomb = build.library() + bytes(200 << 20)
    path = build.wheel(
        tmp_path / "bomb.whl", {"m/a.so": bomb, "m/b.so": build.hip_library(build.bundle_for("gfx1100"))}
    )
    del bomb
    tracemalloc.start()
    found = inspect_path(path)
    allowed = inspect_path(path, limits=Limits(ratio=5000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "zip bomb" in found.problems[0].message
    assert "unpack it and inspect the folder" in found.problems[0].message
    served = serve(found, "gfx1100")
    assert served.verdict is Verdict.UNKNOWN
    assert "get it again" not in str(served)  # it is as it was made
    assert found.totals.read_bytes < 10 << 20 < found.totals.bytes
    assert found.targets == ("gfx1100",)
    assert not allowed.problems
    assert peak < 64 << 20


def test_folder_with_links_out_of_it(tmp_path: Path, build: type[Build]) -> None:
    outside = tmp_path / "outside.so"
    outside.write_bytes(build.hip_library(build.bundle_for("gfx1030")))
    inside = write_tree(tmp_path / "pkg", {"lib/a.so.1": build.hip_library(build.bundle_for("gfx1100"))})
    (inside / "out.so").symlink_to(outside)
    (inside / "up").symlink_to(tmp_path)
    (inside / "loop").symlink_to(inside)
    (inside / "lib" / "a.so").symlink_to("a.so.1")
    (inside / "gone.so").symlink_to("nowhere")
    os.mkfifo(inside / "fifo.so")
    found = inspect_path(inside)
    assert found.targets == ("gfx1100",)
    assert found.totals.files == 1
    assert sorted(problem.path for problem in found.problems) == ["out.so", "up"]
    assert scan_targets(inside)["targets"] == ["gfx1100"]


def test_names_that_are_not_utf8(tmp_path: Path, build: type[Build]) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / os.fsdecode(b"lib\xff\xfe.so")).write_bytes(build.hip_library(build.bundle_for("gfx1100")))
    found = inspect_path(tmp_path / "d")
    assert found.targets == ("gfx1100",)
    msgspec.json.encode(found)
    msgspec.json.encode(scan_targets(tmp_path / "d"))


def test_too_many_files(tmp_path: Path) -> None:
    write_tree(tmp_path / "d", {f"{number}.bin": b"x" for number in range(30)})
    found = inspect_path(tmp_path / "d", limits=Limits(members=10))
    assert found.totals.files == 10
    assert "beyond the first 10 files" in found.problems[0].message


def test_installed_package(tmp_path: Path, build: type[Build]) -> None:
    files = torch_tree(build)
    record = "".join(f"{name},,\n" for name in [*files, "../../../bin/torchrun", "torch-2.9.1.dist-info/RECORD"])
    info = {
        "torch-2.9.1.dist-info/METADATA": build.metadata("torch", "2.9.1+rocm7.1"),
        "torch-2.9.1.dist-info/RECORD": record.encode(),
        "torch/.kpack/torch_gfx1201.kpack": build.kernel_pack({"lib/libtorch_hip.so": {"gfx1201": 10}}),
    }
    site = write_tree(tmp_path / "site", files | info)
    found = inspect_path("Torch", search_path=[str(site)])
    assert (found.kind, found.name, found.version) == ("package", "torch", "2.9.1+rocm7.1")
    assert "gfx1201" in found.targets  # laid over it by a distribution of its own
    missing = next(iter(files))
    (site / missing).unlink()
    again = inspect_path("torch", search_path=[str(site)])
    assert [problem.path for problem in again.problems] == [missing]


def test_package_folder_without_a_distribution(tmp_path: Path, build: type[Build]) -> None:
    site = write_tree(
        tmp_path, {"thing/__init__.py": b"1/0", "thing/a.so": build.hip_library(build.bundle_for("gfx1100"))}
    )
    found = inspect_path("thing", search_path=[str(site)])
    assert (found.kind, found.targets) == ("directory", ("gfx1100",))


def test_progress(tmp_path: Path, build: type[Build]) -> None:
    path = build.wheel(tmp_path / "t.whl", torch_tree(build), name="torch")
    calls: list[tuple[str, int, int]] = []
    inspect_path(path, progress=lambda name, done, total: calls.append((name, done, total)))
    assert calls[-1][1] == calls[-1][2] > 0
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)


def test_progress_never_counts_beyond_what_there_is(tmp_path: Path, build: type[Build]) -> None:
    library = build.hip_library(build.bundle_for("gfx1100"))
    info = {"thing-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"}
    files = {"thing/a.so": library, "thing/b.so": library} | info
    record = "".join(f"{name},,\n" for name in (*files, "thing-1.0.dist-info/RECORD"))
    site = write_tree(tmp_path, files | {"thing-1.0.dist-info/RECORD": record.encode()})
    for subject in ("thing", site / "thing", site / "thing" / "a.so"):
        calls: list[tuple[int, int]] = []

        def told(_: str, done: int, total: int, calls: list[tuple[int, int]] = calls) -> None:
            calls.append((done, total))

        inspect_path(subject, search_path=[str(site)], progress=told)
        assert calls
        assert all(0 <= done <= total > 0 for done, total in calls), subject


def bitsandbytes(build: type[Build]) -> dict[str, bytes]:
    """A package with a library for each HIP version, of which the older ones have no code for RDNA 1."""
    old, new = ("gfx1100", "gfx90a"), ("gfx1100", "gfx90a", "gfx1010")
    held = {"64": old, "70": old, "71": old, "72": old, "714": new, "715": new}
    return {
        f"bitsandbytes/libbitsandbytes_rocm{version}.so": build.hip_library(build.bundle_for(*targets))
        for version, targets in held.items()
    }


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("gfx1010", ""), (Verdict.NONE, ("7.14", "7.15"))),
        (("gfx1010", "7.14.60850"), (Verdict.NATIVE, ())),
        (("gfx1010", "7.2.53150"), (Verdict.NONE, ())),
        (("gfx1010", "6.2.41133"), (Verdict.NONE, ())),
        (("gfx1100", "6.2.41133"), (Verdict.UNKNOWN, ())),
        (("gfx1100", ""), (Verdict.NATIVE, ())),
        (("gfx942", ""), (Verdict.NONE, ())),
    ],
)
def test_the_library_that_would_be_loaded_decides(
    tmp_path: Path, build: type[Build], asked: tuple[str, str], expected: tuple[Verdict, tuple[str, ...]]
) -> None:
    gpu, hip = asked
    found = inspect_path(build.wheel(tmp_path / "b.whl", bitsandbytes(build), name="bitsandbytes"))
    assert [part.variant for part in found.components] == ["6.4", "7.0", "7.1", "7.2", "7.14", "7.15"]
    served = serve(found, gpu, hip=hip)
    assert (served.verdict, served.only_with) == expected
    assert len(served.components) == 6
    if hip.startswith("6.2"):
        assert served.reason.startswith("there is no library for HIP 6.2")


def test_file_named_after_another_target(tmp_path: Path, build: type[Build]) -> None:
    write_tree(tmp_path, {"rocblas/library/Kernels.so-000-gfx1151.hsaco": build.code_object("gfx1100")})
    found = inspect_path(tmp_path)
    assert found.targets == ("gfx1100",)
    assert "named after gfx1151 but holds code for gfx1100" in found.problems[0].message


def test_metadata_with_a_four_gigabyte_note(tmp_path: Path, build: type[Build]) -> None:
    data = bytearray(build.code_object("gfx1100", kernels=[{".name": "k"}]))
    data[64 + 32 : 64 + 40] = struct.pack("<Q", 1 << 32)
    (tmp_path / "k.hsaco").write_bytes(data)
    found = inspect_path(tmp_path / "k.hsaco")
    assert found.targets == ()
    assert "cut off: the file has" in found.problems[0].message


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bytes_in_a_wheel_never_crash(data: st.DataObject, tmp_path: Path, build: type[Build]) -> None:
    path = tmp_path / "t.whl"
    if not (tmp_path / "whole").exists():
        build.wheel(tmp_path / "whole", torch_tree(build), name="torch")
    whole = bytearray((tmp_path / "whole").read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(whole))
    try:
        found = inspect_path(path)
    except DataError:
        return
    serve(found, "gfx1151")
    msgspec.json.encode(found)
