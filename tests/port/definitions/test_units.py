"""The macros that a unit is compiled with: those of the extensions and targets that list it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.core.beneath import Beneath
from rocmend.port.definitions.units import Builds

SETUP = """import os
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension

here = os.path.dirname(__file__)
common = ["-O3", "-DCOMMON"]
nvcc = "-O3 -DSPLIT --expt-relaxed-constexpr -D VALUE=3".split()
flags = {"cxx": ["-DHOST_ONLY"], "nvcc": common + nvcc}
flags["nvcc"].append("-DADDED")

def wide():
    return ["-DWIDTH=2"]

sources = [os.path.join(here, "csrc", name) for name in ["one.cu", "both.cu"]]
setup(ext_modules=[
    CUDAExtension("one", sources, define_macros=[("FOR_ONE", None)], extra_compile_args=flags),
    CUDAExtension(name="two", sources=["csrc/two.cu", f"{here}/csrc/both.cu"], undef_macros=["NDEBUG"],
                  extra_compile_args={"cxx": [], "nvcc": common + wide()}),
])
"""
CMAKE = """cmake_minimum_required(VERSION 3.21)
project(p LANGUAGES CXX)
option(WITH_EXTRA "extra" ON)
option(WITH_LITTLE "little" OFF)
add_compile_definitions(EVERYWHERE=1)
if(USE_CUDA AND NOT USE_ROCM)
  add_definitions(-DFOR_CUDA)
elseif(USE_ROCM)
  add_definitions(-DFOR_ROCM)
else()
  add_definitions(-DFOR_NEITHER)
endif()
if(WITH_EXTRA AND NOT WITH_LITTLE)
  set(DEFS EXTRA "LEVEL=4")
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_definitions(-DFOR_DEBUG)
endif()
function(later)
  add_definitions(-DIN_FUNCTION)
endfunction()
file(GLOB SRCS src/a*.cu)
add_library(common INTERFACE)
target_compile_definitions(common INTERFACE LINKED)
add_library(first STATIC ${SRCS})
target_compile_definitions(first PRIVATE ${DEFS} $<$<COMPILE_LANGUAGE:CUDA>:OF_CUDA> $<$<COMPILE_LANGUAGE:HIP>:OF_HIP>)
target_link_libraries(first PUBLIC common)
add_executable(second ${CMAKE_CURRENT_SOURCE_DIR}/src/b.cu)
target_compile_options(second PRIVATE -O3 -DSECOND -USHARED)
"""


def written(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def of(folder: Path, unit: str) -> list[dict[str, str]]:
    with Beneath(folder) as tree:
        return [one.over({"NDEBUG": "1"}) for one in Builds(tree).of_unit(unit)]


def test_a_unit_gets_the_macros_of_the_extensions_that_list_it(tmp_path: Path) -> None:
    root = written(tmp_path, {"setup.py": SETUP})
    one = {"NDEBUG": "1", "COMMON": "1", "SPLIT": "1", "VALUE": "3", "ADDED": "1", "FOR_ONE": ""}
    two = {"COMMON": "1", "WIDTH": "2"}
    assert of(root, "csrc/one.cu") == [one]
    assert of(root, "csrc/two.cu") == [two]
    assert of(root, "csrc/both.cu") == [one, two]
    assert of(root, "csrc/unlisted.cu") == [{**one, **two, "HOST_ONLY": "1"}]


ASKS = """import os, torch
from torch.utils.cpp_extension import CUDA_HOME, CUDAExtension
OFF = os.getenv("DISABLE_BACKWARD", "FALSE") == "TRUE"
ON = int(os.environ.get("WITH_HALF", "1"))
flags = ["-DALWAYS"] + (["-DNO_BACKWARD"] if OFF else ["-DBACKWARD"])
if not OFF and ON:
    flags += ["-DHALF"]
if os.environ.get("FAST"):
    flags += ["-DFAST"]
if (torch.cuda.is_available() and CUDA_HOME is not None) or os.getenv("FORCE_CUDA", "0") == "1":
    flags += ["-DWITH_CUDA"]
for name in names:
    CUDAExtension(f"x.{name}", [os.path.join("csrc", "cuda", f"{name}_cuda.cu")], extra_compile_args=flags)
"""


def test_a_build_without_variables_is_the_one_that_is_read(tmp_path: Path) -> None:
    root = written(tmp_path, {"setup.py": ASKS})
    wanted = {"NDEBUG": "1", "ALWAYS": "1", "BACKWARD": "1", "HALF": "1", "WITH_CUDA": "1"}
    assert of(root, "csrc/cuda/sum_cuda.cu") == [wanted]


def test_a_target_of_several_files_is_one(tmp_path: Path) -> None:
    below = "target_sources(x PRIVATE a.cu)\n"
    files = {"CMakeLists.txt": "add_library(x src/b.cu)\ntarget_compile_definitions(x PRIVATE N=2)\n"}
    root = written(tmp_path, {**files, "src/CMakeLists.txt": below})
    assert of(root, "src/a.cu") == of(root, "src/b.cu") == [{"NDEBUG": "1", "N": "2"}]


def test_a_unit_gets_the_macros_of_the_targets_that_list_it(tmp_path: Path) -> None:
    root = written(tmp_path, {"CMakeLists.txt": CMAKE, "src/CMakeLists.txt": "add_definitions(-DBELOW)\n"})
    every = {"NDEBUG": "1", "EVERYWHERE": "1", "FOR_ROCM": "1"}
    assert of(root, "src/a1.cu") == [{**every, "EXTRA": "1", "LEVEL": "4", "OF_HIP": "1", "LINKED": "1"}]
    assert of(root, "src/b.cu") == [{**every, "SECOND": "1"}]
    assert of(root, "src/c.cu") == [{**every, "BELOW": "1"}]
    assert of(root, "other/c.cu") == [every]


def test_where_two_builds_disagree_a_unit_is_compiled_both_ways(tmp_path: Path) -> None:
    root = written(
        tmp_path, {"setup.py": SETUP, "CMakeLists.txt": "add_library(x csrc/two.cu)\nadd_definitions(-DX)\n"}
    )
    assert of(root, "csrc/two.cu") == [{"COMMON": "1", "WIDTH": "2"}, {"NDEBUG": "1", "X": "1"}]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/BUILD", 'cuda_library(name = "k", srcs = ["k.cu"], copts = ["-DX"])\n'),
        ("BUILD.bazel", 'cuda_library(\n  name = "k",\n  srcs = glob(["src/*.cu"]))\n'),
        ("meson.build", "add_project_arguments('-DX', language: 'cuda')\nsubdir('src')\n"),
    ],
)
def test_builds_that_are_not_read_may_define_anything(path: str, text: str, tmp_path: Path) -> None:
    root = written(tmp_path, {"setup.py": "CUDAExtension('a', ['src/k.cu'])\n", path: text, "src/k.cu": ""})
    with Beneath(root) as tree:
        (one,) = Builds(tree).of_unit("src/k.cu")
        assert [each.name for each in one.unknown] == [""]
        assert f"{path}, line " in one.unknown[0].why
        (other,) = Builds(tree).of_unit("other/k.cpp")
        assert bool(other.unknown) is (path == "meson.build")
