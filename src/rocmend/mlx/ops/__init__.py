"""The operations: one file a family, each with its public functions, their primitives and their rules.

``from rocmend.mlx import ops`` and ``ops.NAME`` reaches any public function from any module, whatever the order of
imports. Each module's ``__all__`` names its public functions; a name that two modules define is an error.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from rocmend.mlx.accelerated import native

_found: dict[str, Any] = {}


def public() -> dict[str, Any]:
    """Return every public function by name."""
    if not _found:
        owners: dict[str, str] = {}
        found: dict[str, Any] = {}
        for info in pkgutil.walk_packages(__path__, __name__ + "."):
            module = importlib.import_module(info.name)
            for name in getattr(module, "__all__", ()):
                if name in owners:
                    raise ImportError(f"mlx function {name} is defined in {owners[name]} and in {info.name}.")
                owners[name] = info.name
                found[name] = getattr(module, name)
        if native is not None:
            from rocmend.mlx.accelerated.install import functions

            functions(found, owners)
        _found.update(found)
        # From now on a name is found at once; a function wins over the module of its name.
        globals().update(found)
        from rocmend.mlx.array_methods import bind

        bind()
    return _found


def __getattr__(name: str) -> Any:
    """Resolve a public function."""
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return public()[name]
    except KeyError:
        raise AttributeError(f"mlx.core has no function {name!r} here.") from None
