"""The compatibility header, and the names it is made of."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rocmend.codeobject.hip import HipObject, NoToolchainError, compile_hip, find_toolchain
from rocmend.port.cuda.compat import compatibility_header, uses
from rocmend.port.cuda.names import header_of, headers, hip_names, no_counterpart
from rocmend.port.cuda.write import hipified, ported

MODES = ((4, "rd"), (5, "ru"), (6, "rz"))
SOURCE = b"""\
#include <cuda_runtime.h>
#include <cublas_v2.h>
#include <cub/cub.cuh>
void f() { cudaMalloc(&p, 4); cudaFuncSetAttribute(k, a, 1); cub::Max m; } // cudaFree
const char *s = "cudaMemset";
"""


def lines(data: bytes) -> list[str]:
    return data.decode().splitlines()


def test_only_what_is_used_is_defined() -> None:
    found = lines(compatibility_header(uses([("a.cu", SOURCE)])))
    assert "#define cudaMalloc hipMalloc" in found
    assert "#include <hipblas/hipblas.h>" in found
    assert "#include <hipcub/hipcub.hpp>" in found
    assert "namespace cub = hipcub;" in found
    assert found.index("#include <chrono> // for rocPRIM 6.4, which uses it") < found.index(
        "#include <hipcub/hipcub.hpp>"
    )
    assert not any("cudaFree" in line or "cudaMemset" in line for line in found)
    assert not any(line.startswith("#define cudaFuncSetAttribute hip") for line in found[: found.index("#else", 30)])


def test_headers_of_hip_come_before_the_names() -> None:
    found = lines(compatibility_header(uses([("a.cu", SOURCE)])))
    last_include = max(at for at, line in enumerate(found) if line.startswith("#include"))
    assert last_include < min(at for at, line in enumerate(found) if line.startswith("#define cuda"))


def test_conditionals_balance() -> None:
    found = lines(compatibility_header(uses([("a.cu", SOURCE + b"#ifdef __CUDACC__\n#endif\n")])))
    opened = sum(line.startswith("#if") for line in found)
    assert opened == sum(line.startswith("#endif") for line in found)
    assert not any("__CUDACC__" in line for line in found), "headers of others would ask for CUDA's own"


def test_an_earlier_header_is_kept() -> None:
    first = compatibility_header(uses([("a.cu", SOURCE)]))
    second = compatibility_header(uses([("b.cu", b"void g() { cudaFree(p); }\n")], first))
    assert set(lines(first)) <= set(lines(second))
    assert "#define cudaFree hipFree" in lines(second)
    assert compatibility_header(uses([], second)) == second


def test_own_macros_are_not_defined_again() -> None:
    source = b"#define cudaMalloc(p, n) mine(p, n)\nvoid f() { cudaMalloc(&p, 4); }\n"
    assert b"cudaMalloc" not in compatibility_header(uses([("a.cu", source)]))


def test_names_are_names() -> None:
    known = hip_names()
    assert len(known) > 4000
    assert all(
        re.fullmatch(rb"[A-Za-z_]\w*", name) and re.fullmatch(rb"[A-Za-z_]\w*", hip) for name, hip in known.items()
    )
    assert not known.keys() & no_counterpart()
    assert all(name != hip for name, hip in known.items())
    assert {b"CUDA_VERSION", b"CUDART_VERSION", b"__CUDA_ARCH__"}.isdisjoint(known)
    assert known[b"CUBLAS_TF32_TENSOR_OP_MATH"] == b"HIPBLAS_TF32_TENSOR_OP_MATH"


def test_every_header_has_a_counterpart_or_advice() -> None:
    for name, header in headers().items():
        assert not (header.hip and header.advice), name
        assert not header.device or header.hip, name
    cub = header_of(b"<cub/block/block_reduce.cuh>")
    assert cub is not None
    assert cub.hip == "hipcub/hipcub.hpp"
    assert header_of(b"<vector>") is None


def test_tree_style_renames_code_alone() -> None:
    names = {**hip_names(), b"<cuda_runtime.h>": b"<hip/hip_runtime.h>"}
    after = hipified(SOURCE, [], names)
    assert after.startswith(b"#include <hip/hip_runtime.h>\n")
    assert b"hipMalloc(&p, 4)" in after
    assert b"// cudaFree" in after
    assert b'"cudaMemset"' in after


def test_the_header_is_reached_by_its_way() -> None:
    from rocmend.port.analyse import read

    issues = read("src/a.cu", SOURCE).issues
    assert b'#include "../cuda_to_hip.h"' in ported(SOURCE, issues, "../cuda_to_hip.h")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_rounding_in_a_direction_sets_the_mode_around_the_operation(target: str) -> None:
    try:
        find_toolchain()
    except NoToolchainError as error:
        pytest.skip(str(error))
    calls = [
        *(f"p[{at}] = __{name}_{mode}(p[1], p[2]);" for name in ("fadd", "fsub", "fmul") for at, mode in MODES),
        *(f"q[{at}] = __{name}_{mode}(q[1], q[2]);" for name in ("dadd", "dsub", "dmul") for at, mode in MODES),
        *(f"p[{at}] = __fmaf_{mode}(p[1], p[2], p[3]);" for at, mode in MODES),
        *(f"q[{at}] = __fma_{mode}(q[1], q[2], q[3]);" for at, mode in MODES),
    ]
    source = f"__global__ void k(float *p, double *q) {{\n  {' '.join(calls)}\n}}\n".encode()
    header = compatibility_header(uses([("a.cu", source)]))
    made = compile_hip(header + source, target, defines={"USE_ROCM": ""})
    assert isinstance(made, HipObject), made
    set_to = re.findall(r"s_setreg_imm32_b32 hwreg\(HW_REG_MODE, (\d), 2\), (\d)", made.assembly)
    assert {("0", "1"), ("0", "2"), ("0", "3"), ("2", "1"), ("2", "2"), ("2", "3")} < set(set_to)
    assert set_to[1::2] == [(place, "0") for place, _ in set_to[::2]]  # and back to the nearest after each


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_words_for_an_error_are_there_in_device_code(target: str) -> None:
    try:
        find_toolchain()
    except NoToolchainError as error:
        pytest.skip(str(error))
    source = (
        b"__global__ void k(const char **p, cudaError_t e) {\n  p[0] = cudaGetErrorString(e);\n"
        b"  p[1] = cudaGetErrorName(e);\n}\nconst char *f() { return cudaGetErrorString(cudaSuccess); }\n"
    )
    header = compatibility_header(uses([("a.cu", source)]))
    made = compile_hip(header + source, target, defines={"USE_ROCM": ""})
    assert isinstance(made, HipObject), made
    assert b"__device__ const char" not in compatibility_header(uses([("a.cu", source.partition(b"}\n")[2])]))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_what_hip_has_under_no_name_compiles(target: str) -> None:
    try:
        find_toolchain()
    except NoToolchainError as error:
        pytest.skip(str(error))
    calls = " + ".join(f"{name}(x[0], x[1])" for name in ("umin", "umax", "llmin", "llmax", "ullmin", "ullmax"))
    events = "cudaEvent_t e; return cudaEventCreate(&e) == cudaEventCreate(&e, cudaEventDisableTiming);"
    contexts = "CUcontext c; CUctxCreateParams p = {}; return cuCtxCreate(&c, 0, 0) == cuCtxCreate(&c, &p, 0, 0);"
    host = f"bool f() {{ {events} }}\nbool g() {{ {contexts} }}\n"
    source = f"__global__ void k(unsigned long long *x) {{\n  x[2] = {calls};\n}}\n{host}".encode()
    header = compatibility_header(uses([("a.cu", source)]))
    made = compile_hip(header + source, target, defines={"USE_ROCM": ""})
    assert isinstance(made, HipObject), made


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_minima_of_signed_and_unsigned_are_unsigned(target: str) -> None:
    try:
        find_toolchain()
    except NoToolchainError as error:
        pytest.skip(str(error))
    source = b"""
