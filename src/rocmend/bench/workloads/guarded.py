"""Memory that shows afterwards whether all of it was written, and nothing beside it. Needs torch alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_GUARD = 512
"""Elements before and after the result: what follows stays aligned."""
_POISON = -1_985_229_329
"""What integers hold before they are written."""


class Guarded:
    """A tensor in the middle of a larger one.

    Args:
        shape: Its shape.
        dtype: Its dtype.
        device: Where it lies.
        pinned: It is host memory that the device can read directly.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device | str, *, pinned: bool = False
    ) -> None:
        import torch

        count = math.prod(shape)
        self._whole = torch.empty(count + 2 * _GUARD, dtype=dtype, device=device, pin_memory=pinned)
        self.tensor = self._whole[_GUARD : _GUARD + count].view(shape)

    def poison(self) -> None:
        """Fill all of it with what no result holds: NaN, or a number of its own."""
        self._whole.fill_(float("nan") if self._whole.is_floating_point() else _POISON)

    def wrong(self) -> str:
        """Say whether something was written beside the tensor, or a NaN is in it."""
        sides = (self._whole[:_GUARD], self._whole[-_GUARD:])
        floating = self._whole.is_floating_point()
        kept = all(bool((side.isnan() if floating else side == _POISON).all()) for side in sides)
        if not kept:
            return "memory beside the result was written"
        bad = self.tensor.numel() - int(self.tensor.isfinite().sum()) if floating else 0
        if bad:
            count = f"{bad:,} of {self.tensor.numel():,} elements"
            return f"{count} are NaN or inf: not written, or computed from memory that was not"
        return ""
