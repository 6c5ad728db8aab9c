"""A tuning record, and the version of Triton that it holds for."""

from __future__ import annotations

import functools
from importlib import metadata
from typing import NamedTuple

from rocmend.kernels.tuning.config import Config


class Record(NamedTuple):
    """A tuning record.

    Args:
        kernel: The kernel's name within its op.
        shape_class: Class of shapes, or ``*``.
        target: A name of ``Target.lookup``.
        triton: Versions of Triton that it holds for, e.g. ``>=3.6,<3.8``; empty for all.
        config: The parameters.
    """

    kernel: str
    shape_class: str
    target: str
    triton: str
    config: Config


@functools.cache
def triton_version() -> str:
    """Return the version of the installed Triton without a local part, or ``0`` where there is none."""
    for name in ("triton", "pytorch-triton-rocm", "triton-rocm", "pytorch-triton"):
        try:
            return metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return "0"
