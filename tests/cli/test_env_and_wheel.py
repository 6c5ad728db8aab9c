from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.codeobject.conftest import Build

from rocmend.kb.load import load_entries

Run = Callable[..., Any]


@pytest.mark.parametrize("workload", ["pytorch", "llama.cpp", "mlx", "training", "vision", "vllm", "inference"])
@pytest.mark.parametrize("machine", ["strix-halo", "rx-5600-xt", "mi300x", "no-amd-gpu"])
def test_bash_can_source_what_env_prints(rocmend: Run, machines: Path, machine: str, workload: str) -> None:
    done = rocmend("env", "--for", workload, "--machine", machines / machine)
    assert done.code == 0
    subprocess.run(["bash", "-euc", done.out], check=True, env={"PATH": os.environ["PATH"]})


@pytest.mark.parametrize("machine", ["mi300x", "strix-halo", "rx-5600-xt", "rx-7900-xtx"])
@pytest.mark.parametrize("shell", ["bash", "docker"])
def test_no_setting_of_another_gpu_or_version(rocmend: Run, machine: str, shell: str) -> None:
    text = "".join(
        rocmend("env", "--for", workload, "--shell", shell, "--machine", machine).out
        for workload in ("pytorch", "training", "vision", "inference", "llama.cpp", "vllm", "mlx")
    )
    if machine != "rx-5600-xt":
        assert "RDNA1" not in text
    if machine != "strix-halo":
        assert "gfx1151" not in text
    if machine != "mi300x":
        assert "MI300" not in text
    assert "TheRock 7.11" not in text  # none of them has it
    assert "expandable_segments" not in text or machine == "strix-halo"  # mi300x has an older PyTorch


def test_kubernetes_gets_yaml(rocmend: Run, machines: Path) -> None:
    text = rocmend("env", "--for", "pytorch", "--shell", "k8s", "--machine", machines / "mi300x").out
    assert all(set(item) == {"name", "value"} for item in yaml.safe_load(text)["env"])


