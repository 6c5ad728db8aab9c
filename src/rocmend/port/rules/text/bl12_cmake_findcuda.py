"""Commands of the deprecated FindCUDA.

## What it does

Finds `cuda_add_executable`, `cuda_add_library`, `cuda_include_directories`, `cuda_select_nvcc_arch_flags` and
`CUDA_NVCC_FLAGS`.

## Why it matters

They are defined by `find_package(CUDA)` alone, which CMake 3.27 has removed.

## Use instead

The generic commands. BL08 handles the files' language, BL01 nvcc-only options.

## Fix safety

Safe for the commands: without `USE_ROCM` the file is unchanged. A target's `OPTIONS` and `CUDA_NVCC_FLAGS` have to be
ported by hand, as they have their own syntax for per-configuration options.

## References

- <https://cmake.org/cmake/help/latest/module/FindCUDA.html>
- <https://cmake.org/cmake/help/latest/policy/CMP0146.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_COMMANDS = {
    "cuda_add_executable": "add_executable",
    "cuda_add_library": "add_library",
    "cuda_include_directories": "include_directories",
    "cuda_select_nvcc_arch_flags": "",
    "cuda_add_cublas_to_target": "",
    "cuda_add_cufft_to_target": "",
    "cuda_compile": "",
    "cuda_compile_ptx": "",
    "cuda_compile_cubin": "",
    "cuda_wrap_srcs": "",
}


@rule(
    "BL12",
    "Commands of the deprecated FindCUDA",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"cuda_", b"CUDA_"),
    paths=paths(Kind.CMAKE),
    sources=("https://cmake.org/cmake/help/latest/module/FindCUDA.html",),
    valid=("add_executable(cuda_add_executable a.cpp)\n# cuda_add_library(a a.cu)\n",),
    invalid=(
        Case(
            "cuda_add_library(a STATIC a.cpp)\ncuda_select_nvcc_arch_flags(FLAGS Auto)\n",
            "if(USE_ROCM)\n  add_library(a STATIC a.cpp)\nelse()\n"
            "  cuda_add_library(a STATIC a.cpp)\n  cuda_select_nvcc_arch_flags(FLAGS Auto)\n"
            "endif()\n",
            "CMakeLists.txt",
        ),
        Case("cuda_add_executable(a a.cpp OPTIONS -O3)\n", None, "CMakeLists.txt"),
        Case("list(APPEND CUDA_NVCC_FLAGS -O3)\n", None, "CMakeLists.txt"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands and variables of FindCUDA."""
    for command in file.cmake:
        if command.settled:
            continue
        if command.name in {"set", "list", "string"} and "CUDA_NVCC_FLAGS" in command.values()[:2]:
            message = "Only FindCUDA reads CUDA_NVCC_FLAGS."
            remedy = "Set CMAKE_HIP_FLAGS or target options if USE_ROCM is set."
            yield rewrite(file, (command.start, command.end), message, (), remedy=remedy)
            continue
        if command.name not in _COMMANDS:
            continue
        instead = _COMMANDS[command.name]
        edits: tuple[Edit, ...] = ()
        if command.name == "cuda_select_nvcc_arch_flags":
            edits = (Edit(command.start, command.end, b""),)
        elif instead and "OPTIONS" not in command.values():
            edits = (Edit(command.start, command.start + len(command.name), instead.encode()),)
        yield rewrite(
            file,
            (command.start, command.end),
            f"{command.name} is defined by find_package(CUDA).",
            edits,
            remedy="Use the generic commands and target options if USE_ROCM is set.",
        )
