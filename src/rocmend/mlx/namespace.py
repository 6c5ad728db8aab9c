"""What the Python array API asks a namespace about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.device import Device, DeviceType, cpu, default_device
from rocmend.mlx.dtypes import DTYPES as _ALL
from rocmend.mlx.dtypes import bfloat16, complex64, float16, float32, int32
from rocmend.mlx.node import current
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype

__all__ = ["ArrayNamespaceInfo"]

# of 16-bit floats the array API knows nothing
_KNOWN = {dtype.name.removesuffix("_"): dtype for dtype in _ALL if dtype not in (float16, bfloat16)}


class ArrayNamespaceInfo:
    """The types, devices and abilities of the namespace.

    Source: https://data-apis.org/array-api/latest/API_specification/inspection.html
    """

    def capabilities(self) -> dict[str, Any]:
        """Return what the namespace can do."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 10}

    def default_device(self) -> Device:
        """Return the device that computes where none is named."""
        return current.state.device

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that can compute."""
        first = default_device()
        return (first,) if first.type is cpu else (first, Device(cpu))

    def default_dtypes(self, *, device: Any = None) -> dict[str, Dtype]:
        """Return the types that numbers take.

        Args:
            device: the device; they are the same on each.
        """
        _checked(device)
        return {"real floating": float32, "complex floating": complex64, "integral": int32, "indexing": int32}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Dtype]:
        """Return the types by name.

        Args:
            device: the device; they are the same on each.
            kind: only types of that kind, or of one of these kinds; see ``isdtype``.

        Raises:
            ValueError: there is no such kind.
        """
        _checked(device)
        if kind is None:
            return dict(_KNOWN)
        return {name: dtype for name, dtype in _KNOWN.items() if ops.isdtype(dtype, kind)}


def _checked(device: Any) -> None:
    if device is not None and not isinstance(device, Device | DeviceType):
        raise TypeError(f"[array namespace] expected a Device, got {type(device).__name__}.")
