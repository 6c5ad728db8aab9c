"""What the documentation shows of the program's output is what the program prints."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("console", Path(__file__).parents[2] / "docs" / "console.py")
assert _SPEC is not None
assert _SPEC.loader is not None
console = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(console)

SHOWN = [
    pytest.param(match[2], match[3], id=f"{page.stem}: {match[2][:40]}")
    for page in console.pages()
    for match in console.BLOCK.finditer(page.read_text(encoding="utf-8"))
]


def test_pages_show_output() -> None:
    assert len(SHOWN) >= 3, "the README and the tutorial show what the program prints"


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_a_page_shows_what_the_program_prints(command: str, shown: str) -> None:
    assert console.output(command) == shown, "run: python docs/console.py --write"
