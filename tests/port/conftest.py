"""Small projects that need a port."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PYTHON = 'import torch\n\n\ndef step(model):\n    return torch.compile(model, mode="max-autotune")\n'
CUDA = """#include <cuda_runtime.h>

__global__ void total(float *out, const float *in) {
  float value = in[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  if (threadIdx.x == 0) *out = value;
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep caches of analyses out of the user's."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(folder / "rocmend"))
    return folder


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    """Make a project of files."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content.encode() if isinstance(content, str) else content)
    return root


@pytest.fixture
def make_project() -> Callable[[Path, dict[str, str | bytes]], Path]:
    """Return what makes a project of files."""
    return write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package, a script of its own, a kernel and files that are no matter of a port."""
    return write(
        tmp_path / "project",
        {
            "pkg/__init__.py": "",
            "pkg/train.py": PYTHON,
            "pkg/deep/__init__.py": "",
            "pkg/deep/model.py": "from ..train import step\n" + PYTHON,
            "script.py": PYTHON.replace("\n", "\r\n"),
            "csrc/total.cu": CUDA,
            "csrc/host.cpp": "int main() { return 0; }\n",
            "README.md": "cudaMalloc in words\n",
        },
    )
