"""Packages that carry one library for each HIP version, of which one is loaded: the one for the PyTorch beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rocmend.codeobject.model import Component

_VERSION = re.compile(r"(\d+)\.(\d+)")


class Loaded(msgspec.Struct, frozen=True):
    """The parts that would be loaded.

    Attributes:
        parts: Those for the HIP version, with all that are for any; every part where that cannot be told.
        hip: The HIP version that was settled on; "" where every variant stays possible.
        missing: Why it was not settled although the HIP version is known; "" otherwise.
    """

    parts: tuple[Component, ...]
    hip: str = ""
    missing: str = ""


def loaded_parts(components: Sequence[Component], hip: str) -> Loaded:
    """Return the parts that a program with a PyTorch of a HIP version would load.

    Args:
        components: Every part.
        hip: ``torch.version.hip`` of the PyTorch beside it, e.g. ``7.2.53150``; "" where it is not known.
    """
    there = list(dict.fromkeys(part.variant for part in components if part.variant))
    match = _VERSION.match(hip)
    if not there or match is None:
        return Loaded(tuple(components))
    wanted = f"{match[1]}.{match[2]}"
    if wanted not in there:
        return Loaded(
            tuple(components), missing=f"there is no library for HIP {wanted}, only for HIP {', '.join(there)}."
        )
    return Loaded(tuple(part for part in components if part.variant in {"", wanted}), hip=wanted)
