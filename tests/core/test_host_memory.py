"""What memory the machine has, where /proc says it and where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.core import host_memory


def test_agrees_with_the_kernel() -> None:
    named = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    assert host_memory.total_bytes() == int(named["MemTotal"].split()[0]) << 10
    assert 0 < host_memory.available_bytes() <= host_memory.total_bytes()


@pytest.mark.parametrize("text", [None, "", "MemAvailable: much kB\n"])
def test_without_an_estimate_the_free_memory_is_told(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "meminfo"
    if text is not None:
        there.write_text(text)
    monkeypatch.setattr(host_memory, "_MEMINFO", there)
    assert 0 < host_memory.available_bytes() <= host_memory.total_bytes()


def test_reads_the_estimate_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 2048 kB\nMemAvailable: 600 kB\n")
    monkeypatch.setattr(host_memory, "_MEMINFO", tmp_path / "meminfo")
    assert host_memory.available_bytes() == 600 << 10
