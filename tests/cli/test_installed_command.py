"""Defects that people met, each looked for through the installed command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.store.store import Store

Run = Callable[..., Any]


def flat(text: str) -> str:
    return " ".join(text.split())


def data(done: Any) -> Any:
    return msgspec.json.decode(done.out)["data"]


SWITCH = "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"


def test_an_experimental_switch_is_no_step_of_a_healthy_machine(installed: Run) -> None:
    """Only optional steps: every form says that nothing needs to be done."""
    for form in ("human", "html", "md"):
        page = installed("doctor", "--machine", "rx-7900-xtx", "--format", form).out
        assert "Do this, in order" not in page
        assert page.index("Nothing needs to be done") < page.rindex("Optional") < page.rindex(f"{SWITCH}=1"), form
    done = installed("doctor", "--machine", "rx-7900-xtx", "--json")
    assert done.code == 0
    plan = data(done)["plan"]
    assert "steps" not in plan
    assert [step["action"] for step in plan["optional"]] == [f"set-variable:{SWITCH}=1"]
    script = installed("doctor", "--machine", "rx-7900-xtx", "--plan", "sh").out
    assert "Nothing needs to be done." in script
    assert f"#     export {SWITCH}=1" in script.partition("# Optional:")[2]


@pytest.mark.parametrize("form", [("--format", "human"), ("--plan", "sh")])
def test_what_is_optional_stands_at_the_end_of_the_plan(installed: Run, form: tuple[str, str]) -> None:
    page = installed("doctor", "--machine", "strix-halo", *form).out
    places = [page.index(part) for part in ("sudo reboot", "If it still fails, investigate", "Optional")]
    assert places == sorted(places)


@pytest.mark.parametrize("command", ["doctor", "check"])
def test_a_machine_without_an_amd_gpu_is_told_so_and_what_to_do(installed: Run, command: str) -> None:
    report = ("--no-store", "-o", "none.html") if command == "check" else ()
    page = flat(installed(command, "--machine", "no-amd-gpu", *report).out)
    assert "This machine has no AMD GPU. 1 warning; " in page
    assert "rocmend check --target gfx1151" in page
    assert "rocmend machine capture FOLDER" in page


def test_a_mistyped_record_is_answered_with_those_that_are_nearest(installed: Run, tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        runs = [f"2026-11-{day}T08:00:00Z" for day in (21, 23)]
        ids = [store.add(Evidence("check", "x", "f00d", Verdict.PASS, "", begun, 1.0)) for begun in runs]
    done = installed("store", "show", f"{ids[0][:-2]}~~", "--store", str(tmp_path))
    assert done.code == 2
    assert f"Did you mean {ids[0]}" in done.err
    assert "`rocmend store ls`" in done.err


def test_without_a_home_folder_no_other_is_taken(installed: Run) -> None:
    """Above all not the working folder, for a relative HOME."""
    done = installed("store", "ls", ROCMEND_HOME=None, XDG_DATA_HOME=None, HOME="relative")
    assert (done.code, done.out) == (2, "")
    assert "HOME='relative' is not an absolute path" in done.err
    assert "Set ROCMEND_HOME to a folder." in done.err
    assert "no user is called" in installed("store", "ls", "--store", "~nobody-at-all/x").err


EDIT = (
    "GRUB_CMDLINE_LINUX_DEFAULT: change or remove aamdgpu.cwsr_enable=0; take amdgpu.gttsize out; add ttm.pages_limit="
)


def test_all_kernel_parameters_are_one_edit(installed: Run) -> None:
    """Every form has one edit with all parameters, one reboot after it, one undo and all findings."""
    for form in (("--format", "human"), ("--format", "html"), ("--plan", "sh")):
        page = installed("doctor", "--machine", "strix-halo", *form).out
        step = page[page.index("Edit the kernel command line once, for 3 changes") :]
        assert "Correct the kernel command line: aamdgpu.cwsr_enable=0." in flat(step)
        assert EDIT in step
        assert "Put the old kernel command line back the same way, and reboot." in flat(step)
    steps = data(installed("doctor", "--machine", "strix-halo", "--json"))["plan"]["steps"]
    (edit,) = [step for step in steps if "sudo update-grub" in step.get("commands", ())]
    assert edit["joins"] == [
        "correct-kernel-parameters:aamdgpu.cwsr_enable=0",
        "remove-kernel-parameter:amdgpu.gttsize",
        "set-kernel-parameter:ttm.pages_limit=29191741 ttm.page_pool_size=29191741",
    ]
    assert edit["settles"] == ["kernel-unknown-parameter", "kernel-gttsize-deprecated"]
    (reboot,) = [step for step in steps if step["action"] == "reboot"]
    assert edit["number"] in reboot["after"]
