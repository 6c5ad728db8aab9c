"""CUDA variables and properties in CMake.

## What it does

Finds `CMAKE_CUDA_FLAGS`, `CMAKE_CUDA_STANDARD`, `CUDA_STANDARD`, `cuda_std_17`, `$<COMPILE_LANGUAGE:CUDA>` and other
settings of the CUDA language.

## Why it matters

They do not apply to HIP: a missing standard or missing options cause errors elsewhere.

## Use instead

The same settings for HIP. Settings for nvcc, its host compiler or its runtime library are omitted.

## Fix safety

Safe: without `USE_ROCM` the file is unchanged. BL01 handles nvcc-only options.

## References

- <https://cmake.org/cmake/help/latest/manual/cmake-variables.7.html#variables-for-languages>
- <https://cmake.org/cmake/help/latest/prop_tgt/HIP_STANDARD.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.cmake import Command
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_COMMANDS = {"set", "unset", "list", "string", "set_target_properties", "set_property", "target_compile_features"}
_COMMANDS |= {"target_compile_options", "add_compile_options", "target_compile_definitions", "add_compile_definitions"}
_COMMANDS |= {"target_link_options", "add_link_options", "set_source_files_properties"}
_RENAMED = re.compile(
    r"(?<![A-Za-z0-9_])(?:(?P<variable>CMAKE_CUDA_(?=(?:FLAGS(?:_[A-Z]+)?(?:_INIT)?|STANDARD|STANDARD_REQUIRED|EXTENSIONS"
    r"|COMPILER_LAUNCHER|VISIBILITY_PRESET)(?![A-Za-z0-9_])))"
    r"|(?P<property>CUDA_(?=(?:STANDARD|STANDARD_REQUIRED|EXTENSIONS|VISIBILITY_PRESET)(?![A-Za-z0-9_])))"
    r"|(?P<feature>cuda_(?=std_[0-9]{2}(?![A-Za-z0-9_])))"
    r"|(?P<pair>COMPILE_LANG_AND_ID:CUDA,NVIDIA|LINK_LANG_AND_ID:CUDA,NVIDIA)"
    r"|(?P<language>(?:COMPILE|LINK)_LANGUAGE:CUDA(?![A-Za-z0-9_,])))"
)
_INSTEAD = {"variable": "CMAKE_HIP_", "property": "HIP_", "feature": "hip_"}
_CHOICES = {"CMAKE_CUDA_COMPILER", "CMAKE_CUDA_HOST_COMPILER", "CMAKE_CUDA_RUNTIME_LIBRARY", "CUDA_HOST_COMPILER"}
_CHOICES |= {"CUDA_TOOLKIT_ROOT_DIR", "CUDAToolkit_ROOT", "CUDA_USE_STATIC_CUDA_RUNTIME", "CUDA_PROPAGATE_HOST_FLAGS"}


@rule(
    "BL09",
    "CUDA variables and properties in CMake",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.AUTO,
    triggers=(b"CUDA_", b"cuda_std", b":CUDA", b"CUDAToolkit_ROOT"),
    paths=paths(Kind.CMAKE),
    sources=("https://cmake.org/cmake/help/latest/manual/cmake-variables.7.html#variables-for-languages",),
    valid=("set(MY_CMAKE_CUDA_FLAGS -O3)\n# set(CMAKE_CUDA_STANDARD 17)\nmessage(${CMAKE_CUDA_FLAGS})\n",),
    invalid=(
        Case(
            'set(CMAKE_CUDA_STANDARD 17)\nset(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -O3")\n',
            "if(USE_ROCM)\n  set(CMAKE_HIP_STANDARD 17)\n"
            '  set(CMAKE_HIP_FLAGS "${CMAKE_HIP_FLAGS} -O3")\nelse()\n'
            '  set(CMAKE_CUDA_STANDARD 17)\n  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -O3")\n'
            "endif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "target_compile_features(a PRIVATE cxx_std_17 cuda_std_17)\n",
            "if(USE_ROCM)\n  target_compile_features(a PRIVATE cxx_std_17 hip_std_17)\nelse()\n"
            "  target_compile_features(a PRIVATE cxx_std_17 cuda_std_17)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "set(CMAKE_CUDA_HOST_COMPILER g++-12)\n",
            "if(NOT USE_ROCM)\n  set(CMAKE_CUDA_HOST_COMPILER g++-12)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-O3>)\n",
            "if(USE_ROCM)\n  add_compile_options($<$<COMPILE_LANGUAGE:HIP>:-O3>)\nelse()\n"
            "  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-O3>)\nendif()\n",
            "CMakeLists.txt",
        ),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands that say something about the language."""
    for command in file.cmake:
        if command.name not in _COMMANDS or command.settled or not command.arguments:
            continue
        chosen = command.name in {"set", "unset"} and command.arguments[0].text in _CHOICES
        edits = (Edit(command.start, command.end, b""),) if chosen else _edits(file, command)
        if edits:
            yield rewrite(
                file,
                (command.start, command.end),
                f"{command.name} sets a CUDA language property, which does not apply to HIP.",
                edits,
                remedy="Set it for HIP if USE_ROCM is set.",
            )


def _edits(file: TextFile, command: Command) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    for argument in command.arguments:
        for match in _RENAMED.finditer(file.text, argument.start, argument.end):
            kind = match.lastgroup or ""
            text = _INSTEAD.get(kind) or match.group().replace("CUDA,NVIDIA", "HIP,Clang").replace(":CUDA", ":HIP")
            edits.append(Edit(*match.span(), text.encode()))
    return tuple(edits)
