"""Commands of CMake's older FindCUDA.

## What it does

Finds `cuda_add_executable`, `cuda_add_library`, `cuda_include_directories`, `cuda_select_nvcc_arch_flags` and
`CUDA_NVCC_FLAGS`.

## Why it matters

They are defined by `find_package(CUDA)` alone, which CMake 3.27 has removed.

## Use instead

The commands for any language. The files' language is BL08's matter, options that nvcc alone knows are BL01's.

## Fix safety

Safe for the commands: without `USE_ROCM` the file is what it was. A target's `OPTIONS` and `CUDA_NVCC_FLAGS` are left
to a person, as they hold options for single configurations in a syntax of their own.

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
    "Commands of CMake's older FindCUDA",
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
            "if(USE_ROCM)\nadd_library(a STATIC a.cpp)\nelse()\ncuda_add_library(a STATIC a.cpp)\n"
            "cuda_select_nvcc_arch_flags(FLAGS Auto)\nendif()\n",
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
            message = "CUDA_NVCC_FLAGS is read by FindCUDA only."
            remedy = "Give the options to CMAKE_HIP_FLAGS, or to targets, where USE_ROCM is set."
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
            remedy="Use the commands for any language, and give options to the target, where USE_ROCM is set.",
        )
