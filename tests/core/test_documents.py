from __future__ import annotations

import os
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.documents import Limits, check_toml, decode_json, parse_toml, read_document, read_json
from rocmend.core.errors import DataError

SMALL = Limits(size_bytes=10_000, depth=8, keys=100, digits=20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a." * 50_000 + "a = 1", "line 1 nests deeper"),
        ("\n[" + "a." * 50_000 + "a]", "line 2 nests deeper"),
        ("\n\na = " + "[" * 100_000, "line 3 nests deeper"),
        ("a = " + "{a = " * 60_000, "nests deeper"),
        ("[" + "a." * 20 + "a]\n" + "b." * 20 + "b = 1", "line 2 nests deeper"),
        ("a = [{" + "b." * 20 + "b = {" + "c." * 20 + "c = 1}}]", "nests deeper"),
        ("a = " + "1" * 100_000, "more than 64 digits"),
        ("a = 0x" + "f" * 100_000, "more than 64 digits"),
        ("a = [0.5, 1." + "1" * 100_000 + "]", "more than 64 digits"),
        ("\n".join(f"{number:x}=1" for number in range(60_000)), "more than 50,000 keys"),
        ("a = 1999-13-01", "not TOML"),
        ("a = ", "not TOML"),
        ("#" * (1 << 20), "is larger than"),
        (b"a = '\xff'", "not UTF-8"),
    ],
)
def test_a_hostile_document_is_refused_with_a_sentence(text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_toml(text if isinstance(text, bytes) else text.encode(), "pyproject.toml")


@pytest.mark.parametrize(
    "text",
    [
        'a = "' + "x.y[{" * 1000 + '"',
        "a = '''\n" + "[[[[." * 1000 + "\n'' ''''' # [[[[",
        'a = """' + '\\"""\'[[[[\\\\' * 100 + '"""""',
        "# " + "[[[[a.a.a.a" * 1000 + "\r\na = 1\r\n",
        "a = [" + "[1, 2.5], " * 2000 + "]",
        "[[" + "a.b" + "]]\n[a.b.c]\nd = 1\n" * 1,
        "\n".join(f"[[a]]\nb.c = {number}" for number in range(5000)),
        '"a.b.c.d' + ".e" * 100 + '" = 1',
    ],
)
def test_what_only_looks_nested_is_read(text: str) -> None:
    assert parse_toml(text, "x") == tomllib.loads(text)


def projects() -> list[Path]:
    roots = [Path(sysconfig.get_paths()["purelib"]), Path(__file__).parents[2]]
    found = [path for root in roots for path in root.glob("*/pyproject.toml")]
    found += [
        path
        for root in ("examples", "src/rocmend/examples")
        for path in Path(__file__).parents[2].glob(f"{root}/**/*.toml")
    ]
    return [*found, Path(__file__).parents[2] / "pyproject.toml"]


def test_real_documents_are_read() -> None:
    for path in projects():
        assert parse_toml(path.read_bytes(), str(path)) == tomllib.loads(path.read_text(encoding="utf-8"))


KEYS = st.lists(st.sampled_from(["a", "b-1", '"c.d"', "'[e'", "12"]), min_size=1, max_size=4).map(".".join)
SCALARS = st.sampled_from(
    ["1", "-2.5e3", "true", "1979-05-27T07:32:00Z", '"x[.{"', "'''a\n]'''", '"""\n}\\""""', "inf"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ",\n # ]\n ".join(items) + "]"),
        st.lists(st.tuples(KEYS, inner), max_size=2).map(
            lambda items: "{" + ", ".join(f"{key} = {value}" for key, value in items) + "}"
        ),
    ),
    max_leaves=12,
)
LINES = st.one_of(
    st.tuples(KEYS, VALUES).map(" = ".join),
    KEYS.map(lambda key: f"[{key}]"),
    KEYS.map(lambda key: f"[[ {key} ]] # ["),
    st.text(alphabet="a.=[]{}\"'\\#,1 \r", max_size=12),
)
DOCUMENTS = st.lists(LINES, max_size=8).map("\n".join)


def depth_of(value: Any) -> int:
    """Return how deep tables and lists nest; a list of tables counts as the parser's own tables do."""
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return max((depth_of(item) for item in value), default=0)
    return 0


def keys_of(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(keys_of, value.values()))
    return sum(map(keys_of, value)) if isinstance(value, list) else 0


@given(DOCUMENTS)
def test_what_passes_is_within_the_limits_and_what_is_within_them_passes(text: str) -> None:
    limits = Limits(depth=6, keys=12)
    try:
        document = tomllib.loads(text)
    except ValueError:
        document = None
    try:
        check_toml(text, "x", limits=limits)
    except DataError:
        check_toml(text, "x", limits=Limits(depth=200, keys=1000))  # nothing but a limit is ever the reason
        return
    if document is not None:
        assert depth_of(document) <= limits.depth + 1
        assert keys_of(document) <= limits.keys


@given(DOCUMENTS)
def test_a_document_within_the_limits_is_read_as_it_is(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except ValueError:
        with pytest.raises(DataError):
            parse_toml(text, "x", limits=Limits(depth=200))
        return
    assert repr(parse_toml(text, "x", limits=Limits(depth=200))) == repr(document)


@pytest.mark.parametrize("kind", ["fifo", "directory", "link", "device", "large", "nul"])
def test_what_is_no_regular_file_of_its_size_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "document"
    expected = {"fifo": "a FIFO", "directory": "a directory", "link": "a symbolic link", "device": "a device"}
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "large":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        path = tmp_path / "a\0b"
    with pytest.raises(DataError, match=expected.get(kind, "larger than|cannot be read")):
        read_document(path, max_bytes=1000, follow=False)


def test_a_file_that_says_nothing_of_its_size_is_bounded() -> None:
    with pytest.raises(DataError, match="larger than"):
        read_document(Path("/proc/self/status"), max_bytes=10)


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"a":' * 100_000, b"1" * 100_000, b'"\xff"', b"", b"{", b'"\\ud800"', b"3"]
)
def test_json_that_is_none_is_refused_with_a_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "document.json"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"is no baseline: .{1,400}"):
        read_json(path, dict[str, Any], max_bytes=1 << 20, what="baseline")
    if data != b"3":
        with pytest.raises(DataError):
            decode_json(data, list[Any], subject="x")
