"""Running a program whose ``mlx.core`` is rocmend's, as ``python`` itself would run it."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

from rocmend.core.optional import how_to_install
from rocmend.mlx import environment
from rocmend.mlx.activation import activate

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LaunchError", "code", "module", "prepare", "script"]

OVERLAY = Path(__file__).parent / "overlay"


class LaunchError(Exception):
    """The program cannot be started; the text says why and what to do."""


def prepare(*, children: bool = True) -> None:
    """Make ``mlx.core`` rocmend's in this process and, through ``PYTHONPATH``, in Python processes that it starts.

    Args:
        children: also for child processes (``subprocess``, ``multiprocessing`` with spawn, ``torchrun``).

    Raises:
        LaunchError: torch is not installed, an environment variable has a value that it cannot have, or a GPU is asked
            for and torch sees none.
    """
    try:
        environment.check()
    except ValueError as error:
        raise LaunchError(str(error)) from None
    if importlib.util.find_spec("torch") is None:
        raise LaunchError(f"torch is not installed, and rocmend.mlx computes with it. {how_to_install('torch')}")
    if environment.asked("ROCMEND_MLX_DEVICE") == "gpu":
        _check_gpu()
    activate()
    if children:
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if str(OVERLAY) not in paths:
            os.environ["PYTHONPATH"] = os.pathsep.join([str(OVERLAY), *filter(None, paths)])
        if str(OVERLAY) not in sys.path:  # multiprocessing hands a spawned process this path
            sys.path.insert(0 if sys.flags.safe_path else 1, str(OVERLAY))


def _check_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        raise LaunchError(
            f"a GPU was requested, but torch {torch.__version__} finds none. `rocmend doctor` explains why; --device "
            "cpu, or "
            "ROCMEND_MLX_DEVICE=cpu, runs without one."
        )


def module(name: str, arguments: Sequence[str]) -> None:
    """Run a module or package as ``python -m NAME ARGUMENTS`` does.

    Raises:
        LaunchError: there is no such module.
    """
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise
        found = None
    if found is None:
        raise LaunchError(_no_module(name))
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def script(path: str, arguments: Sequence[str]) -> None:
    """Run a script, or a folder or archive with a ``__main__.py``, as ``python PATH ARGUMENTS`` does.

    Raises:
        LaunchError: there is no such file.
    """
    if not Path(path).exists():
        raise LaunchError(f"there is no file {path!r}. To run a module, use -m NAME.")
    sys.argv = [path, *arguments]
    if Path(path).is_file() and not sys.flags.safe_path:
        sys.path[0] = str(Path(path).resolve().parent)
    runpy.run_path(path, run_name="__main__")


def code(text: str, arguments: Sequence[str]) -> None:
    """Run Python code as ``python -c TEXT ARGUMENTS`` does."""
    sys.argv = ["-c", *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = ""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    exec(compile(text, "<string>", "exec"), main.__dict__)  # noqa: S102  it is what the user asks for


def _no_module(name: str) -> str:
    package = name.partition(".")[0]
    if package in ("mlx", "mlx_lm"):
        return (
            f"there is no module {name!r}. rocmend.mlx replaces mlx.core only: mlx.nn, mlx.optimizers and mlx_lm come "
            f"from their own packages. {how_to_install('mlx')}"
        )
    return f"there is no module {name!r}. Install it in this environment, or pass the path of a script."
