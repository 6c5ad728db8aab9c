"""The README's transcripts are what the program prints today."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
BLOCKS = re.findall(r"```console\n(.*?)```", (TOP / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_transcript(block: str, rocmend: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, _, expected = block.partition("\n")
    words = shlex.split(command.removeprefix("$ "))
    assert words[0] == "rocmend"
    monkeypatch.chdir(tmp_path)
    assert rocmend(*words[1:]).out == expected


def test_there_is_a_transcript_and_the_two_commands() -> None:
    text = (TOP / "README.md").read_text()
    assert BLOCKS
    assert "make run" in text
    assert "make test" in text
