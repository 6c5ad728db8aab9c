"""Kernels for GPUs of one vendor: further implementations of ops that exist.

A back end is a package here with a folder for each op that it has kernels for, named like the op. The folder registers
itself by what it contains: ``IMPLEMENTATIONS``, and ``tuning.toml`` with their records. Ops import nothing of it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmend.kernels.op import Implementation, Op, Problem
from rocmend.kernels.target import Target
from rocmend.kernels.tuning.record import triton_version

if TYPE_CHECKING:
    import torch

_OF_VENDOR = {"nvidia": ("hopper",)}
"""Back ends by the vendor of a target."""
ALIGNED_BYTES = 16
"""What a lane reads at once, at most."""
MEASURED = triton_version().startswith("3.6.")
"""Whether Triton is of the release with which kernels for one vendor were measured: layouts change with releases."""


def implementations(op: Op, vendor: str) -> tuple[Implementation, ...]:
    """Return an op's implementations on GPUs of a vendor, in order of preference.

    Those of back ends stand before the op's own kernels.
    """
    own = op.implementations
    first = next((index for index, implementation in enumerate(own) if implementation.tier == "triton"), 0)
    more = tuple(implementation for folder in _folders(op.name, vendor) for implementation in folder.IMPLEMENTATIONS)
    return (*own[:first], *more, *own[first:])


def known(op: Op) -> tuple[Implementation, ...]:
    """Return an op's implementations on whatever GPU."""
    return tuple(
        dict.fromkeys(implementation for vendor in _OF_VENDOR for implementation in implementations(op, vendor))
    )


def beats_vendor(op: str, problem: Problem, target: Target) -> bool | None:
    """Return whether a kernel of a back end is estimated to beat the vendor's library; None where nothing is known."""
    asked: list[Callable[..., bool | None]] = [
        folder.beats_vendor for folder in _folders(op, target.vendor) if hasattr(folder, "beats_vendor")
    ]
    return next((found for beats in asked if (found := beats(problem, target)) is not None), None)


@functools.cache
def _folders(op: str, vendor: str) -> tuple[Any, ...]:
    """Return the packages that back ends for a vendor have for an op."""
    names = [f"{__name__}.{name}.{op}" for name in _OF_VENDOR.get(vendor, ())]
    return tuple(importlib.import_module(name) for name in names if util.find_spec(name) is not None)


def folders(op: str) -> list[Path]:
    """Find the folders of an op's kernels in all back ends."""
    names = [name for of_vendor in _OF_VENDOR.values() for name in of_vendor]
    return [path for name in names if (path := Path(__file__).parent / name / op).is_dir()]


def aligned(*tensors: torch.Tensor | None) -> bool:
    """Return whether all tensors that are there begin where lanes can read as much at once as they mean to."""
    low = 0
    for tensor in tensors:
        low |= 0 if tensor is None else tensor.data_ptr()
    return low % ALIGNED_BYTES == 0
