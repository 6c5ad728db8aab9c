"""Compiling real kernels with the real compiler."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rocmend.codeobject.hip import (
    Failure,
    HipFailure,
    HipObject,
    Level,
    Syntax,
    Toolchain,
    check_syntax,
    compile_hip,
    findings,
)
from rocmend.codeobject.isa import from_header
from rocmend.core.errors import UsageError

RUNTIME = b"#include <hip/hip_runtime.h>\n"
SUM = (
    RUNTIME
    + b"""
__global__ void total(const float* x, float* y, int n) {
  __shared__ float parts[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? sqrtf(x[i]) : 0.f;
  for (int s = warpSize / 2; s > 0; s /= 2) v += __shfl_down(v, s);
  if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = v;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = parts[0] + parts[1];
}
"""
)
# The width bug that no compiler mentions: a ballot has 64 bits on gfx9, and __popc counts 32 of them.
BALLOT = (
    RUNTIME
    + b"""
__global__ void odd(const int* x, int* y) {
  y[threadIdx.x] = %s(__ballot(x[threadIdx.x] & 1));
}
"""
)


def compiled(source: Path | bytes, target: str, tools: Toolchain, **more: object) -> HipObject:
    made = compile_hip(source, target, toolchain=tools, **more)  # type: ignore[arg-type]
    assert isinstance(made, HipObject), made
    return made


def failed(source: bytes, target: str, tools: Toolchain, **more: object) -> HipFailure:
    made = compile_hip(source, target, toolchain=tools, cache=False, **more)  # type: ignore[arg-type]
    assert isinstance(made, HipFailure)
    return made


OF_32 = ("gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
OF_64 = ("gfx90a", "gfx942", "gfx950")


@pytest.mark.slow
@pytest.mark.parametrize(("target", "wave_size"), [*((name, 32) for name in OF_32), *((name, 64) for name in OF_64)])
def test_a_code_object_of_the_targets_own_wave_size(target: str, wave_size: int, tools: Toolchain) -> None:
    made = compiled(SUM, target, tools)
    assert made.code[:4] == b"\x7fELF"
    assert f'.amdgcn_target "amdgcn-amd-amdhsa--{target}"' in made.assembly
    (kernel,) = made.kernels
    assert (kernel.name, kernel.wavefront_size, kernel.lds_bytes) == ("_Z5totalPKfPfi", wave_size, 256)
    assert kernel.vgprs > 0
    assert findings(made) == ()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx1010", "gfx1201"])
def test_64_lanes_are_forced_on_a_target_of_32(target: str, tools: Toolchain) -> None:
    made = compiled(SUM, target, tools, wave_size=64)
    assert made.kernels[0].wavefront_size == 64
    assert "wavefrontsize64" in made.assembly or ".amdhsa_wavefront_size32 0" in made.assembly


def test_32_lanes_are_refused_where_there_are_none(tools: Toolchain) -> None:
    with pytest.raises(UsageError, match="gfx942 runs wavefronts of 64 lanes, got 32"):
        compile_hip(SUM, "gfx942", wave_size=32, toolchain=tools)


def test_features_of_a_target_go_into_the_code(tools: Toolchain) -> None:
    assert "gfx90a:xnack-" in compiled(SUM, "gfx90a:xnack-", tools).assembly


@pytest.mark.slow
def test_a_width_bug_shows_in_the_code_of_gfx9_alone(tools: Toolchain) -> None:
    def body(call: bytes, target: str) -> list[str]:
        assembly = compiled(BALLOT % call, target, tools).assembly
        return re.findall(r"^\s+((?:v|s|global)_\w+.*?)(?:\s*;.*)?$", assembly.partition("s_endpgm")[0], re.MULTILINE)

    assert body(b"__popc", "gfx1100") == body(b"__popcll", "gfx1100")
    wrong, right = body(b"__popc", "gfx942"), body(b"__popcll", "gfx942")
    assert wrong != right
    assert any("s_bcnt1_i32_b64" in line for line in right)
    assert not any("_b64" in line for line in wrong if "bcnt" in line)


@pytest.mark.slow
def test_the_device_library_is_linked_with_the_targets_constants(tools: Toolchain) -> None:
    source = RUNTIME + b'__global__ void k(double* x) { x[0] = lgamma(x[0]); printf("%f\\n", x[0]); }'
    for target in ("gfx1100", "gfx942"):
        made = compiled(source, target, tools)
        assert "__oclc_" not in made.assembly, "a constant that is known needs no load"


def test_an_include_is_looked_for_beside_the_file_and_in_folders(tools: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "inc").mkdir()
    (tmp_path / "src/near.h").write_text("#define NEAR 1\n")
    (tmp_path / "inc/far.h").write_text("#define FAR 2\n")
    source = tmp_path / "src/k with a blank.cu"
    source.write_bytes(
        RUNTIME + b'#include "near.h"\n#include <far.h>\n__global__ void k(int* x) { *x = NEAR + FAR + M; }'
    )
    made = compiled(source, "gfx942", tools, include_dirs=[tmp_path / "inc"], defines={"M": "39"})
    assert "v_mov_b32_e32 v1, 42" in made.assembly


@pytest.mark.slow
def test_what_was_compiled_is_known_until_a_header_changes(tools: Toolchain, tmp_path: Path) -> None:
    header, source = tmp_path / "value.h", tmp_path / "k.cu"
    header.write_text("#define VALUE 41\n")
    source.write_bytes(RUNTIME + b'#include "value.h"\n__global__ void k(int* x) { *x = VALUE; }')
    first, again = (compiled(source, "gfx1100", tools) for _ in range(2))
    assert (first.from_cache, again.from_cache) == (False, True)
    assert again.code == first.code
    header.write_text("#define VALUE 43\n")
    assert "43" in compiled(source, "gfx1100", tools).assembly
    assert compiled(source, "gfx1100", tools, cache=False).from_cache is False


def test_errors_name_their_line(tools: Toolchain) -> None:
    made = failed(RUNTIME + b"\n__global__ void k(int* x) { *x = nothing; }\n", "gfx942", tools)
    assert made.reason is Failure.REFUSED
    (error,) = made.errors
    assert (error.file, error.line, error.message) == ("<source>", 3, "use of undeclared identifier 'nothing'")


def test_an_instruction_of_another_machine_names_its_line(tools: Toolchain) -> None:
    made = failed(RUNTIME + b'__global__ void k(int* x) {\n  asm("mov.u32 %0, 1;" : "=v"(*x));\n}', "gfx942", tools)
    assert (made.errors[0].message, made.errors[0].line) == ("invalid instruction", 3)


@pytest.mark.slow
def test_too_much_lds_is_an_error_of_the_kernel(tools: Toolchain) -> None:
    source = (
        RUNTIME + b"__global__ void k(int* x) { __shared__ int a[20000]; a[*x] = 1; __syncthreads(); *x = a[*x ^ 1]; }"
    )
    made = failed(source, "gfx942", tools)
    assert "local memory (80000) exceeds limit (65536)" in made.message
    assert isinstance(compile_hip(source, "gfx950", toolchain=tools, cache=False), HipObject), "gfx950 has 160 KiB"


def test_a_function_that_is_nowhere_is_an_error_of_the_linker(tools: Toolchain) -> None:
    source = RUNTIME + b"__device__ int elsewhere(int);\n__global__ void k(int* x) { *x = elsewhere(*x); }"
    assert "undefined" in failed(source, "gfx942", tools).message


def test_a_header_that_is_not_here_is_no_error_of_the_source(tools: Toolchain) -> None:
    made = failed(b"#include <rocwmma/rocwmma.hpp>\n", "gfx942", tools)
    assert (made.reason, made.missing_headers) == (Failure.MISSING_HEADER, ("rocwmma/rocwmma.hpp",))
    assert "rocwmma-dev" in made.message
    assert "ROCMEND_HIP_HEADERS" in made.message


def test_a_header_of_a_named_folder_is_found(with_headers: Toolchain) -> None:
    source = b"#include <hipcub/hipcub.hpp>\n" + RUNTIME + b"__global__ void k(int* x) { *x = HIPCUB_IS_HERE; }"
    assert "v_mov_b32_e32 v1, 7" in compiled(source, "gfx942", with_headers, cache=False).assembly


def test_findings_of_a_kernel_that_uses_scratch(tools: Toolchain) -> None:
    source = (
        RUNTIME
        + b"""
__global__ void k(const int* at, int* x) {
  int a[64];
  for (int i = 0; i < 64; ++i) a[i] = x[i * 7];
  for (int i = 0; i < 64; ++i) a[at[i]] += i;
  for (int i = 0; i < 64; ++i) x[i] = a[i];
}
"""
    )
    made = compiled(source, "gfx1100", tools)
    assert [one.check for one in findings(made)] == ["scratch"]


def test_a_template_that_nothing_instantiates_is_no_kernel(tools: Toolchain) -> None:
    made = compiled(RUNTIME + b"template <typename T> __global__ void k(T* x) { *x = T(); }", "gfx942", tools)
    assert made.kernels == ()
    assert [one.check for one in findings(made)] == ["no-kernel"]


HOST = b"""
template <typename T> __global__ void k(T* x) { x[0] = 1; }
int main() {
  float* x = nullptr;
  if (hipMalloc(&x, 4) != hipSuccess) return 1;
  k<<<1, 64>>>(x);
  return hipFree(x) == hipSuccess ? 0 : 1;
}
"""


@pytest.mark.slow
def test_both_sides_of_a_program_are_read(tools: Toolchain) -> None:
    made = check_syntax(RUNTIME + HOST, "gfx1151", toolchain=tools)
    assert isinstance(made, Syntax)
    assert made.wave_size == 32
    assert made.diagnostics == ()


@pytest.mark.slow
def test_an_error_of_the_hosts_side_is_seen_by_reading_it_alone(tools: Toolchain) -> None:
    wrong = RUNTIME + HOST.replace(b"hipFree(x)", b"hipFreed(x)")
    made = check_syntax(wrong, "gfx942", host_only=True, toolchain=tools)
    assert isinstance(made, HipFailure)
    assert "hipFreed" in made.message
    assert isinstance(compile_hip(RUNTIME + b"#if !__HIP_DEVICE_COMPILE__\n#error host\n#endif\n", "gfx942",
                                  toolchain=tools, cache=False), HipObject)  # fmt: skip


def test_a_warning_does_not_stop_it(tools: Toolchain) -> None:
    source = RUNTIME + b"__global__ void k(int* x) { int unused; *x = 1; }"
    made = compiled(source, "gfx942", tools, options=("-Wall",), cache=False)
    assert [(one.level, one.option) for one in made.diagnostics] == [(Level.WARNING, "-Wunused-variable")]


def test_the_isa_of_a_code_object_is_the_readers(tools: Toolchain) -> None:
    made = compiled(SUM, "gfx1151", tools)
    assert from_header(made.code[:64]).processor == "gfx1151"
