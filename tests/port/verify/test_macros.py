"""Level 3 compiles a unit with the macros of its build, and says so where these are not all known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rocmend.port.records import Change
from rocmend.port.verify.before import compared

from .conftest import Ported


def written(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


KERNEL = """#include <hip/hip_runtime.h>
#ifndef {name}
#error lacking {name}
#endif
#ifdef {other}
#error of another: {other}
#endif
__global__ void k(int* x) {{ x[0] = {name}; }}
"""


def compiled(root: Path) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "rocmend", "port", "verify", ".", "--level", "compile", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=570)
    levels = json.loads(done.stdout)["data"]["levels"]
    found: dict[str, Any] = next(one for one in levels if one["name"] == "compile")
    return found


@pytest.mark.slow
def test_units_compile_in_the_branch_that_their_build_takes(ported: Ported) -> None:
    files = {
        "setup.py": "from torch.utils.cpp_extension import CUDAExtension\n"
        "CUDAExtension('a', ['a.cu', 'both.cu'], extra_compile_args={'nvcc': '-O3 -DFIRST=1'.split()})\n"
        "CUDAExtension('b', ['b.cu', 'both.cu'], extra_compile_args={'nvcc': ['-DSECOND=2']})\n",
        "a.cu": KERNEL.format(name="FIRST", other="SECOND"),
        "b.cu": KERNEL.format(name="SECOND", other="FIRST"),
        "cm/CMakeLists.txt": "add_library(c c.cu)\nadd_compile_definitions(THIRD=3)\n",
        "cm/c.cu": KERNEL.format(name="THIRD", other="FOURTH"),
    }
    data = {path: text.encode() for path, text in files.items()}
    root = ported(data, {"README": b"ported\n"})
    level = compiled(root)
    assert level["status"] == "passed", level
    (root / "both.cu").write_text(KERNEL.format(name="FIRST", other="NONE"))
    level = compiled(root)
    broken = [one for one in level["evidence"] if one["outcome"] == "broken"]
    assert {one["subject"] for one in broken} == {"both.cu"}, level
    assert all("lacking FIRST" in one["detail"] and "extension 'b'" in one["detail"] for one in broken)


@pytest.mark.slow
def test_a_build_in_a_folder_below_counts_before_and_after_a_port(tmp_path: Path) -> None:
    """What is compiled after it is a copy: without the macros of the build, less would seem to compile."""
    kernel = "#ifdef USE_ROCM\n#endif\n" + KERNEL.format(name="WIDTH", other="NONE")
    files = {"a/b/c/k.cu": kernel, "a/b/c/CMakeLists.txt": "add_library(k k.cu)\nadd_compile_definitions(WIDTH=3)\n"}
    change = Change("a/b/c/k.cu", kernel.encode(), f"{kernel}// ported\n".encode())
    found = compared(written(tmp_path, files), [change], ["gfx942"])
    assert (found.lost, found.units, found.before, found.error) == ((), 1, 1, "")


GUARDED = """#include <hip/hip_runtime.h>
#ifdef WITH_CUDA
__global__ void k(int* x) { x[0] = N; }
#endif
#ifdef REDUCED
__global__ void reduced(int* x) { x[0] = 1; }
#endif
"""


def evidence(level: dict[str, Any], outcome: str) -> dict[str, str]:
    return {one["subject"]: one["detail"] for one in level["evidence"] if one["outcome"] == outcome}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cmake", "status", "says"),
    [
        ("set(WITH_CUDA ON)\nif(WITH_CUDA)\n  add_definitions(-DWITH_CUDA -DN=2)\nendif()\n", "passed", ""),
        (
            "if(WITH_CUDA)\n  add_definitions(-DWITH_CUDA -DN=2)\nendif()\n",
            "incomplete",
            "none of its kernels was compiled",
        ),
        ("add_definitions(-DWITH_CUDA -DN=2 ${FLAGS})\n", "incomplete", "add_definitions(-DWITH_CUDA -DN=2 ${FLAGS})"),
        ("add_definitions(-DWITH_CUDA ${FLAGS})\n", "incomplete", "asks for REDUCED"),
    ],
)
def test_a_unit_whose_macros_are_not_known_is_undecided(cmake: str, status: str, says: str, ported: Ported) -> None:
    files = {"CMakeLists.txt": (cmake + "add_library(k k.cu)\n").encode(), "k.cu": GUARDED.encode()}
    level = compiled(ported(files, {"README": b"ported\n"}))
    assert level["status"] == status, level
    assert says in evidence(level, "unknown").get("k.cu", ""), level
    assert ("k.cu" in evidence(level, "holds")) is (status == "passed")
    assert not evidence(level, "broken")