template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };
__global__ void k(int *p, int n) {
  p[min(n - 1, threadIdx.x)] = max(threadIdx.x, n);
  static_assert(same<decltype(min(1, 2u)), unsigned>::value && same<decltype(max(1ul, 2l)), unsigned long>::value, "");
  static_assert(same<decltype(min(1, 2)), int>::value && same<decltype(min(1.0f, 2.0f)), float>::value, "");
}
bool host(float x, int a, unsigned b) { return isfinite(x) && isnan(x) && min(a, b) == max(b, a); }
"""
    header = compatibility_header(uses([("a.cu", source)]))
    assert header.count(b"nvcc gives host code these names") == 1
    made = compile_hip(header + source, target, defines={"USE_ROCM": ""})
    assert isinstance(made, HipObject), made


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_host_code_has_minima_of_every_type_and_what_nvcc_includes(target: str) -> None:
    """HIP's host code has ``min`` and ``max`` of ``int`` alone, which makes ``int`` of everything else, silently."""
    source = b"""#include "cuda_runtime.h"
template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };
#define OF(type) static_assert(same<decltype(max((type)1, (type)2)), type>::value && \\
                               same<decltype(min((type)1, (type)2)), type>::value, #type)
#define ALL OF(int); OF(unsigned); OF(long); OF(size_t); OF(long long); OF(unsigned long long); OF(float); OF(double)
size_t host(size_t n, float x) {
  ALL;
  char text[8];
  memset(text, 0, max(n, sizeof text));
  static_assert(same<decltype(max(1.0f, 2.0)), double>::value, "");
  return (size_t)max(x, 1.5f) + time(nullptr) + text[0];
}
__global__ void k(size_t *p) { ALL; p[0] = max(p[1], p[2]); }
namespace other { using namespace std; size_t f(size_t a, size_t b) { return min(a, b); } }
"""
    header = compatibility_header(uses([("a.cu", source)]))
    body = source.partition(b"\n")[2]
    made = compile_hip(header + b"#include <algorithm>\n" + body, target, defines={"USE_ROCM": ""})
    assert isinstance(made, HipObject), made


