"""The 8-bit float type that the GPU at hand multiplies.

PyTorch is imported when the type is asked for, so that this module changes nothing about when a program imports it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@functools.cache
def float8_e4m3(device: torch.device | int | str | None = None) -> torch.dtype:
    """Return the type with 4 bits of exponent and 3 of fraction.

    gfx940 to gfx942 multiply ``float8_e4m3fnuz``: its range ends at 240, and the same bits mean half as much as in
    ``float8_e4m3fn``, which later targets multiply. Take ranges from ``torch.finfo``, and never reinterpret bytes.

    Args:
        device: The GPU; the current one where it is None.
    """
    import torch

    if torch.version.hip is None or not torch.cuda.is_available():
        return torch.float8_e4m3fn
    target = torch.cuda.get_device_properties(device).gcnArchName.partition(":")[0]
    return torch.float8_e4m3fnuz if target in ("gfx940", "gfx941", "gfx942") else torch.float8_e4m3fn
