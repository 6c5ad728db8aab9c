"""Make ``import mlx.core`` give rocmend's implementation."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

OURS = "rocmend.mlx.core"
THEIRS = "mlx.core"


class _Loader:
    """Gives the module that is already there under another name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002  the import system gives it
        module = importlib.import_module(self.name)
        # The import system writes the spec it was given into the module: the module keeps its own.
        self.kept = (module.__spec__, module.__loader__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self.kept


class Finder:
    """Answers for ``mlx.core`` and its submodules, and for nothing else."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  the import system gives it
        target: ModuleType | None = None,  # noqa: ARG002  the same
    ) -> ModuleSpec | None:
        """Return where a module is found, None where another finder is to be asked."""
        if fullname != THEIRS and not fullname.startswith(THEIRS + "."):
            return None
        ours = OURS + fullname[len(THEIRS) :]
        if importlib.util.find_spec(ours) is None:
            return None
        return importlib.util.spec_from_loader(fullname, _Loader(ours), is_package=fullname == THEIRS)  # type: ignore[arg-type]


def is_active() -> bool:
    """Return whether ``import mlx.core`` gives rocmend's implementation."""
    return any(isinstance(finder, Finder) for finder in sys.meta_path)


def activate() -> None:
    """Make ``import mlx.core`` give rocmend's implementation, in this process.

    Raises:
        RuntimeError: another ``mlx.core`` was imported before; it cannot be exchanged any more.
    """
    loaded = sys.modules.get(THEIRS)
    if loaded is not None and loaded.__name__ != OURS:
        raise RuntimeError(
            f"[activate] mlx.core is imported already, from {getattr(loaded, '__file__', 'the mlx package')}. "
            "Arrays of two implementations cannot be mixed. Call rocmend.mlx.activate() before the first import of mlx."
        )
    install()


def install() -> None:
    """Put the finder first, once."""
    if not is_active():
        sys.meta_path.insert(0, Finder())
