"""nvcc in Makefiles and scripts.

## What it does

Finds variables that hold nvcc (`NVCC = nvcc`, `CC := $(CUDA_HOME)/bin/nvcc`, `NVCC ?= $(shell which nvcc)`) and
commands that run it.

## Why it matters

ROCm machines have no nvcc.

## Use instead

`hipcc -DUSE_ROCM`, with `make USE_ROCM=1`. hipcc accepts `.cu` files and links the HIP runtime automatically.
Host-compiled C++ files that include CUDA headers need `-DUSE_ROCM -D__HIP_PLATFORM_AMD__` and ROCm's include folder
too.

## Fix safety

Safe: without `USE_ROCM` the file is unchanged. An nvcc command that does not compile, such as a version query, has to
be ported by hand.

## References

- <https://rocm.docs.amd.com/projects/HIPCC/en/latest/>
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.build import make, shell
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.lines_of_flags import of_nvcc
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_HIPCC = b"hipcc -DUSE_ROCM"
_SOUGHT = re.compile(r"\$\((?:shell|strip)[^()]*(?:which|command -v|where|realpath)[^()]*nvcc[^()]*\)\Z")


@rule(
    "BL11",
    "nvcc in a Makefile or script",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"nvcc",),
    paths=paths(Kind.MAKE, Kind.SHELL, Kind.DOCKERFILE),
    sources=("https://rocm.docs.amd.com/projects/HIPCC/en/latest/",),
    valid=("# NVCC = nvcc\nNVCCFLAGS = -O3\nifdef USE_HIP\nNVCC = hipcc\nelse\nNVCC = nvcc\nendif\n",),
    invalid=(
        Case(
            "NVCC ?= $(CUDA_HOME)/bin/nvcc  # the compiler\nall:\n",
            "ifdef USE_ROCM\nNVCC ?= hipcc -DUSE_ROCM  # the compiler\nelse\n"
            "NVCC ?= $(CUDA_HOME)/bin/nvcc  # the compiler\nendif\nall:\n",
            "Makefile",
        ),
        Case(
            "CC = nvcc\nNVCC := $(shell which nvcc 2>/dev/null)\n",
            "ifdef USE_ROCM\nCC = hipcc -DUSE_ROCM\nNVCC := hipcc -DUSE_ROCM\nelse\nCC = nvcc\n"
            "NVCC := $(shell which nvcc 2>/dev/null)\nendif\n",
            "Makefile",
        ),
        Case(
            "a.o: a.cu\n\t@echo a\n\tnvcc -O3 -c $< -o $@\n",
            "a.o: a.cu\n\t@echo a\nifdef USE_ROCM\n\thipcc -DUSE_ROCM -O3 -c $< -o $@\nelse\n"
            "\tnvcc -O3 -c $< -o $@\nendif\n",
            "Makefile",
        ),
        Case(
            "nvcc -O3 a.cu -o a && ./a\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  hipcc -DUSE_ROCM -O3 a.cu -o a && ./a\nelse\n'
            "  nvcc -O3 a.cu -o a && ./a\nfi\n",
            "build.sh",
        ),
        Case("VERSION := $(shell nvcc --version | grep release)\n", None, "Makefile"),
        Case("nvcc --version\n", None, "build.sh"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what holds or runs nvcc."""
    for one in file.make:
        if one.settled or one.what is not make.What.ASSIGNMENT:
            continue
        for word in make.words(file.text, one.value_start, one.value_end):
            if of_nvcc(word.text) or _SOUGHT.match(word.text):
                yield _compiler(file, word.start, word.end)
            elif "nvcc" in word.text and word.text.startswith(("$(shell", "`")):
                yield _asked(file, word.start, word.end)
    for command in file.commands:
        if not command.settled and of_nvcc(command.name):
            yield from _command(file, command)


def _command(file: TextFile, command: shell.Command) -> Iterator[Found]:
    name = command.words[len(command.assignments)]
    asks = any(word.value in {"--version", "-V", "--help", "--dryrun"} for word in command.arguments)
    if asks or command.inner or not command.arguments:
        yield _asked(file, command.start, command.end)
    else:
        yield _compiler(file, name.start, name.end)


def _compiler(file: TextFile, start: int, end: int) -> Found:
    return rewrite(
        file,
        (start, end),
        "The compiler is nvcc.",
        (Edit(start, end, _HIPCC),),
        remedy="Use hipcc -DUSE_ROCM if USE_ROCM is set.",
    )


def _asked(file: TextFile, start: int, end: int) -> Found:
    return rewrite(
        file,
        (start, end),
        "nvcc is called for something other than compiling.",
        (),
        remedy="On ROCm use hipcc --version, or omit the call.",
    )
