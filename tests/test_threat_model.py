"""The threat model names the test that holds each of its lines."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.endswith("never happen | test |")]
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", PAGE)))


def _defined(path: Path) -> set[str]:
    """Return the tests of a file: ``test_a``, ``TestB::test_c``."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {node.name, *(f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef))}
    return names


def test_each_line_has_a_test() -> None:
    assert len(ROWS) > 40
    assert [row for row in ROWS if "::test_" not in row] == []


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_the_test_is_there(path: str, name: str) -> None:
    assert name in _defined(ROOT / path)
