"""The audit of an environment, and the plan that follows from it."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from rocmend.core.errors import UsageError
from rocmend.core.records import Severity
from rocmend.port.build.asked import project
from rocmend.port.build.audit import Audit, audit, findings
from rocmend.port.build.environment import Environment, Installed, Torch, environment
from rocmend.port.build.install import install_plan
from rocmend.port.build.packages import packages

PROJECT = """
[build-system]
requires = ["setuptools", "torch"]

[project]
name = "a"
requires-python = ">=3.99"
dependencies = [
  "numpy>=1.26; python_version > '3'",
  "torch==2.7.1",
  "nvidia-nccl-cu12",
  "xformers",
  "flash-attn",
  "jax[cuda12]==0.5",
  "member",
  "other",
]

[project.optional-dependencies]
dev = ["pytest"]

[tool.uv.workspace]
members = ["packages/*"]

[tool.uv.sources]
member = { workspace = true }
other = { git = "https://example.org/other", rev = "abc" }
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "packages/member").mkdir(parents=True)
    (tmp_path / "packages/member/pyproject.toml").write_text('[project]\nname = "member"\n')
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "requirements.txt").write_text("-r more.txt\neinops\n")
    (tmp_path / "more.txt").write_text("rich==14 # more\n-r ../outside.txt\n")
    return tmp_path


def have(*installed: Installed, torch: Torch | None = None, variables: dict[str, str] | None = None) -> Environment:
    known = torch if torch is not None else Torch("/s/torch", "2.9.1+rocm7.1", "7.1.25424")
    return Environment("3.12.1", "/e/bin/python", "/e", True, installed, known, variables=variables or {})


def ids(environment: Environment, root: Path) -> list[str]:
    return [one.id for one in findings(environment, project(root))]


