"""A build for HIP that does not define USE_ROCM.

What it does:
  Finds CMake files that enable HIP beside CUDA, not under a condition on `USE_ROCM`, and nowhere define `USE_ROCM`.

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

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.cmake import Argument, Command
from rocmend.port.build.file import TextFile
from rocmend.port.build.kinds import Kind, paths
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
        'option(USE_ROCM "AMD" OFF)\nset(LANG HIP)\nenable_language(${LANG})\nenable_language(CUDA)\n',
        'set(CMAKE_HIP_FLAGS "${CMAKE_HIP_FLAGS} -DUSE_ROCM")\nenable_language(HIP)\nenable_language(CUDA)\n',
    ),
    invalid=(
        Case("# USE_ROCM is not known here\nproject(a LANGUAGES CUDA)\nenable_language(HIP)\n", None, "CMakeLists.txt"),
        Case(
            "if(BUILD_HIP)\n  enable_language(HIP)\nelse()\n  enable_language(CUDA)\nendif()\n", None, "CMakeLists.txt"
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
    if b"CUDA" not in file.data or any(_defines(command) for command in file.cmake):
        return
    named = {
        command.arguments[0].text
        for command in file.cmake
        if command.name == "set" and any(one.text == "HIP" for one in command.arguments[1:])
    }
    languages = {"HIP", *(f"${{{name}}}" for name in named)}
    for command in file.cmake:
        argument = _hip(command, languages)
        if argument is not None and not any("USE_ROCM" in one for one in command.conditions):
            yield Found(
                argument.start,
                argument.end,
                "this build compiles HIP without USE_ROCM, and what a port adds is compiled only with it",
                remedy="Add add_compile_definitions(USE_ROCM) beside it.",
            )
            return


_DEFINITION = re.compile(r"(?:^|[\s;:>])(?:-D[ ]?)?USE_ROCM(?:=\w*)?(?:$|[\s;>])|-DUSE_ROCM\b")
_DEFINE = re.compile(r"option|add_(?:compile_)?(?:definitions|options)|target_compile_(?:definitions|options)|set\w*")


def _defines(command: Command) -> bool:
    """Tell whether a command defines USE_ROCM for the compiler, or makes it a setting of the project."""
    return _DEFINE.fullmatch(command.name) is not None and any(
        _DEFINITION.search(one.text) for one in command.arguments
    )


def _hip(command: Command, languages: set[str]) -> Argument | None:
    if command.name not in {"enable_language", "project"}:
        return None
    return next((one for one in command.arguments if one.text in languages), None)
