from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.kb import compiled, load
from rocmend.kb.load import Knowledge, load_entries

Write = Callable[..., Path]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty byte-code folder of our own."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "pycache"))
    monkeypatch.delenv("ROCMEND_KB", raising=False)
    return tmp_path / "pycache"


@pytest.fixture
def shipped(write_entry: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Entries in a folder that stands in for the one that comes with rocmend."""
    (tmp_path / "kernel").mkdir()
    (tmp_path / "entries").mkdir()
    (tmp_path / "kernel").rename(tmp_path / "entries" / "kernel")
    (tmp_path / "kernel").symlink_to(tmp_path / "entries" / "kernel")
    monkeypatch.setattr(load, "ENTRIES", tmp_path / "entries")
    return write_entry


def kept(cache: Path) -> list[Path]:
    return list(cache.rglob("compiled*.kept"))


def unparsed(monkeypatch: pytest.MonkeyPatch) -> Knowledge:
    """Load with a parser that fails."""
    with monkeypatch.context() as patch:
        patch.setattr(load, "_parse_all", lambda paths, problems: pytest.fail(f"parsed {paths} {problems}"))
        return load_entries()


def test_the_second_load_is_the_first_without_parsing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_entries()
    assert len(kept(cache)) == 1
    second = unparsed(monkeypatch)
    assert second.entries == first.entries
    assert second.paths == first.paths
    assert list(second.entries) == list(first.entries)


def test_a_change_is_seen(cache: Path, shipped: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shipped("one")
    load_entries()
    assert unparsed(monkeypatch).get("one").title == "A title"
    before = path.stat().st_mtime_ns
    path.write_text(path.read_text(encoding="utf-8").replace("A title", "B title"), encoding="utf-8")
    os.utime(path, ns=(before + 1, before + 1))
    assert load_entries().get("one").title == "B title"
    shipped("two")
    assert list(load_entries().entries) == ["one", "two"]
    path.unlink()
    assert list(load_entries().entries) == ["two"]
    assert len(kept(cache)) == 1


def test_entries_with_problems_are_parsed_each_time(cache: Path, shipped: Write) -> None:
    shipped("good")
    shipped("bad", "no entry")
    for _ in range(2):
        knowledge = load_entries()
        assert list(knowledge.entries) == ["good"]
        assert len(knowledge.problems) == 1
    assert kept(cache) == []


def test_a_dangling_link_is_listed(cache: Path, shipped: Write, tmp_path: Path) -> None:
    shipped("good")
    (tmp_path / "kernel" / "gone.md").symlink_to(tmp_path / "nowhere")
    knowledge = load_entries()
    assert list(knowledge.entries) == ["good"]
    assert "No such file" in knowledge.problems[0].reason
    assert kept(cache) == []


@pytest.mark.parametrize("junk", [b"", b"\xc1", b"\x92\x90\x80", b"\x92" * 100_000])
def test_a_broken_file_is_done_without(junk: bytes, cache: Path, shipped: Write) -> None:
    shipped("one")
    load_entries()
    (place,) = kept(cache)
    place.write_bytes(junk)
    assert list(load_entries().entries) == ["one"]
    assert place.read_bytes() != junk


def test_nothing_is_written_where_byte_code_is_not(
    cache: Path, shipped: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped("one")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert list(load_entries().entries) == ["one"]
    assert not cache.exists()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "file" / "below"))
    assert list(load_entries().entries) == ["one"]


def test_a_value_that_cannot_be_kept_is_no_error(cache: Path, shipped: Write) -> None:
    text = shipped("one").read_text(encoding="utf-8")
    case = f'[[case]]\napplies = true\nfacts = {{ "x.y" = {1 << 70} }}\n+++\n\nBecause.'
    shipped("one", text.replace("+++\n\nBecause.", case))
    knowledge = load_entries()
    assert knowledge.get("one").case[0].facts == {"x.y": 1 << 70}
    assert kept(cache) == []


def test_what_is_kept_is_read_in_less_than_half_the_time(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 entries are parsed in about 60 ms and read in 10 ms; a busy machine takes twice as long for both."""
    parsed: list[float] = []
    decoded: list[float] = []
    for _ in range(3):
        for spent, read in ((parsed, lambda _stamps: None), (decoded, compiled.read_compiled)):
            monkeypatch.setattr(load, "read_compiled", read)
            before = time.process_time()
            count = len(load_entries().entries)
            spent.append((time.process_time() - before) / count)
    assert len(kept(cache)) == 1
    assert min(decoded) < min(parsed) / 2
