from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocmend.codeobject.hip import Diagnostic, Level
from rocmend.codeobject.hip.diagnostics import missing_headers, read_diagnostics

PRINTED = """\
In file included from a.cu:1:
/p/a b.cuh:12:7: warning: unused variable 'x' [-Wunused-variable]
a.cu:3:40: error: invalid instruction
<inline asm>:1:2: note: instantiated into assembly here
a.cu:3:40: error: invalid instruction
ld.lld: error: undefined hidden symbol: f(int)
>>> referenced by a.o
LLVM ERROR: Cannot select: t5
error: <unknown>:0:0: in function k void (): unsupported call
a.cu:9:10: fatal error: 'hipcub/hipcub.hpp' file not found
2 errors generated when compiling for gfx942.
"""


def test_what_clang_and_lld_print() -> None:
    assert read_diagnostics(PRINTED, {"a.cu": "<source>"}) == (
        Diagnostic(Level.WARNING, "unused variable 'x'", "/p/a b.cuh", 12, 7, "-Wunused-variable"),
        Diagnostic(Level.ERROR, "invalid instruction", "<source>", 3, 40),
        Diagnostic(Level.NOTE, "instantiated into assembly here", "<inline asm>", 1, 2),
        Diagnostic(Level.ERROR, "undefined hidden symbol: f(int)"),
        Diagnostic(Level.ERROR, "LLVM ERROR: Cannot select: t5"),
        Diagnostic(Level.ERROR, "<unknown>:0:0: in function k void (): unsupported call"),
        Diagnostic(Level.ERROR, "'hipcub/hipcub.hpp' file not found", "<source>", 9, 10),
    )
    assert missing_headers(read_diagnostics(PRINTED)) == ("hipcub/hipcub.hpp",)


def test_one_is_printed_as_a_compiler_would() -> None:
    assert str(Diagnostic(Level.ERROR, "no", "a.cu", 3, 4)) == "a.cu:3:4: error: no"
    assert str(Diagnostic(Level.WARNING, "argument unused")) == "warning: argument unused"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert all(one.message == one.message.strip("\n") for one in read_diagnostics(text))
