"""Packages that only some commands need: how each is installed, said in one place."""

from __future__ import annotations

import importlib.util

from rocmend.core.errors import UsageError

__all__ = ["INSTALL", "need", "not_installed"]

_GPU_TORCH = "Install the torch of your GPU: `rocmend wheel choose` prints the command."
_MLX = "Install it with `pip install 'rocmend[mlx]'`; no back end of MLX is needed."

INSTALL = {
    "torch": _GPU_TORCH,
    "triton": "A ROCm build of torch brings its own. Without a GPU: pip install 'rocmend[triton]'",
    "numpy": "pip install 'rocmend[torch]'",
    "mlx": _MLX,
    "mlx_lm": _MLX,
    "safetensors": _MLX,
    "ziglang": "pip install 'rocmend[compile]'",
    "clang": "pip install 'rocmend[compile]'",
    "lightkube": "pip install 'rocmend[k8s]'",
}
"""What to do where a package (by the name that it is imported as) is not there."""


def not_installed(subject: str, package: str) -> UsageError:
    """Return the error for a package of ``INSTALL`` that is not there."""
    return UsageError(subject, f"needs {package}, which is not installed.", next_step=INSTALL[package])


def need(subject: str, *packages: str) -> None:
    """Make sure that packages of ``INSTALL`` are there, without importing them.

    Raises:
        UsageError: One is not.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise not_installed(subject, package)
