"""CUDA sources in CMake.

## What it does

Finds `.cu` files among the sources of CMake's targets and in the lists that they are collected in.

## Why it matters

CMake takes a file's language from its extension: `.cu` is CUDA, which is not enabled for ROCm, so the file is
silently ignored and linking fails, or the configuration does.

## Use instead

The same files with their language set to HIP.

## Fix safety

Safe where the files are named in the folder of the target that is made of them. Lists passed to another folder have
to be ported by hand: a file's language is set per folder.

## References

- <https://cmake.org/cmake/help/latest/prop_sf/LANGUAGE.html>
- <https://cmake.org/cmake/help/latest/command/set_source_files_properties.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.cmake import Argument, Command
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_OTHERS = {"set_source_files_properties", "message", "install", "add_custom_command", "add_custom_target", "string"}
_OTHERS |= {
    "configure_file",
    "add_test",
    "execute_process",
    "include",
    "set_property",
    "set_tests_properties",
    "if",
    "elseif",
}
_OTHERS |= {"get_filename_component", "try_compile", "try_run", "foreach", "return", "option"}
_WIDTH = 100
_SOURCE = re.compile(r"[^\s<>;]+\.cu\Z")


@rule(
    "BL08",
    "CUDA sources in CMake",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b".cu",),
    paths=paths(Kind.CMAKE),
    sources=("https://cmake.org/cmake/help/latest/prop_sf/LANGUAGE.html",),
    valid=(
        "add_executable(a a.cpp b.cuh)\n# add_executable(a a.cu)\n",
        "set_source_files_properties(a.cu PROPERTIES LANGUAGE HIP)\nconfigure_file(a.cu b.cu)\n",
        "set(S a.cu b.cu)\nif(BUILD_HIP)\nset_source_files_properties(${S} PROPERTIES LANGUAGE HIP)\nendif()\n",
        "add_executable(a a.cu)\nif(USE_ROCM)\nset_source_files_properties(a.cu PROPERTIES LANGUAGE HIP)\nendif()\n",
    ),
    invalid=(
        Case(
            "add_executable(a main.cpp src/a.cu\n  ${DIR}/b.cu)\ntarget_link_libraries(a b)\n",
            "add_executable(a main.cpp src/a.cu\n  ${DIR}/b.cu)\nif(USE_ROCM)\n"
            "  set_source_files_properties(src/a.cu ${DIR}/b.cu PROPERTIES LANGUAGE HIP)\n"
            "endif()\ntarget_link_libraries(a b)\n",
            "CMakeLists.txt",
        ),
        Case(
            '  file(GLOB SOURCES "*.cu" "*.cpp")\n',
            '  file(GLOB SOURCES "*.cu" "*.cpp")\n  if(USE_ROCM)\n'
            "    set(SOURCES_HIP ${SOURCES})\n"
            '    list(FILTER SOURCES_HIP INCLUDE REGEX "[.]cu$")\n    if(SOURCES_HIP)\n'
            "      set_source_files_properties(${SOURCES_HIP} PROPERTIES LANGUAGE HIP)\n"
            "    endif()\n  endif()\n",
            "CMakeLists.txt",
        ),
        Case("set(SOURCES a.cu b.cu PARENT_SCOPE)\n", None, "src/CMakeLists.txt"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands that name CUDA sources."""
    said = _said(file)
    for command in file.cmake:
        sources = [argument for argument in command.arguments if _SOURCE.match(argument.text)]
        if command.name in _OTHERS or command.settled or not sources or _told(command, sources, said):
            continue
        if command.name == "file" and command.values()[0] not in {"GLOB", "GLOB_RECURSE"}:
            continue
        lines = file.region(command.start, command.end)
        elsewhere = "PARENT_SCOPE" in command.values() or "CACHE" in command.values()
        edits: tuple[Edit, ...] = ()
        if lines is not None and not elsewhere:
            break_ = file.lines.newline + file.lines.indent(command.start)
            edits = (Edit(lines.end, lines.end, "".join(break_ + line for line in _lines(command, sources)).encode()),)
        yield rewrite(
            file,
            (sources[0].start, sources[-1].end),
            "CMake treats .cu files as CUDA.",
            edits,
            remedy="Set their language to HIP where USE_ROCM is set, in the folder of their target.",
        )


def _said(file: TextFile) -> set[str]:
    """Return the files whose language is set to HIP somewhere in the file."""
    return {
        value
        for command in file.cmake
        if command.name == "set_source_files_properties" and command.values()[-2:] == ("LANGUAGE", "HIP")
        for value in command.values()
    }


def _told(command: Command, sources: list[Argument], said: set[str]) -> bool:
    """Tell whether the language of all the files is set somewhere."""
    if command.name == "file" and len(command.arguments) > 1:
        return bool({f"${{{command.arguments[1].text}_HIP}}", f"${{{command.arguments[1].text}}}"} & said)
    if command.name == "set" and f"${{{command.arguments[0].text}}}" in said:
        return True
    return all(argument.text in said for argument in sources)


def _lines(command: Command, sources: list[Argument]) -> list[str]:
    if command.name != "file":
        named = list(dict.fromkeys(f'"{one.text}"' if one.quoted else one.text for one in sources))
        whole = f"set_source_files_properties({' '.join(named)} PROPERTIES LANGUAGE HIP)"
        if len(whole) <= _WIDTH:
            return [whole]
        return ["set_source_files_properties(", *(f"  {one}" for one in named), "  PROPERTIES LANGUAGE HIP)"]
    found = command.arguments[1].text
    return [
        f"set({found}_HIP ${{{found}}})",
        f'list(FILTER {found}_HIP INCLUDE REGEX "[.]cu$")',
        f"if({found}_HIP)",
        f"  set_source_files_properties(${{{found}_HIP}} PROPERTIES LANGUAGE HIP)",
        "endif()",
    ]
