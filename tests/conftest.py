"""What all tests share."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.tiers", "tests.interpreter"]

# A deadline judges the machine, not the code: shared two-core machines pause for longer than any example takes.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

# Tensors here are small: threads that wait for each other on busy cores take most of the time. Children have one, too.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Kernels are computed in Triton's interpreter, which must be asked for before any is defined, whichever test is first.
os.environ["TRITON_INTERPRET"] = "1"
os.environ["ROCMEND_KERNELS_CAPTURE_AFTER"] = "1"  # calls are replayed from the third on

# No test may write into the store or the caches of the person who runs it; workers share their controller's cache.
_MADE = {"ROCMEND_HOME": tempfile.mkdtemp(prefix="rocmend-tests-")}
if "PYTEST_XDIST_WORKER" not in os.environ:
    _MADE["ROCMEND_CACHE_HOME"] = tempfile.mkdtemp(prefix="rocmend-tests-cache-")
os.environ |= _MADE
# Tests that measure do not wait for those of other workers, nor for whoever measures on this machine.
os.environ["ROCMEND_MEASURING"] = "1"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage meanwhile: tests and what they import live until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_unconfigure() -> None:
    for folder in _MADE.values():
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    there = tmp_path / "disk"
    there.mkdir()
    tool = shutil.which("mount")
    if tool is None or os.geteuid() != 0:
        pytest.skip("only root can mount")
    made = subprocess.run([tool, "-t", "tmpfs", "-o", "size=2m", "tmpfs", there], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"no mounting here: {made.stderr.decode()}")
    try:
        yield there
    finally:
        subprocess.run(["umount", there], check=True)
