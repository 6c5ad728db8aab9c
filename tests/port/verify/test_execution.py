"""How a project's code is executed: what it sees, what ends it, and what a container is told."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from rocmend.core.errors import UsageError
from rocmend.core.supervise import CommandResult, Ending
from rocmend.core.verdict import Verdict
from rocmend.port.verify import execution
from rocmend.port.verify.execution import Execution, clean_environment
from rocmend.port.verify.job import Job
from rocmend.runner.result import AttemptResult
from rocmend.runner.spec import AttemptSpec, Container, Mount


def python(tmp_path: Path, text: str, limit_s: float = 20.0) -> CommandResult:
    with Job(tmp_path, execution=Execution()) as job:
        return job.execute([sys.executable, "-c", text], folder=job.scratch(), time_limit_s=limit_s)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *((name, True) for name in ("LANG", "LC_ALL", "ROCM_PATH", "HIP_VISIBLE_DEVICES", "VIRTUAL_ENV")),
        *((name, True) for name in ("HSA_OVERRIDE_GFX_VERSION", "PYTORCH_HIP_ALLOC_CONF", "TRITON_DEBUG")),
        *(
            (name, False)
            for name in ("HF_TOKEN", "AWS_ACCESS_KEY_ID", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "PIP_INDEX_URL")
        ),
        *((name, False) for name in ("TORCH_API_KEY", "CUDA_SECRET", "NCCL_PASSWORD", "LD_PRELOAD", "PYTHONSTARTUP")),
        *((name, False) for name in ("PYTEST_ADDOPTS", "HTTPS_PROXY", "DBUS_SESSION_BUS_ADDRESS", "PYTHONINSPECT")),
    ],
)
def test_variables_that_are_handed_on(tmp_path: Path, name: str, kept: bool) -> None:
    assert (clean_environment({name: "x"}, tmp_path).get(name) == "x") is kept
    assert clean_environment({name: "x"}, tmp_path, [name])[name] == "x", "a variable that is named is handed on"


def test_a_token_in_a_variable_with_a_harmless_name_is_not_handed_on(tmp_path: Path) -> None:
    token = "gsk_" + "a1" * 20
    assert "ROCM_NOTE" not in clean_environment({"ROCM_NOTE": token}, tmp_path)
    assert clean_environment({"ROCM_NOTE": token}, tmp_path, ["ROCM_NOTE"])["ROCM_NOTE"] == token


def test_the_working_folder_is_on_no_path(tmp_path: Path) -> None:
    made = clean_environment({"PATH": ":/usr/bin:.:bin", "PYTHONPATH": "/a:", "HOME": "/home/me"}, tmp_path)
    assert (made["PATH"], made["PYTHONPATH"], made["HOME"]) == ("/usr/bin", "/a", str(tmp_path))


def test_a_command_that_was_not_asked_for_does_not_run(tmp_path: Path) -> None:
    with Job(tmp_path) as job, pytest.raises(UsageError, match="--run"):
        job.execute(["touch", str(tmp_path / "made")], folder=tmp_path, time_limit_s=5)
    assert not (tmp_path / "made").exists()


def test_its_surroundings(tmp_path: Path) -> None:
    said = python(
        tmp_path,
        "import os, resource, sys; home = os.path.expanduser('~'); print(sys.stdin.read() == '', os.getsid(0) == "
        "os.getpid(), resource.getrlimit(resource.RLIMIT_CORE)[0], resource.getrlimit(resource.RLIMIT_AS)[0] == "
        "resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_FSIZE)[0] >> 30, os.listdir(home), sep='|'); "
        "print(home, file=sys.stderr)",
    )
    assert said.ok, said
    assert said.stdout == "True|True|0|True|16|['tmp']\n"
    assert not Path(said.stderr.strip()).exists(), "its home goes with the run"


@pytest.mark.parametrize(
    ("text", "ending", "words"),
    [
        ("while True: print('x' * 4000)", Ending.FLOODED, "printed more than 64 KiB"),
        ("kept = bytearray(b'x') * (200 << 20); import time; time.sleep(30)", Ending.FLOODED, "used more than 128 MiB"),
        ("import time; time.sleep(30)", Ending.TIMEOUT, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", Ending.SIGNALLED, ""),
        ("open('big', 'wb').truncate(1 << 40)", Ending.EXITED, "File too large"),
    ],
)
def test_what_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, ending: Ending, words: str) -> None:
    monkeypatch.setattr(execution, "OUTPUT_BYTES", 64 << 10)
    monkeypatch.setattr(execution, "memory_limit", lambda: 128 << 20)
    monkeypatch.setattr(execution, "GRACE_S", 0.2)
    began = time.monotonic()
    said = python(tmp_path, text, 2.0)
    assert said.ending is ending, said
    assert words in said.stderr
    assert time.monotonic() - began < 15


def test_nothing_of_it_stays_behind(tmp_path: Path) -> None:
    leave = "import os, time\npid = os.fork()\nif pid:\n    print(pid)\nelse:\n    os.setsid()\n    time.sleep(60)\n"
    said = python(tmp_path, leave)
    assert said.ok, said
    assert not Path(f"/proc/{int(said.stdout)}").exists(), "a process that left the session"


def test_what_a_container_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[AttemptSpec] = []

    def attempt(spec: AttemptSpec, **_: object) -> AttemptResult:
        given.append(spec)
        return AttemptResult("", "", "", Verdict.CRASH, "", "", 1.0, exit_code=139, place={"image_id": "x"})

    class Engine:
        is_podman = False

        def __init__(self, where: Container) -> None:
            pass

    monkeypatch.setattr(execution, "run_attempt", attempt)
    monkeypatch.setattr(execution, "Engine", Engine)
    monkeypatch.setenv("HF_TOKEN", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("ROCM_PATH", "/opt/rocm")
    with Job(tmp_path, execution=Execution(("HF_TOKEN",), "rocm/pytorch")) as job:
        folder = job.scratch()
        said = job.execute(["python3", "-c", ""], folder=folder, time_limit_s=5)
        base = str(job.base)
    (spec,) = given
    where = spec.where
    assert isinstance(where, Container)
    assert (where.image, where.network, where.mounts) == ("rocm/pytorch", "none", (Mount(base, base, relabel=True),))
    assert (where.devices, where.user) == ((), f"{os.getuid()}:{os.getgid()}")
    assert str(folder).startswith(f"{base}/")
    assert spec.command.cwd == str(folder)
    assert "HF_TOKEN" in spec.env
    assert None not in spec.env.values(), "docker takes no variable of an image away"
    assert not {"AWS_SECRET_ACCESS_KEY", "PATH", "VIRTUAL_ENV"} & spec.env.keys()
    assert str(tmp_path) not in str(spec), "the project itself is not shown"
    assert (said.ending, said.signal) == (Ending.SIGNALLED, 11)


def test_a_container_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.runner.executor import NotStartedError

    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        Job(tmp_path, execution=Execution((), "image")) as job,
        pytest.raises(NotStartedError, match="podman and docker"),
    ):
        job.execute(["true"], folder=job.scratch(), time_limit_s=5)
