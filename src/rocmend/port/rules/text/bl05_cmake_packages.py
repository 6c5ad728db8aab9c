"""CUDA packages in CMake.

## What it does

Finds `find_package(CUDAToolkit)`, `find_package(CUDA)` and `find_package(NCCL)`.

## Why it matters

On a ROCm machine they are not found, and a missing required package stops the configuration.

## Use instead

`find_package(hip)` and `find_package(rccl)`, which are installed with ROCm; `-DCMAKE_PREFIX_PATH=/opt/rocm` where they
are not found. Later tests of CUDA's `_FOUND` variable get ROCm's result.

## Fix safety

Safe: without `USE_ROCM` the file is unchanged.

## References

- <https://rocm.docs.amd.com/en/latest/conceptual/cmake-packages.html>
- <https://cmake.org/cmake/help/latest/module/FindCUDAToolkit.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rocmend.core.records import Severity
from rocmend.port.build.cmake import Command
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_PACKAGES = {"CUDA": "hip", "CUDAToolkit": "hip", "NCCL": "rccl"}


@rule(
    "BL05",
    "CUDA packages in CMake",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"CUDA", b"NCCL"),
    paths=paths(Kind.CMAKE),
    sources=("https://rocm.docs.amd.com/en/latest/conceptual/cmake-packages.html",),
    valid=("find_package(Threads REQUIRED)\nfind_package(hip)\n# find_package(CUDA)\n",),
    invalid=(
        Case(
            "find_package(CUDAToolkit 12.0 REQUIRED)\n",
            "if(USE_ROCM)\n  find_package(hip REQUIRED)\nelse()\n  find_package(CUDAToolkit 12.0 REQUIRED)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "find_package(CUDA QUIET)\nif(CUDA_FOUND)\n  add_subdirectory(gpu)\nendif()\n",
            "if(USE_ROCM)\n  find_package(hip QUIET)\n  set(CUDA_FOUND ${hip_FOUND})\nelse()\n"
            "  find_package(CUDA QUIET)\nendif()\nif(CUDA_FOUND)\n  add_subdirectory(gpu)\n"
            "endif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "  find_package(NCCL)\n",
            "  if(USE_ROCM)\n    find_package(rccl)\n  else()\n    find_package(NCCL)\n  endif()\n",
            "CMakeLists.txt",
        ),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands that look for CUDA's packages."""
    for command in file.cmake:
        if command.name != "find_package" or command.settled or not command.arguments:
            continue
        package = _PACKAGES.get(command.arguments[0].text)
        if package is None:
            continue
        name = command.arguments[0]
        kept = [word for word in ("REQUIRED", "QUIET") if word in command.values()]
        edits = (
            Edit(name.start, command.end, f"{' '.join([package, *kept])}){_found(file, command, package)}".encode()),
        )
        yield rewrite(
            file,
            (command.start, command.end),
            f"{name.text} is a CUDA package.",
            edits,
            remedy=f"Look for {package} if USE_ROCM is set.",
        )


@lru_cache(maxsize=16)
def _asks(file: TextFile, name: str) -> bool:
    return re.search(rf"\b{name}\b", file.text) is not None


def _found(file: TextFile, command: Command, package: str) -> str:
    """Return the line that says whether the package was found, in the words that the file asks in."""
    asked = f"{command.arguments[0].text}_FOUND"
    if not _asks(file, asked):
        return ""
    return f"{file.lines.newline}{file.lines.indent(command.start)}set({asked} ${{{package}_FOUND}})"
