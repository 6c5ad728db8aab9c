from __future__ import annotations

import os
import shutil
import subprocess

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import UsageError
from rocmend.setup.shells import SHELLS, Action, Line, write

AWKWARD = 'it\'s a "value" with $HOME `id` \\ and spaces; # not a comment'


def _lines() -> list[Line]:
    return [
        Line("ROCMEND_A", AWKWARD, Action.SET, "why a", "entry-a", "A page, https://example.org/a, 2026"),
        Line("ROCMEND_PATH", "/opt/rocm/bin", Action.PREPEND, "why path", "entry-b"),
        Line("ROCMEND_GONE", "", Action.UNSET, "why gone", "entry-c"),
        Line("ROCMEND_MAYBE", "1", Action.SET, "measure it", "entry-d", optional=True),
    ]


PROBE = "import os,json; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('ROCMEND_')}))"


def _environment_after(shell: list[str], text: str) -> dict[str, str]:
    import json
    import sys

    script = text + f'\n{sys.executable} -c "{PROBE}"\n'
    start = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "ROCMEND_PATH": "/old", "ROCMEND_GONE": "x"}
    done = subprocess.run([*shell, script], env=start, capture_output=True, text=True, check=True)
    result: dict[str, str] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_real_shell_reads_the_lines_back_exactly(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    after = _environment_after([shell, "-c"], write(_lines(), shell, title="a machine"))
    assert after == {"ROCMEND_A": AWKWARD, "ROCMEND_PATH": "/opt/rocm/bin:/old"}


def test_prepending_to_an_unset_variable_leaves_no_empty_entry() -> None:
    text = write([Line("ROCMEND_NEW_PATH", "/a", Action.PREPEND, "", "e")], "bash", title="t")
    assert _environment_after(["bash", "-c"], text)["ROCMEND_NEW_PATH"] == "/a"


def test_k8s_lines_are_yaml_with_the_same_values() -> None:
    parsed = yaml.safe_load(write(_lines(), "k8s", title="t"))
    assert parsed == {"env": [{"name": "ROCMEND_A", "value": AWKWARD}]}


def test_systemd_and_docker_and_powershell_lines() -> None:
    line = Line("A", "100% \"x\" $y 'z'", Action.SET, "", "e")
    assert 'Environment="A=100%% \\"x\\" $y \'z\'"' in write([line], "systemd", title="t")
    assert 'ENV A="100% \\"x\\" \\$y \'z\'"' in write([line], "docker", title="t")
    assert "$env:A = '100% \"x\" $y ''z'''" in write([line], "powershell", title="t")
    path = Line("PATH", "/opt/rocm/bin", Action.PREPEND, "", "e")
    assert 'ENV PATH="/opt/rocm/bin:${PATH}"' in write([path], "docker", title="t")


def test_docker_sets_no_variable_to_nothing() -> None:
    text = write([Line("HSA_XNACK", "", Action.UNSET, "", "e")], "docker", title="t")
    assert "ENV" not in text
    assert "`unset HSA_XNACK` in the entrypoint" in text


@pytest.mark.parametrize("shell", SHELLS)
def test_each_line_has_its_reason_and_source(shell: str) -> None:
    text = write(_lines(), shell, title="t")
    assert "# why a" in text
    assert "# Source: A page, 2026 (entry-a)" in text
    assert "# https://example.org/a\n" in text


def test_what_is_to_be_set_comes_first_and_steps_are_told_apart() -> None:
    def step(number: int, name: str, value: str) -> Line:
        return Line(name, value, Action.SET, "why", "tune", "P", optional=True, step=f"Step {number} of 2: do")

    lines = [*_lines(), step(1, "ON", "1"), step(2, "ON", "1"), step(2, "TUNING", "0")]
    text = write(lines, "bash", title="t")
    firm, optional = text.split("# --- Optional")
    assert "ROCMEND_MAYBE" in optional
    assert "ROCMEND_A" in firm
    first, second = optional.split("Step 2 of 2: do")
    assert ("ON=1" in first, "TUNING=0" in first) == (True, False)
    assert ("ON=1" in second, "TUNING=0" in second) == (True, True)
    assert second.count("Source:") == 1
    only = write([step(1, "ON", "1")], "bash", title="t")
    assert "# Nothing has to be set." in only


@pytest.mark.parametrize("shell", SHELLS)
@given(hostile=st.text())
def test_no_text_of_an_entry_can_leave_its_comment(shell: str, hostile: str) -> None:
    line = Line("A", "1", Action.SET, f"why {hostile}\nrm -rf /", "e", hostile, also=(f"{hostile}\r\nrm",))
    for row in write([line], shell, title=f"{hostile}\nrm -rf /").splitlines():
        assert not row.startswith("rm")


def test_an_impossible_name_is_refused() -> None:
    with pytest.raises(UsageError, match="no name of an environment variable"):
        write([Line("A;rm -rf /", "1", Action.SET, "", "e")], "bash", title="t")
    with pytest.raises(UsageError, match="expected one of"):
        write([], "csh", title="t")


def test_nothing_to_set_is_said() -> None:
    assert "nothing to set" in write([], "bash", title="t")
