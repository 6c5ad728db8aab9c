"""What `port undo` tells a person to do about files that were changed by hand works as it is printed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Done

Rocmend = Callable[..., Done]
KERNEL = """#include <cuda_runtime.h>

__global__ void above(const float* x, unsigned* out) {
  unsigned kept = __ballot_sync(0xffffffff, x[threadIdx.x] > 0);
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = kept;
}
"""
TRAINING = 'import torch\n\n\ndef faster(model):\n    return torch.compile(model, mode="max-autotune")\n'
MINE = "# mine\n# and mine\n"
NAME = "train [it's].py"


def shell(command: str, folder: Path) -> None:
    subprocess.run(["sh", "-c", command], cwd=folder, check=True, capture_output=True)


def commands(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith(("git -C", "mv --"))]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose project lies in a folder of it, with a space in its name."""
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in {"NAME": "a", "EMAIL": "a@b"}.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    root = tmp_path / "repository"
    (root / "my project" / "fast").mkdir(parents=True)
    (root / "my project" / "fast" / "__init__.py").write_text("")
    (root / "my project" / "fast" / NAME).write_text(TRAINING)
    (root / "my project" / "kernel.cu").write_text(KERNEL)
    shell("git init -q && git add -A && git commit -qm a", root)
    return root


def files(root: Path) -> dict[str, str]:
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(root)): path.read_text() for path in found if ".rocmend" not in path.parts}


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        pytest.param((False, False, 1), id="uncommitted"),
        pytest.param((True, False, 1), id="committed"),
        pytest.param((False, True, 1), id="kept"),
        pytest.param((True, True, 1), id="committed, kept"),
        pytest.param((False, False, 2), id="two ports"),
        pytest.param((True, True, 2), id="two ports, committed, kept"),
    ],
)
def test_the_printed_command_takes_the_port_out(
    rocmend: Rocmend,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[bool, bool, int],
) -> None:
    committed, keep, generations = case
    project = repository / "my project"
    before = files(project)
    if generations == 2:
        assert rocmend("port", project, "--apply", "--select", "PY").code == 0
        (project / "fast" / NAME).write_text((project / "fast" / NAME).read_text() + "\n\n" + TRAINING)
        before[f"fast/{NAME}"] += "\n\n" + TRAINING
    assert rocmend("port", project, "--apply", "--allow-dirty").code == 0
    assert len(list((project / ".rocmend/port").glob("0*"))) == generations
    if committed:
        shell("git add -A && git commit -qm b", repository)
    for name in (f"fast/{NAME}", "kernel.cu"):
        mine = MINE.replace("#", "//" if name.endswith("cu") else "#")
        (project / name).write_text(mine + (project / name).read_text())
        before[name] = mine + before[name]
    monkeypatch.chdir(repository.parent)  # what is printed does not depend on where it is run
    told = rocmend("port", "undo", "repository/my project", *(["--keep-changed"] if keep else []))
    assert told.code == (1 if keep else 2)
    printed = commands(told.out if keep else told.err)
    assert len(printed) == 2
    for command in printed:
        shell(command, repository.parent / "cache")
    done = rocmend("port", "undo", "repository/my project", "--json")
    assert done.code == 0, done.err
    assert files(project) == before
    assert not (project / ".rocmend" / "port").exists()


def test_a_file_out_of_which_the_port_was_taken_is_not_refused(rocmend: Rocmend, repository: Path) -> None:
    project = repository / "my project"
    assert rocmend("port", project, "--apply").code == 0
    ported = (project / "kernel.cu").read_text()
    (project / "kernel.cu").write_text(ported.replace("kept = ", "held = "))
    assert rocmend("port", "undo", project).code == 2, "the port is in it"
    (project / "kernel.cu").write_text(KERNEL + "// mine\n")
    done = rocmend("port", "undo", project)
    assert done.code == 0, done.err
    assert "kernel.cu" in done.out
    assert (project / "kernel.cu").read_text() == KERNEL + "// mine\n"
    assert (project / "fast" / NAME).read_text() == TRAINING
    assert not (project / ".rocmend" / "port").exists()


def test_a_file_that_the_port_made_is_moved_away(rocmend: Rocmend, repository: Path) -> None:
    project = repository / "my project"
    assert rocmend("port", project, "--apply").code == 0
    made = project / "cuda_to_hip.h"
    made.write_text(made.read_text() + "// mine\n")
    told = rocmend("port", "undo", project)
    assert told.code == 2
    (command,) = commands(told.err)
    shell(command, repository)
    assert json.loads(rocmend("port", "undo", project, "--json").out)["exit_code"] == 0
    assert sorted(files(project)) == sorted(["cuda_to_hip.h.mine", f"fast/{NAME}", "fast/__init__.py", "kernel.cu"])
