"""Names of gfx targets as tools, wheels and the runtime write them."""

from __future__ import annotations

import re

import msgspec

from rocmend.core.errors import UsageError

MAX_NAME_CHARS = 200
"""Longer than any target id with every feature; anything longer is not a name."""

_TARGET_ID = re.compile(r"(?P<processor>gfx[0-9a-z]+(?:-[0-9a-z]+)*)(?P<features>(?::[a-z0-9_-]+[+-])*)\Z")
_TRIPLE = re.compile(r"(?:hip(?:v4)?-)?amdgcn-[a-z0-9_.]*-[a-z0-9_.]*-(?:[a-z0-9_.]*-)?(?=gfx)")
_FEATURE = re.compile(r":([a-z0-9_-]+)([+-])")


class TargetId(msgspec.Struct, frozen=True):
    """A processor with the features that its code was compiled for.

    Attributes:
        processor: LLVM processor name, specific or generic: ``gfx90a``, ``gfx11-generic``.
        features: Feature to on or off, e.g. ``{"xnack": False}``; one that is not named may be either.
    """

    processor: str
    features: dict[str, bool] = {}

    def __str__(self) -> str:
        switches = (f":{name}{'+' if on else '-'}" for name, on in sorted(self.features.items()))
        return self.processor + "".join(switches)


def parse_target_id(text: str) -> TargetId:
    """Split a target id, alone or behind a triple, into processor and features.

    Args:
        text: ``gfx1151``, ``gfx90a:sramecc+:xnack-``, ``amdgcn-amd-amdhsa--gfx1151``,
            ``hipv4-amdgcn-amd-amdhsa--gfx942:xnack+``, ``gfx11-generic``; upper case too.

    Returns:
        The parts, in lower case.

    Raises:
        UsageError: The text is not of that form.

    Source:
        https://llvm.org/docs/AMDGPUUsage.html#target-id
    """
    name = text.strip().lower()
    triple = _TRIPLE.match(name) if len(name) <= MAX_NAME_CHARS else None
    match = _TARGET_ID.match(name, triple.end() if triple else 0) if len(name) <= MAX_NAME_CHARS else None
    if match is None:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise UsageError(
            "gfx target",
            f"expected a name such as gfx1151 or gfx90a:xnack-, got {shown!r}.",
            next_step="`rocminfo | grep gfx` prints the name on a machine with ROCm.",
        )
    features: dict[str, bool] = {}
    for feature, sign in _FEATURE.findall(match["features"]):
        if features.setdefault(feature, sign == "+") is not (sign == "+"):
            raise UsageError(
                "gfx target", f"{text!r} switches {feature} both on and off.", next_step="Keep one of them."
            )
    return TargetId(match["processor"], features)