def installed(folder: Path, name: str, version: str, *asks: str) -> None:
    place = folder / f"{name}-{version}.dist-info"
    place.mkdir(parents=True)
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in asks)]
    (place / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n")


def torch_of(folder: Path, version: str, hip: str | None) -> None:
    (folder / "torch").mkdir(parents=True, exist_ok=True)
    text = f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = None\nhip: Optional[str] = {hip!r}\n"
    (folder / "torch/version.py").write_text(text)
    (folder / "torch/__init__.py").write_text("raise RuntimeError('nobody may import this')\n")
    installed(folder, "torch", version)


def test_what_a_project_asks_for(root: Path) -> None:
    wants = project(root)
    assert [one.text for one in wants.asked if not one.optional] == [
        "setuptools",
        "torch",
        "numpy>=1.26; python_version > '3'",
        "torch==2.7.1",
        "nvidia-nccl-cu12",
        "xformers",
        "flash-attn",
        "jax[cuda12]==0.5",
        "member",
        "other @ git+https://example.org/other@abc",
        "einops",
        "rich==14",
    ]
    assert [one.name for one in wants.asked if one.build] == ["setuptools", "torch"]
    assert [one.local for one in wants.asked if one.local] == ["packages/member"]
    assert wants.requires_python == ">=3.99"
    assert wants.installable


def test_setup_py_is_read_where_it_says_it(tmp_path: Path) -> None:
    text = (
        "from setuptools import setup\nR = ['numpy', 'torch>=2']\nsetup(install_requires=R, setup_requires=['ninja'])\n"
    )
    (tmp_path / "setup.py").write_text(text)
    assert [(one.text, one.build) for one in project(tmp_path).asked] == [
        ("numpy", False),
        ("torch>=2", False),
        ("ninja", True),
    ]


def test_an_environment_is_read_by_its_interpreter_without_importing_torch(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    torch_of(folder, "2.9.1+rocm7.1", "7.1.25424")
    installed(folder, "xformers", "0.0.33", "torch==2.9.0", "numpy")
    variables = {**os.environ, "PYTHONPATH": str(folder), "PIP_INDEX_URL": "https://me:secret@example.org/whl/cu128"}
    variables |= {"UV_PUBLISH_TOKEN": "hunter2", "PIP_NOTE": "gsk_" + "a1" * 20}
    found = environment(sys.executable, variables=variables)
    assert found.torch == Torch(str(folder / "torch"), "2.9.1+rocm7.1", "7.1.25424")
    asked = {one.name: one.asks for one in found.packages}
    assert asked["xformers"] == ("torch==2.9.0",)
    assert found.python == "{}.{}.{}".format(*sys.version_info[:3])
    assert found.variables["PIP_INDEX_URL"] == "https://***@example.org/whl/cu128"
    assert (found.variables["UV_PUBLISH_TOKEN"], found.variables["PIP_NOTE"]) == ("***", "***")


def test_the_interpreter_that_runs_the_tests_can_be_asked() -> None:
    found = environment(sys.executable)
    assert {"pytest", "packaging"} <= {one.name.lower() for one in found.packages}
    assert Path(found.prefix) == Path(sys.prefix)


def test_what_is_no_interpreter_is_told(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    for argv, limit in ((script, 20.0), (tmp_path / "none", 20.0), (slow, 0.2)):
        with pytest.raises(UsageError):
            environment(argv, time_limit_s=limit)


def test_findings_about_torch(root: Path) -> None:
    assert "AU01" in ids(have(torch=Torch()), root)
    assert "AU02" in ids(have(torch=Torch("/s/torch", "2.9.1+cu128", "", "12.8")), root)
    twice = have(Installed("torch", "2.9.1+rocm7.1", "/s"), Installed("torch", "2.7.1", "/t"))
    assert "AU03" in ids(twice, root)
    alone = have(Installed("torch", "2.9.1+rocm7.1", "/s"))
    assert not {"AU01", "AU02", "AU03"} & set(ids(alone, root))


def test_findings_about_what_is_installed(root: Path) -> None:
    torch = Installed("torch", "2.9.1+rocm7.1", "/s")
    assert "AU04" in ids(have(torch, Installed("nvidia-cublas-cu12", "12.4")), root)
    assert "AU05" in ids(have(torch, Installed("xformers", "0.0.33", "/s", ("torch==2.9.0",))), root)
    fits = Installed("torchvision", "0.24.1", "/s", ("torch==2.9.1", "torch==1 ; extra == 'x'"))
    assert "AU05" not in ids(have(torch, fits), root)
    assert "AU06" in ids(have(torch, Installed("triton", "3.5"), Installed("pytorch-triton-rocm", "3.5")), root)


def test_findings_about_what_is_asked_for(root: Path) -> None:
    found = findings(have(Installed("torch", "2.9.1+rocm7.1", "/s")), project(root))
    by_id = {one.id: [other.message for other in found if other.id == one.id] for one in found}
    assert any("torch==2.7.1" in message for message in by_id["AU07"])
    assert any("build requires torch" in message for message in by_id["AU09"])
    left = " ".join(by_id["AU10"])
    assert "xformers" in left
    assert "nvidia-nccl-cu12" in left
    assert "jax[cuda12]" in left
    assert any("flash-attn" in message for message in by_id["AU11"])
    assert "AU13" in by_id
    assert [one.severity.rank for one in found] == sorted(one.severity.rank for one in found)
    assert found[0].severity is Severity.ERROR


def test_a_torch_that_is_accepted_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.9\n")
    assert ids(have(Installed("torch", "2.9.1+rocm7.1", "/s")), tmp_path) == []
    (tmp_path / "requirements.txt").write_text("torch==2.9.1\n")
    assert ids(have(Installed("torch", "2.9.1+rocm7.1", "/s")), tmp_path) == []


def test_a_torch_from_an_index_for_rocm_is_not_called_a_cuda_build(tmp_path: Path) -> None:
    index = "--index-url https://example.org/whl/rocm7.1\n"
    for text, expected in (
        ("torch==2.9.1\n", ["AU08"]),
        (f"{index}torch==2.9.1\n", []),
        ("torch==2.9.1+rocm7.1\n", []),
    ):
        (tmp_path / "requirements.txt").write_text(text)
        found = ids(have(torch=Torch()), tmp_path)
        assert [one for one in found if one == "AU08"] == expected, text


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("TORCHINDUCTOR_MAX_AUTOTUNE", "1", True),
        ("TORCHINDUCTOR_MAX_AUTOTUNE", "0", False),
        ("PYTORCH_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:64", True),
        ("PYTORCH_ALLOC_CONF", "max_split_size_mb:64", False),
        ("PIP_EXTRA_INDEX_URL", "https://example.org/whl/cu121", True),
        ("PIP_EXTRA_INDEX_URL", "https://example.org/whl/rocm7.1", False),
        ("HSA_OVERRIDE_GFX_VERSION", "11.0.0", True),
    ],
)
def test_findings_about_variables(tmp_path: Path, name: str, value: str, found: bool) -> None:
    assert ("AU12" in ids(have(variables={name: value}), tmp_path)) is found


def planned(root: Path) -> str:
    wants = project(root)
    known = have(Installed("torch", "2.9.1+rocm7.1", "/s"))
    return install_plan(Audit(known, wants, tuple(findings(known, wants)))).script()


def test_the_plan_leaves_torch_alone(root: Path) -> None:
    script = planned(root)
    commands = [line for line in script.replace("\\\n", " ").splitlines() if " -m pip install" in line]
    run = [line for line in commands if not line.startswith("#")]
    assert len(run) == 4
    assert all("-c" in line.split() or "--no-deps" in line.split() for line in run)
    assert not any(name in " ".join(run) for name in ("torch", "nvidia", "xformers", "flash-attn", "cuda", "pytest"))
    assert "'numpy>=1.26; python_version > '\"'\"'3'\"'\"''" in script
    assert "jax==0.5" in script
    assert run[-2].endswith("--ignore-requires-python -e ./packages/member")
    assert run[-1].endswith("-e .")
    assert any("flash-attn" in line for line in commands if line.startswith("#"))


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_the_plan_is_a_script(root: Path, tmp_path: Path, shell: str) -> None:
    (tmp_path / "plan.sh").write_text(planned(root))
    subprocess.run([shell, "-n", str(tmp_path / "plan.sh")], check=True)


@pytest.mark.slow
def test_the_plan_stops_where_torch_is_not_for_rocm_and_where_it_is_replaced(tmp_path: Path) -> None:
    """Run for real, with a pip that replaces torch as pip would without the plan."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p/requirements.txt").write_text("numpy\n")
    known = have(Installed("torch", "2.9.1+rocm7.1", "/s"))
    script = tmp_path / "plan.sh"
    script.write_text(install_plan(Audit(known, project(tmp_path / "p"), ())).script())
    venv.create(tmp_path / "e", with_pip=False)
    python = tmp_path / "e/bin/python"
    folder = next((tmp_path / "e/lib").glob("python*/site-packages"))
    run = ["sh", str(script)]
    variables = {"PATH": "/usr/bin:/bin", "PYTHON": str(python)}

    done = subprocess.run(run, env=variables, capture_output=True, check=False)
    assert done.returncode != 0
    assert b"No PyTorch is installed" in done.stderr

    torch_of(folder, "2.9.1+rocm7.1", "7.1")
    (folder / "pip").mkdir()
    (folder / "pip/__init__.py").write_text("")
    (folder / "pip/__main__.py").write_text("import sys\nprint(open(sys.argv[3]).read(), sys.argv[4:])\n")
    done = subprocess.run(run, env=variables, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"torch==2.9.1+rocm7.1\n" in done.stdout
    assert b"['numpy']" in done.stdout
    assert b"is what it was" in done.stdout

    replaced = str(folder / "torch/version.py")
    (folder / "pip/__main__.py").write_text(
        f"open({replaced!r}, 'w').write(\"__version__ = '2.9.1'\\nhip = None\\n\")\n"
    )
    done = subprocess.run(run, env=variables, capture_output=True, check=False)
    assert done.returncode != 0
    assert b"torch.version.hip is None" in done.stderr


def test_real_environment_against_a_project(root: Path) -> None:
    made = audit(root, sys.executable)
    assert made.environment.packages
    assert any(one.id in {"AU01", "AU02"} for one in made.findings) or made.environment.torch.hip


def test_what_is_known_of_packages_has_sources() -> None:
    names = [name for one in packages() for name in one.names]
    assert len(names) == len(set(names))
    assert all(one.source.startswith("https://") and one.note.endswith(".") for one in packages())
