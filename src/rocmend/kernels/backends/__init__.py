"""Kernels for GPUs of one kind, beside those that any GPU runs: the one place where ops ask for them.

A back end is a package here with a folder for each op that it has kernels for, named like the op. The folder registers
itself by what it contains: ``taken``, and ``tuning.toml`` with its kernels' records. Ops import nothing else of it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rocmend.kernels.target import Target

if TYPE_CHECKING:
    import torch

_OF_VENDOR = {"nvidia": ("hopper",)}
"""Back ends by the vendor of a target."""
ALIGNED_BYTES = 16
"""What a lane reads at once, at most."""


class Taken(NamedTuple):
    """A kernel that takes a problem on a target.

    Args:
        kernel: Its name, as in tuning records and in ``ROCMEND_KERNELS_WITHOUT``.
        shape_class: Class of its tuning records.
        plan: Plans its launches; the op and its back ends agree on the arguments.
        beats_vendor: Whether it takes less time, by estimate, than the vendor's library; None where nothing is known.
    """

    kernel: str
    shape_class: str
    plan: Callable[..., Any]
    beats_vendor: Callable[[], bool] | None = None


def taken(op: str, problem: NamedTuple, target: Target, **about: Any) -> Taken | None:
    """Return the kernel of a back end that takes an op's problem on a target; None where the op's own ones do.

    Args:
        op: The op's name.
        problem: One of its problems.
        target: Where it runs.
        about: What the op and its back ends agree on beside the problem.
    """
    for name in _OF_VENDOR.get(target.vendor, ()):
        folder = _folder(f"{__name__}.{name}.{op}")
        found: Taken | None = None if folder is None else folder.taken(problem, target, **about)
        if found is not None:
            return found
    return None


@functools.cache
def _folder(name: str) -> Any:
    """Return what a back end has for an op, or None."""
    return None if util.find_spec(name) is None else importlib.import_module(name)


def folders(op: str) -> list[Path]:
    """Find the folders of an op's kernels in all back ends."""
    names = [name for of_vendor in _OF_VENDOR.values() for name in of_vendor]
    return [path for name in names if (path := Path(__file__).parent / name / op).is_dir()]


def aligned(*tensors: torch.Tensor | None) -> bool:
    """Return whether all tensors that are there begin where lanes can read as much at once as they mean to."""
    low = 0
    for one in tensors:
        low |= 0 if one is None else one.data_ptr()
    return low % ALIGNED_BYTES == 0
