"""Conditions on the CUDA version in builds.

## What it does

Finds `if(CUDA_VERSION VERSION_LESS …)` and other comparisons of CUDA's or nvcc's version, in CMake files and Makefiles.

## Why it matters

For ROCm the variables are empty, and an empty release is less than any other: the branch for the oldest CUDA is taken.
Where CMake's `if` has `${…}` without quotes, nothing stands there, and the configuration stops with an error.

## Use instead

Say which branch ROCm takes: `if(USE_ROCM OR CUDA_VERSION VERSION_GREATER …)`.

## Fix safety

Nothing is rewritten: which branch is right is for a person to know.

## References

- <https://cmake.org/cmake/help/latest/command/if.html#version-comparisons>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build import make
from rocmend.port.build.cmake import Argument
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_VERSION = re.compile(r"CUDA(?:Toolkit)?_VERSION|CMAKE_CUDA_COMPILER_VERSION|NVCC_VERSION|CUDA_COMPILER_VERSION")
_ALONE = re.compile(rf"\$\{{\w*(?:{_VERSION.pattern})\w*\}}")
_LESS = "On ROCm the CUDA version is empty, which compares less than any version."
_STOPS = "On ROCm the CUDA version is empty: unquoted, CMake has nothing to compare and stops with an error."


@rule(
    "BL13",
    "Condition on the CUDA version",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"_VERSION",),
    paths=paths(Kind.CMAKE, Kind.MAKE),
    sources=("https://cmake.org/cmake/help/latest/command/if.html#version-comparisons",),
    valid=(
        "if(USE_ROCM OR CUDA_VERSION VERSION_GREATER 11)\nendif()\n# if(CUDA_VERSION)\n",
        "if(CMAKE_VERSION VERSION_LESS 3)\nendif()\n",
    ),
    invalid=(
        Case('if(CUDAToolkit_VERSION VERSION_LESS "12.4")\n  set(A 1)\nendif()\n', None, "CMakeLists.txt"),
        Case("if(${CMAKE_CUDA_COMPILER_VERSION} VERSION_LESS 13.0)\n  set(A 1)\nendif()\n", None, "CMakeLists.txt"),
        Case("ifeq ($(NVCC_VERSION),11)\nA = 1\nendif\n", None, "Makefile"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield conditions on CUDA's release."""
    places = [
        (command.start, command.end, _STOPS if any(map(_vanishes, command.arguments)) else _LESS)
        for command in file.cmake
        if command.name in {"if", "elseif"} and not command.settled and _VERSION.search(" ".join(command.values()))
    ]
    places += [
        (one.start, one.end, _LESS)
        for one in file.make
        if one.what is make.What.DIRECTIVE
        and one.name in {"ifeq", "ifneq", "else"}
        and not one.settled
        and _VERSION.search(file.text, one.value_start, one.value_end)
    ]
    for start, end, message in sorted(places):
        yield rewrite(file, (start, end), message, (), remedy="Make the condition select ROCm's branch explicitly.")


def _vanishes(argument: Argument) -> bool:
    """Whether an argument is nothing but CUDA's release, and so none at all where that is empty."""
    return not argument.quoted and _ALONE.fullmatch(argument.text) is not None
