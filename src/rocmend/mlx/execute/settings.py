"""Which executor is in force: ``ROCMEND_MLX_EXECUTOR``, or ``use``."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from rocmend.mlx.environment import VARIABLES, asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

__all__ = ["CHOICES", "captures", "chosen", "compares", "fuses", "plans", "use"]

# interpreter: one torch call after another. plan: repeated steps by a plan. graph: and captured on a GPU.
# compare: as graph, each planned step beside the interpreter's values.
CHOICES = VARIABLES["ROCMEND_MLX_EXECUTOR"].choices

_chosen = [asked("ROCMEND_MLX_EXECUTOR")]


def chosen() -> str:
    """Return the executor in force."""
    return _chosen[0]


def plans() -> bool:
    """Return whether repeated steps are planned."""
    return _chosen[0] != "interpreter"


def captures() -> bool:
    """Return whether planned steps are captured on a GPU."""
    return _chosen[0] in {"graph", "compare"}


def compares() -> bool:
    """Return whether planned steps are compared with the interpreter's values."""
    return _chosen[0] == "compare"


def fuses(device: torch.device) -> bool:
    """Return whether steps are joined and chains become kernels: on a GPU, or anywhere with ``ROCMEND_MLX_FUSE=1``.

    On a CPU that is for tests: Triton's interpreter (``TRITON_INTERPRET=1``) computes the kernels.
    """
    return device.type == "cuda" or os.environ.get("ROCMEND_MLX_FUSE") == "1"


@contextlib.contextmanager
def use(name: str) -> Iterator[None]:
    """Use another executor for a while.

    Raises:
        ValueError: there is no such executor.
    """
    if name not in CHOICES:
        raise ValueError(f"[use] expected one of {', '.join(CHOICES)}, got {name!r}.")
    before, _chosen[0] = _chosen[0], name
    try:
        yield
    finally:
        _chosen[0] = before
