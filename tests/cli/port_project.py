"""A small CUDA project that tests port."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conftest import Done


Rocmend = Callable[..., "Done"]


TRAINING = 'import torch\n\n\ndef faster(model):\n    return torch.compile(model, mode="max-autotune")\n'


KERNEL = """#include <cuda_runtime.h>

__global__ void above(const float* x, unsigned* out) {
  unsigned kept = __ballot_sync(0xffffffff, x[threadIdx.x] > 0);
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = kept;
}
"""


def bytes_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def data_of(done: Done) -> Any:
    envelope = json.loads(done.out)
    assert envelope["exit_code"] == done.code
    return envelope["data"]
