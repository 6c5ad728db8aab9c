"""CUDA separable compilation in CMake.

## What it does

Finds `CUDA_SEPARABLE_COMPILATION`, for a target or for all. `CUDA_RESOLVE_DEVICE_SYMBOLS` alone has no meaning for
HIP: it sets when separable-compilation symbols are resolved.

## Why it matters

CMake has no such property for HIP. Device functions of one file that another calls are undefined.

## Use instead

`-fgpu-rdc` when compiling and `-fgpu-rdc --hip-link` when linking. Many projects turn the property on without need;
each file that stands alone compiles faster, and often to faster code, without it.

## Fix safety

A suggestion: a linker without HIP support cannot link a static library of such objects.

## References

- <https://clang.llvm.org/docs/HIPSupport.html>
- <https://cmake.org/cmake/help/latest/prop_tgt/CUDA_SEPARABLE_COMPILATION.html>
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

_NAMES = {"CMAKE_CUDA_SEPARABLE_COMPILATION", "CUDA_SEPARABLE_COMPILATION"}
_TRUE = {"ON", "TRUE", "1", "YES"}


@rule(
    "BL10",
    "CUDA separable compilation in CMake",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"SEPARABLE_COMPILATION",),
    paths=paths(Kind.CMAKE),
    sources=("https://clang.llvm.org/docs/HIPSupport.html",),
    valid=(
        "# set(CMAKE_CUDA_SEPARABLE_COMPILATION ON)\nset_target_properties(a PROPERTIES X ON)\n",
        "set_property(TARGET a PROPERTY CUDA_RESOLVE_DEVICE_SYMBOLS ON)\n",
        (
            "if(BUILD_CUDA)\n  set_target_properties(a PROPERTIES CUDA_SEPARABLE_COMPILATION ON)\nendif()\n"
            "if(BUILD_HIP)\n  enable_language(HIP)\nendif()\n"
        ),
    ),
    invalid=(
        Case(
            "set_target_properties(a b PROPERTIES CUDA_SEPARABLE_COMPILATION ON)\n",
            "if(USE_ROCM)\n"
            "  target_compile_options(a PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)\n"
            "  target_link_options(a PRIVATE -fgpu-rdc --hip-link)\n"
            "  target_compile_options(b PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)\n"
            "  target_link_options(b PRIVATE -fgpu-rdc --hip-link)\nelse()\n"
            "  set_target_properties(a b PROPERTIES CUDA_SEPARABLE_COMPILATION ON)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case(
            "set(CMAKE_CUDA_SEPARABLE_COMPILATION ON)\n",
            "if(USE_ROCM)\n  add_compile_options($<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)\n"
            "  add_link_options(-fgpu-rdc --hip-link)\nelse()\n"
            "  set(CMAKE_CUDA_SEPARABLE_COMPILATION ON)\nendif()\n",
            "CMakeLists.txt",
        ),
        Case("set_target_properties(a PROPERTIES CUDA_SEPARABLE_COMPILATION ON FOLDER x)\n", None, "CMakeLists.txt"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands that turn it on."""
    for command in file.cmake:
        values = command.values()
        named = [at for at, value in enumerate(values) if value in _NAMES]
        if command.name not in {"set", "set_target_properties", "set_property"} or command.settled or not named:
            continue
        if named[0] + 1 >= len(values) or values[named[0] + 1].upper() not in _TRUE:
            continue
        lines = _lines(command, named[0])
        text = (file.lines.newline + file.lines.indent(command.start)).join(lines)
        yield rewrite(
            file,
            (command.start, command.end),
            "CMake has no such property for HIP.",
            (Edit(command.start, command.end, text.encode()),) if lines else (),
            remedy="Compile with -fgpu-rdc and link with -fgpu-rdc --hip-link if USE_ROCM is set.",
            outcome=Outcome.SUGGEST,
        )


def _lines(command: Command, at: int) -> list[str]:
    """Return what says the same of HIP; empty where the command says more than that."""
    values = command.values()
    if command.name == "set" and len(values) == 2:
        return ["add_compile_options($<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)", "add_link_options(-fgpu-rdc --hip-link)"]
    targets: tuple[str, ...] = ()
    if command.name == "set_target_properties" and values[at - 1] == "PROPERTIES" and len(values) == at + 2:
        targets = values[: at - 1]
    if command.name == "set_property" and values[0] == "TARGET" and values[at - 1] == "PROPERTY":
        targets = values[1 : at - 1]
    return [
        line
        for target in targets
        for line in (
            f"target_compile_options({target} PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)",
            f"target_link_options({target} PRIVATE -fgpu-rdc --hip-link)",
        )
    ]
