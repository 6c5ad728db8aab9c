"""Kills for memory by the kernel itself, in a memory control group."""

from __future__ import annotations

import contextlib
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocmend.core.verdict import Verdict
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command

GROUPS = Path("/sys/fs/cgroup/memory")
GREEDY = 'x = []\nwhile True: x.append(b"a" * 10_000_000)'


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of 100 MB."""
    folder = GROUPS / f"rocmend-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text("100000000")
    except OSError:
        pytest.skip("no memory control group can be made here")
    yield folder
    with contextlib.suppress(OSError):
        folder.rmdir()


@pytest.mark.parametrize("how", ["exec {}", "{}; exit $?"])
def test_a_kill_for_memory_is_told_from_other_kills(group: Path, how: str) -> None:
    program = how.format(f"{sys.executable} -c '{GREEDY}'")
    result = run_attempt(AttemptSpec("x", Command(("sh", "-c", f"echo $$ > {group}/cgroup.procs; {program}"))))
    assert result.verdict is Verdict.OOM, result.reason
    if os.access("/dev/kmsg", os.R_OK):
        assert result.dmesg.get("oom_kill") == 1


def test_another_kill_is_a_crash() -> None:
    result = run_attempt(AttemptSpec("x", Command(("sh", "-c", "kill -KILL $$"))))
    assert result.verdict is Verdict.CRASH
    assert "SIGKILL" in result.reason
