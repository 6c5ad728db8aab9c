"""Ports of larger projects: in several processes, and at once where nothing changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.core.private import private_folder
from rocmend.port import plan as plan_module
from rocmend.port import pool
from rocmend.port.analyse import analyse
from rocmend.port.plan import plan

Make = Callable[[Path, dict[str, str | bytes]], Path]


@pytest.fixture
def several(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose files are ported in processes, however few they are."""
    monkeypatch.setattr(plan_module, "_FEW_ISSUES", 0)
    return project


def test_processes_write_what_one_writes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analyse(project)
    alone = plan(analysis)
    for path in private_folder("port").glob("*.plan"):
        path.unlink()
    monkeypatch.setattr(plan_module, "_FEW_ISSUES", 0)
    assert plan(analysis) == alone


def test_an_unchanged_project_is_planned_without_work(several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analyse(several)
    first = plan(analysis)
    assert first.changes
    monkeypatch.setattr(pool, "_COMMAND", ["/does/not/exist"])
    assert plan(analysis) == first


@pytest.mark.slow
def test_a_damaged_memory_is_forgotten(several: Path) -> None:
    analysis = analyse(several)
    first = plan(analysis)
    (path,) = private_folder("port").glob("*.plan")
    for data in (b"", b"x" * 100, path.read_bytes()[:-1]):
        path.write_bytes(data)
        assert plan(analysis) == first


def test_a_process_that_dies_costs_its_file(several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analyse(several)
    dying = """
import os, sys
from rocmend.port import worker
honest = worker.rewrite
worker.rewrite = lambda root, task, most: os._exit(5) if "train" in task.path else honest(root, task, most)
sys.exit(worker.main())
"""
    monkeypatch.setattr(pool, "_COMMAND", [sys.executable, "-c", dying])
    planned = plan(analysis)
    assert [(left.path, "exit status 5" in left.reason) for left in planned.left_alone] == [("pkg/train.py", True)]
    assert "pkg/deep/model.py" in {change.path for change in planned.changes}


def test_other_choices_are_other_plans(project: Path, make_project: Make) -> None:
    make_project(project, {"pkg/float.py": "import torch\nif torch.cuda.get_device_capability()[0] >= 8:\n    x = 1\n"})
    analysis = analyse(project)
    without, with_them = plan(analysis), plan(analysis, suggestions=True)
    assert "pkg/float.py" not in {change.path for change in without.changes}
    assert "pkg/float.py" in {change.path for change in with_them.changes}
    assert plan(analysis) == without
