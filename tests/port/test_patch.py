"""Patches: git itself applies them, forwards and backwards, byte for byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.port.apply import diff
from rocmend.port.patch import only, patch
from rocmend.port.records import Change


def applied(root: Path, changes: list[Change], *arguments: str) -> dict[str, bytes]:
    """Write what was before, let git apply the patch, and return what is there."""
    root.mkdir(exist_ok=True)
    for change in changes:
        if change.before is not None:
            (root / change.path).parent.mkdir(parents=True, exist_ok=True)
            (root / change.path).write_bytes(change.before)
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *arguments, "-"],
        cwd=root,
        input=diff(changes).encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
        env={"GIT_CEILING_DIRECTORIES": str(root.parent), "PATH": "/usr/bin:/bin", "HOME": "/nowhere"},
    )
    assert done.returncode == 0, done.stderr.decode()
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def after(changes: list[Change]) -> dict[str, bytes]:
    return {change.path: change.after for change in changes if change.after is not None}


@pytest.mark.parametrize(
    ("before", "ported"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"a\nb\nc", b"a\nb\nc\n"),
        (b"a\nb\nc\n", b"a\nb\nc"),
        (b"a\r\nb\r\n", b"a\r\nB\r\n"),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfA\n"),
        (b"caf\xe9\n", b"caf\xe9\nmore\n"),
        (b"a\rb\x0cc\n", b"a\rb\x0cd\n"),
        (b"", b"a\n"),
        (b"a\n", b""),
        (b"x\n" * 50 + b"y\n" + b"x\n" * 50, b"x\n" * 50 + b"z\n" + b"x\n" * 50),
        (None, b"new\n"),
        (None, b"new without an end"),
        (b"gone\n", None),
    ],
)
def test_git_applies_it(tmp_path: Path, before: bytes | None, ported: bytes | None) -> None:
    changes = [Change("deep/a.cu", before, ported)]
    assert applied(tmp_path / "project", changes) == after(changes)


@pytest.mark.parametrize("name", ["a b.cu", "caf\u00e9.cu", 'q"uote.cu', "back\\slash.cu", "tab\t.cu", "line\nend.cu"])
def test_names_are_quoted_as_git_does(tmp_path: Path, name: str) -> None:
    changes = [Change(name, b"a\n", b"b\n"), Change("new " + name, None, b"n\n")]
    assert applied(tmp_path / "project", changes) == after(changes)


def test_a_part_of_a_patch() -> None:
    made = [Change(name, b"diff --git a/x b/x\n", b"new\n") for name in ("a b", 'q"', "ü", "x")]
    assert only(patch(made), ['q"', "ü"]) == patch([made[1], made[2]])
    assert only(patch(made), []) == b""


def test_nothing_changed_is_no_patch() -> None:
    assert patch([Change("a", b"a\n", b"a\n")]) == b""


def test_only_what_differs_is_in_it() -> None:
    lines = [b"line %d\n" % at for at in range(1000)]
    ported = [*lines[:500], b"#ifdef USE_ROCM\n", b"new\n", b"#else\n", lines[500], b"#endif\n", *lines[501:]]
    text = patch([Change("a.cu", b"".join(lines), b"".join(ported))])
    assert text.count(b"\n+") == 4 + 1  # with the line that names the file
    assert text.count(b"\n-") == 0 + 1
    assert len(text.splitlines()) < 20


def test_many_equal_lines_take_no_time_that_grows_with_their_square() -> None:
    before = b"}\n" * 20_000
    text = patch([Change("a.cu", before, b"{\n" + before.replace(b"}\n}\n", b"}\nx\n"))])
    assert text.startswith(b"diff --git a/a.cu b/a.cu\n")


_LINE = st.sampled_from(
    [b"a\n", b"b\n", b"}\n", b"\n", b"\xff\r\n", b"\r\n", b"-- x\n", b"+++ b/a\n", b"\\ No newline\n"]
)
_FILE = st.builds(
    lambda lines, tail: b"".join(lines) + tail, st.lists(_LINE, max_size=14), st.sampled_from([b"", b"end", b"\r"])
)


@settings(max_examples=120, deadline=None)
@given(pairs=st.lists(st.tuples(_FILE, _FILE), min_size=1, max_size=2))
def test_git_applies_any_patch_both_ways(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[bytes, bytes]]
) -> None:
    root = tmp_path_factory.mktemp("patch")
    changes = [Change(f"f{at}", before, ported) for at, (before, ported) in enumerate(pairs) if before != ported]
    if changes:
        assert applied(root / "forth", changes) == after(changes)
        back = [Change(change.path, change.after, change.before) for change in changes]
        assert applied(root / "back", back) == after(back)
