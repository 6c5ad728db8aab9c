"""Helper headers of NVIDIA's samples: the project's own, or the support header in their place."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from rocmend.codeobject.hip import HipObject, NoToolchainError, compile_hip, find_toolchain
from rocmend.port.analyse import analyse
from rocmend.port.apply import apply

SUPPORT = Path(str(files("rocmend.port.support")))
SOURCE = """#include <helper_cuda.h>
#include <helper_functions.h>

__global__ void k(float *x) { *x = 1; }

int main(int argc, char **argv) {
  const int device = findCudaDevice(argc, (const char **)argv);
  float *x;
  checkCudaErrors(cudaMalloc(&x, 4));
  k<<<1, 1>>>(x);
  getLastCudaError("k");
  return device;
}
"""
HIP = """#pragma once
enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1 };
enum hipDeviceAttribute_t {
  hipDeviceAttributeMultiprocessorCount, hipDeviceAttributeClockRate, hipDeviceAttributeComputeMode
};
enum { hipComputeModeDefault = 0, hipComputeModeProhibited = 2 };
struct hipDeviceProp_t { char name[16]; char gcnArchName[16]; };
static int chosen = -1;
static hipError_t pending = hipSuccess;
static const char *hipGetErrorName(hipError_t) { return "hipErrorInvalidValue"; }
static const char *hipGetErrorString(hipError_t) { return "invalid"; }
static hipError_t hipGetLastError() { return pending; }
static hipError_t hipGetDeviceCount(int *count) { *count = 4; return hipSuccess; }
static hipError_t hipSetDevice(int device) { chosen = device; return hipSuccess; }
static hipError_t hipGetDeviceProperties(hipDeviceProp_t *p, int d) { *p = {"card", "gfx942"}; return hipSuccess; }
static hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
  const int units[] = {10, 40, 30, 80}, clocks[] = {2000, 1000, 2000, 4000};
  *value = attribute == hipDeviceAttributeMultiprocessorCount ? units[device]
           : attribute == hipDeviceAttributeClockRate         ? clocks[device]
                                                              : (device == 3 ? hipComputeModeProhibited : 0);
  return hipSuccess;
}
"""
PROGRAM = """#include "cuda_samples.h"
int main(int argc, char **argv) {
  const char **given = (const char **)argv;
  if (checkCmdLineFlag(argc, given, "fail")) checkCudaErrors(hipErrorInvalidValue);
  if (checkCmdLineFlag(argc, given, "late")) {
    pending = hipErrorInvalidValue;
    printLastCudaError("told");
    getLastCudaError("ended");
  }
  char *name = (char *)"x";
  const bool named = getCmdLineArgumentString(argc, given, "name", &name);
  std::printf("%d %d %g %d %s\\n", checkCmdLineFlag(argc, given, "n"), getCmdLineArgumentInt(argc, given, "n="),
              getCmdLineArgumentFloat(argc, given, "scale"), named, named ? name : "-");
  StopWatchInterface *timer = nullptr;
  sdkCreateTimer(&timer);
  const bool idle = sdkGetTimerValue(&timer) == 0.0f && sdkGetAverageTimerValue(&timer) == 0.0f;
  sdkStartTimer(&timer);
  sdkStopTimer(&timer);
  const float stopped = sdkGetTimerValue(&timer);
  sdkStartTimer(&timer);
  sdkStopTimer(&timer);
  const float twice = sdkGetTimerValue(&timer), average = sdkGetAverageTimerValue(&timer);
  sdkResetTimer(&timer);
  const bool again = sdkGetTimerValue(&timer) == 0.0f;
  sdkDeleteTimer(&timer);
  std::printf("%d\\n", idle && stopped >= 0 && twice >= stopped && average == twice / 2 && again && timer == nullptr);
  const int device = findCudaDevice(argc, given);
  std::printf("%d %d\\n", device, chosen);
}
"""


def test_a_project_without_them_gets_the_support_header(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.cu").write_text(SOURCE)
    done = apply(analyse(tmp_path), allow_dirty=True)
    assert done.added == ("src/cuda_samples.h", "src/cuda_to_hip.h")
    text = (tmp_path / "src" / "main.cu").read_text()
    assert '#include "cuda_samples.h"\n#else\n#include <helper_cuda.h>\n#include <helper_functions.h>\n#endif' in text
    again = apply(analyse(tmp_path), allow_dirty=True)
    assert (again.changed, again.added, again.left_alone) == ((), (), ())


def test_a_project_with_its_own_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "main.cu").write_text(SOURCE)
    (tmp_path / "inc" / "helper_functions.h").write_text("#define PI 3\n")
    (tmp_path / "inc" / "helper_cuda.h").write_text(
        "#ifdef __DRIVER_TYPES_H__\ninline void checkCudaErrors(cudaError_t error) {}\n#endif\n"
        "#ifdef _CUFFT_H_\ninline void checkCudaErrors(cufftResult error) {}\n#endif\n"
    )
    analysis = analyse(tmp_path)
    assert "CU57" not in {issue.rule for issue in analysis.issues}
    done = apply(analysis, allow_dirty=True)
    assert "main.cu" in done.changed
    assert done.added == ("cuda_to_hip.h",)
    assert done.left_alone == ()
    header = (tmp_path / "cuda_to_hip.h").read_text()
    assert "#define __DRIVER_TYPES_H__\n" in header
    assert "fft" not in header.lower()  # asked for, and nobody includes it
    assert "#include <helper_cuda.h>" in (tmp_path / "main.cu").read_text()


def test_what_is_asked_for_is_there_where_its_library_is_used(tmp_path: Path) -> None:
    (tmp_path / "helper_cuda.h").write_text("#ifdef _CUFFT_H_\ninline void check(cufftResult error) {}\n#endif\n")
    (tmp_path / "main.cu").write_text('#include <cufft.h>\n#include "helper_cuda.h"\n')
    apply(analyse(tmp_path), allow_dirty=True)
    header = (tmp_path / "cuda_to_hip.h").read_text()
    assert "#include <hipfft/hipfft.h>" in header
    assert "#define _CUFFT_H_\n" in header
    assert "#define cufftResult hipfftResult\n" in header


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_the_support_header_compiles_with_hip(tmp_path: Path, target: str) -> None:
    try:
        find_toolchain()
    except NoToolchainError as error:
        pytest.skip(str(error))
    (tmp_path / "main.cu").write_text(SOURCE)
    apply(analyse(tmp_path), allow_dirty=True)
    source = (tmp_path / "main.cu").read_bytes()
    made = compile_hip(source, target, defines={"USE_ROCM": ""}, include_dirs=[tmp_path])
    assert isinstance(made, HipObject), made


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of the host with the support header, on four devices that are not there."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("samples")
    (folder / "hip").mkdir()
    (folder / "hip" / "hip_runtime_api.h").write_text(HIP)
    (folder / "main.cpp").write_text(PROGRAM)
    made = folder / "main"
    command = [compiler, "-std=c++11", "-Wall", "-Wno-unused-function", "-Werror", f"-I{folder}", f"-I{SUPPORT}"]
    subprocess.run([*command, str(folder / "main.cpp"), "-o", str(made)], check=True)
    return made


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)


def test_the_fastest_device_that_may_compute_is_taken(program: Path) -> None:
    done = run(program)
    assert done.stdout.splitlines()[0] == "0 0 0 0 -"
    assert done.stdout.splitlines()[1] == "1"
    assert done.stdout.splitlines()[-1] == "2 2"  # 30 units at 2000: device 3 is faster and prohibited


def test_arguments_are_read(program: Path) -> None:
    done = run(program, "--n=7", "-SCALE=1.5", "--name=a=b", "--device=1")
    assert done.stdout.splitlines()[0] == "1 7 1.5 1 a=b"
    assert done.stdout.splitlines()[-1] == "1 1"


def test_a_device_that_is_not_there_ends_the_program(program: Path) -> None:
    done = run(program, "--device=9")
    assert done.returncode == 1
    assert "there are 4 devices" in done.stderr


@pytest.mark.parametrize(("flag", "told"), [("fail", ["hipErrorInvalidValue"]), ("late", ["told", "ended"])])
def test_errors_end_the_program_with_their_place(program: Path, flag: str, told: list[str]) -> None:
    done = run(program, f"--{flag}")
    assert done.returncode == 1
    assert "main.cpp:" in done.stderr
    assert all(text in done.stderr for text in told)
