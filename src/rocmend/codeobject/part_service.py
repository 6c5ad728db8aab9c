"""How one part of a package serves a GPU: by which of its code, in how many fat binaries, and what is damaged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from rocmend.codeobject.matching import Match, Verdict, describe, find_matches, shown_settings, shown_targets
from rocmend.codeobject.model import Component
from rocmend.codeobject.roles import Role, role_of
from rocmend.core.gfx import GfxTarget, lookup, parse_target_id
from rocmend.core.units import count_text

_GET_AGAIN = re.compile(r"\bcut off|\bdamaged\b|not inflate\b")


class ComponentService(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one part of a package serves the GPU.

    Attributes:
        name: The part.
        verdict: How it serves it.
        reason: Why, and what it means where it does not.
        via: The target whose code would run.
        override: Value of HSA_OVERRIDE_GFX_VERSION that the verdict ``override`` needs.
        role: ``kernels`` (nothing runs without), ``library`` (the operations it computes fail), ``tuning`` (slower).
        objects: Code objects (or files) that would be used.
        units: Fat binaries of the part; fewer ``objects`` than ``units`` mean that some operations fail.
        variant: HIP version, where the package carries alternatives.
    """

    name: str
    verdict: Verdict
    reason: str
    via: str = ""
    override: str = ""
    role: str = Role.KERNELS.value
    objects: int = 0
    units: int = 0
    variant: str = ""


class Gpu(msgspec.Struct, frozen=True):
    """The GPU asked about: its target, and its settings where they are known."""

    target: GfxTarget
    settings: dict[str, bool]

    @property
    def shown(self) -> str:
        """Return the target with the settings: ``gfx90a:xnack+``."""
        return self.target.name + shown_settings(self.settings)


def gpu_of(name: str) -> Gpu:
    """Return the GPU of a target id: ``gfx90a:xnack+``."""
    return Gpu(lookup(name), dict(parse_target_id(name).features))


def serve_part(part: Component, gpu: Gpu, override: str) -> tuple[ComponentService, Match | None]:
    """Return how a part serves a GPU, and the match that this rests on; None where nothing of it would run.

    Args:
        part: The part.
        gpu: The GPU, or the one that an override makes it pass for.
        override: Value of HSA_OVERRIDE_GFX_VERSION that is set; empty for none.
    """
    role = role_of(part.name)
    common: dict[str, Any] = {"role": role.kind.value, "units": part.units, "variant": part.variant}
    matches = find_matches(part.targets, gpu.target, gpu.settings)
    best, covered = _pick([match for match in matches if match.use.objects], part.units)
    damage = _damage(part, matches, gpu)
    if damage:
        return ComponentService(part.name, Verdict.UNKNOWN, damage, objects=covered, **common), None
    if best is None:
        other = [use for use in part.targets if use.target.partition(":")[0] == gpu.target.name]
        held = shown_targets(other or part.targets)
        reason = f"holds no code for {gpu.shown} (it holds {held}): {role.without}"
        return ComponentService(part.name, Verdict.NONE, reason, **common), None
    if 2 * covered < part.units:
        reason = f"holds code for {gpu.shown} in {covered} of its {part.units} fat binaries only: {role.without}"
        return ComponentService(part.name, Verdict.NONE, reason, objects=covered, **common), None
    partly = ""
    if covered < part.units:
        partly = f", but in {covered} of its {part.units} fat binaries only: what the others compute fails"
    return (
        ComponentService(
            part.name,
            Verdict.OVERRIDE if override else best.verdict,
            f"{describe(best, gpu.target)}{partly}.",
            best.use.target,
            override,
            objects=covered,
            **common,
        ),
        best,
    )


def _damage(part: Component, matches: Sequence[Match], gpu: Gpu) -> str:
    """Say which of the code that the GPU would load is damaged; "" where none is.

    Generic code is loaded only where a fat binary holds none for the target itself.
    """
    if part.damaged:
        files = count_text(part.files, "file")
        again = ": get it again" if _GET_AGAIN.search(part.damage) else ""
        return f"{part.damaged} of its {files} cannot be relied on ({part.damage}){again}."
    native = [match.use for match in matches if match.verdict is Verdict.NATIVE]
    whole = sum(use.objects for use in native)
    native_suffices = whole and whole >= part.units
    loaded = native if native_suffices or any(use.damaged for use in native) else [match.use for match in matches]
    damaged = sum(use.damaged for use in loaded)
    if not damaged:
        return ""
    objects = count_text(damaged + sum(use.objects for use in loaded), "code object")
    first = next(use.damage for use in loaded if use.damaged)
    return f"{damaged} of its {objects} for {gpu.shown} cannot be loaded: {first}."


def _pick(matches: Sequence[Match], units: int) -> tuple[Match | None, int]:
    """Return the match that stands for a part, and how many of its fat binaries some match serves.

    The loader decides for each fat binary, so that specific code in some and generic code in the others go together.
    """
    if not matches:
        return None, 0
    alike = [match for match in matches if match.rank[0] == matches[0].rank[0]]
    covered = sum(match.use.objects for match in alike)
    best = matches[0]
    if 2 * best.use.objects < units:
        best = max(alike, key=lambda match: match.use.objects)
    return best, min(covered, units) if units else covered
