"""A build for HIP that does not define USE_ROCM.

What it does:
  Finds CMake files that enable HIP themselves and nowhere name `USE_ROCM`.

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
    ),
    invalid=(
        Case("# USE_ROCM is not known here\nproject(a LANGUAGES CUDA)\nenable_language(HIP)\n", None, "CMakeLists.txt"),
        Case(
            "if(BUILD_HIP)\n  enable_language(HIP)\nelse()\n  enable_language(CUDA)\nendif()\n", None, "CMakeLists.txt"
        ),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield the first command that enables HIP beside CUDA."""
    if b"CUDA" not in file.data or any("USE_ROCM" in one.text for command in file.cmake for one in command.arguments):
        return
    for command in file.cmake:
        argument = _hip(command)
        if argument is not None:
            yield Found(
                argument.start,
                argument.end,
                "this build compiles HIP without USE_ROCM, and what a port adds is compiled only with it",
                remedy="Add add_compile_definitions(USE_ROCM) beside it.",
            )
            return


def _hip(command: Command) -> Argument | None:
    if command.name not in {"enable_language", "project"}:
        return None
    return next((one for one in command.arguments if one.text == "HIP"), None)
