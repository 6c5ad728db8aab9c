"""A build for HIP that does not define USE_ROCM.

What it does:
  Finds CMake files that enable HIP beside CUDA and, read as a build for ROCm reads them, do not define `USE_ROCM` for
  the sources with kernels. An option or a variable of that name is no definition, nor is one in a branch for CUDA.

Why it matters:
  What a port adds to CUDA sources stands under `#ifdef USE_ROCM`. The project's own build for ROCm compiles the other
  branch: the port has no effect, and nothing says so.

Use instead:
  `add_compile_definitions(USE_ROCM)` beside `enable_language(HIP)`.

Fix safety:
  Nothing is rewritten: which targets the definition is for is the project's decision.

References:
  CMake, add_compile_definitions.
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.cmake import Argument, Command
from rocmend.port.build.file import TextFile
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.definitions.cmake_project import Project
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "BL16",
    "A build for HIP that does not define USE_ROCM",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"HIP",),
    paths=paths(Kind.CMAKE),
    sources=("https://cmake.org/cmake/help/latest/command/add_compile_definitions.html",),
    valid=(
        "if(USE_ROCM)\nenable_language(HIP)\nadd_compile_definitions(USE_ROCM)\nelse()\nenable_language(CUDA)\nendif()\n",
        "enable_language(HIP)\nadd_executable(a a.hip)\n",
        "check_language(HIP)\nenable_language(CUDA)\n",
        "enable_language(HIP)\nset(D CUDA USE_ROCM)\nadd_library(a a.cu)\ntarget_compile_definitions(a PRIVATE ${D})\n",
        "if(GPU STREQUAL CUDA)\n\nelse()\n  enable_language(HIP)\n  add_definitions(-DUSE_ROCM)\nendif()\n",
        "macro(gpu)\n  enable_language(HIP)\n  add_compile_definitions(USE_ROCM)\nendmacro()\nenable_language(CUDA)\n",
        'set(CMAKE_HIP_FLAGS "${CMAKE_HIP_FLAGS} -DUSE_ROCM")\nenable_language(HIP)\nenable_language(CUDA)\n',
    ),
    invalid=(
        Case("# USE_ROCM is not known here\nproject(a LANGUAGES CUDA)\nenable_language(HIP)\n", None, "CMakeLists.txt"),
        Case(
            "if(BUILD_HIP)\n  enable_language(HIP)\nelse()\n  enable_language(CUDA)\nendif()\n", None, "CMakeLists.txt"
        ),
        Case(
            'option(USE_ROCM "AMD" OFF)\nset(LANG HIP)\nenable_language(${LANG})\nenable_language(CUDA)\n',
            None,
            "CMakeLists.txt",
        ),
        Case(
            'message("-DUSE_ROCM")\nset(USE_ROCM OFF)\nenable_language(HIP)\nenable_language(CUDA)\n',
            None,
            "CMakeLists.txt",
        ),
        Case(
            "if(USE_CUDA)\n  enable_language(CUDA)\n  add_compile_definitions(USE_ROCM=0)\nelse()\n"
            "  enable_language(HIP)\nendif()\n",
            None,
            "CMakeLists.txt",
        ),
        Case(
            "enable_language(HIP)\nenable_language(CUDA)\nadd_library(k k.cu)\nadd_executable(t t.cpp)\n"
            "target_compile_definitions(t PRIVATE USE_ROCM)\n",
            None,
            "CMakeLists.txt",
        ),
        Case("set(LANG HIP) # or CUDA\nproject(a LANGUAGES CXX ${LANG})\n", None, "CMakeLists.txt"),
        Case(
            "enable_language(HIP)\nif(USE_ROCM)\n  find_package(hip)\nelse()\n  find_package(CUDA)\nendif()\n",
            None,
            "CMakeLists.txt",
        ),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield the first command that enables HIP beside CUDA."""
    if b"CUDA" not in file.data:
        return
    named = {
        command.arguments[0].text
        for command in file.cmake
        if command.name == "set" and any(one.text == "HIP" for one in command.arguments[1:])
    }
    languages = {"HIP", *(f"${{{name}}}" for name in named)}
    argument = next(filter(None, (_hip(command, languages) for command in file.cmake)), None)
    if argument is not None and not _defined(file):
        yield Found(
            argument.start,
            argument.end,
            "this build compiles HIP without USE_ROCM, and what a port adds is compiled only with it",
            remedy="Add add_compile_definitions(USE_ROCM) beside it.",
        )


_OF_GPUS = (".cu", ".cuh", ".hip", ".cu.cc", ".cu.cpp", ".hip.cpp")


def _defined(file: TextFile) -> bool:
    """Tell whether a build for ROCm defines USE_ROCM for the sources with kernels, or at all where none is listed."""
    build = Project({file.path: file.data}.get, "HIP", file.path, whole=True)
    sources = [path for target in build.targets.values() if target.folder is not None for path in target.sources]
    kernels = [path for path in sources if path.lower().endswith(_OF_GPUS)]
    if kernels:
        return all("USE_ROCM" in way.over({}) for path in kernels for way in build.of_unit(path))
    folder = build.folders[file.path]
    ways = [folder.made | build.flags(folder), *(target.own for target in build.targets.values())]
    return any("USE_ROCM" in way.over({}) for way in ways)


def _hip(command: Command, languages: set[str]) -> Argument | None:
    if command.name not in {"enable_language", "project"}:
        return None
    return next((one for one in command.arguments if one.text in languages), None)
