"""Packages that only some commands need: how each is installed, said in one place."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from rocmend.core.errors import UsageError

__all__ = ["INSTALL", "NEEDS", "Needs", "how_to_install", "need", "not_installed", "pip_install"]

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
    "rocm": "pip install 'rocmend[emulate]'",
    "lightkube": "pip install 'rocmend[k8s]'",
}
"""What to do where a package (by the name that it is imported as) is not there, of an installation from an index."""
_EXTRA = re.compile(r"pip install 'rocmend\[(\w+)]'")


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
    "bench gemm": Needs(("torch",), "in the environment that is measured"),
    "bench kernels": Needs(("torch", "triton")),
    "bench mlx": _MLX_LM,
    "bench nn": Needs(("torch",), "in the environment that is measured"),
    "check": Needs(("torch",), "to try operations, in the environment that is checked"),
    "emulate": Needs(("rocm", "numpy")),
    "kernels check": Needs(("torch", "triton")),
    "kernels compile": Needs(("torch", "triton")),
    "kernels explain": Needs(("torch",), "without --target"),
    "kernels tune": Needs(("torch", "triton")),
    "lab run": Needs(("lightkube",), "for experiments on Kubernetes"),
    "mlx chat": _MLX_LM,
    "mlx generate": _MLX_LM,
    "mlx run": Needs(("torch", "mlx")),
    "mlx serve": _MLX_LM,
    "mlx warm": _MLX_LM,
    "port verify": Needs(("clang", "ziglang"), "for level compile, where there is no ROCm"),
    "probe run": Needs(("torch",), "in the environment that is probed"),
}
"""The commands that need more than the base installation; all others need nothing else."""


def how_to_install(package: str) -> str:
    """Return what to do where a package of ``INSTALL`` is not there, for the way that rocmend itself was installed."""
    return _EXTRA.sub(lambda found: pip_install(found[1]), INSTALL[package])


def pip_install(extra: str) -> str:
    """Return the command that adds an extra to this installation, from where rocmend was installed."""
    source, options = _source()
    name, at, url = source.partition(" @ ")
    if not url and Path(name) == Path.cwd():
        name = "."
    return f"pip install {options}{shlex.quote(f'{name}[{extra}]{at}{url}')}"


@cache
def _source() -> tuple[str, str]:
    """Return what pip installed rocmend from, as pip takes it, and options to install it the same way again."""
    from importlib import metadata

    try:
        told = json.loads(metadata.distribution("rocmend").read_text("direct_url.json") or "{}")
        url = str(told.get("url") or "")
        if "vcs_info" in told:
            return f"rocmend @ {told['vcs_info']['vcs']}+{url}@{told['vcs_info']['commit_id']}", ""
        if not url.startswith("file:"):
            return "rocmend", ""
        path = unquote(urlsplit(url).path)
        options = "-e " if told.get("dir_info", {}).get("editable") else ""
        return (path if Path(path).exists() else ".", options)  # a checkout that was moved: in the new folder
    except (metadata.PackageNotFoundError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return "rocmend", ""


def not_installed(subject: str, package: str) -> UsageError:
    """Return the error for a package of ``INSTALL`` that is not there."""
    return UsageError(subject, f"needs {package}, which is not installed.", next_step=how_to_install(package))


def need(command: str) -> None:
    """Make sure that what a command of ``NEEDS`` needs is there, without importing it.

    Raises:
        UsageError: A package is not.
    """
    for package in NEEDS[command].packages:
        if importlib.util.find_spec(package) is None:
            raise not_installed(command, package)
