"""``doctor --plan sh``: a script that runs nothing without a yes, remembers, and goes on after a reboot."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.cli.views.plan_script import plan_script
from rocmend.cli.views.plan_shell import CHECK_LIMIT_S, TOOLS
from rocmend.core.records import Finding, Phase, Risk, Severity
from rocmend.doctor.plan import make_plan
from rocmend.doctor.records import Alternative, Diagnosis, GpuSummary, Plan, Step
from rocmend.kb.general import generic
from rocmend.kb.load import load_entries

MACHINES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "machines"
NAMES = sorted(path.name for path in MACHINES.iterdir() if path.is_dir())
SHELLCHECK = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))


def step(number: int, action: str, **fields: Any) -> Step:
    return Step(number, action, f"Do {action}", fields.pop("phase", Phase.INSTALL), **fields)


STEPS = (
    step(1, "make-a", commands=("touch a  # a comment",), check="test -e a", expect="nothing", undo="`rm a`"),
    step(2, "by-hand", by_hand=True, commands=("unset X",), text="It's yours: $(touch quoted) `touch ticked`"),
    step(3, "make-b", commands=("false || touch b", "touch b2"), needs=("reboot",), check="test -e after-boot"),
    step(4, "reboot", phase=Phase.REBOOT, commands=("touch rebooting",), needs=("reboot",)),
    step(5, "last", commands=("touch last", "false", "touch never"), risk=Risk.HIGH, risk_note="It fails."),
)


def diagnosis(*steps: Step) -> Diagnosis:
    return Diagnosis("bench", "2026-11-28", None, (), (), (), 0, plan=Plan(steps))


Go = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def go(tmp_path: Path) -> Go:
    """Write and run the script of these steps, answering as told."""

    def run(
        answers: str,
        *steps: Step,
        boot: str = "one",
        machine: str = "here",
        host: str = os.uname().nodename,
        kfd: int = 0,
        **fields: Any,
    ) -> subprocess.CompletedProcess[str]:
        made = msgspec.structs.replace(diagnosis(*(steps or STEPS)), **fields)
        text = plan_script(made, host)
        properties = tmp_path / "properties"
        properties.write_text(f"gfx_target_version 0\n gfx_target_version {kfd}\n".replace("\n ", "\n"))
        assert "/sys/class/kfd/kfd/topology/nodes/*/properties" in text
        text = text.replace("/sys/class/kfd/kfd/topology/nodes/*/properties", str(properties))
        for path, content in (("/proc/sys/kernel/random/boot_id", boot), ("/etc/machine-id", machine)):
            there = tmp_path / Path(path).name
            there.write_text(content)
            text = text.replace(path, str(there))
        (tmp_path / "plan.sh").write_text(text)
        given = "".join(f"{answer}\n" for answer in answers)
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        command = ["sh", "plan.sh"]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )

    return run


def test_nothing_runs_without_a_yes(go: Go, tmp_path: Path) -> None:
    checked = step(1, "look", commands=("touch a",), check="touch looked")
    for answers in ("", "q", "ssssss", "nnnnnn"):
        for steps in (STEPS, (checked, *STEPS[1:])):
            done = go(answers, *steps)
            assert not done.stderr
            assert {path.name for path in tmp_path.iterdir()} == {
                "boot_id",
                "machine-id",
                "plan.sh",
                "properties",
                "state",
            }
    assert "Nobody answers: stopped." in go("").stdout
    assert go("").returncode == 1


GFX1151, GFX90A = GpuSummary(0, "A", "gfx1151"), GpuSummary(0, "B", "gfx90a")
HERE = os.uname().nodename
ASKED = "Use the plan here all the same?"


@pytest.mark.parametrize(
    ("where", "asks"),
    [
        ({"host": HERE, "gpus": (GFX1151,), "kfd": 110501}, False),
        ({"host": HERE, "gpus": (GFX90A,), "kfd": 90010}, False),
        ({"host": HERE, "gpus": (GFX1151,), "kfd": 0}, False),  # WSL shows no node
        ({"host": HERE, "gpus": (GFX1151,), "kfd": 110000}, True),
        ({"host": "another", "gpus": (GFX1151,), "kfd": 110501}, True),
        ({"host": "", "gpus": (GFX1151,), "kfd": 110501}, True),  # an example, or another machine's capture
    ],
)
def test_on_another_machine_it_asks_once_before_it_goes_on(
    where: dict[str, Any], asks: bool, go: Go, tmp_path: Path
) -> None:
    one = step(1, "make-a", commands=("touch a",))
    name = f"{where['host'] or 'bench'} (gfx"
    if asks:
        done = go("nyyy", one, **where)
        assert done.returncode == 1
        assert f"This plan was made for {name}" in done.stdout
        assert ASKED in done.stdout
        assert not (tmp_path / "a").exists()
    done = go("yy" if asks else "y", one, **where)
    assert (tmp_path / "a").exists()
    assert (ASKED in done.stdout) == asks
    assert f"# Plan for {name}" in (tmp_path / "plan.sh").read_text()
    assert ASKED not in go("", one, **where).stdout


@pytest.mark.parametrize("before", ["", "unset PYTHONSAFEPATH; "], ids=["", "as a Python before 3.11"])
def test_a_module_of_the_working_folder_is_never_loaded(before: str, go: Go, tmp_path: Path) -> None:
    (tmp_path / "vllm.py").write_text(f"open({str(tmp_path / 'owned')!r}, 'w')")
    checked = step(1, "install-vllm", commands=("true",), check=f"{before}{sys.executable} -c 'import vllm'")
    for answers in ("", "nn", "yy"):
        done = go(answers, checked)
        assert "Nothing to do" not in done.stdout
        assert not (tmp_path / "owned").exists(), answers
    assert (tmp_path / "vllm.py").exists()


def test_a_check_that_hangs_is_stopped(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmend.cli.views.plan_script.TOOLS", TOOLS.replace(f" {CHECK_LIMIT_S}'", " 0.1'"))
    done = go("ys", step(1, "hang", commands=("true",), check="sleep 30"))
    assert done.returncode == 0
    assert "was stopped" in done.stdout


def test_why_a_check_does_not_pass_is_shown(go: Go) -> None:
    """What it printed, and the program that it did not find."""
    failing = step(1, "look", commands=("true",), check="echo found 13942784; vulkan-of-nobody --summary | grep RADV")
    done = go("yy", failing)
    assert done.returncode == 0
    assert "It printed:\n     found 13942784\n" in done.stdout
    assert "The check needs vulkan-of-nobody, which is not installed here." in done.stdout
    again = go("ys", failing)
    assert "Done before, but its check does not pass.\n   It printed:\n     found 13942784\n" in again.stdout


def test_ctrl_c_ends_a_check(tmp_path: Path) -> None:
    mark = f"{tmp_path}/started"
    made = diagnosis(step(1, "hang", commands=("true",), check=f"echo $$ > {mark}; exec sleep 97"))
    (tmp_path / "plan.sh").write_text(plan_script(made, os.uname().nodename))
    (tmp_path / "answers").write_text("y\n")
    with (tmp_path / "answers").open() as answers:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        run = subprocess.Popen(["sh", "plan.sh"], stdin=answers, stdout=subprocess.DEVNULL, cwd=tmp_path,
                               env=environment, start_new_session=True)  # fmt: skip
        wait_until(lambda: (tmp_path / "started").exists() and (tmp_path / "started").read_text().endswith("\n"))
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(20) != 0
        check = int((tmp_path / "started").read_text())
        wait_until(
            lambda: not Path(f"/proc/{check}").exists() or "Z" in Path(f"/proc/{check}/stat").read_text().split()[2]
        )


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_it_goes_on_after_a_reboot(go: Go, tmp_path: Path) -> None:
    first = go("yyyyy")
    assert first.returncode == 0, first.stderr
    assert (tmp_path / "rebooting").exists()
    assert not (tmp_path / "last").exists()
    assert "1 of 5: Do make-a" in first.stdout
    assert not (tmp_path / "quoted").exists()
    assert not (tmp_path / "ticked").exists()
    (tmp_path / "rebooting").unlink()
    (tmp_path / "b").unlink()
    before = go("y")  # the machine was not booted: it asks for the reboot again
    assert "it takes effect with the reboot" in before.stdout
    assert "Reboot now?" in before.stdout
    (tmp_path / "after-boot").touch()
    after = go("yyy", boot="two")
    assert not (tmp_path / "rebooting").exists()
    assert not (tmp_path / "b").exists()  # done, and its check passes
    assert (tmp_path / "last").exists()
    assert not (tmp_path / "never").exists()
    assert "A command failed" in after.stdout


def test_a_step_whose_check_fails_after_the_reboot_is_offered_again(go: Go, tmp_path: Path) -> None:
    go("yyyyy")
    (tmp_path / "b").unlink()
    again = go("yyq", boot="two")
    assert "Done before, but its check does not pass." in again.stdout
    assert (tmp_path / "b").exists()


def test_a_step_skipped_before_the_reboot_and_done_after_it_asks_for_another(go: Go, tmp_path: Path) -> None:
    go("yyysy")  # the step that needs the reboot is skipped, the machine rebooted
    assert (tmp_path / "rebooting").exists()
    (tmp_path / "rebooting").unlink()
    second = go("yyy", boot="two")
    assert (tmp_path / "b").exists()
    assert "Reboot now?" in second.stdout
    assert (tmp_path / "rebooting").exists()
    (tmp_path / "after-boot").touch()
    assert "Reboot now?" not in go("yy", boot="three").stdout


@pytest.mark.parametrize(
    "other",
    [
        {"machine": "there"},
        {"captured_at": "2027-05-01"},
        {"gpus": (GpuSummary(0, gfx_target="gfx1201"),)},
        {"commands": ("touch c",)},
    ],
    ids=["another machine", "another day", "another GPU", "other commands"],
)
def test_steps_done_elsewhere_are_not_done_here(go: Go, other: dict[str, Any]) -> None:
    first = step(1, "make-a", commands=("touch a",))
    go("y", first)
    assert "   Done." in go("", first).stdout
    fields = dict(other)
    second = step(1, "make-a", commands=fields.pop("commands", first.commands))
    done = go("", second, **fields)
    assert "   Done." not in done.stdout
    assert "Run the commands?" in done.stdout


def test_a_variable_of_the_shell_is_checked_by_the_next_run(go: Go) -> None:
    unset = step(
        1, "unset", phase=Phase.ENVIRONMENT, by_hand=True, commands=("unset HOME",), check='test -z "${HOME+set}"'
    )
    assert "run it again from that shell" in go("yy", unset).stdout
    assert "its check does not pass" in go("yq", unset).stdout


@pytest.mark.parametrize("name", ["rx-5600-xt", "strix-halo"])
def test_every_variable_of_the_shell_waits_for_the_next_run(name: str, installed: Callable[..., Any]) -> None:
    script = installed("doctor", "--machine", name, "--plan", "sh").out
    number = re.search(r"^(\d+) of \d+: Unset HSA_OVERRIDE_GFX_VERSION", script, re.MULTILINE)
    assert number is not None
    assert f"    step {number[1]} hand user next\n" in script


def test_a_steps_check_does_not_wait_for_a_later_step(installed: Callable[..., Any]) -> None:
    """The groups are joined before the driver runs, so their check needs none of the driver's files."""
    plan = msgspec.json.decode(installed("doctor", "--machine", "no-driver", "--json").out)["data"]["plan"]
    join = next(one for one in plan["steps"] if one["action"] == "join-gpu-groups")
    assert join["check"].startswith("test ")
    assert "/dev/" not in join["check"]


