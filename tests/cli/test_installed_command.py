"""Defects that people met, each looked for through the installed command."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.codeobject.conftest import Build

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


def test_choose_lists_no_build_without_code_and_no_caveat_of_another_gpu(installed: Run) -> None:
    short = installed("wheel", "choose", "--target", "gfx1201").out
    lines = [line for line in short.splitlines() if line.strip()]
    assert len(lines) <= 14
    assert sum("pip install" in line for line in lines) == 1
    assert {"Check it afterwards", "  rocmend wheel inspect torch"} <= set(lines)
    assert "2 other ways" in short
    whole = installed("wheel", "choose", "--target", "gfx1201", "--all").out
    serving, refused = whole.split("Not for this GPU")
    assert serving.count("pip install") == 3
    assert "carries no" in flat(refused)
    for text in ("gfx1010", "gfx1012", "gfx1151", "RDNA1"):
        assert text not in short
        assert f"device-{text}" not in whole


@pytest.mark.parametrize("command", ["doctor", "check"])
@pytest.mark.parametrize("machine", ["", "mi300x"])
def test_nothing_of_a_machine_is_judged_for_a_target_that_it_has_not(
    installed: Run, command: str, machine: str, tmp_path: Path
) -> None:
    where = ("--machine", machine) if machine else ()
    more = ("--no-store", "-o", str(tmp_path / "r.html")) if command == "check" else ()
    noise = {"HIP_FORCE_DEV_KERNARG": "1", "TORCHINDUCTOR_MAX_AUTOTUNE": "1"}  # each a finding elsewhere
    human, told = (
        installed(command, "--target", "gfx1201", *where, *more, *form, **noise) for form in ((), ("--json",))
    )
    name = machine or "this machine"
    assert human.out.startswith(f"gfx1201 (not in {name})\nNothing of {name} was judged.")
    assert "othing wrong" not in human.out
    assert "othing needs to be done" not in human.out
    envelope = msgspec.json.decode(told.out)
    diagnosis = envelope["data"] if command == "doctor" else envelope["data"]["diagnosis"]
    assert (envelope["status"], envelope["exit_code"]) == ("not-judged", 0)
    assert (diagnosis["hypothetical_target"], diagnosis["findings"]) == ("gfx1201", [])
    if command == "check":
        assert envelope["data"]["facts"] == {}
        page = (tmp_path / "r.html").read_text()
        assert f"Nothing of {name} was used" in page
        assert ">The machine</h2>" not in page


def test_a_model_size_without_a_unit_is_answered_with_the_forms(installed: Run) -> None:
    done = installed("doctor", "--machine", "strix-halo", "--model-size", "18")
    assert (done.code, done.out) == (2, "")
    assert "'18' has no unit" in done.err
    assert all(form in done.err for form in ("18GB", "8B", "30B-A3B", "8B@4bit"))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("kb", "show", "gfx1151-cwsr"), "gfx1151-cwsr-save-area-too-small"),
        (("kernels", "explain", "rms_nrm"), "rms_norm"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(installed: Run, words: tuple[str, ...], meant: str) -> None:
    done = installed(*words)
    assert done.code == 2
    assert re.search(rf"\b{meant}\b", done.err.partition("Did you mean ")[2].partition("?")[0])


def test_a_package_of_variants_is_headed_with_the_worst(installed: Run, tmp_path: Path) -> None:
    """Two libraries, of which only the newer has code for RDNA 1."""
    for version, targets in (("72", ("gfx1100",)), ("714", ("gfx1100", "gfx1010"))):
        library = tmp_path / "thing" / f"libthing_rocm{version}.so"
        library.parent.mkdir(exist_ok=True)
        library.write_bytes(Build.hip_library(Build.bundle_for(*targets)))
    done = installed("wheel", "inspect", str(tmp_path / "thing"), "--target", "gfx1010")
    assert done.code == 1
    assert done.out.splitlines()[1] == "gfx1010: runs only beside PyTorch for HIP 7.14"


def test_tuning_is_two_steps_and_no_variable_is_another_gpus(installed: Run) -> None:
    text = installed("env", "--for", "pytorch", "--machine", "mi300x").out
    firm, optional = text.split("# --- Optional")
    assert "\nexport HIP_FORCE_DEV_KERNARG=1" in firm
    assert "TUNABLEOP" not in firm
    assert "export" not in optional.replace("# export", "")
    first, second = optional.split("# Step 2 of 2")
    assert "TUNABLEOP_TUNING" not in first
    assert "# export PYTORCH_TUNABLEOP_ENABLED=1" in first.split("# Step 1 of 2")[1]
    assert "# export PYTORCH_TUNABLEOP_ENABLED=1" in second
    assert "# export PYTORCH_TUNABLEOP_TUNING=0" in second
    assert not re.search("RDNA ?1|gfx101", text)


def test_knowledge_without_a_machine_has_no_unfilled_placeholder(installed: Run) -> None:
    for words in (("kb", "show", "gfx1151-cwsr-save-area-too-small"), ("kb", "search", "save area", "--json")):
        done = installed(*words)
        assert done.code == 0
        assert not re.search(r"[<{](gpu|kernel|env|rocm|torch)\.", done.out)


def test_a_capture_is_described_as_json(installed: Run, tmp_path: Path) -> None:
    done = installed("machine", "capture", str(tmp_path / "c"), "--json")
    assert done.code == 0
    assert data(done)["directory"].endswith("c")


def test_what_is_not_there_is_an_error(installed: Run, tmp_path: Path) -> None:
    calls = (
        ("machine", "show", "nope"), ("store", "ls", "--kind", "foo", "--store", str(tmp_path)),
        ("port", "verify", str(tmp_path)), ("kernels", "check", "rms_nrm"),
    )  # fmt: skip
    for call in calls:
        done = installed(*call)
        assert (done.code, done.out) == (2, ""), call
        assert done.err.startswith("rocmend: ["), call


def test_a_gpu_that_the_driver_does_not_show_is_not_called_absent(installed: Run) -> None:
    page = installed("check", "--machine", "no-driver", "--no-store", "-o", "no-driver.html", "--format", "html").out
    assert "<h1>no-driver: GPU not visible</h1>" in page
    assert "There is no AMD GPU" not in page
    assert "built for ROCm" in page
    none = installed("check", "--machine", "no-amd-gpu", "--no-store", "-o", "none.html", "--format", "html").out
    assert "<h1>no-amd-gpu: no AMD GPU</h1>" in none


def test_a_target_that_is_elsewhere_begins_with_what_to_install(installed: Run) -> None:
    page = installed("check", "--target", "gfx1151", "--no-probe", "--no-store", "--format", "html").out
    assert page.index("PyTorch for gfx1151") < page.index("not checked here</h2>")


def test_why_a_way_to_install_does_not_serve_is_said_in_words(installed: Run) -> None:
    text = flat(installed("wheel", "choose", "jax", "--all", "--target", "gfx1151", "--format", "md").out)
    assert "it needs ROCm 10 installed on this machine" in text
    assert "starts(" not in text


def test_pictures_that_say_nothing_are_left_out(installed: Run) -> None:
    healthy = installed("check", "--machine", "rx-7900-xtx", "--no-store", "-o", "a.html", "--format", "html").out
    assert "Save area for interrupted kernels" not in healthy
    assert "Clocks when this was read" not in healthy
    ill = installed("check", "--machine", "strix-halo", "--no-store", "-o", "b.html", "--format", "html").out
    assert "Save area for interrupted kernels" in ill
    assert "Clocks when this was read" in ill
