"""The signatures that the runner reads as data are those of the entries, also where they were kept before a change."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocmend.core import signatures
from rocmend.core.signatures import Known, builtin
from rocmend.kb.load import load_entries

ENTRY = """+++
id = "{name}"

[[signature]]
pattern = "{pattern}"
lines = [{{ text = "x", source = "y" }}]
+++
"""


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in place of the shipped one, and an empty byte-code folder."""
    folder = tmp_path / "entries" / "kernel"
    folder.mkdir(parents=True)
    monkeypatch.setattr(signatures, "ENTRIES", folder.parent)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "pycache"))
    builtin.cache_clear()
    yield folder
    builtin.cache_clear()


def anew() -> list[tuple[str, str]]:
    """Return them as the next process reads them."""
    builtin.cache_clear()
    return [(one.entry_id, one.signature.pattern) for one in builtin()]


def test_they_are_those_of_the_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCMEND_KB", raising=False)
    loaded = {Known(entry.id, one) for entry in load_entries().entries.values() for one in entry.signature}
    assert len(loaded) > 50
    assert set(builtin()) == loaded
    assert len(builtin()) == len(loaded)


def test_what_was_kept_before_a_change_is_not_used(entries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = entries / "one.md"
    path.write_text(ENTRY.format(name="one", pattern="aa"))
    assert anew() == [("one", "aa")]
    with monkeypatch.context() as patch:
        patch.setattr(signatures, "_in_file", lambda path: pytest.fail(f"parsed {path}"))
        assert anew() == [("one", "aa")]
    before = path.stat().st_mtime_ns
    path.write_text(ENTRY.format(name="one", pattern="bb"))
    os.utime(path, ns=(before + 1, before + 1))
    assert anew() == [("one", "bb")]
    (entries / "two.md").write_text(ENTRY.format(name="two", pattern="cc"))
    assert anew() == [("one", "bb"), ("two", "cc")]
    path.unlink()
    assert anew() == [("two", "cc")]
