"""Kernels for Hopper and other NVIDIA GPUs."""

from __future__ import annotations

from typing import Any

from rocmend.kernels.op import Implementation, Rule


def kernel(folder: str, name: str, rejects: Rule, note: str, **more: Any) -> Implementation:
    """Return a kernel that the function of its name in a folder's ``host.py`` launches; see ``Implementation``."""
    run = f"{folder}.host:{name}"
    return Implementation(name, "triton", run, rejects, note, vendor="nvidia", aligned=True, **more)
