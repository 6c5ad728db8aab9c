"""Triton kernels for AMD and NVIDIA GPUs, each with a reference, tuning records, a cost and its evidence.

``from rocmend.kernels import rms_norm`` gives the op's public function: torch tensors in, torch tensors out. Importing
this package imports neither torch nor triton; the first use of a function does.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

_MODULES = frozenset(info.name for info in pkgutil.iter_modules(__path__))


def __getattr__(name: str) -> Any:
    """Resolve a public function of one of the ops."""
    if name.startswith("_") or name in _MODULES:
        raise AttributeError(name)
    registry = importlib.import_module("rocmend.kernels.registry")
    try:
        function = registry.exported(name)
    except KeyError:
        raise AttributeError(f"rocmend.kernels has no function {name!r}") from None
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    from rocmend.kernels import registry

    return sorted([*globals(), *registry.exports()])
