"""The storage class `register`.

What it does:
  Leaves `register` out.

Why it matters:
  C++17 removed it. nvcc accepts it; clang, HIP's compiler, reports an error.

Use instead:
  Nothing: compilers allocate registers themselves.

Fix safety:
  Safe: it means nothing since C++11. A variable that names its register (`asm("r0")`) is left alone, and C sources
  are.

References:
  ISO C++ P0001R1.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "CU50",
    "Storage class register",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"register ",),
    sources=("https://www.open-std.org/jtc1/sc22/wg21/docs/papers/2015/p0001r1.html", "measured: clang 21"),
    valid=("// register int x\nint registered;\n", 'register int a asm("r0");\n'),
    invalid=(
        Case(
            "  register int x = 0;\n",
            "#ifdef USE_ROCM\n  int x = 0;\n#else\n  register int x = 0;\n#endif\n",
        ),
    ),
)
def register(file: CudaFile) -> Iterator[Found]:
    """Yield the words."""
    if file.path.endswith(".c"):
        return
    for index in file.names(b"register"):
        token = file.tokens[index]
        if index + 1 >= len(file.tokens) or file.tokens[index + 1].kind != Kind.NAME or _named(file, index):
            continue
        after = file.tokens[index + 1]
        if after.directive != token.directive or file.data[token.end : after.start].strip(b" \t"):
            continue
        yield Found(
            token.start, token.end, "C++17 removed the register keyword", (Edit(token.start, after.start, b""),)
        )


def _named(file: CudaFile, index: int) -> bool:
    """Return whether the declaration names a register."""
    for token in file.tokens[index : index + 40]:
        if token.text in (b";", b"{"):
            return False
        if token.text in (b"asm", b"__asm__", b"__asm"):
            return True
    return False
