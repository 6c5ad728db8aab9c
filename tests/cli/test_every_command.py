"""Every command and group as a newcomer may type it, in an installation without torch and without any extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "every_command.py"


def _problems(done: dict[str, Any]) -> list[str]:
    words, code, out, err = done["words"], done["code"], done["out"], done["err"]
    found = []
    if "Traceback (most recent call last)" in out + err or "an error that should not happen" in out + err:
        found.append("a traceback")
    if code not in {0, 1, 2}:
        found.append(f"exit code {code}")
    if words == [] and (code, err) != (0, ""):
        found.append("the front page is no success")
    if "--help" in words and (code != 0 or not out.startswith("Usage:")):
        found.append("no help")
    if ("--no-such-option" in words or words == ["nonsense"]) and code != 2:
        found.append(f"a wrong command line left with {code}")
    if "--json" in words and code == 2 and words[:2] != ["mlx", "run"]:  # what follows are the program's own options
        found += _envelope_problems(out)
    if code == 2 and words in (["demo", "strix-halo"], ["demo", "port", "copy"]):
        found.append("the examples are not installed")
    if code == 2 and not (out + err).strip():
        found.append("an error without a word")
    return found


def _envelope_problems(out: str) -> list[str]:
    try:
        envelope = json.loads(out)
    except ValueError:
        return ["no JSON"]
    return [] if envelope.get("errors") and envelope.get("exit_code") == 2 else ["no error in the envelope"]


@pytest.mark.network
def test_no_traceback_the_right_exit_code_and_json_where_asked(tmp_path: Path) -> None:
    python = tmp_path / "plain" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "plain"], check=True)
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "-c", ROOT / "constraints.txt", ROOT], check=True, timeout=500)
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "ROCMEND_DEBUG"}}
    env = kept | {"ROCMEND_HOME": str(tmp_path / "home"), "PYTHONSAFEPATH": "1", "COLUMNS": "80"}
    ran = subprocess.run([python, SCRIPT], check=True, timeout=550, env=env, capture_output=True, text=True)
    calls = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(calls) > 300
    wrong = {" ".join(done["words"]): problems for done in calls if (problems := _problems(done))}
    assert not wrong
