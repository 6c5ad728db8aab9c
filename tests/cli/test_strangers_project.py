"""A stranger's project: whatever is pointed at it, nothing of it is executed unless that is asked for."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SECRETS = {"HF_TOKEN": "hf_secret", "AWS_SECRET_ACCESS_KEY": "aws", "SSH_AUTH_SOCK": "/tmp/agent", "MY_KEY": "key"}
TRAP = "import os\nopen(os.environ.get('CANARY', {canaries!r}) + '/{name}', 'w').write(repr(dict(os.environ)))\n"
SHADOWS = (
    "setup.py", "conftest.py", "sitecustomize.py", "usercustomize.py", "torch.py", "triton.py", "click.py", "json.py",
    "msgspec.py", "runpy.py", "pip.py", "numpy.py", "rocm_smi.py", "tests/conftest.py",
)  # fmt: skip
PROGRAMS = (
    ".venv/bin/python",
    "venv/bin/python",
    "git",
    "nvcc",
    "hipcc",
    "nvidia-smi",
    "rocminfo",
    "python3",
    "podman",
)
PORTED = 'import torch\n\n\ndef step(model):\n    return torch.compile(model, mode="max-autotune")\n'
KERNEL = """#include <cuda_runtime.h>

__global__ void total(const float* in, float* out) {
  float value = in[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  if (threadIdx.x == 0) *out = value;
}
int main() { return 0; }
"""


COMMANDS = {
    "port": ("port", "."),
    "audit": ("port", "audit", "."),
    "apply": ("port", ".", "--apply", "--allow-dirty", "--target", "gfx1151"),
    "verify": ("port", "verify", ".", "--level", "amd"),
    "list": ("port", "verify", ".", "--run", "--list", "--container", "rocm/pytorch"),
    "golden": ("port", "golden", ".", "--name", "here"),
    "check": ("check", ".", "--target", "gfx1151", "--no-probe", "-o", "REPORT", "--no-store"),
    "doctor": ("doctor",),
    "inspect": ("wheel", "inspect", "WHEEL"),
    "choose": ("wheel", "choose", "torch", "--target", "gfx1151"),
}
"""What is pointed at it, in this order: what comes after ``apply`` meets a project that was ported."""


class Stranger:
    """The project, and where its files say that they were executed."""

    def __init__(self, folder: Path) -> None:
        self.root, self.canaries, self.home = folder / "project", folder / "canaries", folder / "home"
        for made in (self.root / "pkg", self.root / "tests", self.canaries, self.home):
            made.mkdir(parents=True)
        for name in SHADOWS:
            self.trap(name)
        self.trap("pkg/__init__.py")
        self.trap("pkg/train.py", PORTED)
        self.trap("pkg/ops.py", "def doubled(x):\n    return x * 2\n")
        self.trap("tests/test_all.py", "def test_one():\n    pass\n")
        (self.root / "kernel.cu").write_text(KERNEL)
        (self.root / "Makefile").write_text(f"$(shell touch {self.canaries}/Makefile)\nrun:\n\t./kernel 1\n")
        (self.root / "CMakeLists.txt").write_text(f"execute_process(COMMAND touch {self.canaries}/CMakeLists)\n")
        (self.root / "pyproject.toml").write_text('[tool.rocmend.port]\ngolden = ["pkg.ops:doubled"]\n')
        for name in (
            ".venv/bin/python",
            "venv/bin/python",
            "git",
            "nvcc",
            "hipcc",
            "nvidia-smi",
            "rocminfo",
            "python3",
        ):
            self.program(name)

    def trap(self, name: str, rest: str = "") -> None:
        text = TRAP.format(canaries=str(self.canaries), name=name.replace("/", "-"))
        (self.root / name).write_text(text + rest)

    def program(self, name: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(f"#!/bin/sh\nenv > {self.canaries}/{name.replace('/', '-')}\nexit 1\n")
        (self.root / name).chmod(0o755)

    @property
    def executed(self) -> set[str]:
        return {path.name for path in self.canaries.iterdir()}

    def run(self, *arguments: str, module: bool = False, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the command in the project's folder, with ``.`` on the PATH."""
        source = str(Path(__file__).parents[2] / "src")
        start = [sys.executable, "-m", "rocmend"] if module else [sys.executable, "-P", "-m", "rocmend"]
        given = {
            "PATH": f".:{self.root.name}::{os.environ['PATH']}",
            "PYTHONPATH": source,
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            **SECRETS,
            **env,
        }
        return subprocess.run(
            [*start, *arguments], cwd=self.root, env=given, capture_output=True, text=True, check=False, timeout=120
        )


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    return Stranger(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("wheel") / "some-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("some/__init__.py", "")
        made.writestr("some-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: some\nVersion: 1.0\n")
        made.writestr("some-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        made.writestr("some-1.0.dist-info/RECORD", "")
    return str(path)


Answer = Callable[[str], tuple[int, Any, str]]


@pytest.fixture(scope="module")
def answer(stranger: Stranger, wheel: str) -> Answer:
    """Return what a command says that was not asked to run anything: exit code, JSON, stderr. Each runs once."""
    report = f"{stranger.home}/report.html"

    @functools.cache
    def run(name: str) -> tuple[int, Any, str]:
        arguments = [wheel if word == "WHEEL" else report if word == "REPORT" else word for word in COMMANDS[name]]
        done = stranger.run(*arguments, "--json")
        assert not stranger.executed, (arguments, stranger.executed, done.stderr)
        assert "Traceback" not in done.stderr, (arguments, done.stderr)
        return done.returncode, json.loads(done.stdout), done.stderr

    return run


@pytest.mark.slow
def test_nothing_of_it_is_executed_unasked(stranger: Stranger, answer: Answer) -> None:
    for name in COMMANDS:
        code, envelope, _ = answer(name)
        assert envelope["exit_code"] == code, name
    stranger.run("port", ".", module=True)
    assert not stranger.executed, "python -m puts the working folder before what is installed"


@pytest.mark.slow
def test_what_is_not_run_says_why_and_how(answer: Answer) -> None:
    answer("apply")
    code, envelope, _ = answer("verify")
    assert code == 1, "the level that was named did not run"
    levels = {one["name"]: one for one in envelope["data"]["levels"]}
    python = levels["python"]
    assert (python["status"], python["command"]) == ("not run", "rocmend port verify . --level python --run")
    assert "executes the project's code" in python["why"]
    assert {step["kind"] for step in python["steps"]} == {"import", "tests", "golden"}
    assert all(one["status"] != "not run" or one["why"] for one in levels.values())
    code, envelope, _ = answer("golden")
    said = str(envelope["errors"])
    assert code == 2
    assert "rocmend port golden . --name here --run" in said
    assert "pkg.ops:doubled" in said
    checked = {one["name"]: one for one in answer("check")[1]["data"]["project"]["proof"]["levels"]}
    wanted = "rocmend port verify . --level python --target gfx1151 --run"
    assert (checked["python"]["status"], checked["python"]["command"]) == ("not run", wanted)


def test_the_list_names_everything(answer: Answer) -> None:
    answer("apply")  # what is imported is what was ported
    code, envelope, _ = answer("list")
    assert code == 0
    found = envelope["data"]
    names = {(step["kind"], name): step for step in found["steps"] for name in step["names"]}
    assert ("import", "pkg/train.py") in names
    assert "pytest reads conftest.py, tests/conftest.py" in names["tests", "tests/test_all.py"]["source"]
    assert names["golden", "pkg.ops:doubled"]["source"] == "[tool.rocmend.port] golden in pyproject.toml"
    assert "in a container of rocm/pytorch, without a network" in found["how"]
    assert names["import", "pkg/train.py"]["command"].startswith("python3 "), "the container's own interpreter"


@pytest.mark.slow
def test_with_run_it_runs_without_secrets(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path)
    (stranger.root / ".venv/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name in ("sitecustomize", "usercustomize", "json", "runpy", "click", "msgspec", "pip", "numpy"):
        (stranger.root / f"{name}.py").unlink()
    stranger.trap("torch.py", "class version:\n    hip = None\n\n\ndef compile(model, mode=None):\n    return model\n")
    (stranger.root / "pyproject.toml").unlink()
    (stranger.root / "kernel.cu").unlink()
    stranger.run("port", ".", "--apply", "--allow-dirty")
    before = {path: path.read_bytes() for path in stranger.root.rglob("*.py")}
    stranger.trap("tests/test_all.py", "def test_one():\n    open(__file__, 'a').write('#')\n")
    done = stranger.run("port", "verify", ".", "--level", "python", "--run", "--pass-env", "MY_KEY", "--json")
    assert "Executed now" in done.stderr
    level = json.loads(done.stdout)["data"]["levels"][-1]
    assert (level["name"], level["status"]) == ("python", "passed"), level
    assert {"conftest.py", "torch.py", "pkg-train.py", "tests-test_all.py"} <= stranger.executed
    assert "setup.py" not in stranger.executed
    for path in stranger.canaries.iterdir():
        seen = path.read_text()
        assert [name for name in SECRETS if name in seen] == ["MY_KEY"], path.name
        assert str(stranger.home) not in seen, "it has a home of its own"
    after = {path: path.read_bytes() for path in before}
    before[stranger.root / "tests/test_all.py"] = after[stranger.root / "tests/test_all.py"]
    assert after == before, "tests write to a copy"
    assert not after[stranger.root / "tests/test_all.py"].endswith(b"#")


def test_children_do_not_import_from_the_working_folder() -> None:
    source = Path(__file__).parents[2] / "src"
    started = re.compile(r"""sys\.executable[^\])]*?["']-[mc]["']""")
    exempt = {"rocmend/runner/local.py", "rocmend/cli/mlx.py"}  # a folder of its own; `mlx run` is like `python -m`
    unsafe = {
        path.relative_to(source).as_posix(): found[0]
        for path in source.rglob("*.py")
        for found in started.finditer(path.read_text(encoding="utf-8"))
        if '"-P"' not in found[0] and '"-I"' not in found[0]
    }
    assert unsafe.keys() <= exempt, unsafe


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--container", "image"), "--run was not given"),
        (("--pass-env", "HF_TOKEN"), "--run was not given"),
        (("--run", "--pass-env", "NOT_THERE"), "NOT_THERE is not set"),
        (("--run", "--pass-env", "A=B"), "expected a variable name"),
    ],
)
def test_options_that_say_nothing(stranger: Stranger, arguments: tuple[str, ...], words: str) -> None:
    done = stranger.run("port", "verify", ".", *arguments)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert not stranger.executed
