"""Projects with a port that is recorded as `rocmend port --apply` records one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.port.patch import patch
from rocmend.port.records import Change
from rocmend.port.state import Manifest, entries_of
from rocmend.port.transaction import commit, locked, modes_of, to_make

Files = dict[str, bytes]
Ported = Callable[..., Path]

ORIGINAL = b"""#include <cuda_runtime.h>

__global__ void total(const float* in, float* out) {
  float value = in[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  if (threadIdx.x == 0) *out = value;
}
"""
PORT = b"""#ifdef USE_ROCM
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#endif

__global__ void total(const float* in, float* out) {
  float value = in[threadIdx.x];
#ifdef USE_ROCM
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down(value, offset, 32);
#else
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
#endif
  if (threadIdx.x == 0) *out = value;
}
"""


def port(root: Path, before: Files, after: dict[str, bytes | None], targets: tuple[str, ...] = ()) -> Path:
    """Make a project of ``before``, and a port of it that writes ``after``."""
    for path, data in before.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    changes = [Change(path, before.get(path), data) for path, data in sorted(after.items())]
    back = [Change(one.path, one.after, one.before) for one in changes]
    with locked(root) as tree:
        made = tuple(to_make(tree, changes))
        manifest = Manifest(entries_of(changes, modes_of(tree, changes)), made_folders=made, targets=targets)
        commit(tree, changes, manifest, patch(back))
    return root


@pytest.fixture
def ported(tmp_path: Path) -> Ported:
    """Return what makes a project and its port."""

    def make(before: Files, after: dict[str, bytes | None], targets: tuple[str, ...] = ()) -> Path:
        return port(tmp_path / "project", before, after, targets)

    (tmp_path / "project").mkdir()
    return make


@pytest.fixture
def total(ported: Ported) -> Path:
    """Return a project of one kernel, with a port that is right on both wave sizes."""
    return ported({"src/total.cu": ORIGINAL}, {"src/total.cu": PORT}, ("gfx1151",))


@pytest.fixture
def pip_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the compiler of pip's packages, whatever else this machine has."""
    pytest.importorskip("ziglang")
    pytest.importorskip("clang.native")
    monkeypatch.setenv("ROCMEND_HIP_COMPILER", "pip")
    monkeypatch.delenv("ROCMEND_HIP_HEADERS", raising=False)