def test_minima_of_a_namespace_need_nothing() -> None:
    assert b"(min)" not in compatibility_header(uses([("a.cu", b"int f() { return std::min(1, 2); }\n")]))
    kernel = b"__global__ void k(float *p) { p[0] = max(p[1], p[2]); }\n"
    device = compatibility_header(uses([("a.cu", kernel)]))
    assert (b"(max)" in device, b"host code" in device, device.count(b"\n") < 55) == (True, False, True)
    host = compatibility_header(uses([("a.cu", kernel + b"long f(long a) { return max(a, 2L); }\n")]))
    assert b"static inline __host__ long (max)" in host
    kernel = b"__global__ void k(long* x) {\n  auto f = [=](long a) { return max(a, 2L); };\n  *x = f(*x);\n}\n"
    assert b"static inline __host__ long (max)" in compatibility_header(
        uses([("a.cu", kernel)])
    )  # read for the host too


def test_a_parameters_mark_of_cuda_is_left_out() -> None:
    source = b"__global__ void k(const __grid_constant__ int x) {}\n"
    assert b"#define __grid_constant__" in compatibility_header(uses([("a.cu", source)]))
    own = b"int min(int a, unsigned b) { return a; }\nint f() { return min(1, 2u); }\n"
    assert b"(min)" not in compatibility_header(uses([("a.cu", own)]))


def test_where_hip_stands_on_cuda_the_names_of_cuda_are_cudas(tmp_path: Path) -> None:
    """What HIP lacks and CUDA has is not put beside CUDA's own there: ``min`` of mixed signs, ``__trap`` and more."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source = b"#include <cub/cub.cuh>\nvoid f() { cudaMalloc(&p, min(1, 2u)); cub::Max m; __trap(); }\n"
    (tmp_path / "cuda_to_hip.h").write_bytes(compatibility_header(uses([("a.cu", source)])))
    for header in ("hip/hip_runtime.h", "hip/hip_runtime_api.h", "hipcub/hipcub.hpp"):
        (tmp_path / header).parent.mkdir(exist_ok=True)
        (tmp_path / header).write_text("#define __host__\n#define __device__\nnamespace hipcub {}\n")
    (tmp_path / "a.cpp").write_text('#include "cuda_to_hip.h"\ncudaMalloc __trap() cub min __HIP_PLATFORM_AMD__\n')

    def seen(*defines: str) -> str:
        argv = [compiler, "-E", "-P", "-D__HIPCC__", *defines, str(tmp_path / "a.cpp")]
        return subprocess.run([*argv, f"-I{tmp_path}"], capture_output=True, text=True, check=True, timeout=60).stdout

    here = seen("-D__HIP_PLATFORM_NVIDIA__")
    assert here.splitlines()[-1] == "cudaMalloc __trap() cub min __HIP_PLATFORM_AMD__"
    assert "(min)(" not in here
    assert "namespace cub" not in here
    assert "(min)(unsigned int a, int b)" in seen()
    assert seen().splitlines()[-1].split() == ["hipMalloc", "__builtin_trap()", "cub", "min"]


FP8 = b"#include <cuda_fp8.h>\n__global__ void k(float *y, __nv_fp8_e4m3 *x) { y[0] = float(x[0]); }\n"


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["none", "torch", "hipify-clang"])
def test_8_bit_names_mean_ocp_whatever_translates_them_first(tool: str, tmp_path: Path) -> None:
    """gfx950 has no FNUZ in device code: what compiles there is OCP."""
    header = compatibility_header(uses([("a.cu", FP8)]))
    source = b'#include "cuda_to_hip.h"\n' + FP8.partition(b"\n")[2]
    files = {"a.cu": source, "cuda_to_hip.h": header}
    if tool == "hipify-clang":  # ROCm's own tool; torch.utils.hipify 2.0.0 leaves the names alone
        files = {name: data.replace(b"__nv_fp8_e4m3", b"__hip_fp8_e4m3_fnuz") for name, data in files.items()}
        assert b"#define __hip_fp8_e4m3_fnuz __hip_fp8_e4m3\n" in files["cuda_to_hip.h"]
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    unit = tmp_path / "a.cu"
    if tool == "torch":
        hipify = pytest.importorskip("torch.utils.hipify.hipify_python").hipify
        done = hipify(
            str(tmp_path),
            output_directory=str(tmp_path),
            includes=[f"{tmp_path}/*"],
            extra_files=[str(unit)],
            show_progress=False,
            is_pytorch_extension=True,
        )
        unit = Path(done[str(unit)].hipified_path or unit)
    made = compile_hip(unit, "gfx950", defines={"USE_ROCM": ""}, include_dirs=[tmp_path])
    assert isinstance(made, HipObject), made
