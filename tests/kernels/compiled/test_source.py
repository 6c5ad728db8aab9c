"""The hash of a kernel's source is the same in every process, whatever Triton's own is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

pytestmark = pytest.mark.cpu

_HELPER = """
import triton
import triton.language as tl
LIMIT = tl.constexpr({limit})

@triton.jit
def clip_{name}(x):
    return tl.minimum(x, LIMIT)
"""
_KERNEL = """
import triton
import triton.language as tl
import first
from second import clip_second

@triton.jit
def kernel(out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, first.clip_first(clip_second(at)))
"""
_ASK = """
import {order}
import kernels
from rocmend.kernels.compiled.source import source_hash
print(source_hash(kernels.kernel))
"""


def _hash(folder: Path, *, first: int = 1, second: int = 2, order: str = "first, second", lines: int = 0) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "first.py").write_text("\n" * lines + _HELPER.format(name="first", limit=first))
    (folder / "second.py").write_text(_HELPER.format(name="second", limit=second))
    (folder / "kernels.py").write_text(_KERNEL)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "TRITON_INTERPRET": "0"}
    command = [sys.executable, "-c", _ASK.format(order=order)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_the_order_of_modules_and_lines_do_not_count_and_constants_do(tmp_path: Path) -> None:
    as_it_is = _hash(tmp_path / "a")
    assert _hash(tmp_path / "b", order="second, first") == as_it_is
    assert _hash(tmp_path / "c", lines=3) == as_it_is
    assert _hash(tmp_path / "d", first=3) != as_it_is
    assert _hash(tmp_path / "e", second=3) != as_it_is
