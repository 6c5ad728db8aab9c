"""The module that programs import as ``mlx.core``: the public names of ``rocmend.mlx.ops``, and modules beside it."""

from __future__ import annotations

import importlib as _importlib
import pkgutil as _pkgutil
import sys as _sys
from typing import Any as _Any

from rocmend.mlx.arguments import ArrayLike as ArrayLike
from rocmend.mlx.array import array as array
from rocmend.mlx.array_methods import ArrayIterator as ArrayIterator
from rocmend.mlx.dtypes import Dtype as Dtype
from rocmend.mlx.linalg import norm as _norm
from rocmend.mlx.loader import load as _load
from rocmend.mlx.namespace import ArrayNamespaceInfo as _ArrayNamespaceInfo
from rocmend.mlx.registry import ops as _ops

# the release of MLX whose interface this is
__version__ = "0.32.4"

_names: dict[str, object] = {"ArrayIterator": ArrayIterator, "ArrayLike": ArrayLike, "array": array, **_load()}
# further names of the same functions
_names |= {"cumulative_prod": _names["cumprod"], "cumulative_sum": _names["cumsum"], "matrix_norm": _norm}
globals().update(_names)
_ops.core = _sys.modules[__name__]  # for array.__array_namespace__

_modules = frozenset(info.name for info in _pkgutil.iter_modules(__path__))

__all__ = sorted({*_names, *_modules})  # noqa: PLE0605  (a list all the same)


def __array_namespace_info__() -> _ArrayNamespaceInfo:  # noqa: N807  (the array API has it so)
    """Return what the Python array API asks a namespace about itself."""
    return _ArrayNamespaceInfo()


def __getattr__(name: str) -> _Any:
    """Import ``fast``, ``random``, ``linalg`` and so on when they are first used."""
    if name not in _modules:
        raise AttributeError(f"module 'mlx.core' has no attribute {name!r}")
    return _importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules})
