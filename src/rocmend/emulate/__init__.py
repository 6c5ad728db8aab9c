"""Executes AMD machine code on the CPU, and checks what hardware does not: bounds, races, waits, unwritten values.

    from rocmend.emulate import launch
    launch("kernel.hsaco", "add", grid=(4, 1, 1), block=(64, 1, 1), args=[x, y, out, n])

Everything here needs numpy, LLVM's library for Python and a C compiler: ``pip install 'rocmend[emulate]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocmend.emulate.arguments import launch as launch
    from rocmend.emulate.decode import UnmodelledError as UnmodelledError
    from rocmend.emulate.device import Device as Device
    from rocmend.emulate.device import FaultError as FaultError
    from rocmend.emulate.device import Run as Run
    from rocmend.emulate.faults import Check as Check
    from rocmend.emulate.hip import compile_hip as compile_hip
    from rocmend.emulate.triton import emulate as emulate

_PLACES = {
    "Check": "faults", "Device": "device", "FaultError": "device", "Run": "device", "UnmodelledError": "decode",
    "compile_hip": "hip", "emulate": "triton", "launch": "arguments",
}  # fmt: skip

__all__ = ["Check", "Device", "FaultError", "Run", "UnmodelledError", "compile_hip", "emulate", "launch"]


def __getattr__(name: str) -> Any:
    """Import what is asked for: a command that needs none of it starts without numpy."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
