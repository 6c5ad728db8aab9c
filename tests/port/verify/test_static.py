"""Level 2: what only CUDA has is found on the ROCm side, and only there."""

from __future__ import annotations

from pathlib import Path

from rocmend.port.verify.ladder import verify
from rocmend.port.verify.records import Level, Outcome, Status


def static(root: Path, source: bytes) -> Level:
    (root / "a.cu").write_bytes(source)
    return verify(root, levels=["static"]).levels[0]


HIP = b"#ifdef USE_ROCM\n#include <hip/hip_runtime.h>\n#else\n#include <cuda_runtime.h>\n#endif\n"


def test_a_name_without_a_counterpart(tmp_path: Path) -> None:
    made = static(tmp_path, HIP + b"void f() { cuCtxResetPersistingL2Cache(); }\n")
    (broken,) = (one for one in made.broken if "rule" not in one.data)
    assert "cuCtxResetPersistingL2Cache" in broken.detail
    assert broken.line == 6
    assert made.status is Status.FAILED


def test_a_name_that_nobody_knows_is_undecided(tmp_path: Path) -> None:
    made = static(tmp_path, HIP + b"void f() { cudaFlyToTheMoon(); }\n")
    assert [one.line for one in made.evidence if one.outcome is Outcome.UNKNOWN] == [6]
    assert made.status is Status.INCOMPLETE


def test_names_that_the_project_defines_or_hip_knows(tmp_path: Path) -> None:
    source = (
        HIP + b"#define cudaCheck(x) (x)\nstatic void cudaOurs() {}\nvoid f() { cudaCheck(cudaFree(0)); cudaOurs(); }\n"
    )
    made = static(tmp_path, source)
    assert not [one for one in made.evidence if "looks like one of CUDA's" in one.detail]


def test_variables_of_the_project_that_look_like_cudas(tmp_path: Path) -> None:
    source = (
        HIP + b"cublasHandle_t cublas_handle;\nint f() { cudaError_t cudaStatus = cudaFree(0); return cudaStatus; }\n"
        b"int g(int cudaCount) { return cudaCount; }\n"
    )
    made = static(tmp_path, source)
    assert not [one.detail for one in made.evidence if "looks like one of CUDA's" in one.detail]


def test_the_nvidia_side_comments_and_strings_are_left_alone(tmp_path: Path) -> None:
    name = b"cuCtxResetPersistingL2Cache"
    source = HIP + b'#ifndef USE_ROCM\nvoid f() { %s(); }\n#endif\n// %s\nconst char* s = "%s";\n' % (name, name, name)
    assert static(tmp_path, source).status is Status.PASSED


def test_what_a_rule_still_finds_is_left(tmp_path: Path) -> None:
    source = HIP + b"__global__ void k(int* x) { x[0] = __ballot_sync(0xffffffff, x[1]); }\n"
    made = static(tmp_path, source)
    assert made.status is Status.FAILED
    assert any(one.data.get("rule", "").startswith("CU") for one in made.broken)
