"""Every command and group as a newcomer may type it, in an installation without torch and without any extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rocmend.cli.main import command_modules

from .conftest import plain_installation

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "every_command.py"


def _problems(done: dict[str, Any]) -> list[str]:
    words, code, out, err = done["words"], done["code"], done["out"], done["err"]
    wrong_line = any(word.startswith("--no-such-option") for word in words) or words[:1] == ["nonsense"]
    wrong_value = any(option.startswith("--") and value == "no-such-thing" for option, value in pairwise(words))
    found = []
    if "Traceback (most recent call last)" in out + err or "an error that should not happen" in out + err:
        found.append("a traceback")
    if code not in {0, 1, 2}:
        found.append(f"exit code {code}")
    if words == [] and (code, err) != (0, ""):
        found.append("the front page is no success")
    if "--help" in words and (code != 0 or not out.startswith("Usage:") or err):
        found.append("no help")
    if words in (["-V"], ["--version"]) and not (code == 0 and out.startswith("rocmend ") and out.count("\n") == 1):
        found.append("no version")
    if (wrong_line or wrong_value) and code != 2:
        found.append(f"a wrong command line left with {code}")
    if "--json" in words:
        found += _envelope_problems(out, code)
    elif code == 2 and (out or not any(line.startswith("rocmend: [") for line in err.splitlines())):
        found.append("an error that is not told on stderr alone")
    if code in {0, 1} and not out:
        found.append("nothing was printed")
    return found


def _envelope_problems(out: str, code: int) -> list[str]:
    try:
        envelope = json.loads(out)
    except ValueError:
        return ["no JSON"]
    if envelope.get("exit_code") != code:
        return ["another exit code in the envelope"]
    return [] if bool(envelope.get("errors")) == (code == 2) else ["errors in the envelope do not fit the exit code"]


def _installed(at: Path) -> Path:
    python = at / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", at], check=True)
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "-c", ROOT / "constraints.txt", ROOT], check=True, timeout=500)
    assert (at / "share" / "man" / "man1" / "rocmend.1").is_file()
    return python


@pytest.mark.slow
@pytest.mark.parametrize("install", [plain_installation, pytest.param(_installed, marks=pytest.mark.network)])
def test_no_traceback_the_right_exit_code_and_json_where_asked(tmp_path: Path, install: Callable[[Path], Path]) -> None:
    python = install(tmp_path / "plain")
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "ROCMEND_DEBUG"}}
    env = kept | {"ROCMEND_HOME": str(tmp_path / "home"), "PYTHONSAFEPATH": "1", "COLUMNS": "80"}
    # What a real installation may lack, code and files, a command misses when it runs: options are refused alike.
    brief = ["--brief"] if install is _installed else []
    ran = subprocess.run([python, SCRIPT, *brief], check=True, timeout=550, env=env, capture_output=True, text=True)
    calls = [json.loads(line) for line in ran.stdout.splitlines()]
    wrong = {" ".join(done["words"]): problems for done in calls if (problems := _problems(done))}
    assert not wrong
    tried = {tuple(done["words"]) for done in calls}
    for path in command_modules():
        assert {tuple(path.split()), (*path.split(), "--json"), (*path.split(), "--help")} <= tried, path
