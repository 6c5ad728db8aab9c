"""AMD's catalogue is answered entry by entry: each entry that is named exists, has something to do and a source."""

from __future__ import annotations

import re
from pathlib import Path

from rocmend.kb.load import load_entries

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rocm-cli.md"


def test_each_of_the_fifteen_checks_is_known_here() -> None:
    known = load_entries().current().entries
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| fix-")]
    assert [int(row[1].split("-")[1]) for row in rows] == list(range(1, 16))
    for row in rows:
        ids = re.findall(r"`([a-z0-9-]+)`", row[5])
        assert ids, row
        for entry_id in ids:
            assert known[entry_id].remedy, entry_id
            assert all(source.url.startswith("https://") for source in known[entry_id].source), entry_id
        named = [known[entry_id] for entry_id in ids]
        assert any(entry.when.strip() for entry in named) == (row[6].strip() != "no"), row
