"""The module that programs import as ``mlx.core``: the public names of ``rocmend.mlx.ops``, and modules beside it."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from rocmend.mlx import ops
from rocmend.mlx.arguments import ArrayLike
from rocmend.mlx.array import array
from rocmend.mlx.array_methods import ArrayIterator

# the release of MLX whose interface this is
__version__ = "0.32.4"

_names: dict[str, object] = {"ArrayIterator": ArrayIterator, "ArrayLike": ArrayLike, "array": array, **ops.public()}
globals().update(_names)

_modules = frozenset(info.name for info in pkgutil.iter_modules(__path__))

__all__ = sorted({*_names, *_modules})  # noqa: PLE0605  (a list all the same)


def __getattr__(name: str) -> ModuleType:
    """Import ``fast``, ``random``, ``linalg`` and so on when they are first used."""
    if name not in _modules:
        raise AttributeError(f"module 'mlx.core' has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules})
