"""Units that register themselves: one file a unit, found by walking its package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Generic, NamedTuple, TypeVar

from rocmend.core.errors import UnitError
from rocmend.core.suggest import unknown

T = TypeVar("T")


class LoadProblem(NamedTuple):
    """A unit that could not be loaded, and why: listed, never dropped in silence."""

    module: str
    reason: str


class Registry(Generic[T]):
    """Units of one kind, by id, found by importing every module of a package.

    Args:
        kind: What the units are, for messages: ``collector``, ``command`` …
        package: Dotted name of the package to walk.
        listed: The command that lists them, if any: ``rocmend kernels list``.
        grouped: Units stand in packages of the package, not in the package itself.
    """

    def __init__(self, kind: str, package: str, *, listed: str = "", grouped: bool = False) -> None:
        self.kind = kind
        self.package = package
        self.listed = listed
        self.grouped = grouped
        self.problems: list[LoadProblem] = []
        self._units: dict[str, T] = {}
        self._loaded = False

    def register(self, unit_id: str) -> Callable[[T], T]:
        """Return a decorator that registers a unit under ``unit_id``.

        Raises:
            UnitError: The id is taken.
        """

        def decorate(unit: T) -> T:
            if unit_id in self._units:
                raise UnitError(
                    self.kind, f"the id {unit_id!r} is registered twice.", next_step="Rename one of the two."
                )
            self._units[unit_id] = unit
            return unit

        return decorate

    def load(self) -> None:
        """Import every module of the package, once; a module that fails is kept in ``problems``."""
        if self._loaded:
            return
        self._loaded = True
        names = _modules(self.package)
        for name in [unit for group in names for unit in _modules(group)] if self.grouped else names:
            try:
                importlib.import_module(name)
            except (ImportError, SyntaxError, UnitError) as error:
                self.problems.append(LoadProblem(name, f"{type(error).__name__}: {error}"))

    def __iter__(self) -> Iterator[tuple[str, T]]:
        self.load()
        yield from sorted(self._units.items())

    def __len__(self) -> int:
        self.load()
        return len(self._units)

    def get(self, unit_id: str) -> T:
        """Return the unit with this id.

        Raises:
            UnitError: Its module could not be loaded.
            UsageError: No such unit; the nearest names are suggested.
        """
        self.load()
        try:
            return self._units[unit_id]
        except KeyError:
            for problem in self.problems:
                if problem.module.rpartition(".")[2] == unit_id:
                    raise UnitError(self.kind, f"{problem.module} could not be loaded: {problem.reason}") from None
            raise unknown(self.kind, self.kind, unit_id, sorted(self._units), listed=self.listed) from None


def _modules(package: str) -> list[str]:
    """List the modules of a package by their dotted names, private ones left out."""
    found: ModuleType = importlib.import_module(package)
    names = sorted(info.name for info in pkgutil.iter_modules(found.__path__))
    return [f"{package}.{name}" for name in names if not name.startswith("_")]