def test_an_extracted_tarball_is_set_up(rocmend: Run, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    text = rocmend("env", "--for", "llama.cpp", "--target", "gfx1151", "--rocm-path", tmp_path).out
    for name in ("ROCM_PATH", "HIP_PATH", "HIP_PLATFORM", "HIP_DEVICE_LIB_PATH", "LD_LIBRARY_PATH", "PATH"):
        assert f"\nexport {name}=" in text
    assert str(tmp_path) in text


def test_choose_has_a_command_with_the_target_in_it(rocmend: Run) -> None:
    done = rocmend("wheel", "choose", "--target", "gfx1151", "--json")
    choices = msgspec.json.decode(done.out)["data"]["choices"]
    assert done.code == 0
    assert choices[0]["serves"] is True
    assert "gfx1151" in choices[0]["command"]
    assert not any("{" in choice["command"] for choice in choices)


@pytest.mark.slow
def test_choose_says_which_cautions_concern_this_gpu(rocmend: Run) -> None:
    strix = rocmend("wheel", "choose", "--target", "strix-halo", "--all").out
    assert "convolutions on this GPU" in " ".join(strix.split())
    navi = rocmend("wheel", "choose", "--target", "navi 31", "--all").out
    assert "convolutions" not in navi


def test_an_installed_torch_with_code_for_the_gpu_is_not_told_to_be_replaced(rocmend: Run) -> None:
    told = rocmend("wheel", "choose", "--machine", "mi300x").out
    assert "torch 2.9.1+rocm7.0 is installed and has code for gfx942. Nothing needs" in told
    assert told.index("Check it") < told.index("To install another") < told.index("pip install")
    other = rocmend("wheel", "choose", "--machine", "mi300x", "--target", "gfx1100").out
    assert "is installed" not in other
    assert "rocmend wheel inspect torch --native" in other  # which fails where torch is a CPU build


def test_one_answer_about_the_gpu_inside_wsl(installed: Run) -> None:
    """ROCm's tools are the only ones that see it: what they see, every command knows."""
    told = {
        name: installed(*words, "--machine", "wsl2").out
        for name, words in {
            "doctor": ("doctor",),
            "choose": ("wheel", "choose"),
            "env": ("env", "--for", "pytorch"),
        }.items()
    }
    assert "AMD Radeon RX 7900 XTX, gfx1100" in told["doctor"]
    assert "has code for this GPU" in told["doctor"]
    assert "is installed and has code for gfx1100" in " ".join(told["choose"].split())
    assert "pytorch on wsl2 (gfx1100)" in told["env"]
    variable = "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1"
    assert variable in told["doctor"]
    assert variable in told["env"]


@pytest.mark.parametrize(
    ("program", "package"), [("comfyui", "torch"), ("ComfyUI", "torch"), ("llamacpp", "llama.cpp")]
)
def test_a_program_is_answered_with_what_it_runs_on(installed: Run, program: str, package: str) -> None:
    done = installed("wheel", "choose", program, "--target", "gfx1151")
    assert done.code == 0
    assert done.out == installed("wheel", "choose", package, "--target", "gfx1151").out


def test_a_program_that_brings_its_own_code_is_told_so(installed: Run) -> None:
    done = installed("wheel", "choose", "ollama", "--target", "gfx1151")
    assert done.code == 0
    assert "brings its own GPU code" in done.out
    assert "id: vulkan-ollama" in done.out
    unknown = installed("wheel", "choose", "tensorflow", "--target", "gfx1151")
    assert unknown.code == 2
    assert "rocmend kb search tensorflow" in unknown.err


def test_choose_needs_a_gpu_or_a_target(rocmend: Run, machines: Path) -> None:
    done = rocmend("wheel", "choose", "--machine", machines / "no-amd-gpu")
    assert done.code == 2
    assert "--target gfx1151" in done.err
    assert "`rocmend targets` lists" in " ".join(done.err.split())


def test_matrix_shows_targets_and_marks(rocmend: Run) -> None:
    done = rocmend("kb", "matrix", "pytorch-source", "--target", "gfx1151")
    assert done.code == 0
    assert "TheRock" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def _package(folder: Path) -> Path:
    """A package with two libraries, of which only the newer has code for RDNA 1."""
    for version, targets in (("72", ("gfx1100",)), ("714", ("gfx1100", "gfx1010"))):
        library = folder / "thing" / f"libthing_rocm{version}.so"
        library.parent.mkdir(parents=True, exist_ok=True)
        library.write_bytes(Build.hip_library(Build.bundle_for(*targets)))
    return folder / "thing"


def test_native_means_the_environments_package_without_an_override(
    rocmend: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the plan's check relies on: neither a folder of that name nor an override nor no GPU passes."""
    site = tmp_path / "venv/lib/python3.12/site-packages"
    for folder, target in ((site, "gfx1030"), (tmp_path / "here", "gfx1031")):
        (folder / "torch").mkdir(parents=True)
        (folder / "torch/__init__.py").touch()
        (folder / "torch/libtorch_hip.so").write_bytes(Build.hip_library(Build.bundle_for(target)))
    (tmp_path / "venv/pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.3\n")
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python3").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path / "here")
    arguments = ["wheel", "inspect", "torch", "--native"]
    assert rocmend(*arguments, "--target", "gfx1031").code == 0
    environment = ["--python", tmp_path / "venv/bin/python3"]
    assert rocmend(*arguments, *environment, "--target", "gfx1030").code == 0
    assert rocmend(*arguments, *environment, "--target", "gfx1031").code == 1
    assert rocmend("wheel", "inspect", "torch", *environment, "--target", "gfx1031").code == 0
    monkeypatch.setattr("rocmend.cli.commands.wheel_inspect._asked", lambda *_: ([], ""))
    assert rocmend(*arguments, *environment).code == 1


def test_inspect_draws_a_package_of_variants_and_knows_its_hip(rocmend: Run, tmp_path: Path) -> None:
    package = _package(tmp_path)
    page = tmp_path / "page.html"
    rocmend("wheel", "inspect", package, "--target", "rx 5600 xt", "-o", page)
    gfx1100, gfx1010 = re.findall(r'width="([\d.]+)%" y="0" height="16" rx="2" class="fill (\w+)"', page.read_text())
    assert gfx1100 == ("100", "plain")
    assert gfx1010 == ("50", "good")  # what was asked about
    known = rocmend("wheel", "inspect", package, "--target", "rx 5600 xt", "--hip", "7.14")
    assert (known.code, known.out.splitlines()[1]) == (0, "gfx1010: runs natively")
    wrong = rocmend("wheel", "inspect", package, "--hip", "newest")
    assert (wrong.code, "expected a version such as 7.2" in wrong.err) == (2, True)


def test_an_image_is_told_to_leave_a_variable_out(rocmend: Run) -> None:
    text = rocmend("env", "--for", "pytorch", "--machine", "rx-5600-xt", "--shell", "docker").out
    assert not [line for line in text.splitlines() if line.startswith("ENV") and line.endswith("=")]
    assert "(leave HSA_OVERRIDE_GFX_VERSION out of the image" in text


@pytest.mark.parametrize(("workload", "package"), [("pytorch", "torch"), ("llama.cpp", "llama.cpp")])
def test_an_override_goes_once_a_native_build_is_there(rocmend: Run, workload: str, package: str) -> None:
    text = rocmend("env", "--for", workload, "--machine", "strix-halo").out
    comment = text.partition("# unset HSA_OVERRIDE_GFX_VERSION")[0].rpartition("\n\n")[2]
    told = " ".join(comment.replace("#", " ").split())
    assert f"Use this line as soon as {'a PyTorch with' if package == 'torch' else 'llama.cpp has'} code" in told
    assert f"rocmend wheel choose {package}" in told
    assert "\nunset HSA_OVERRIDE" not in text  # what is there runs only with it


@pytest.mark.slow
def test_ways_are_called_what_they_are(installed: Run) -> None:
    """No way is called by a fragment of its command, and no two alike."""
    for package in ("torch", "vllm", "flash-attn"):
        done = installed("wheel", "choose", package, "--target", "gfx1151", "--json")
        names = [choice["name"] for choice in msgspec.json.decode(done.out)["data"]["choices"]]
        assert len(set(names)) == len(names)
    told = installed("wheel", "choose", "torch", "--all", "--target", "gfx1151").out
    assert "1. AMD's index" in told
    assert "python setup.py" not in told.partition("Not for this GPU")[2]


def test_a_copy_of_a_machines_files_says_nothing_of_a_package(installed: Run, tmp_path: Path) -> None:
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        machine = "demo/examples/machines/one/root/opt/venv/lib/python3.12/site-packages"
        archive.writestr(f"{machine}/torch/version.py", "hip = '6.2.41133'\ncuda = '12.8'\n")
        archive.writestr("demo/examples/machines/one/root/opt/rocm/.info/version", "7.1.1\n")
        archive.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    done = installed("wheel", "inspect", str(wheel), "--json")
    data = msgspec.json.decode(done.out)["data"]
    data = data.get("inspection", data)
    assert not data["versions"]


def test_what_cannot_be_read_is_not_called_built_for_the_cpu(installed: Run, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "empty.so").touch()
    for subject, why in (("none", "no files in it"), ("empty.so", "is empty (0 bytes)")):
        done = installed("wheel", "inspect", str(tmp_path / subject))
        assert (done.code, done.out) == (2, "")
        assert why in done.err
        assert "Expected a wheel" in done.err
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "a.txt").write_text("text")
    (mixed / "x.so").touch()
    done = installed("wheel", "inspect", str(mixed))
    assert done.code == 1
    assert "not known: files could not be read" in done.out
    done = installed("wheel", "inspect", os.path.realpath(sys.executable))
    assert done.code == 0
    assert "CPU or pure Python" not in done.out


def test_an_index_that_has_ended_says_so_where_it_is_shown(rocmend: Run) -> None:
    rows = load_entries().indexes
    ended = {row.url: row for row in rows.values() if row.ended is not None}
    choices = json.loads(rocmend("wheel", "choose", "torch", "--target", "gfx1151", "--json").out)["data"]["choices"]
    told = [(row, one) for one in choices for url, row in ended.items() if url in one["command"]]
    assert told
    for row, one in told:
        assert f"has had no new builds since {row.ended}" in one["caution"]
        assert rows[row.successor].url in one["caution"]
