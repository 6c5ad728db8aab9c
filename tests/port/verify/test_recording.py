"""Launches that are recorded: the recorder, linked before a runtime of our own, and the cases that come of it."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from rocmend.core.beneath import Beneath
from rocmend.port.verify import cases, recording
from rocmend.port.verify.cases import Buffer, Value
from rocmend.port.verify.emulated import kernel_named, prepared
from rocmend.port.verify.execution import Execution
from rocmend.port.verify.job import Job
from rocmend.port.verify.records import Evidence, Outcome
from rocmend.port.verify.trees import Tree
from rocmend.port.verify.units import units

from .conftest import Ported

# CUDA's runtime as the recorder and a program see it: kernels are functions of the host.
HEADER = r"""
#pragma once
#include <cstddef>
#define CUDART_VERSION 12040
#define __global__
struct dim3 { unsigned x, y, z; dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
enum cudaError_t { cudaSuccess, cudaErrorInvalidValue };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone };
typedef void *cudaStream_t; typedef void *cudaKernel_t;
typedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t;
struct cudaLaunchConfig_t; struct cudaResourceDesc; struct cudaTextureDesc; struct cudaResourceViewDesc;
struct cudaPointerAttributes { cudaMemoryType type; };
struct Kernel { const char *name; size_t sizes[8]; void (*call)(void **); };
extern "C" {
cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaMallocManaged(void **, size_t, unsigned);
cudaError_t cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t cudaMallocPitch(void **, size_t *, size_t, size_t);
cudaError_t cudaFree(void *);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind);
cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **);
cudaError_t cudaDeviceSynchronize(); cudaError_t cudaPeekAtLastError(); cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t);
cudaError_t cudaFuncGetName(const char **, const void *);
cudaError_t cudaFuncGetParamInfo(const void *, size_t, size_t *, size_t *);
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *, const void *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *, const cudaResourceDesc *, const cudaTextureDesc *,
                                    const cudaResourceViewDesc *);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *, const cudaResourceDesc *);
}
"""
RUNTIME = r"""
#include <cuda_runtime.h>
#include <cstdlib>
#include <cstring>
cudaError_t last = cudaSuccess;
bool unreadable = false;
static char *pitched = nullptr;
extern "C" {
cudaError_t cudaMalloc(void **p, size_t n) { *p = std::malloc(n); return cudaSuccess; }
cudaError_t cudaMallocManaged(void **p, size_t n, unsigned) { return cudaMalloc(p, n); }
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t) { return cudaMalloc(p, n); }
cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t w, size_t h) {
  *pitch = w; *p = pitched = static_cast<char *>(std::malloc(w * h)); return cudaSuccess;
}
cudaError_t cudaFree(void *p) { std::free(p); return cudaSuccess; }
cudaError_t cudaFreeAsync(void *p, cudaStream_t) { return cudaFree(p); }
const char *cudaGetErrorString(cudaError_t error) { return error ? "invalid argument" : "no error"; }
cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind) {
  if (unreadable) return last = cudaErrorInvalidValue;
  std::memcpy(to, from, n); return last;
}
cudaError_t cudaLaunchKernel(const void *f, dim3, dim3, void **a, size_t, cudaStream_t) {
  if (!static_cast<const Kernel *>(f)->call) return cudaErrorInvalidValue;
  static_cast<const Kernel *>(f)->call(a); return cudaSuccess;
}
cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return last; }
cudaError_t cudaPeekAtLastError() { return last; }
cudaError_t cudaGetLastError() { cudaError_t e = last; last = cudaSuccess; return e; }
cudaError_t cudaFuncGetName(const char **n, const void *f) {
  *n = static_cast<const Kernel *>(f)->name; return cudaSuccess;
}
cudaError_t cudaFuncGetParamInfo(const void *f, size_t i, size_t *, size_t *size) {
  *size = static_cast<const Kernel *>(f)->sizes[i];
  return *size ? cudaSuccess : last = cudaErrorInvalidValue;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *s) {
  *s = cudaStreamCaptureStatusNone; return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p) {
  a->type = pitched && p == pitched ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered; return cudaSuccess;
}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int) {}
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *, const cudaResourceDesc *, const cudaTextureDesc *,
                                    const cudaResourceViewDesc *) { return cudaSuccess; }
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *, const cudaResourceDesc *) { return cudaSuccess; }
}
"""
PROGRAM = r"""#include <cuda_runtime.h>
#include <cstdio>
struct Place { float *at; int many; };
__global__ void scale(const float *in, float *out, int n, float by) { for (int i = 0; i < n; ++i) out[i] = by * in[i]; }
template <typename T> __global__ void both(T) {}
template <typename T> __global__ void put(T *out, T value) { *out = value; }
__global__ void hides(Place place) { place.at[0] = 1; }
__global__ void deep(float **rows) { rows[0][0] = 2; }
__global__ void wide(float *rows, unsigned long long seed) { rows[0] = seed; }
static Kernel scale_k{"_Z5scalePKfPfif", {8, 8, 4, 4}, [](void **a) {
  scale(*(const float **)a[0], *(float **)a[1], *(int *)a[2], *(float *)a[3]); }};
