"""Device code that a Makefile links across objects.

## What it does

Finds Makefiles that compile relocatable device code (`-dc`, `-rdc=true`), and their recipes that link.

## Why it matters

nvcc links device code whenever it links objects. hipcc does so only if it is told: without `-fgpu-rdc --hip-link` the
kernels of objects that were compiled with `-fgpu-rdc` are undefined symbols.

## Use instead

`-fgpu-rdc --hip-link` where the program is linked.

## Fix safety

Safe: without `USE_ROCM` the file is unchanged. Where no recipe of the file links with the compiler, or one does more
than that, it is for a person.

## References

- <https://rocm.docs.amd.com/projects/llvm-project/en/latest/LLVM/clang/html/HIPSupport.html>
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.build import make
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.lines_of_flags import of_nvcc
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_RELOCATABLE = {"dc", "device-c", "rdc=true", "relocatable-device-code=true"}
_ROCM = "-fgpu-rdc --hip-link"


@rule(
    "BL17",
    "Relocatable device code in a Makefile",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"-dc", b"-device-c", b"rdc=true", b"device-code=true"),
    paths=paths(Kind.MAKE),
    sources=("https://rocm.docs.amd.com/projects/llvm-project/en/latest/LLVM/clang/html/HIPSupport.html",),
    valid=(
        "CC = nvcc\nmain: a.o\n\t$(CC) a.o -o $@\na.o: a.cu\n\t$(CC) -c $< -o $@\n",
        "CC = hipcc\nmain: a.o\n\t$(CC) -fgpu-rdc --hip-link a.o -o $@\na.o: a.cu\n\t$(CC) -fgpu-rdc -c $< -o $@\n",
    ),
    invalid=(
        Case(
            "NVCC := nvcc\nmain: a.o b.o\n\t$(NVCC) $^ -o $@\n%.o: %.cu\n\t$(NVCC) -dc $< -o $@\n",
            "NVCC := nvcc\nmain: a.o b.o\nifdef USE_ROCM\n\t$(NVCC) $^ -o $@ -fgpu-rdc --hip-link\nelse\n"
            "\t$(NVCC) $^ -o $@\nendif\n%.o: %.cu\n\t$(NVCC) -dc $< -o $@\n",
            "Makefile",
        ),
        Case("FLAGS = -rdc=true\nmain: a.o b.o\n\tg++ $^ -o $@ -lcudart\n", None, "Makefile"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield the recipes that link, or the first option where none does."""
    compilers = {f"$({one.name})" for one in file.make if one.what is make.What.ASSIGNMENT and _holds_nvcc(file, one)}
    compilers |= {f"${{{name[2:-1]}}}" for name in compilers}
    option: make.Word | None = None
    links: list[make.Statement] = []
    for one in file.make:
        if one.settled or one.what not in {make.What.ASSIGNMENT, make.What.RECIPE}:
            continue
        words = make.words(file.text, one.value_start, one.value_end)
        relocatable = [word for word in words if word.text.startswith("-") and word.text.lstrip("-") in _RELOCATABLE]
        option = option or next(iter(relocatable), None)
        if one.what is make.What.RECIPE and words and (words[0].text in compilers or of_nvcc(words[0].text)):
            texts = {word.text for word in words}
            if "-o" in texts and not texts & {"-c", "-dc", "--device-c", "-dlink", "--device-link", "-E", "-ptx", "-M"}:
                links.append(one)
    if option is None:
        return
    message = "Device code is linked across objects, which hipcc does only if it is told."
    remedy = f"Link with {_ROCM} if USE_ROCM is set."
    for one in links:
        whole = not any(sign in file.text[one.value_start : one.value_end] for sign in (";", "&&", "||", "|", ">"))
        edits = (Edit(one.value_end, one.value_end, f" {_ROCM}".encode()),) if whole else ()
        yield rewrite(file, (one.value_start, one.value_end), message, edits, remedy=remedy)
    if not links:
        yield rewrite(file, (option.start, option.end), message, (), remedy=remedy)


def _holds_nvcc(file: TextFile, one: make.Statement) -> bool:
    words: Iterator[make.Word] = iter(make.words(file.text, one.value_start, one.value_end))
    return any(of_nvcc(word.text) for word in words)