def test_what_is_so_already_is_skipped(go: Go, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    done = go("y", STEPS[0])
    assert "Nothing to do: its check passes." in done.stdout
    assert done.returncode == 0


def test_without_the_checks_each_step_is_asked_for(go: Go, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    done = go("sy", STEPS[0])
    assert "Run the commands?" in done.stdout
    assert "Nothing to do" not in done.stdout


def test_the_end_lists_what_became_of_each_step(go: Go, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    before = go("y" + "sy" + "q")  # checks, a hand step skipped, b made, then no
    assert "   not needed   1 of 5: Do make-a\n   skipped      2 of 5: Do by-hand\n" in before.stdout
    assert "   check fails  3 of 5: Do make-b\n   stopped      4 of 5: Do reboot\n" not in before.stdout
    assert "   done         3 of 5: Do make-b\n   stopped      4 of 5: Do reboot\n" in before.stdout
    assert "   not reached  5 of 5: Do last\n" in before.stdout
    (tmp_path / "after-boot").touch()
    after = go("ysy", boot="two")
    assert "   done         3 of 5: Do make-b\n   done         4 of 5: Do reboot\n" in after.stdout
    assert after.stdout.count("Steps of this plan:") == 1
    assert "   failed       5 of 5: Do last\n" in after.stdout


def test_optional_steps_are_offered_and_those_that_need_a_reboot_before_it(go: Go, tmp_path: Path) -> None:
    early = step(0, "raise-memory", commands=("touch raised",), needs=("root", "reboot"))
    late = step(0, "tune", commands=("touch tuned",))
    plan = Plan((STEPS[0], msgspec.structs.replace(STEPS[3], number=2)), optional=(late, early))
    done = go("yyyss", plan=plan)
    assert (tmp_path / "raised").exists()
    assert not (tmp_path / "tuned").exists()
    assert "Optional: Do raise-memory" in done.stdout
    assert "   done         Optional: Do raise-memory\n   skipped      2 of 2: Do reboot\n" in done.stdout
    assert (tmp_path / "a").exists()
    alone = go("sy", plan=Plan(optional=(late, early)), captured_at="another day")
    assert "Reboot for it to take effect" in alone.stdout
    assert "2 optional steps" in alone.stdout


def test_checks_can_be_read(installed: Callable[..., Any]) -> None:
    script = installed("doctor", "--machine", "strix-halo", "--plan", "sh").out
    checks = re.findall(r"<<'CHECK'\n(.*?)\nCHECK\n", script, re.DOTALL)
    assert len(checks) > 5
    assert max(len(line) for check in checks for line in check.splitlines()) <= 120


def test_words_that_a_person_must_replace_are_not_run(go: Go, tmp_path: Path) -> None:
    blank = step(1, "pull", commands=("touch IMAGE",))
    assert "Have you done it?" in go("y", blank).stdout
    assert not (tmp_path / "IMAGE").exists()


def test_text_of_a_machine_is_no_code(go: Go, tmp_path: Path) -> None:
    bad = "TEXT\n'; touch owned; $(touch owned) `touch owned`\n"
    other = Alternative(bad, interim=False, text=bad)
    done = go("s", Step(1, bad, bad, Phase.INSTALL, text=bad, commands=("true",), undo=bad, alternatives=(other,)))
    assert done.returncode == 0
    assert not done.stderr
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("name", NAMES)
def test_the_scripts_of_all_captured_machines_are_clean(name: str, rocmend: Callable[..., Any], tmp_path: Path) -> None:
    done = rocmend("doctor", "--machine", MACHINES / name, "--plan", "sh")
    assert done.out.startswith("#!/bin/sh\n")
    assert done.code == 0
    path = tmp_path / "plan.sh"
    path.write_text(done.out)
    stopped = subprocess.run(["sh", str(path)], input="", capture_output=True, text=True, check=False,
                             env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})  # fmt: skip
    assert not stopped.stderr
    if SHELLCHECK is None:
        pytest.skip("shellcheck is not installed")
    checked = subprocess.run([SHELLCHECK, "-s", "sh", str(path)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    "arguments", [["--json"], ["--format", "md"], ["--no-redact"], ["--explain", "gfx1151-cwsr-save-area-too-small"]]
)
def test_what_a_script_cannot_heed_is_refused(arguments: list[str], rocmend: Callable[..., Any]) -> None:
    done = rocmend("doctor", "--machine", MACHINES / "strix-halo", "--plan", "sh", *arguments)
    assert done.code == 2
    assert "#!/bin/sh" not in done.out
    assert "--plan" in done.out + done.err


def test_a_machine_that_was_not_judged_has_no_plan(rocmend: Callable[..., Any]) -> None:
    done = rocmend("doctor", "--machine", MACHINES / "mi300x", "--target", "gfx1201", "--plan", "sh")
    assert done.code == 2
    assert done.out == ""
    assert "nothing was judged" in " ".join(done.err.split())


def test_no_step_is_no_clean_bill(rocmend: Callable[..., Any]) -> None:
    script = rocmend("doctor", "--machine", MACHINES / "wsl2", "--plan", "sh").out
    assert "There is nothing to do" not in script
    assert "could not be decided" in script
    assert "\n    step o1 hand none now\n" in script


def test_every_step_that_an_entry_can_ask_for_is_clean_shell(tmp_path: Path) -> None:
    """All remedies of all entries in one script: a variable that is not set must not end it, a command must parse."""
    knowledge = load_entries()
    entries = [generic(entry) for entry in knowledge.entries.values() if entry.severity is not None and entry.when]
    findings = [
        Finding(entry.id, entry.title, Severity.WARNING, remedies=tuple(one for one in entry.remedy))
        for entry in entries
    ]
    plan = make_plan(findings, (), knowledge.actions)
    assert len(plan.steps) > 70
    for one in plan.steps:
        assert not re.search(r"\$(?!HOME|PATH|\()[A-Z]\w*", one.check.partition("&&")[0]), one.check
    path = tmp_path / "plan.sh"
    path.write_text(plan_script(msgspec.structs.replace(diagnosis(), plan=plan)))
    assert subprocess.run(["sh", "-n", str(path)], capture_output=True, check=False).stderr == b""
    if SHELLCHECK is None:
        pytest.skip("shellcheck is not installed")
    checked = subprocess.run([SHELLCHECK, "-s", "sh", str(path)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