static Kernel put_k{"_Z3putIdEvPT_S0_", {8, 8}, [](void **a) { put(*(double **)a[0], *(double *)a[1]); }};
static Kernel hides_k{"_Z5hides5Place", {16}, [](void **a) { hides(*(Place *)a[0]); }};
static Kernel deep_k{"_Z4deepPPf", {8}, [](void **a) { deep(*(float ***)a[0]); }};
static Kernel wide_k{"_Z4widePfy", {8, 8}, [](void **a) { wide(*(float **)a[0], *(unsigned long long *)a[1]); }};

extern cudaError_t last; extern bool unreadable;
// Kernels that fail, and what fails around them.
static Kernel fails_k{"_Z5failsi", {4}, [](void **) { last = cudaErrorInvalidValue; }};
static Kernel refused_k{"_Z7refusedi", {4}, nullptr};
static Kernel after_k{"_Z5afteri", {4}, [](void **) {}};
static Kernel shown_k{"_Z5shownPd", {8}, [](void **) {}};
static Kernel gone_k{"_Z4gonePd", {8}, [](void **) { unreadable = true; }};
static Kernel lost_k{nullptr, {4}, [](void **) {}};
static Kernel first_k{"_Z4bothIiEvT_", {4}, [](void **) {}};
static Kernel second_k{"_Z4bothIjEvT_", {4}, [](void **) {}};

int failing() {
  double *y; cudaMalloc((void **)&y, 8);
  int n = 1; void *a[] = {&n}, *b[] = {&y};
  cudaLaunchCooperativeKernel(&first_k, dim3(1), dim3(1), a, 0, nullptr);
  cudaLaunchKernelExC(nullptr, &second_k, a);
  cudaLaunchKernel(&refused_k, dim3(1), dim3(1), a, 0, nullptr);
  cudaLaunchKernel(&lost_k, dim3(1), dim3(1), a, 0, nullptr);
  cudaLaunchKernel(&gone_k, dim3(1), dim3(1), b, 0, nullptr);
  cudaLaunchKernel(&shown_k, dim3(1), dim3(1), b, 0, nullptr);
  if (cudaPeekAtLastError() != cudaSuccess) return 1;  // an error that was the recorder's own
  cudaLaunchKernel(&fails_k, dim3(1), dim3(1), a, 0, nullptr);
  cudaLaunchKernel(&after_k, dim3(1), dim3(1), a, 0, nullptr);
  return 0;
}

int variables(char **names) {
  for (; *names; ++names) __cudaRegisterVar(nullptr, nullptr, nullptr, *names, 0, 1, 0, 0);
  int n = 1; void *a[] = {&n};
  for (int i = 0; i < 2; ++i) cudaLaunchKernel(i ? &first_k : &second_k, dim3(1), dim3(1), a, 0, nullptr);
  return 0;
}

