"""Which compiler is taken, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.codeobject.hip import (
    HipObject,
    NoToolchainError,
    Syntax,
    Toolchain,
    check_syntax,
    compile_hip,
    find_toolchain,
)
from rocmend.codeobject.hip import toolchain as module
from rocmend.codeobject.hip.headers import how_to_get, is_of_nvidia


def rocm(root: Path, version: str = "20.0.0git") -> Path:
    """Make a folder that looks like a ROCm's, with a clang that says its version."""
    home = root / "llvm/bin"
    home.mkdir(parents=True)
    for name in ("clang++", "ld.lld"):
        (home / name).write_text(
            f"#!/bin/sh\necho 'AMD clang version {version} (roc-7.0)'\necho 'InstalledDir: {home}'\n"
        )
        (home / name).chmod(0o755)
    (root / "include/hip").mkdir(parents=True)
    (root / "include/hip/hip_runtime.h").touch()
    (root / "include/hip/hip_version.h").write_text("#define HIP_VERSION_MAJOR 7\n#define HIP_VERSION_MINOR 0\n")
    return root


def test_an_installed_rocm_comes_first(tmp_path: Path) -> None:
    root = rocm(tmp_path / "rocm")
    found = find_toolchain({"ROCM_PATH": str(root)})
    assert found.kind == "rocm"
    assert found.clang == (str(root / "llvm/bin/clang++"),)
    assert found.linker == (str(root / "llvm/bin/ld.lld"),)
    assert found.flags == (f"--rocm-path={root}",)
    assert "clang 20.0.0git" in found.name
    assert "HIP 7.0" in found.name
    assert not found.wants_constants


def test_a_rocm_whose_clang_does_not_run_is_passed_over(tmp_path: Path, tools: Toolchain) -> None:
    root = rocm(tmp_path / "rocm")
    (root / "llvm/bin/clang++").write_text("#!/bin/sh\nexit 1\n")
    assert find_toolchain({"ROCM_PATH": str(root), "PATH": ""}).name == tools.name


def test_pips_packages_can_be_asked_for(tmp_path: Path, tools: Toolchain) -> None:
    root = rocm(tmp_path / "rocm")
    found = find_toolchain({"ROCM_PATH": str(root), "ROCMEND_HIP_COMPILER": "pip"})
    assert found == tools
    assert found.wants_constants


def test_a_named_program_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(NoToolchainError, match="no clang or hipcc that runs"):
        find_toolchain({"ROCMEND_HIP_COMPILER": str(tmp_path / "none")})


def test_no_compiler_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_package", lambda _: None)
    monkeypatch.setattr(module, "_rocm_programs", lambda *_: [])
    with pytest.raises(NoToolchainError) as told:
        module._find.__wrapped__("", "", "", "", "")
    assert "ziglang, triton, libclang-ng are not here" in told.value.message
    assert "pip install" in told.value.next_step


def test_a_folder_of_headers_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(NoToolchainError, match="no folder"):
        find_toolchain({"ROCMEND_HIP_HEADERS": str(tmp_path / "none")})


def test_headers_change_the_fingerprint(tmp_path: Path, tools: Toolchain) -> None:
    found = find_toolchain({"ROCMEND_HIP_COMPILER": "pip", "ROCMEND_HIP_HEADERS": str(tmp_path)})
    assert found.header_folders == (str(tmp_path),)
    assert found.fingerprint != tools.fingerprint


@pytest.mark.slow
def test_without_headers_of_the_system_those_of_ziglang_do(tools: Toolchain, tmp_path: Path) -> None:
    import msgspec

    lib = Path(tools.clang[0]).parent / "lib"
    usual, bare = module._host_headers(lib), module._host_headers(lib, tmp_path)
    assert tools.flags[-len(usual) :] == usual
    alone = msgspec.structs.replace(tools, flags=(*tools.flags[: -len(usual)], *bare), fingerprint="bare")
    source = (
        b"#include <hip/hip_runtime.h>\n#include <algorithm>\n#include <cstdio>\n#include <vector>\n"
        b"__global__ void k(float* x) { x[0] = std::max(x[0], sinf(x[1])); }\n"
        b'int main() { std::vector<float> v(3); std::sort(v.begin(), v.end()); return std::printf("%f", v[0]); }\n'
    )
    assert isinstance(compile_hip(source, "gfx1100", toolchain=alone, cache=False), HipObject)
    assert isinstance(check_syntax(source, "gfx1100", host_only=True, toolchain=alone), Syntax)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("THC/THCAtomics.cuh", "ATen/cuda/Atomic.cuh"),
        ("hipcub/hipcub.hpp", "hipCUB"),
        ("hipblaslt/hipblaslt.h", "hipBLASLt"),
        ("hiprand/hiprand_kernel.h", "hipRAND"),
        ("ATen/ATen.h", "torch"),
        ("mine.h", "name its folder"),
        ("cub/cub.cuh", "NVIDIA's"),
    ],
)
def test_what_a_header_belongs_to(header: str, told: str) -> None:
    assert told in how_to_get(header)
    assert is_of_nvidia(header) is ("NVIDIA" in told)
