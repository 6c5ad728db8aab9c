"""Completion, asked for as a person's shell does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from rocmend.cli.names import ENTRY, MACHINE, OP, PROBE, RULE
from rocmend.core.examples import example_machines
from rocmend.kb.load import load_entries
from rocmend.kernels import registry
from rocmend.port.rule import rules
from rocmend.probe.registry import probes

Complete = Callable[[str], list[str]]

_BASH = """
source <(rocmend completion bash)
IFS=' ' read -ra COMP_WORDS <<< "$LINE"
[[ $LINE == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_rocmend_completion rocmend
printf '%s\\n' "${COMPREPLY[@]}"
"""
_FISH = 'rocmend completion fish | source; complete --do-complete "$LINE"'
_ZSH = """
compdef() { :; }
compadd() { print -l -- ${(P)@[-1]}; }
_describe() { print -l -- ${(P)3}; }
_path_files() { :; }
source <(rocmend completion zsh)
words=(${(z)LINE}); [[ $LINE == *' ' ]] && words+=('')
CURRENT=${#words}
_rocmend_completion
"""
SCRIPTS = {"bash": _BASH, "fish": _FISH, "zsh": _ZSH}


@pytest.fixture(params=sorted(SCRIPTS))
def complete(request: pytest.FixtureRequest, tmp_path: Path) -> Complete:
    """Return what a shell completes a line to."""
    shell: str = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "rocmend"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rocmend "$@"\n')
    program.chmod(0o755)
    root = Path(__file__).parents[2]
    env = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(root / "src"),
        "HOME": str(tmp_path),
    }

    def asked(line: str) -> list[str]:
        done = subprocess.run(
            [shell, "-c", SCRIPTS[shell]],
            env=env | {"LINE": line},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stderr == ""
        return [word.partition("\t")[0].partition(":")[0] for word in done.stdout.splitlines() if word]

    return asked


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rocmend do", {"doctor"}),
        ("rocmend kernels ", {"list", "check", "tune"}),
        ("rocmend doctor --mod", {"--model-size"}),
        ("rocmend kb show gfx1151-cwsr-s", {"gfx1151-cwsr-save-area-too-small"}),
        ("rocmend kernels explain rms", {"rms_norm"}),
        ("rocmend probe --select matm", {"matmul"}),
        ("rocmend wheel choose --target gfx115", {"gfx1151"}),
        ("rocmend env --for vl", {"vllm"}),
        ("rocmend doctor --format sa", {"sarif"}),
        ("rocmend port --explain CU1", {"CU13"}),
    ],
)
def test_a_shell_completes_commands_options_and_values(complete: Complete, line: str, expected: set[str]) -> None:
    found = complete(line)
    assert expected <= set(found)
    last = line.rpartition(" ")[2]
    assert all(word.startswith(last) for word in found)


@pytest.mark.parametrize(
    ("known", "there"),
    [
        (ENTRY.known, lambda: load_entries().entries),
        (OP.known, lambda: (op.name for op in registry.ops())),
        (RULE.known, lambda: (rule.id for rule in rules())),
        (MACHINE.known, example_machines),
    ],
    ids=["entries", "ops", "rules", "machines"],
)
def test_what_is_completed_is_what_there_is(
    known: Callable[[], Iterable[str]], there: Callable[[], Iterable[str]]
) -> None:
    assert sorted(known()) == sorted(there())


def test_every_probe_is_completed() -> None:
    assert {probe.id for probe in probes()} <= set(PROBE.known())


@pytest.mark.parametrize(
    "line", ["rocmend ", "rocmend kb show gfx", "rocmend probe --select m", "rocmend doctor --target g"]
)
def test_completing_imports_nothing_heavy(line: str) -> None:
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_ROCMEND_COMPLETE": "bash_complete"}
    program = "import sys, resource\nfrom rocmend.cli.main import main\ntry:\n main([])\nexcept SystemExit:\n pass\n"
    program += "print(resource.getrusage(resource.RUSAGE_SELF).ru_utime, *sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | asked, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout
    seconds, *modules = done.stderr.split()
    assert not {"torch", "triton", "numpy", "rich", "jinja2", "zstandard", "sqlite3"} & set(modules)
    assert float(seconds) < 0.6  # a third of it on an idle machine
