"""Defects that people met, each looked for through the installed command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.codeobject.conftest import Build

from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.store.store import Store

from .conftest import plain_installation
from .port_project import KERNEL

Run = Callable[..., Any]


def flat(text: str) -> str:
    return " ".join(text.split())


def data(done: Any) -> Any:
    return msgspec.json.decode(done.out)["data"]


SWITCH = "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"


@pytest.mark.slow
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
    assert f"     export {SWITCH}=1\n" in script.partition(f"\nOptional: Set {SWITCH}=1\n")[2]


def test_what_is_optional_stands_at_the_end_of_the_plan(installed: Run) -> None:
    page = installed("doctor", "--machine", "strix-halo").out
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


EDIT = "GRUB_CMDLINE_LINUX_DEFAULT: take aamdgpu.cwsr_enable=0 out; take amdgpu.gttsize out; add ttm.pages_limit="


def test_all_kernel_parameters_are_one_edit(installed: Run) -> None:
    """Every form has one edit with all parameters, one reboot after it, one undo and all findings."""
    for form in (("-v",), ("--format", "html"), ("--plan", "sh")):
        page = installed("doctor", "--machine", "strix-halo", *form).out
        step = page[page.index("Edit the kernel command line: 3 changes") :]
        assert "(1) Remove the kernel parameter aamdgpu.cwsr_enable=0." in flat(step)
        assert EDIT in step
        assert "Put the old kernel command line back the same way, and reboot." in flat(step)
    steps = data(installed("doctor", "--machine", "strix-halo", "--json"))["plan"]["steps"]
    (edit,) = [step for step in steps if "sudo update-grub" in step.get("commands", ())]
    assert edit["joins"] == [
        "remove-kernel-parameter:aamdgpu.cwsr_enable=0",
        "remove-kernel-parameter:amdgpu.gttsize",
        "set-kernel-parameter:ttm.pages_limit=29191741 ttm.page_pool_size=29191741",
    ]
    findings = ["kernel-unknown-parameter", "kernel-gttsize-deprecated", "memory-half-of-ram-visible"]
    assert edit["settles"] == findings
    (reboot,) = [step for step in steps if step["action"] == "reboot"]
    assert edit["number"] in reboot["after"]


def test_choose_lists_no_build_without_code_and_no_caveat_of_another_gpu(installed: Run) -> None:
    short = installed("wheel", "choose", "--target", "gfx1201").out
    lines = [line for line in short.splitlines() if line.strip()]
    assert len(lines) <= 14
    assert sum("pip install" in line for line in lines) == 1
    assert {"Check it afterwards", "  rocmend wheel inspect torch --native"} <= set(lines)
    others = re.search(r"(\d) other ways", short)
    assert others
    whole = installed("wheel", "choose", "--target", "gfx1201", "--all").out
    serving, refused = whole.split("Not for this GPU")
    assert serving.count("pip install") == int(others[1]) + 1
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
    head = f"gfx1201 (not in {name}) What is known of gfx1201; {name} was not checked."
    assert flat(human.out).startswith(head)
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


@pytest.mark.slow
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


TORCH = {"asked": "2.7.1+rocm6.3", "active": "2.8.0+rocm6.4", ".venv": "2.9.1+rocm7.0"}


@pytest.fixture
def environments(tmp_path: Path) -> Path:
    """Make a folder with three environments, ``.venv`` among them, each with another PyTorch."""
    for name, torch in TORCH.items():
        package = tmp_path / name / "lib" / "python3.12" / "site-packages" / "torch"
        package.mkdir(parents=True)
        (package / "version.py").write_text(f"__version__ = '{torch}'\nhip = '{torch[-3:]}.0'\n")
        (tmp_path / name / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.3\n")
        python = tmp_path / name / "bin" / "python3"
        python.parent.mkdir()
        python.write_text(f"#!/bin/sh\n: > {tmp_path}/{name}/was-run\nexit 1\n")
        python.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("used", "words", "active"),
    [("asked", ("--python", "asked"), "active"), ("active", (), "active"), (".venv", (), None)],
)
def test_a_report_names_one_python_environment(
    installed: Run, environments: Path, used: str, words: tuple[str, ...], active: str | None
) -> None:
    """The one asked for, else the active one, else ``.venv`` of the folder; as text, JSON and HTML."""
    top = environments
    variables = {"VIRTUAL_ENV": active and str(top / active), "CONDA_PREFIX": None, "PATH": str(top), "COLUMNS": "300"}
    text = installed("doctor", *words, cwd=top, **variables).out
    more = ("--no-store", "--no-redact", "-o", "report.html", "--json")
    told = installed("check", *words, *more, cwd=top, **variables).out
    for form, said in (("text", text), ("JSON", told), ("HTML", (top / "report.html").read_text())):
        folders = {name for name in TORCH if str(top / name) in said}
        versions = {name for name, torch in TORCH.items() if torch in said}
        assert folders == versions == {used}, form
        assert f"{sys.prefix}/" not in said, form
    assert {mark.parent.name for mark in top.glob("*/was-run")} <= {used} - {".venv"}


SCALE = "__global__ void scale(float *x) { x[threadIdx.x] *= 2; }\n"
BOTH = "defined(USE_ROCM) || defined(__HIP_PLATFORM_AMD__)"
TREATED = (
    f"#if {BOTH} || __CUDA_ARCH__ >= 800\n{SCALE}#else\n#error too old\n#endif\n",
    f"#if {BOTH} || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)\n{SCALE}#endif\n",
    f"#if __CUDA_ARCH__ >= 800 || \\\n    {BOTH}\n{SCALE}#endif\n",
    f"#if !({BOTH}) && __CUDA_ARCH__ < 700\n#error too old\n#endif\n{SCALE}",
    f"#if __CUDA_ARCH__ >= 900\n{SCALE}#elif {BOTH}\n{SCALE}#endif\n",
    f"#ifdef __HIP_PLATFORM_AMD__\n{SCALE}#elif __CUDA_ARCH__ >= 800\n{SCALE}#endif\n",
    f"#ifndef USE_ROCM\n#if __CUDA_ARCH__ >= 800\n{SCALE}#endif\n#endif\n",
    f"#if {BOTH}\n#define ON_AMD 1\n#endif\n#if defined(ON_AMD) || __CUDA_ARCH__ >= 700\n{SCALE}#endif\n",
)
UNTREATED = (
    f"#if __CUDA_ARCH__ >= 800\n{SCALE}#endif\n",
    f"#if ({BOTH}) && __CUDA_ARCH__ >= 800\n{SCALE}#endif\n",
    f"#if (defined(USE_CUDA) || {BOTH}) && __CUDA_ARCH__ >= 700\n{SCALE}#endif\n",
    f"#if {BOTH}\n#endif\n#if __CUDA_ARCH__ >= 700\n{SCALE}#endif\n",
    f"#if {BOTH} || __CUDA_ARCH__ >= 600\n#if __CUDA_ARCH__ >= 700\n{SCALE}#endif\n#endif\n",
    f"// {BOTH}\n#if __CUDA_ARCH__ >= 700 /* || {BOTH} */\n{SCALE}#endif\n",
    f"#if defined(USE_ROCM_LATER) || __CUDA_ARCH__ >= 700\n{SCALE}#endif\n",
    f"#if defined(__HIP_PLATFORM_NVIDIA__) || __CUDA_ARCH__ >= 700\n{SCALE}#endif\n",
)


@pytest.mark.slow
def test_only_guards_that_leave_rocm_out_are_reported(installed: Run, tmp_path: Path) -> None:
    for name, guards in (("treated", TREATED), ("untreated", UNTREATED)):
        (tmp_path / name).mkdir()
        for number, guard in enumerate(guards):
            (tmp_path / name / f"{number}.cu").write_text(guard)
    (tmp_path / "treated" / "more.cu").write_text(KERNEL)
    found = data(installed("port", str(tmp_path), "--json"))["analysis"]["files"]
    issues = [(file["path"], issue) for file in found for issue in file.get("issues", ()) if issue["rule"] == "CU15"]
    assert {path for path, _ in issues} == {f"untreated/{number}.cu" for number in range(len(UNTREATED))}
    assert all("ROCm branch" in issue["remedy"] for _, issue in issues)

    ported = installed("port", str(tmp_path / "treated"), "--apply", "-v")
    assert ported.code == 0, ported.err
    assert not re.search("CU15|ROCm branch", flat(ported.out))
    proof = installed("port", "verify", str(tmp_path / "treated"), "--level", "static", "--json")
    assert proof.code == 0
    assert [level["status"] for level in data(proof)["levels"]] == ["passed", "passed"]


def test_a_folder_without_sources_is_told_so(installed: Run, tmp_path: Path) -> None:
    for words in (("port", "verify"), ("port",)):
        done = installed(*words, str(tmp_path))
        assert (done.code, done.out) == (2, ""), words
        assert "no CUDA, C++, Python or build files" in flat(done.err)
        assert "Name the folder that holds the project's sources." in flat(done.err)


def test_sizes_of_an_installed_torch_are_those_of_its_files(installed: Run, environments: Path) -> None:
    """One library with code for two GPUs, and a large file without any, of which the beginning is read."""
    site = environments / "asked" / "lib" / "python3.12" / "site-packages"
    files = {
        "torch/libtorch_hip.so": Build.hip_library(Build.bundle_for("gfx1100", "gfx1151")),
        "torch/data.bin": bytes(3 << 20),
        "torch-2.7.1.dist-info/METADATA": Build.metadata("torch", "2.7.1"),
        "torch-2.7.1.dist-info/RECORD": b"torch/libtorch_hip.so,,\ntorch/data.bin,,\n",
    }
    (site / "torch-2.7.1.dist-info").mkdir()
    for name, content in files.items():
        (site / name).write_bytes(content)
    size = sum(len(content) for name, content in files.items() if name.startswith("torch/"))
    words = ("wheel", "inspect", "torch", "--python", str(environments / "asked"))
    totals = data(installed(*words, "--json"))["inspection"]["totals"]
    assert (totals["files"], totals["bytes"], totals["code_objects"]) == (2, size, 2)
    assert 0 < totals["code_object_bytes"] < totals["read_bytes"] < size
    text = flat(installed(*words).out)
    assert re.search(r"2 files, 3\.0\d? MiB; [\d.]+ [KM]iB read", text)
    assert re.search(r"2 code objects, [\d.]+ (Ki)?B", text)


def test_kernels_without_torch_say_what_to_install(installed: Run, tmp_path: Path) -> None:
    """Both where there is none, and where what is there cannot import a part of itself."""
    python = plain_installation(tmp_path / "plain")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')"
    )
    for command in ("check", "tune"):
        done = installed("kernels", command, "rms_norm", PYTHONPATH=str(tmp_path))
        none = subprocess.run(
            [python, "-m", "rocmend", "kernels", command, "rms_norm"], capture_output=True, text=True, check=False
        )
        assert (done.code, done.out) == (none.returncode, none.stdout) == (2, "")
        for err in (done.err, none.stderr):
            assert err.startswith(f"rocmend: [kernels {command}] needs torch, which is not installed.\n")
            assert "`rocmend wheel choose` prints the command" in err


def test_the_name_alone_says_where_to_begin(installed: Run) -> None:
    done = installed()
    assert (done.code, done.err) == (0, "")
    assert all(f"\n  rocmend {command} " in done.out for command in ("check", "doctor", "wheel choose"))


def test_what_to_install_replaces_the_build_that_is_there(installed: Run) -> None:
    """Otherwise pip takes what is there for what was asked, and changes nothing."""
    said = installed("wheel", "choose", "torch", "--machine", "strix-halo").out
    assert "pip install --force-reinstall --index-url" in said
    assert "it replaces torch 2.5.1+rocm6.2" in flat(said)
    assert "--force-reinstall" not in installed("wheel", "choose", "torch", "--target", "gfx1201").out


def test_a_target_that_is_not_here_leads_on(installed: Run) -> None:
    said = flat(installed("doctor", "--target", "RX 7900 XTX").out)
    assert "rocmend wheel choose --target gfx1100 says what to install" in said
    assert "pytorch on gfx1100 (not in this machine)" in installed("env", "--for", "pytorch", "--target", "gfx1100").out


def test_a_report_that_cannot_be_written_costs_the_report_only(installed: Run) -> None:
    """Minutes of work ended in an error and nothing else."""
    asked = ("check", "--machine", "strix-halo", "-o", "/dev/full")
    done = installed(*asked)
    assert done.code == 2
    assert "What was found" in done.out
    assert "Report:" not in done.out
    assert "[/dev/full] The report can't be written: No space left on device." in done.err
    (kept,) = re.findall(r"rocmend store show (\S+) --artifact report.html", done.err)
    assert "<!doctype html>" in installed("store", "show", kept, "--artifact", "report.html").out
    envelope = msgspec.json.decode(installed(*asked, "--json").out)
    assert (envelope["exit_code"], envelope["errors"][0]["subject"]) == (2, "/dev/full")
    assert envelope["data"]["diagnosis"]["findings"]


def test_a_full_disk_is_found_before_the_work(installed: Run, small_disk: Path) -> None:
    free = os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(b"x" * free.f_bavail * free.f_frsize)
    done = installed("check", "--machine", "strix-halo", "-o", str(small_disk / "report.html"))
    assert (done.code, done.out, "reading the machine" in done.err) == (2, "", False)
    assert "The report can't be written: No space left on device." in done.err
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


@pytest.mark.slow
def test_reports_of_other_machines_and_targets_replace_none_of_this_machine(installed: Run, tmp_path: Path) -> None:
    for asked in ((), ("--machine", "strix-halo"), ("--target", "strix-halo")):
        installed("check", "--no-probe", "--no-store", *asked, cwd=tmp_path)
    names = ["rocmend-report-gfx1151.html", "rocmend-report-strix-halo.html", "rocmend-report.html"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_the_terminal_says_what_to_install_before_the_known_problems(installed: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    told = installed("check", "--target", "strix-halo", "--no-store", "-o", str(page)).out
    assert "pip install --index-url" in told
    parts = ("What to install", "What to set", "Known problems of gfx1151")
    for text, begin in ((told, ""), (page.read_text(), ">")):
        places = [text.index(begin + part) for part in parts]
        assert places == sorted(places)


def test_the_record_of_a_check_that_ran_nothing_says_what_was_found(installed: Run, tmp_path: Path) -> None:
    installed("check", "--machine", "strix-halo", "-o", str(tmp_path / "r.html"), "--store", str(tmp_path / "kept"))
    listed = installed("store", "ls", "--store", str(tmp_path / "kept")).out
    assert re.search(r"\d errors +check", listed)
    assert "skipped" not in listed


def test_a_search_says_how_many_entries_it_leaves_out(installed: Run) -> None:
    told = installed("kb", "search", "gfx1151", "--limit", "3").out
    assert re.search(r"The best 3 of \d\d+ entries", told)
    assert told.count("id: ") == 3
    assert "No entry is about this." in installed("kb", "search", "zzzz").out
    first = installed("kb", "search", "HIP error: invalid device function", "--json")
    assert data(first)[0]["id"] == "install-torch-lacks-gpu-target"


@pytest.fixture
def no_gpu(machines: Path, tmp_path: Path) -> Path:
    """A captured machine without an AMD GPU, to be changed."""
    shutil.copytree(machines / "no-amd-gpu", tmp_path / "no-amd-gpu")
    return tmp_path / "no-amd-gpu"


def test_a_container_without_a_gpu_is_told_to_pass_the_devices_in(installed: Run, no_gpu: Path) -> None:
    assert "Check the slot" in installed("doctor", "--machine", str(no_gpu)).out
    (no_gpu / "root" / ".dockerenv").touch()
    page = installed("doctor", "--machine", str(no_gpu), "--json").out
    looks = msgspec.json.decode(page)["data"]["plan"]["investigate"]
    assert "--device /dev/kfd --device /dev/dri" in looks[0]["commands"][0]
    assert "Check the slot" not in page


def test_what_rocmend_itself_needs_is_no_rocm(installed: Run, no_gpu: Path) -> None:
    (site,) = no_gpu.glob("root/home/user/venv/lib/python*/site-packages")
    (site / "rocm_bootstrap-0.3.0.dist-info").mkdir()
    told = installed("doctor", "--machine", str(no_gpu), "--json").out
    assert "rocm-bootstrap" not in told
    assert "rocm-bootstrap" not in installed("machine", "show", "--machine", str(no_gpu)).out


def test_the_allocator_has_one_variable_and_its_dispute_is_said(installed: Run) -> None:
    told = installed("env", "--for", "pytorch", "--target", "strix-halo").out
    said, _, rest = told.partition("# export PYTORCH_ALLOC_CONF=expandable_segments:True")
    assert rest
    assert "disputed" in said.rpartition("\n\n")[2]
    vllm = installed("env", "--for", "vllm", "--target", "mi300x").out
    assert "# export PYTORCH_ALLOC_CONF=expandable_segments:True" in vllm
    for page in (told, vllm):
        assert "CUDA_ALLOC" not in page
        assert "HIP_ALLOC" not in page


def test_settings_for_a_gpu_elsewhere_are_for_no_container_unless_one_is_written(installed: Run) -> None:
    asked = ("env", "--for", "pytorch", "--target", "strix-halo")
    assert "TRITON_CACHE_DIR" not in installed(*asked).out
    assert "TRITON_CACHE_DIR" in installed(*asked, "--shell", "docker").out


def test_what_is_to_be_unset_later_is_not_called_worth_measuring(installed: Run) -> None:
    told = installed("env", "--for", "llama.cpp", "--machine", "strix-halo").out
    assert told.index("# --- Later") < told.index("# unset HSA_OVERRIDE") < told.index("# --- Optional")


def test_a_long_check_stands_in_lines_and_is_the_same_program(installed: Run) -> None:
    asked = ("doctor", "--machine", "strix-halo", "--format")
    checks = [step.get("check", "") for step in data(installed(*asked, "json"))["plan"]["steps"]]
    (loop,) = [check for check in checks if "; do " in check]
    page = installed(*asked, "md").out
    shown = next(block for block in page.split("```") if block.startswith("bash\n{ ! for p in ")).removeprefix("bash\n")
    assert max(map(len, shown.splitlines())) < 160 < len(loop)
    outcomes = [subprocess.run(["sh", "-c", text], capture_output=True, check=False) for text in (loop, shown)]
    assert outcomes[0].stdout == outcomes[1].stdout
    assert outcomes[0].returncode == outcomes[1].returncode
