"""Loading the operations: every module of ``ops`` is imported, its public functions registered and given to ``array``.

Adding a module to ``ops`` needs no change here. A name that two modules define is an error.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from rocmend.kernels.common.formats import Format
from rocmend.mlx import ops as family
from rocmend.mlx.accelerated import install, native
from rocmend.mlx.array import array
from rocmend.mlx.ops.slices import SLICE, SLICE_UPDATE
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms.trace import Trace

__all__ = ["load"]


def load() -> dict[str, Any]:
    """Load all operations, once, and return the public functions by name."""
    owners: dict[str, str] = {}
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(family.__path__, family.__name__ + "."):
        module = importlib.import_module(info.name)
        for name in module.__all__:
            if name in owners or hasattr(ops, name):
                first = owners.get(name, "the registry")
                raise ImportError(f"mlx function {name} is defined in {first} and in {info.name}.")
            owners[name] = info.name
            found[name] = getattr(module, name)
    if native is not None:
        native.slices(SLICE, SLICE_UPDATE)
        # attributes that hold no function of a user
        native.close((Format, Trace))
        install.functions(found, owners)
    vars(ops).update(found)
    install.methods(array)
    return found
