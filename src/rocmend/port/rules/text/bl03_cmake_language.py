"""CUDA enabled as a CMake language.

## What it does

Finds `project(… LANGUAGES … CUDA)`, `enable_language(CUDA)` and `check_language(CUDA)`.

## Why it matters

CMake looks for nvcc, and fails without it.

## Use instead

HIP, a CMake language since 3.21: `cmake -DUSE_ROCM=ON`. `USE_ROCM` is defined for the compilers too, as
the ported sources ask for it.

## Fix safety

Safe: without `USE_ROCM` the file is unchanged. `rocmend port verify` tests whether the sources compile.

## References

- <https://cmake.org/cmake/help/latest/command/enable_language.html>
- <https://rocm.docs.amd.com/en/latest/conceptual/cmake-packages.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.cmake import Argument, Command
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_KEYWORDS = {"VERSION", "DESCRIPTION", "HOMEPAGE_URL", "LANGUAGES", "COMPAT_VERSION", "SPDX_LICENSE"}


@rule(
    "BL03",
    "CUDA enabled as a CMake language",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"CUDA",),
    paths=paths(Kind.CMAKE),
    sources=("https://cmake.org/cmake/help/latest/command/enable_language.html",),
    valid=(
        "project(a LANGUAGES CXX)\n# enable_language(CUDA)\n",
        "if(USE_HIP)\n  enable_language(HIP)\nelse()\n  enable_language(CUDA)\nendif()\n",
        'project(CUDA)\nmessage("enable_language(CUDA)")\n',
    ),
    invalid=(
        Case(
            "cmake_minimum_required(VERSION 3.20)\nproject(a VERSION 1.0 LANGUAGES CXX CUDA)\n",
            "cmake_minimum_required(VERSION 3.20)\nif(USE_ROCM)\n"
            "  project(a VERSION 1.0 LANGUAGES CXX HIP)\n  add_compile_definitions(USE_ROCM)\n"
            "else()\n  project(a VERSION 1.0 LANGUAGES CXX CUDA)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "PROJECT(a CUDA CXX)\nadd_subdirectory(b)",
            "if(USE_ROCM)\n  PROJECT(a HIP CXX)\n  add_compile_definitions(USE_ROCM)\nelse()\n"
            "  PROJECT(a CUDA CXX)\nendif()\nadd_subdirectory(b)",
            "CMakeLists.txt",
        ),
        Case(
            "if(WITH_CUDA)\n  enable_language(CUDA)  # nvcc\nendif()\n",
            "if(WITH_CUDA)\n  if(USE_ROCM)\n    enable_language(HIP)  # nvcc\n"
            "    add_compile_definitions(USE_ROCM)\n  else()\n"
            "    enable_language(CUDA)  # nvcc\n  endif()\nendif()\n",
            "cmake/gpu.cmake",
        ),
        Case(
            "include(CheckLanguage)\ncheck_language(CUDA)\n",
            "include(CheckLanguage)\nif(USE_ROCM)\n  check_language(HIP)\n"
            "  set(CMAKE_CUDA_COMPILER ${CMAKE_HIP_COMPILER})\nelse()\n  check_language(CUDA)\n"
            "endif()\n",
            "CMakeLists.txt",
        ),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands that ask for the language."""
    for command in file.cmake:
        argument = _language(command)
        lines = file.region(command.start, command.end)
        if argument is None or command.settled:
            continue
        edits: tuple[Edit, ...] = ()
        if lines is not None:
            edits = (
                Edit(argument.start, argument.end, b"HIP"),
                Edit(lines.end, lines.end, _added(file, command).encode()),
            )
        yield rewrite(
            file,
            (argument.start, argument.end),
            f"{command.name} requires the CUDA compiler.",
            edits,
            remedy="Enable HIP if USE_ROCM is set.",
        )


def _language(command: Command) -> Argument | None:
    arguments = command.arguments
    if command.name in {"enable_language", "check_language"}:
        return arguments[0] if arguments and arguments[0].text == "CUDA" else None
    if command.name != "project":
        return None
    listed = not any(argument.text in _KEYWORDS for argument in arguments)
    for argument in arguments[1:]:
        listed = argument.text == "LANGUAGES" or (listed and argument.text not in _KEYWORDS)
        if listed and argument.text == "CUDA":
            return argument
    return None


def _added(file: TextFile, command: Command) -> str:
    """Return the lines that follow for ROCm: what else the rest of the project looks at."""
    head = file.lines.newline + file.lines.indent(command.start)
    if command.name == "check_language":
        return f"{head}set(CMAKE_CUDA_COMPILER ${{CMAKE_HIP_COMPILER}})"
    return f"{head}add_compile_definitions(USE_ROCM)"
