"""What the ``kb`` commands print: whole identifiers, whole addresses, no unfilled placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

Run = Callable[..., Any]

CWSR = "gfx1151-cwsr-save-area-too-small"


def test_an_entry_reads_as_prose_and_with_a_machine_has_its_values(rocmend: Run) -> None:
    out = rocmend("kb", "show", CWSR).out
    assert "is\ntoo small for the GPU\n" in out.split("\n\n", maxsplit=1)[0] + "\n"
    assert "19185664 bytes" in out
    for command in (("kb", "show", CWSR), ("doctor", "--explain", CWSR)):
        here = rocmend(*command, "--machine", "strix-halo").out
        assert "has 13,942,784 bytes, this GPU needs 19,185,664 bytes" in " ".join(here.split("\n\n")[0].split())
        assert "on strix-halo" in here
        assert "cwsr_enable=0 to" not in here  # not under its MES firmware 0x83
        assert "does not apply" in rocmend(*command, "--machine", "rx-7900-xtx").out


def test_each_hit_says_what_to_do_in_a_line(rocmend: Run) -> None:
    out = rocmend("kb", "search", "ollama", "integrated", "GPU", "--limit", "8").out
    first = out.split("\n\n")[1].splitlines()
    assert first[-1].strip() == "id: tools-ollama-drops-integrated-gpu"
    assert first[-2].strip().startswith("Set OLLAMA_IGPU_ENABLE=1 for the server")
    assert all(len(line) <= 80 for line in out.splitlines())
    (hit, *_) = msgspec.json.decode(rocmend("kb", "search", "ollama", "--json").out)["data"]
    assert hit["advice"].endswith(".")


def test_sources_have_whole_addresses(rocmend: Run) -> None:
    known = msgspec.json.decode(rocmend("kb", "sources", "--json").out)["data"]
    lines = {line.strip() for line in rocmend("kb", "sources").out.splitlines()}
    addresses = {item["source"]["url"] for item in known if item["source"].get("url")}
    assert len(addresses) > 100
    assert addresses <= lines


def test_notes_of_a_matrix_name_whole_entries(rocmend: Run) -> None:
    out = rocmend("kb", "matrix", "pytorch-source", "--target", "gfx1151").out
    named = re.findall(r"\((install-[a-z0-9-]+)\)", out)
    assert "install-pytorch-sources-february-2026" in named
    assert all(rocmend("kb", "show", entry).code == 0 for entry in set(named))


def test_lint_says_why_an_entry_cannot_be_read(rocmend: Run, tmp_path: Path) -> None:
    (tmp_path / "firmware").mkdir()
    (tmp_path / "firmware" / "my-entry.md").write_text("no front matter\n")
    done = rocmend("kb", "lint", "my-entry", "--entries", tmp_path)
    assert done.code == 1
    assert "my-entry.md:1: KB001 the first line is not +++" in done.out
    assert rocmend("kb", "lint", "no-such-entry", "--entries", tmp_path).code == 2
