"""CUDA's libraries in Makefiles and scripts.

## What it does

Finds `-lcudart`, `-lcublas`, `-lcufft`, `-lnccl` and the like.

## Why it matters

On a machine for ROCm the linker does not find them.

## Use instead

ROCm's libraries with HIP's names. HIP's runtime is linked by hipcc itself, and serves the driver's functions too.

## Fix safety

Safe: the ported sources call the functions by the names that those libraries have. Libraries with no counterpart that
has the same functions (cuDNN, NVML, NPP, CUPTI) are left to a person.

## References

- <https://rocm.docs.amd.com/en/latest/reference/api-libraries.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build import make
from rocmend.port.build.file import TextFile
from rocmend.port.build.flags import LIBRARIES, MANUAL_LIBRARIES
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.lines_of_flags import Word
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_LIBRARY = re.compile(r"-l(\w[\w-]*)\Z")


@rule(
    "BL14",
    "CUDA libraries in a Makefile or script",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"-lcu", b"-lnccl", b"-lnv", b"-lnpp", b"-l$"),
    paths=paths(Kind.MAKE, Kind.SHELL, Kind.DOCKERFILE),
    sources=("https://rocm.docs.amd.com/en/latest/reference/api-libraries.html",),
    valid=("# LDFLAGS = -lcublas\nLDFLAGS = -lm -lcurl -lhipblas\nall:\n\techo -lm\n",),
    invalid=(
        Case(
            "LDFLAGS = -lm -lcublas -lcudart # libraries\nall:\n",
            "ifdef USE_ROCM\nLDFLAGS = -lm -lhipblas -lamdhip64 # libraries\nelse\n"
            "LDFLAGS = -lm -lcublas -lcudart # libraries\nendif\nall:\n",
            "Makefile",
        ),
        Case(
            "g++ a.o -o a -lcudadevrt -lnccl\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  g++ a.o -o a -lrccl\nelse\n  g++ a.o -o a -lcudadevrt -lnccl\nfi\n',
            "build.sh",
        ),
        Case(
            "CUDART ?= cudart\nLDFLAGS = -lm -l$(CUDART)\n",
            "ifdef USE_ROCM\nCUDART ?= amdhip64\nelse\nCUDART ?= cudart\nendif\nLDFLAGS = -lm -l$(CUDART)\n",
            "Makefile",
        ),
        Case("LDFLAGS = -lcublas -lnvidia-ml\n", None, "Makefile"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield statements that link CUDA's libraries."""
    yield from _in_variables(file)
    for words in _statements(file):
        named = [(word, match.group(1)) for word in words if (match := _LIBRARY.match(word.text))]
        cuda = [(word, name) for word, name in named if name in LIBRARIES or name in MANUAL_LIBRARIES]
        if not cuda:
            continue
        unknown = [name for _, name in cuda if name in MANUAL_LIBRARIES]
        edits = () if unknown else tuple(_edit(file, word, LIBRARIES[name]) for word, name in cuda)
        none = f"{', '.join(unknown)}: ROCm has no equivalent library."
        yield rewrite(
            file,
            (cuda[0][0].start, cuda[-1][0].end),
            none if unknown else "These are CUDA libraries.",
            edits,
            remedy="Link ROCm's libraries if USE_ROCM is set.",
        )


def _in_variables(file: TextFile) -> Iterable[Found]:
    """Yield variables that hold the name of a library alone: ``-l$(CUDART)``."""
    for one in file.make:
        if one.what is not make.What.ASSIGNMENT or one.settled:
            continue
        words = [Word(*word) for word in make.words(file.text, one.value_start, one.value_end)]
        library = LIBRARIES.get(words[0].text, "") if len(words) == 1 else ""
        if library and re.search(rf"-l\$[({{]{re.escape(one.name)}[)}}]", file.text):
            edits = (Edit(words[0].start, words[0].end, library.encode()),)
            place = words[0].start, words[0].end
            remedy = "Name ROCm's library if USE_ROCM is set."
            yield rewrite(file, place, "This names a CUDA library.", edits, remedy=remedy)


def _statements(file: TextFile) -> Iterable[list[Word]]:
    for one in file.make:
        if one.what is not make.What.DIRECTIVE and not one.settled:
            yield [Word(*word) for word in make.words(file.text, one.value_start, one.value_end)]
    for command in file.commands if not file.make else ():
        if not command.settled:
            yield [Word(word.text, word.start, word.end) for word in command.words]


def _edit(file: TextFile, word: Word, library: str) -> Edit:
    start = word.start
    while not library and file.text[start - 1] in " \t":
        start -= 1
    return Edit(start, word.end, f"-l{library}".encode() if library else b"")
