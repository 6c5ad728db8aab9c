"""Places for the results of a captured step, which are copied out of the graph's memory.

Large results get the same places again as soon as nobody holds the last ones. A step that goes on with them, the next
one of a generation with its cache, then finds them where they were the last time, and its own graph still holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Outgoing"]

LARGE = 1 << 18  # bytes of a result whose place is kept


class _Place:
    """A buffer, and what torch says of how many see it when nobody but this does."""

    __slots__ = ("alone", "handle", "tensor")

    def __init__(self, like: torch.Tensor) -> None:
        self.tensor = torch.empty_like(like)
        self.handle = self.tensor.untyped_storage()._cdata
        self.alone = _users(self.handle)

    @property
    def free(self) -> bool:
        return _users(self.handle) == self.alone


class Outgoing:
    """Where the results of one captured step go.

    Args:
        results: tensors in the graph's memory.
        most: bytes that may be kept for the next time.
    """

    def __init__(self, results: Sequence[torch.Tensor], most: float) -> None:
        self.results = results
        large = [k for k, result in enumerate(results) if result.nbytes >= LARGE]
        if not hasattr(torch._C, "_storage_Use_Count") or sum(results[k].nbytes for k in large) > most:
            large = []
        self.places: dict[int, _Place | None] = dict.fromkeys(large)

    def take(self) -> list[torch.Tensor]:
        """Return tensors like the results, which nobody else holds."""
        places = self.places
        taken = []
        for k, result in enumerate(self.results):
            if k in places:
                place = places[k]
                if place is None or not place.free:
                    place = places[k] = _Place(result)  # whoever holds the old one keeps it
                taken.append(place.tensor.detach())
            else:
                taken.append(torch.empty_like(result))
        return taken


def _users(handle: int) -> int:
    return int(torch._C._storage_Use_Count(handle))
