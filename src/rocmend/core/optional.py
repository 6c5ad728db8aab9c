"""Packages that only some commands need: how each is installed, said in one place."""

from __future__ import annotations

import importlib.util
from typing import NamedTuple

from rocmend.core.errors import UsageError

__all__ = ["INSTALL", "NEEDS", "Needs", "need", "not_installed"]

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


class Needs(NamedTuple):
    """What a command needs beyond the base installation.

    Attributes:
        packages: By the names that they are imported as.
        when: In which case; empty for always.
    """

    packages: tuple[str, ...]
    when: str = ""


_MLX_LM = Needs(("torch", "mlx", "mlx_lm"))

NEEDS = {
    "check": Needs(("torch",), "to try operations, in the environment that is checked"),
    "kernels check": Needs(("torch", "triton")),
    "kernels compile": Needs(("torch", "triton")),
    "kernels explain": Needs(("torch",), "without --target"),
    "kernels tune": Needs(("torch", "triton")),
    "lab run": Needs(("lightkube",), "for experiments on Kubernetes"),
    "mlx bench": _MLX_LM,
    "mlx chat": _MLX_LM,
    "mlx generate": _MLX_LM,
    "mlx run": Needs(("torch", "mlx")),
    "mlx serve": _MLX_LM,
    "port verify": Needs(("clang", "ziglang"), "for level compile, where there is no ROCm"),
    "probe run": Needs(("torch",), "in the environment that is probed"),
}
"""The commands that need more than the base installation; all others need nothing else."""


def not_installed(subject: str, package: str) -> UsageError:
    """Return the error for a package of ``INSTALL`` that is not there."""
    return UsageError(subject, f"needs {package}, which is not installed.", next_step=INSTALL[package])


def need(command: str) -> None:
    """Make sure that what a command of ``NEEDS`` needs is there, without importing it.

    Raises:
        UsageError: A package is not.
    """
    for package in NEEDS[command].packages:
        if importlib.util.find_spec(package) is None:
            raise not_installed(command, package)
