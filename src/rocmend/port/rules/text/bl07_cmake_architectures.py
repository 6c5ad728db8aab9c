"""CUDA architectures in CMake.

## What it does

Finds what sets `CMAKE_CUDA_ARCHITECTURES` or a target's `CUDA_ARCHITECTURES`.

## Why it matters

The numbers are NVIDIA's. HIP ignores them.

## Use instead

Nothing: CMake detects the machine's GPUs when HIP is enabled; without a GPU use
`-DCMAKE_HIP_ARCHITECTURES="gfx942;gfx1100"`. GPU lists in project files become outdated.

## Fix safety

Safe: without `USE_ROCM` the file is unchanged.

## References

- <https://cmake.org/cmake/help/latest/variable/CMAKE_HIP_ARCHITECTURES.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.cmake import Command
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_SETS = {"set", "list", "string", "set_target_properties", "set_property", "unset"}


@rule(
    "BL07",
    "CUDA architectures in CMake",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.AUTO,
    triggers=(b"CUDA_ARCHITECTURES",),
    paths=paths(Kind.CMAKE),
    sources=("https://cmake.org/cmake/help/latest/variable/CMAKE_HIP_ARCHITECTURES.html",),
    valid=("# set(CMAKE_CUDA_ARCHITECTURES 80)\nset(CMAKE_HIP_ARCHITECTURES gfx942)\n",),
    invalid=(
        Case(
            "set(CMAKE_CUDA_ARCHITECTURES 70 80)\n",
            "if(NOT USE_ROCM)\n  set(CMAKE_CUDA_ARCHITECTURES 70 80)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            'set_target_properties(a PROPERTIES\n  CUDA_ARCHITECTURES "70;80"\n  POSITION_INDEPENDENT_CODE ON)\n',
            "if(USE_ROCM)\n  set_target_properties(a PROPERTIES\n"
            "    POSITION_INDEPENDENT_CODE ON)\nelse()\n  set_target_properties(a PROPERTIES\n"
            '    CUDA_ARCHITECTURES "70;80"\n    POSITION_INDEPENDENT_CODE ON)\nendif()\n',
            "CMakeLists.txt",
        ),
        Case(
            "set_property(TARGET a PROPERTY CUDA_ARCHITECTURES native)\n",
            "if(NOT USE_ROCM)\n  set_property(TARGET a PROPERTY CUDA_ARCHITECTURES native)\nendif()\n",
            "CMakeLists.txt",
        ),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands that set CUDA's architectures."""
    for command in file.cmake:
        values = command.values()
        named = [at for at, value in enumerate(values) if value in {"CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES"}]
        if command.name not in _SETS or command.settled or not named:
            continue
        yield rewrite(
            file,
            (command.start, command.end),
            "The target architectures are NVIDIA's.",
            _edits(file, command, named[0]),
            remedy="Leave them out where USE_ROCM is set: CMake asks the machine's GPUs.",
        )


def _edits(file: TextFile, command: Command, at: int) -> tuple[Edit, ...]:
    whole = (Edit(command.start, command.end, b""),)
    if command.name != "set_target_properties" or "PROPERTIES" not in command.values():
        return whole
    first = command.values().index("PROPERTIES") + 1
    if len(command.arguments) - first <= 2 or at + 1 >= len(command.arguments):
        return whole
    name, value = command.arguments[at], command.arguments[at + 1]
    start = name.start
    while start > command.start and file.text[start - 1] in " \t\r\n":
        start -= 1
    return (Edit(start, value.end + value.quoted, b""),)