int main(int count, char **given) {
  if (count > 1 && given[1][0] == 'v') return variables(given + 2);
  if (count > 1 && given[1][0] == 'f') return failing();
  if (count > 1 && given[1][0] == 'n') return 0;
  float *x, *pitched; double *y; float **rows; size_t pitch;
  cudaMalloc((void **)&x, 64); cudaMalloc((void **)&y, 8); cudaMalloc((void **)&rows, 8);
  cudaMallocPitch((void **)&pitched, &pitch, 16, 1);
  float host[16]; for (int i = 0; i < 16; ++i) host[i] = i;
  cudaMemcpy(x, host, 64, cudaMemcpyHostToDevice);
  double zero = 0; cudaMemcpy(y, &zero, 8, cudaMemcpyHostToDevice); cudaMemcpy(rows, &x, 8, cudaMemcpyHostToDevice);
  if (count > 1) __cudaRegisterVar(nullptr, nullptr, nullptr, "table", 0, 4, 0, 0);
  int n = 8; float by = 3; float *half = x + 8; void *a[] = {&x, &half, &n, &by};
  for (int i = 0; i < 3; ++i) cudaLaunchKernel(&scale_k, dim3(2, 1, 1), dim3(4), a, 96, nullptr);
  double value = 2.5; void *b[] = {&y, &value};
  cudaLaunchKernel(&put_k, dim3(1), dim3(1), b, 0, nullptr);
  Place place{x, 3}; void *c[] = {&place}; cudaLaunchKernel(&hides_k, dim3(1), dim3(1), c, 0, nullptr);
  void *d[] = {&rows}; cudaLaunchKernel(&deep_k, dim3(1), dim3(1), d, 0, nullptr);
  unsigned long long seed = 7; void *e[] = {&pitched, &seed};
  cudaLaunchKernel(&wide_k, dim3(1), dim3(1), e, 0, nullptr);
  void *f[] = {&x, &seed}; cudaLaunchKernel(&wide_k, dim3(1), dim3(1), f, 0, nullptr);
  cudaFree(x);
  std::printf("%d\n", cudaGetLastError());
  return cudaGetLastError();
}
"""


@pytest.fixture
def program(ported: Ported, tmp_path: Path) -> Path:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda/cuda_runtime.h").write_text(HEADER)
    (tmp_path / "cuda/runtime.cpp").write_text(RUNTIME)
    return ported({"app/main.cu": PROGRAM.encode()}, {"app/main.cu": PROGRAM.encode() + b"// ported\n"})


def recorded(root: Path, *given: str) -> Evidence:
    cuda = root.parent / "cuda"

    def command(sources: Sequence[Path], folders: Sequence[Path], libraries: Sequence[str], out: Path) -> list[str]:
        del folders, libraries
        return ["c++", f"-I{cuda}", "-x", "c++", *map(str, sources), str(cuda / "runtime.cpp"), "-o", str(out)]

    with Job(root, execution=Execution()) as job:
        tree = Tree(job)
        tree.originals()
        (unit,) = units(job.sources)
        return recording.record(job, tree, unit, command, given, "a test")


def test_launches_become_cases(program: Path) -> None:
    told = recorded(program)
    assert told.outcome is Outcome.NOTE
    assert told.detail.startswith("3 launches of 3 kernels recorded for level 4. Not recorded: ")
    found = {name: (folder, case) for name, folder, case in cases.read_all(Beneath(program))}
    assert set(found) == {"app_main.cu-scale-1", "app_main.cu-put-1", "app_main.cu-wide-1"}
    folder, case = found["app_main.cu-scale-1"]
    assert (case.unit, case.grid, case.block, case.dynamic_lds_bytes) == ("app/main.cu", (2, 1, 1), (4, 1, 1), 96)
    assert case.parameters == (
        Buffer("arg0.in", "arg0.out", "f32"),
        Buffer("arg0.in", "arg0.out", "f32", offset=32),
        Value(struct.pack("<i", 8)),
        Value(struct.pack("<f", 3)),
    )
    tree = Beneath(program)
    assert cases.buffer(tree, folder, "arg0.in") == struct.pack("<16f", *range(16))
    assert cases.buffer(tree, folder, "arg0.out") == struct.pack("<16f", *range(8), *(3 * i for i in range(8)))
    _, case = found["app_main.cu-put-1"]
    assert case.parameters[0] == Buffer("arg0.in", "arg0.out", "f64")
    _, case = found["app_main.cu-wide-1"]
    assert case.parameters[1] == Value(struct.pack("<Q", 7)), "a number that is no address is a value"


@pytest.mark.slow
def test_what_depends_on_more_than_its_arguments_is_not_recorded(program: Path) -> None:
    told = recorded(program)
    for reason in (
        "hides: an argument holds pointers",
        "deep: a buffer holds pointers",
        "wide: an argument points to memory whose allocation was not seen",
    ):
        assert reason in told.detail
    again = recorded(program, "with variables")
    assert again.detail.startswith("0 launches of 0 kernels recorded")
    assert "scale: the program has variables on the device" in again.detail
    assert cases.read_all(Beneath(program)) == [], "what was recorded before is gone"


def test_a_launch_that_fails_is_told(program: Path) -> None:
    told = recorded(program, "failing")
    assert told.detail == (
        "0 launches of 0 kernels recorded for level 4. Not recorded: "
        "after: before its launch a call, or a kernel, had failed: invalid argument; "
        "both: its launch has attributes, which a recorded case cannot hold; "
        "both: its launch is cooperative, which a recorded case cannot hold; "
        "fails: it failed: invalid argument; "
        "gone: its memory cannot be read after it: invalid argument; "
        "refused: its launch failed: invalid argument; "
        "shown: its memory cannot be read: invalid argument; "
        "unnamed: the CUDA runtime does not give its name: no error"
    )


def test_a_program_that_launches_nothing_is_told(program: Path) -> None:
    assert recorded(program, "nothing").detail.startswith(
        "0 launches of 0 kernels recorded for level 4: the program made no launch"
    )


INTERNAL = "_ZN37_INTERNAL_0509b967_7_main_cu_fb978621"


def test_variables_of_the_libraries_hide_nothing(program: Path) -> None:
    names = [
        f"{INTERNAL}4cuda3std3__45__cpo5beginE",
        f"{INTERNAL}4cuda3std3__439_GLOBAL__N__0509b967_7_main_cu_fb9786216ignoreE",
        f"{INTERNAL}6thrust23THRUST_300001_SM_900_NS12placeholders2_1E",
        "_ZN4cuda3std6ranges3__45__cpo4swapE",
        "_ZN3cub17CUB_300001_SM_9006detail5emptyE",
    ]
    assert recorded(program, "variables", *names).detail == "2 launches of 1 kernel recorded for level 4"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "table",
        "_ZL5table",
        "_ZN4cuda7counterE",
        "_ZN3app4cuda3__45tableE",
        "_ZN6thrust5tableE",
        f"{INTERNAL}5tableE",
        "_ZN99cuda3__4",
    ],
)
def test_variables_of_a_program_are_told_once(program: Path, name: str) -> None:
    told = recorded(program, "variables", name)
    reason = "both: the program has variables on the device, which a recorded case cannot hold"
    assert told.detail == f"0 launches of 0 kernels recorded for level 4. Not recorded: {reason}"


def test_a_program_that_the_recorder_does_not_fit_is_told(program: Path) -> None:
    (program.parent / "cuda/cuda_runtime.h").write_text(HEADER.replace("12040", "11080"))
    told = recorded(program)
    assert "not recorded" in told.detail
    assert "CUDA 12.4 or newer" in told.detail
    assert not (program / cases.FOLDER).exists()


@pytest.mark.slow
@pytest.mark.usefixtures("pip_compiler")
def test_a_recorded_launch_fits_the_code_objects_of_the_port(ported: Ported, tmp_path: Path) -> None:
    kernel = (
        b"struct Pair { short a; double b; };\n"
        b"__global__ void odd(const char* in, int n, Pair p, float* out, char last) {\n"
        b"  if (n) *out = p.b + last + *in;\n}\n"
    )
    source = b"#ifdef USE_ROCM\n#include <hip/hip_runtime.h>\n#else\n#include <cuda_runtime.h>\n#endif\n" + kernel
    root = ported({"odd.cu": b"#include <cuda_runtime.h>\n" + kernel}, {"odd.cu": source})
    folder = tmp_path / "written"
    folder.mkdir()
    pair = struct.pack("<h6xd", 3, 0.5)
    (folder / "0.launch").write_text(
        "kernel _Z3oddPKci4PairPfc\ngrid 1 1 1\nblock 32 1 1\nlds 0\n"
        f"buffer 0 2\nvalue 05000000\nvalue {pair.hex()}\nbuffer 1 0\nvalue 07\n"
    )
    (folder / "0.0.in").write_bytes(b"abcd")
    (folder / "0.1.in").write_bytes(bytes(4))
    (folder / "0.1.out").write_bytes(struct.pack("<f", 106.5))
    with Job(root, execution=Execution()) as job:
        (unit,) = units(job.sources)
        recording.taken(job, unit, ["odd.cu"], folder, "a test")
        made = list(prepared(job))
    assert [one.target for one in made] == ["gfx1100", "gfx1201", "gfx942"]
    for one in made:
        assert not isinstance(one, Evidence), one.detail
        places = [(argument.offset, argument.size) for argument in one.kernarg.explicit]
        assert places == [(0, 8), (8, 4), (16, 16), (32, 8), (40, 1)]
        segment = one.segment({"arg0.in": 0x1000, "arg1.in": 0x2000})
        assert segment[:41] == struct.pack("<Qi4x", 0x1002, 5) + pair + struct.pack("<QB", 0x2000, 7)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("_Z3addP13__nv_bfloat16", "_Z3addP14__hip_bfloat16"),
        ("_Z4minePi", "_ZL4minePi"),
        ("_ZN35_GLOBAL__N__80ae0991_4_a_cu_weights5innerEPfi", "_ZN12_GLOBAL__N_15innerEPfi"),
        ("_ZN35_GLOBAL__N__80ae0991_4_a_cu_weights4tmplIfEEvPT_", "_ZN12_GLOBAL__N_14tmplIfEEvPT_"),
    ],
)
def test_names_that_the_compilers_mangle_otherwise(name: str, kernel: str) -> None:
    from rocmend.codeobject.kernarg import Kernarg

    kernels = tuple(Kernarg(one) for one in (kernel, "_Z5otherPf", "_ZN12_GLOBAL__N_14tmplIdEEvPT_"))
    assert kernel_named(name, kernels).kernel == kernel
