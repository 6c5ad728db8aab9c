"""Options of nvcc: what they become, and that clang takes it."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rocmend.port.build.flags import _ALONE, nvcc_only, translated


def rocm(line: str, architecture: str = "") -> str:
    """The line as it stands for hipcc."""
    words = shlex.split(line)
    known = {one.first: one for one in translated(words, architecture=architecture)}
    made: list[str] = []
    at = 0
    while at < len(words):
        one = known.get(at)
        made += [words[at]] if one is None else one.rocm.split()
        at += 1 if one is None else one.words
    return " ".join(made)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-O3 -Wall -std=c++17 a.cu -o a", "-O3 -Wall -std=c++17 a.cu -o a"),
        ("-gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 a.cu", "ARCH a.cu"),
        ("-arch sm_80 a.cu", "ARCH a.cu"),
        ("-Xcompiler -fPIC,-Wall -Xcompiler=-O2 --compiler-options '-fopenmp'", "-fPIC -Wall -O2 -fopenmp"),
        ("-Xptxas -v,-O3 -Xptxas=-v --ptxas-options=-v -Xptxas --warn a.cu", "a.cu"),
        ("-std c++17 --std=c++20", "-std=c++17 --std=c++20"),
        ("-t 4 -t=0 --threads 4 --threads=0 a.cu", "a.cu"),
        ("-t foo", "-t foo"),
        ("-rdc=true -dc a.cu", "-fgpu-rdc -fgpu-rdc -c a.cu"),
        ("-x cu a.c", "-x hip a.c"),
        ("-lineinfo -lm", "-gline-tables-only -lm"),
        ("-U__CUDA_NO_HALF_OPERATORS__ -DA=1", "-U__HIP_NO_HALF_OPERATORS__ -DA=1"),
        ("-Werror all-warnings -Werror", "-Werror"),
        ("-default-stream per-thread", "-fgpu-default-stream=per-thread"),
        ("-maxrregcount 64 --maxrregcount=64 -ccbin g++ a.cu", "a.cu"),
    ],
)
def test_translations(line: str, expected: str) -> None:
    assert rocm(line, "ARCH") == expected


@pytest.mark.parametrize("line", ["-ptx a.cu", "-dlink a.o", "-Xcompiler /std:c++20"])
def test_what_is_left_to_a_person(line: str) -> None:
    assert any(one.manual for one in translated(shlex.split(line)))


@pytest.mark.parametrize(
    "word", ["-O3", "-arch", "-G", "-g", "-std=c++17", "-lineout", "-keep", "arch=compute_80", "-t"]
)
def test_words_of_other_compilers_are_not_taken_for_nvccs(word: str) -> None:
    assert not nvcc_only(word)


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no clang: ziglang is not installed")
def test_clang_takes_every_translation(tmp_path: Path) -> None:
    flags = sorted({word for text in _ALONE.values() for word in text.split()} - {"-save-temps", "-c"})
    (tmp_path / "k.hip").write_text("__attribute__((global)) void k(float *x) { x[0] = x[0] / x[1]; }\n")
    command = [sys.executable, "-m", "ziglang", "clang", "-x", "hip", "--offload-arch=gfx942", "--cuda-device-only"]
    command += ["-nogpulib", "-nogpuinc", "-fsyntax-only", "-Werror=unused-command-line-argument", *flags, "k.hip"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
