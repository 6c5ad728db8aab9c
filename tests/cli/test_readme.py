"""The README's transcripts are what the program prints today."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
BLOCKS = re.findall(r"```console\n(.*?)```", (TOP / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_transcript(block: str, tmp_path: Path) -> None:
    command, _, expected = block.partition("\n")
    assert command.startswith("$ rocmend ")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.removeprefix("$ ")],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == expected, done.stderr


def test_there_is_a_transcript_and_the_two_commands() -> None:
    text = (TOP / "README.md").read_text()
    assert BLOCKS
    assert "make run" in text
    assert "make test" in text
