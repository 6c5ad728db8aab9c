"""Without USE_ROCM, a ported source is the original, byte for byte."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rocmend.core.errors import UnitError
from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.identity import broken, restored
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.write import ported
from rocmend.port.records import Edit, Issue, Outcome

LEAVES = st.sampled_from(
    [
        "int a = 1;",
        "  f(a, b);",
        "/* one\ntwo */ x(a);",
        "// c",
        "#define F(x) \\\n  g(x); \\\n  f(x)",
        'const char *s = "#if";',
        'auto r = R"(a\n#endif\n)";',
        "CHECK(a,\n      k(b));",
        "",
        "#include <x.h>",
        "k<<<1, 2>>>(y);",
        "int a \\\n  , b;",
        "f() {",
        "}",
    ]
)
CONDITIONS = st.sampled_from(["#if A > 1", "#ifdef __CUDACC__", "# ifndef B // why"])
BLOCKS = st.recursive(
    st.lists(LEAVES, min_size=1, max_size=6).map("\n".join),
    lambda inner: st.one_of(
        st.builds("{}\n{}\n#endif".format, CONDITIONS, inner),
        st.builds("{}\n{}\n#elif C\n{}\n#else\n{}\n#endif // end".format, CONDITIONS, inner, inner, inner),
        st.builds("{}\n{}".format, inner, inner),
    ),
    max_leaves=6,
)


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    body = draw(BLOCKS) + draw(st.sampled_from(["", "\n"]))
    body = body.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + body.encode()


def issue(data: bytes, *edits: Edit, outcome: Outcome = Outcome.AUTO, rule: str = "CU99") -> Issue:
    start = min((edit.start for edit in edits), default=0)
    line = data.count(b"\n", 0, start) + 1
    return Issue(rule, "a.cu", line, 1, line, start, start + 1, Severity.ERROR, outcome, "words", "do it", edits=edits)


def well_formed(data: bytes) -> bool:
    """Whether comments, strings and conditionals end."""
    file = CudaFile("", data)
    ended = all(data[one.start : one.end][-2:] == b"*/" for one in file.comments if data[one.start + 1] == 0x2A)
    return ended and not file.unbalanced and all(one.kind != Kind.OTHER for one in file.tokens)


@given(sources(), st.data())
def test_random_edits_leave_the_original(data: bytes, draw: st.DataObject) -> None:
    file = CudaFile("", data)
    defines = [one for one in file.directives if one.name == b"define"]
    tokens = [one for one in file.tokens if one.directive < 0]
    tokens += [one for define in defines for one in file.tokens[define.first + 2 : define.last]]
    assume(tokens)
    chosen = draw.draw(st.sets(st.sampled_from(tokens), min_size=1, max_size=6))
    texts = st.sampled_from([b" ", b" x ", b" one two "])
    edits = [Edit(one.start, one.end, draw.draw(texts)) for one in chosen]
    first = min(chosen, key=lambda one: one.start)
    told = issue(data, Edit(first.start, first.start, b""), outcome=Outcome.MANUAL, rule="CU98")
    after = ported(data, [*(issue(data, edit) for edit in edits), told])
    assert restored(after) == data
    assert b"ROCM CU98" in after
    assert well_formed(after)


@given(sources())
def test_comment_for_a_person_is_written_once(data: bytes) -> None:
    names = [one for one in CudaFile("", data).tokens if one.text in (b"f", b"a", b"k", b"g")]
    assume(names)
    once = ported(data, [issue(data, Edit(names[0].start, names[0].start, b""), outcome=Outcome.MANUAL)])
    assert once.count(b"// ROCM CU99: words") == 1
    moved = next(one for one in CudaFile("", once).tokens if one.text == names[0].text)
    again = issue(once, Edit(moved.start, moved.start, b""), outcome=Outcome.MANUAL)
    assert ported(once, [again]) == once


@pytest.mark.parametrize("tail", [b"/* never ends", b"#if A\nx\n"])
def test_what_never_ends_is_refused(tail: bytes) -> None:
    data = b"int a;\n" + tail
    with pytest.raises(UnitError, match=r"unterminated|never ends|no condition can be added"):
        ported(data, [issue(data, Edit(8, 9, b"z"))])


FOLDED = [
    (b"#ifdef USE_ROCM\na\n#else\nb\n#endif\n", b"b\n"),
    (b"#ifndef USE_ROCM\na\n#else\nb\n#endif\n", b"a\n"),
    (b"#if defined(USE_ROCM) && X\na\n#elif Y\nb\n#endif\n", b"#if   Y\nb\n#endif\n"),
    (b"#if X\na\n#elif defined(USE_ROCM)\nb\n#else\nc\n#endif\n", b"#if X\na\n#else\nc\n#endif\n"),
    (b"#if X\na\n#elif !defined(USE_ROCM)\nb\n#else\nc\n#endif\n", b"#if X\na\n#else\nb\n#endif\n"),
    (b"#if USE_ROCM || X\na\n#endif\n", b"#if USE_ROCM || X\na\n#endif\n"),
    (b"#ifdef A\n#ifdef USE_ROCM\na\n#endif\nb\n#endif\n", b"#ifdef A\nb\n#endif\n"),
    (b"#ifdef USE_ROCM\n#if Z\na\n#else\nb\n#endif\n#endif\nc\n", b"c\n"),
    (b"#if 0\na\n#endif\n#ifdef USE_ROCM\n#endif\n", b"#if 0\na\n#endif\n"),
    (b"/* #ifdef USE_ROCM */\nx\n", b"/* #ifdef USE_ROCM */\nx\n"),
    (b"#  ifdef USE_ROCM // why\r\na\r\n#  endif\r\nb\r\n", b"b\r\n"),
]


@pytest.mark.parametrize(("source", "expected"), FOLDED)
def test_folding(source: bytes, expected: bytes) -> None:
    assert restored(source) == expected


@pytest.mark.parametrize(("source", "expected"), FOLDED)
def test_unifdef_agrees(source: bytes, expected: bytes) -> None:
    if shutil.which("unifdef") is None:
        pytest.skip("unifdef is not installed")
    run = subprocess.run(["unifdef", "-UUSE_ROCM"], input=source, capture_output=True, check=False)
    assert run.stdout == expected


def test_no_line_end_at_the_end_of_the_file() -> None:
    data = b"int a;\nint b;"
    after = ported(data, [issue(data, Edit(11, 12, b"c"))])
    assert after == b"int a;\n#ifdef USE_ROCM\nint c;\n#else\nint b;\n#endif"
    assert restored(after) == data


def test_lines_after_a_last_line_that_does_not_end() -> None:
    data = b"#ifdef A\n#endif"
    after = ported(data, [issue(data, Edit(15, 15, b"int x;\n"))])
    assert b"#endif\nint x;\n#else" in after
    assert restored(after) == data


def test_a_file_that_was_ported_before_keeps_its_side() -> None:
    data = b"#ifdef USE_ROCM\nint a;\n#else\nint b;\n#endif\nint c;\n"
    after = ported(data, [issue(data, Edit(data.index(b"c;"), data.index(b"c;") + 1, b"d"))])
    assert broken(data, after) is None
    assert restored(after) == b"int b;\nint c;\n"
