"""What CMake files define: followed as CMake does, and said to be unknown where they are not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rocmend.port.definitions import cmake_commands
from rocmend.port.definitions.cmake import CMake
from rocmend.port.definitions.macros import Definitions

ALIAS = "add_library(c INTERFACE)\nadd_library(n::c ALIAS c)\ntarget_compile_definitions(c INTERFACE X)\n"
PRIVATE = """add_library(b b.cu)
add_library(c c.cu)
target_compile_definitions(c PUBLIC X)
target_link_libraries(b PRIVATE c)
"""
LISTED = "add_library(k k.cu)\n"


def ways(files: Mapping[str, str], unit: str = "k.cu") -> list[Definitions]:
    read = {path: text.encode() for path, text in files.items()}.get
    found, folder = CMake(read).of_unit(unit, [path for path in files if path.endswith("CMakeLists.txt")])
    return found or [folder]


def way(text: str, unit: str = "k.cu", **others: str) -> Definitions:
    (one,) = ways({"CMakeLists.txt": text, **others}, unit)
    return one


def unsure(text: str, **others: str) -> dict[str, str]:
    return {one.name: one.why for one in way(text, **others).unknown}


@pytest.mark.parametrize("name", ["WITH_CUDA", "ENABLE_CUDA", "USE_CUDA"])
@pytest.mark.parametrize("how", ["set({} ON)", 'option({} "with it" ON)', 'set({} ON CACHE BOOL "")'])
def test_a_variable_named_for_cuda_is_what_the_project_sets(name: str, how: str) -> None:
    branch = f"if({name})\n  add_compile_definitions({name} N=4)\nelse()\n  add_definitions(-DNONE)\nendif()\n"
    assert way(how.format(name) + "\n" + branch + LISTED).defined == {name: "1", "N": "4"}
    assert way(branch + LISTED).defined == {"NONE": "1"}
    assert way(how.format(name).replace("ON", "OFF") + "\n" + branch + LISTED).defined == {"NONE": "1"}


def test_an_option_for_cuda_beside_one_for_rocm_is_undecided() -> None:
    text = 'option(USE_CUDA "" ON)\noption(USE_HIP "" OFF)\nif(USE_CUDA)\n  add_definitions(-DFOR_CUDA)\nendif()\n'
    text += "if(USE_HIP)\n  add_definitions(-DFOR_HIP)\nendif()\n" + LISTED
    made = way(text)
    assert made.defined == {"FOR_HIP": "1"}
    assert [one.name for one in made.unknown] == ["FOR_CUDA"]
    assert "CMakeLists.txt, line 3: if(USE_CUDA)" in made.unknown[0].why


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ('if(CMAKE_BUILD_TYPE STREQUAL "Debug")\n  add_definitions(-DX)\nendif()\n' + LISTED, "X", 1),
        ("find_package(F)\nif(F_FOUND)\n  set(D X)\nendif()\nadd_compile_definitions(${D})\n" + LISTED, "X", 2),
        ("add_definitions(-DX=${FROM_ELSEWHERE})\n" + LISTED, "X", 1),
        ("add_compile_definitions($<$<CONFIG:Debug>:X>)\n" + LISTED, "X", 1),
        ("add_definitions(${FROM_ELSEWHERE})\n" + LISTED, "", 1),
        ("add_compile_definitions(WITH_${FROM_ELSEWHERE})\n" + LISTED, "", 1),
        ("add_compile_options(-include config.h)\n" + LISTED, "", 1),
        ("include(${CMAKE_BINARY_DIR}/made.cmake)\n" + LISTED, "", 1),
        ("include(cmake/absent.cmake)\n" + LISTED, "", 1),
        ("foreach(x ${FROM_ELSEWHERE})\n  add_definitions(-DX)\nendforeach()\n" + LISTED, "X", 1),
        ("foreach(x ${FROM_ELSEWHERE})\n  add_definitions(-D${x})\nendforeach()\n" + LISTED, "", 2),
        ("execute_process(COMMAND a OUTPUT_VARIABLE D)\nadd_definitions(${D})\n" + LISTED, "", 2),
        ("add_definitions(-DX)\nif(F_FOUND)\n  remove_definitions(-DX)\nendif()\n" + LISTED, "X", 2),
        ("set(D X)\nif(F_FOUND)\n  unset(D)\nendif()\nadd_compile_definitions(${D})\n" + LISTED, "X", 2),
        ("if(F_FOUND)\n  return()\nendif()\nadd_definitions(-DX)\n" + LISTED, "X", 2),
        ("add_library(k ${FROM_ELSEWHERE})\ntarget_compile_definitions(k PRIVATE X)\n", "X", 1),
        ('set(CMAKE_HIP_FLAGS_DEBUG "-DX -DNDEBUG")\n' + LISTED, "X", 0),
        ("cmake_language(CALL add_definitions -DX)\n" + LISTED, "", 1),
        ("set_property(DIRECTORY other PROPERTY COMPILE_DEFINITIONS X)\n" + LISTED, "X", 1),
        ("project(p)\nwhat is this\n" + LISTED, "", 2),
    ],
)
def test_what_is_not_known_is_said_with_its_line(text: str, name: str, line: int) -> None:
    found = unsure(text)
    assert list(found) == [name], found
    assert f"line {line}" in found[name] or not line, found
    assert name not in way(text).defined or "remove" in text


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        (
            LISTED + 'set_target_properties(k PROPERTIES COMPILE_DEFINITIONS "X;N=2" CXX_STANDARD 17)\n',
            {"X": "1", "N": "2"},
        ),
        (LISTED + 'set_target_properties(k PROPERTIES COMPILE_FLAGS "-O2 -DX")\n', {"X": "1"}),
        (LISTED + "set_property(TARGET k APPEND PROPERTY COMPILE_DEFINITIONS X N=2)\n", {"X": "1", "N": "2"}),
        (LISTED + "set_property(SOURCE k.cu PROPERTY COMPILE_DEFINITIONS X)\n", {"X": "1"}),
        (LISTED + "set_source_files_properties(k.cu other.cu PROPERTIES COMPILE_FLAGS -DX)\n", {"X": "1"}),
        (LISTED + "set_source_files_properties(other.cu PROPERTIES COMPILE_FLAGS -DX)\n", {}),
        ("foreach(x A B)\n  add_definitions(-DWITH_${x})\nendforeach()\n" + LISTED, {"WITH_A": "1", "WITH_B": "1"}),
        (
            "set(L A)\nforeach(x IN LISTS L ITEMS B)\n  add_definitions(-D${x})\nendforeach()\n" + LISTED,
            {"A": "1", "B": "1"},
        ),
        ("add_definitions(-DX -DY)\nremove_definitions(-DX)\n" + LISTED, {"Y": "1"}),
        ("set(D X)\nunset(D)\nif(D)\n  add_definitions(-DX)\nendif()\n" + LISTED, {}),
        ("return()\nadd_definitions(-DX)\n", {}),
        (
            "function(f t)\n  target_compile_definitions(${t} PRIVATE ${ARGN})\nendfunction()\n"
            + LISTED
            + "f(k X Y)\n",
            {"X": "1", "Y": "1"},
        ),
        (ALIAS + LISTED + "target_link_libraries(k n::c)\n", {"X": "1"}),
        (PRIVATE + LISTED + "target_link_libraries(k b)\n", {}),
        (
            "if(F_FOUND)\n  set(D X)\n  add_library(k k.cu)\n  target_compile_definitions(k PRIVATE ${D})\nendif()\n",
            {"X": "1"},
        ),
        (
            "add_compile_options($<$<COMPILE_LANGUAGE:HIP>:-DX;-DN=$<IF:1,a,b>> $<$<COMPILE_LANGUAGE:CUDA>:-DY>)\n"
            + LISTED,
            {"X": "1"},
        ),
        (
            'set(CMAKE_HIP_FLAGS "${CMAKE_HIP_FLAGS} ${TORCH_CXX_FLAGS} -DX")\nset(CMAKE_CXX_FLAGS -DY)\n' + LISTED,
            {"X": "1"},
        ),
        ('add_definitions(-DNAME=\\"a\\")\n' + LISTED, {"NAME": '"a"'}),
        (LISTED + "add_compile_options(-DX)\n", {}),
    ],
)
def test_simple_commands_are_followed(text: str, defined: dict[str, str]) -> None:
    assert way(text).defined == defined


def test_files_of_the_project_are_included() -> None:
    others = {"cmake/flags.cmake": "add_definitions(-DX)\nset(D N=2)\n", "mod/Own.cmake": "add_definitions(-DY)\n"}
    text = "include(cmake/flags.cmake)\nlist(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/mod)\ninclude(Own)\n"
    made = way(text + "include(CheckLanguage)\nadd_compile_definitions(${D})\n" + LISTED, **others)
    assert (made.defined, made.unknown) == ({"X": "1", "N": "2", "Y": "1"}, ())


def test_a_folder_gets_what_is_defined_before_it_is_added() -> None:
    files = {
        "CMakeLists.txt": "add_definitions(-DBEFORE)\nadd_subdirectory(src)\nadd_definitions(-DAFTER)\n",
        "src/CMakeLists.txt": "add_library(k ${CMAKE_CURRENT_SOURCE_DIR}/k.cu)\n",
    }
    assert [one.defined for one in ways(files, "src/k.cu")] == [{"BEFORE": "1"}]


def test_a_macro_leaves_the_arguments_of_its_caller() -> None:
    text = "macro(m)\nendmacro()\nfunction(f)\n  m(OTHER)\n  add_definitions(${ARGN})\nendfunction()\nf(-DX)\n"
    assert way(text + LISTED).defined == {"X": "1"}


def test_a_target_of_a_folder_gets_what_the_folder_above_defines_for_it() -> None:
    files = {
        "CMakeLists.txt": "add_subdirectory(src)\ntarget_compile_definitions(k PRIVATE X)\n",
        "src/CMakeLists.txt": LISTED,
    }
    assert [one.defined for one in ways(files, "src/k.cu")] == [{"X": "1"}]


def test_a_preset_may_set_options_and_flags() -> None:
    preset = '{"configurePresets": [{"cacheVariables": {"WITH_X": "ON", "CMAKE_HIP_FLAGS": "-DFAST"}}]}'
    text = 'option(WITH_X "" OFF)\nif(WITH_X)\n  add_definitions(-DX)\nendif()\n' + LISTED
    found = unsure(text, **{"CMakePresets.json": preset})
    assert set(found) == {"X", "FAST"}
    assert "CMakePresets.json: a preset sets CMAKE_HIP_FLAGS" in found["FAST"]
    assert set(unsure(text, **{"CMakePresets.json": "{"})) == {""}


def test_sources_in_c_plus_plus_have_the_options_of_their_language() -> None:
    text = "set(CMAKE_HIP_FLAGS -DX)\nset(CMAKE_CXX_FLAGS -DY)\nadd_library(k k.cu k.cpp)\n"
    assert way(text, "k.cpp").defined == {"Y": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"foreach(x{n} a)\n" for n in range(2000)) + "add_definitions(-DX)\n" + "endforeach()\n" * 2000,
        "function(f)\n  f()\n  add_definitions(-DX)\nendfunction()\nf()\n",
        "include(CMakeLists.txt)\n",
        "add_compile_options(" + "$<$<NOT:" * 3000 + "0>:-DX" + ">" * 3000 + ")\n",
    ],
)
def test_what_is_nested_too_deep_is_unknown(text: str) -> None:
    assert "" in unsure(text + LISTED)


def test_patterns_of_a_stranger_take_no_time() -> None:
    text = f"file(GLOB F {'*a' * 40}b)\nadd_library(k ${{F}})\ntarget_compile_definitions(k PRIVATE X)\n"
    assert way(text, "a" * 200 + ".cu").defined == {"X": "1"}


def test_a_project_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cmake_commands, "_MOST_WORDS", 2000)
    loops = "".join(f"foreach(x{n} RANGE 999)\n" for n in range(6)) + "add_definitions(-DX)\n" + "endforeach()\n" * 6
    assert "" in unsure(loops + LISTED)
