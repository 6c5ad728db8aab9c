"""A project's code in a real container: it sees its own folder, and nothing else of the machine."""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec
import pytest

from rocmend.port.verify import execution
from rocmend.port.verify.execution import Execution
from rocmend.port.verify.job import Job
from rocmend.runner.spec import Container

pytestmark = pytest.mark.container


def _like(box: Container, image: str, **settings: object) -> Container:
    return msgspec.structs.replace(box, image=image, **settings)


def test_it_sees_its_own_folder_alone(box: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = functools.partial(_like, box)
    monkeypatch.setattr(execution, "Container", made)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("ROCM_PATH", "/opt/rocm")
    (tmp_path / "secret").write_text("what the user has")
    with Job(tmp_path, execution=Execution((), box.image)) as job:
        folder = job.scratch()
        (folder / "given").write_text("given\n")
        script = f"cat given; echo back > made; env; cat {tmp_path}/secret; cat /proc/net/dev; exit 3"
        said = job.execute(["sh", "-c", script], folder=folder, time_limit_s=60)
        assert (folder / "made").read_text() == "back\n", said
        kept = folder
    assert said.exit_code == 3, said
    assert said.stdout.startswith("given\n")
    assert "hf_secret" not in said.stdout
    assert "ROCM_PATH=/opt/rocm" in said.stdout
    assert "what the user has" not in said.stdout
    assert [line.split(":")[0].strip() for line in said.stdout.splitlines() if "eth" in line] == []
    assert not kept.exists(), "what a container wrote goes with the run"
