"""What an audit of a project could not read is named, with the reason, and is no clean audit."""

from __future__ import annotations

import json
import os
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Done

Rocmend = Callable[..., Done]
PIN = "torch==2.3.0+cu121\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that finds PyTorch for ROCm, so that nothing but the project is left to complain about."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    torch = next(folder.glob("lib/python*/site-packages")) / "torch"
    torch.mkdir()
    (torch / "version.py").write_text("__version__ = '2.9.1+rocm7.1'\nhip = '7.1'\n")
    return folder / "bin" / "python"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "cache"))
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_", "HSA_", "TORCH")):
            monkeypatch.delenv(name)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "req.txt").write_text(PIN)
    (tmp_path / "p").mkdir()
    return tmp_path / "p"


def link(root: Path) -> None:
    (root / "requirements.txt").symlink_to("../outside/req.txt")


def fifo(root: Path) -> None:
    os.mkfifo(root / "requirements.txt")


def text(name: str, content: str | bytes) -> Callable[[Path], None]:
    data = content.encode() if isinstance(content, str) else content

    def write(root: Path) -> None:
        (root / name).write_bytes(data)

    return write


def project(value: str) -> Callable[[Path], None]:
    return text("pyproject.toml", f'[project]\nname = "a"\ndependencies = ["{PIN.strip()}"]\n[tool.a]\n{value}\n')


@pytest.mark.parametrize(
    ("make", "told"),
    [
        pytest.param(link, ("requirements.txt", "symbolic link"), id="link"),
        pytest.param(fifo, ("requirements.txt", "is a FIFO"), id="fifo"),
        pytest.param(
            text("requirements.txt", "-r ../outside/req.txt\n"), ("../outside/req.txt", "outside"), id="upwards"
        ),
        pytest.param(
            text("requirements.txt", "-r../outside/req.txt\n"), ("../outside/req.txt", "outside"), id="no space"
        ),
        pytest.param(text("requirements.txt", '-r "/etc/a b.txt"\n'), ("/etc/a b.txt", "outside"), id="absolute"),
        pytest.param(
            text("requirements.txt", "-r https://example.org/r.txt\n"),
            ("https://example.org/r.txt", "is a URL"),
            id="address",
        ),
        pytest.param(text("requirements.txt", "-r gone.txt\n"), ("gone.txt", "not there"), id="gone"),
        pytest.param(text("requirements.txt", PIN.encode("utf-16")), ("requirements.txt", "not text"), id="utf-16"),
        pytest.param(
            text("requirements.txt", PIN + "#" * (1 << 20)),
            ("requirements.txt", "more than 1,048,576 bytes"),
            id="large",
        ),
        pytest.param(text("setup.py", "setup(install_requires=['torch==2.3.0']\n"), ("setup.py", "syntax"), id="setup"),
        pytest.param(project(f"x = {'[' * 40}{']' * 40}"), ("pyproject.toml", "nests"), id="brackets"),
        pytest.param(project(f"x = {'[' * 50_000}"), ("pyproject.toml", "nests"), id="many brackets"),
        pytest.param(project(".".join(["a"] * 50_000) + " = 1"), ("pyproject.toml", "nests"), id="dots"),
        pytest.param(project("x = " + "1" * 100_000), ("pyproject.toml", "digits"), id="digits"),
    ],
)
def test_what_was_not_read_is_named(
    rocmend: Rocmend, root: Path, python: Path, make: Callable[[Path], None], told: tuple[str, str]
) -> None:
    path, reason = told
    assert rocmend("port", "audit", root, "--python", python).code == 0, "nothing else is wrong"
    make(root)
    shown = rocmend("port", "audit", root, "--python", python)
    assert (shown.code, shown.err) == (1, "")
    assert f"Not read: {path}" in shown.out
    assert "Nothing stands in the way" not in shown.out
    done = rocmend("port", "audit", root, "--python", python, "--json", "--no-redact")
    assert done.code == 1
    (unread,) = json.loads(done.out)["data"]["plan"]["unread"]
    assert unread["path"] == path
    assert reason in unread["reason"]
    (run,) = json.loads(rocmend("port", "audit", root, "--python", python, "--format", "sarif", "--no-redact").out)[
        "runs"
    ]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert path in note["message"]["text"]
    assert reason in note["message"]["text"]
    assert [result["ruleId"] for result in run["results"]] == ["AU16"]
    script = rocmend("port", "audit", root, "--python", python, "--script", "-")
    assert script.code == 1
    assert f"# NOT READ, so its requirements are missing below: {path} " in script.out


def test_a_list_that_lies_within_is_read(rocmend: Rocmend, root: Path, python: Path) -> None:
    (root / "deep").mkdir()
    (root / "deep" / "more.txt").write_text("-r ../base.txt\n")
    (root / "base.txt").write_text("tqdm\n")
    (root / "requirements.txt").write_text("-rdeep/more.txt\n")
    done = rocmend("port", "audit", root, "--python", python, "--json", "--no-redact")
    assert done.code == 0
    plan = json.loads(done.out)["data"]["plan"]
    assert (plan["plain"], plan["unread"]) == (["tqdm"], [])
