"""What a person meets who tries rocmend for the first time, mistakes included."""

from __future__ import annotations

import os
import pwd
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.cli.conftest import Done

from rocmend.core.units import parse_model_size

Rocmend = Callable[..., Done]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def python(*words: str, shadowed: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python with modules of a folder in place of the installed ones."""
    where = os.environ | env | ({"PYTHONPATH": str(shadowed)} if shadowed else {})
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, env=where, timeout=60, cwd=shadowed
    )


@pytest.mark.parametrize("words", [("-m", "rocmend"), ("-c", "import {0}; {0}.{1}()")])
def test_ctrl_c_in_an_import(tmp_path: Path, words: tuple[str, str]) -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    entry = msgspec.toml.decode(project)["project"]["scripts"]["rocmend"].split(":")
    (tmp_path / "click.py").write_text(f"import os\nos.kill(os.getpid(), {signal.SIGINT})\nraise SystemExit('late')\n")
    done = python(words[0], words[1].format(*entry), shadowed=tmp_path)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_fallbacks_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    done = python("-m", "rocmend.fallbacks", "x.py", shadowed=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "rocmend wheel choose" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("wheel", "inspect", ""),
        ("port", ""),
        ("port", "undo", ""),
        ("machine", "capture", ""),
        ("doctor", "--machine", ""),
        ("doctor", "--machine="),
        ("doctor", "--python", ""),
        ("doctor", "-o", ""),
        ("machine", "diff", "strix-halo", ""),
    ],
)
def test_an_empty_path_is_not_the_working_folder(rocmend: Rocmend, words: tuple[str, ...]) -> None:
    done = rocmend(*words)
    assert (done.code, done.out) == (2, "")
    assert "path is empty" in done.err


def test_wheel_inspect_takes_the_environment_that_doctor_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rocmend: Rocmend
) -> None:
    site = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "version.py").write_text("hip = '7.2'\n")
    (site / "torch-9.8.7.dist-info").mkdir()
    (site / "torch-9.8.7.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.8.7\n")
    (site / "torch-9.8.7.dist-info" / "RECORD").write_text("torch/version.py,,\n")
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (tmp_path / ".venv" / "bin").mkdir()
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    done = rocmend("wheel", "inspect", "torch", "--target", "gfx1151", "--json")
    assert msgspec.json.decode(done.out)["data"]["inspection"]["version"] == "9.8.7"


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("wheel", "inspect", "nothing.whl"), "wheel inspect"),
        (("wheel", "inspect"), "wheel inspect"),
        (("machine", "show", "--machine", "nowhere"), "machine show"),
        (("port", "nowhere"), "port run"),
        (("probe", "--select", "nothing-like-it"), "probe run"),
        (("doctor", "--target", "gfx9999"), "doctor"),
    ],
)
def test_an_error_names_the_command_in_full(rocmend: Rocmend, words: tuple[str, ...], command: str) -> None:
    done = rocmend(*words, "--json")
    assert done.code == 2
    assert msgspec.json.decode(done.out)["command"] == command


def test_a_demo_leaves_the_report_of_this_machine_alone(tmp_path: Path, rocmend: Rocmend) -> None:
    rocmend("demo", "strix-halo")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rocmend-report-strix-halo.html"]


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "--machine", "strix-halo", "-o", "x.pdf"),
        ("doctor", "--machine", "strix-halo", "-o", "x.docx", "--target", "gfx1151"),
        ("targets", "-o", "x.sarif"),
        ("check", "--machine", "strix-halo", "-o", "x.pdf"),
        ("share", "--machine", "strix-halo", "--archive", "s.tar.gz"),
        ("share", "--machine", "strix-halo", "-o", "h.html"),
        ("demo", "-o", "x.html"),
        ("demo", "port", "copy", "-o", "x.html"),
    ],
)
def test_no_file_is_written_that_its_name_does_not_describe(
    tmp_path: Path, rocmend: Rocmend, words: tuple[str, ...]
) -> None:
    done = rocmend(*words)
    assert (done.code, list(tmp_path.iterdir())) == (2, [])


def test_text_by_its_name_and_the_list_of_probes_as_a_page(tmp_path: Path, rocmend: Rocmend) -> None:
    rocmend("targets", "-o", "x.txt")
    rocmend("probe", "--list", "--select", "matmul", "-o", "x.html")
    assert "gfx1151" in (tmp_path / "x.txt").read_text()
    assert "matmul" in (tmp_path / "x.html").read_text()


def test_probe_without_torch_says_what_to_install_and_promises_no_minutes(tmp_path: Path, rocmend: Rocmend) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = rocmend("probe", "--python", bare, "--no-store")
    assert done.code == 2
    assert "about" not in done.err
    assert "rocmend wheel choose" in done.err
    assert "--python" in done.err
    assert "--device cpu" not in done.err


@pytest.mark.parametrize("name", ["8060S", "gfx1151"])
def test_a_gpu_as_machine_is_told_the_option_for_it(rocmend: Rocmend, name: str) -> None:
    done = rocmend("doctor", "--machine", name)
    assert done.code == 2
    assert "--target gfx1151" in done.err


def test_names_of_machines_in_any_case_and_what_share_packs(tmp_path: Path, machines: Path, rocmend: Rocmend) -> None:
    assert rocmend("machine", "show", "--machine", "Strix-Halo").out.startswith("strix-halo")
    (tmp_path / "rocmend-share").mkdir()
    (tmp_path / "rocmend-share" / "capture").symlink_to(machines / "mi300x")
    assert rocmend("machine", "show", "--machine", "rocmend-share").code == 0
    (tmp_path / "s.zip").write_bytes(b"PK")
    done = rocmend("machine", "show", "--machine", "s.zip")
    assert done.code == 2
    assert "unzip s.zip" in done.err


@pytest.mark.parametrize("name", ["RX 580", "gfx803", "Radeon RX 470", "R9 Fury X", "Polaris 20"])
def test_a_gpu_without_support_is_called_that(rocmend: Rocmend, name: str) -> None:
    done = rocmend("doctor", "--target", name)
    assert done.code == 2
    assert "(gfx803), which ROCm does not support any more" in done.err
    assert "https://" in done.err
    assert "Did you mean" not in done.err


def test_wheel_choose_takes_the_name_pytorch_and_the_gpu_on_the_bus(rocmend: Rocmend) -> None:
    done = rocmend("wheel", "choose", "pytorch", "--machine", "no-driver")
    assert done.code == 0
    assert done.out.startswith("torch for gfx1201")
    assert "by its PCI id there is Radeon RX 9070 XT, gfx1201" in done.err


@pytest.mark.parametrize("words", [("doctor",), ("wheel", "inspect", "torch"), ("machine", "show")])
def test_python_and_machine_exclude_each_other(rocmend: Rocmend, words: tuple[str, ...]) -> None:
    done = rocmend(*words, "--machine", "strix-halo", "--python", sys.prefix)
    assert done.code == 2
    assert "Leave out --python or --machine" in done.err
    assert "Not with --machine" in " ".join(rocmend(*words, "--help").out.split())


def test_a_model_size_that_cannot_be_judged_is_told(rocmend: Rocmend) -> None:
    assert "--model-size is not used" in rocmend("doctor", "--target", "gfx906", "--model-size", "60GiB").err


@pytest.mark.parametrize(
    ("text", "size"),
    [("8B@q4", 4e9), ("8B@4", 4e9), ("8B@4bit", 4e9), ("30B-A3B", 6e10), ("500M", 1e9), ("7B", 1.4e10)],
)
def test_sizes_of_models_as_people_write_them(text: str, size: float) -> None:
    assert parse_model_size(text).size_bytes == size


def test_an_empty_home_is_none() -> None:
    words = (
        "import pathlib; from rocmend.cli.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: print(pathlib.Path.home())"
    )
    done = python("-c", words, HOME="")
    assert done.stdout.splitlines()[1:] == [pwd.getpwuid(os.getuid()).pw_dir]


def test_figures_and_sources_as_a_person_writes_them(rocmend: Rocmend) -> None:
    shown = rocmend("doctor", "--machine", "mi300x")
    assert "1,307 FP16 TFLOPS" in " ".join(shown.out.split())
    assert "((" not in rocmend("doctor", "--machine", "strix-halo", "--format", "md").out
    for words in (("kb", "show", "firmware-mes-0x83"), ("targets", "gfx1151")):
        text = rocmend(*words).out
        assert text.count("Source") - text.count("source:") == 1


def test_a_port_counts_in_one_way(rocmend: Rocmend) -> None:
    def told(*words: str) -> str:
        done = rocmend(*words)
        return " ".join((done.out + done.err).split())

    rocmend("demo", "port", "copy")
    plan, checked = told("port", "copy"), told("port", "verify", "copy")
    count = plan.partition("Port of copy ")[2].partition(" to be rewritten")[0]
    assert count.endswith(" files")
    assert f"{count} to be rewritten" in checked
    assert " rewritten" not in plan.replace("be rewritten", "").partition("Suggested")[0].partition("Plan")[0]
    assert f"{count} rewritten" in told("port", "copy", "--apply")
    again = told("port", "copy", "--apply").partition("Plan ")
    assert "Nothing to rewrite" in again[0]
    assert "rewritten" not in again[0]


def test_known_problems_of_a_target_have_titles(rocmend: Rocmend) -> None:
    done = rocmend("doctor", "--target", "gfx1010", "--format", "md")
    assert "| problem |" in done.out
    assert "`rocmend doctor --explain ID`" in done.out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("doctor my-gpu", "`--target my-gpu`"),
        ("wheel choose torch 'RX 5600 XT'", "`--target 'RX 5600 XT'`"),
        ("wheel choose 'RX 5600 XT'", "rocmend wheel choose --target 'RX 5600 XT'"),
        ("store list", "Did you mean ls?"),
        ("wheel choose pytroch", "Did you mean pytorch?"),
        ("wheel choose flash-atn", "Did you mean flash-attn?"),
        ("kb search ''", "has no word to look for"),
        ("kb search '?!'", "has no word to look for"),
        ("port vrify", "Did you mean `rocmend port verify`?"),
        ("port vrify .", "Did you mean `rocmend port verify`?"),
        ("port undoo --json-lines", "Did you mean `rocmend port undo`?"),
        ("probe --smoke", "--select smoke"),
        ("env --pytorch", "--for pytorch"),
        ("help", "`rocmend --help`"),
        ("targets show gfx1010", "`rocmend targets gfx1010`"),
        ("wheel inspect no-such-package --machine rx-5600-xt", "and no installed package of that name"),
        ("wheel inspect no-such-package --machine rx-5600-xt", "packages of a captured machine cannot be read"),
        ("lab plan nothing.toml -o nowhere/x.html", "does not exist"),
    ],
)
def test_a_near_miss_is_told_the_way(line: str, told: str, installed: Callable[..., Done]) -> None:
    done = installed(*shlex.split(line))
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_nothing_unlike_is_suggested(installed: Callable[..., Done]) -> None:
    assert "Did you mean" not in installed("kb", "show", "foo").err
    assert "firmware-mes-0x83" in installed("kb", "show", "firmware-mes-0x38").err


def test_packages_are_completed_and_gpus_have_their_full_name(installed: Callable[..., Done]) -> None:
    asked = {"_ROCMEND_COMPLETE": "bash_complete", "COMP_WORDS": "rocmend wheel choose fl", "COMP_CWORD": "3"}
    assert installed(**asked).out.split() == ["plain,flash-attn"]
    assert "Radeon VII is gfx906" in installed("wheel", "choose", "--target", "radeon-vii").err


def test_check_lists_the_known_problems_of_a_target(installed: Callable[..., Done]) -> None:
    told = installed("check", "--target", "gfx1151", "--no-store").out
    assert "Known problems of gfx1151" in told
    assert "firmware-mes-0x83" in told
