"""Which of the code that there is a GPU would run, and under what settings."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from rocmend.codeobject.isa import SPIRV
from rocmend.codeobject.model import TargetUse
from rocmend.core.gfx import GfxTarget, parse_target_id


class Verdict(StrEnum):
    """How a package serves a GPU, best first."""

    NATIVE = "native"
    GENERIC = "generic"
    OVERRIDE = "override"
    NONE = "none"
    UNKNOWN = "unknown"
    """Device code that would be loaded is damaged, cut off or not readable: what is there decides nothing."""
    NOT_APPLICABLE = "not-applicable"
    """It carries no device code at all: pure Python, a CPU build, or kernels that are compiled at run time."""


class Match(msgspec.Struct, frozen=True):
    """Code that the GPU would run.

    Attributes:
        use: Whose code, and how much of it.
        verdict: Native or generic.
        environment: What must be set for it.
        condition: What must hold for it and cannot be set.
    """

    use: TargetUse
    verdict: Verdict
    environment: dict[str, str] = {}
    condition: str = ""

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Least is best: unconditional before conditional, native before generic, more code before less."""
        return bool(self.environment or self.condition), list(Verdict).index(self.verdict), -self.use.objects


def find_matches(uses: Sequence[TargetUse], gpu: GfxTarget, settings: dict[str, bool]) -> list[Match]:
    """Return the code that a GPU would run, best first.

    Args:
        uses: The code that there is.
        gpu: The GPU's target.
        settings: The GPU's xnack and sramecc where they are known.

    Source:
        https://llvm.org/docs/AMDGPUUsage.html#target-id and #generic-processor-versioning
    """
    found = []
    for use in uses:
        if use.target == SPIRV:
            found.append(Match(use, Verdict.GENERIC))
            continue
        code = parse_target_id(use.target)
        if code.processor == gpu.name:
            verdict = Verdict.NATIVE
        elif gpu.generic_class is not None and code.processor == gpu.generic_class:
            verdict = Verdict.GENERIC
        else:
            continue
        needs = _needs(code.features, settings)
        if needs is not None:
            found.append(Match(use, verdict, *needs))
    return sorted(found, key=lambda match: match.rank)


def _needs(code: dict[str, bool], gpu: dict[str, bool]) -> tuple[dict[str, str], str] | None:
    """Return what must be set, and what must hold, for code with these settings to run; None where it can't."""
    environment: dict[str, str] = {}
    condition = ""
    for name, on in code.items():
        if name in gpu:
            if gpu[name] is not on:
                return None
        elif name == "xnack" and on:
            environment["HSA_XNACK"] = "1"  # off unless it is asked for
        elif name == "sramecc" and not on:
            condition = "it was compiled for memory without ECC (sramecc-); accelerators have it switched on by default"
    return environment, condition


def describe(match: Match, gpu: GfxTarget) -> str:
    """Say what code would run and what it needs, without a subject: ``carries code for gfx1151``."""
    use = match.use
    if use.target == SPIRV:
        text = "carries SPIR-V, which the runtime compiles for the GPU when it loads it (slow at first use)"
    elif match.verdict is Verdict.NATIVE:
        text = f"carries code for {use.target}"
    else:
        version = f" (version {use.generic_version})" if use.generic_version else ""
        text = f"carries code for {use.target}{version}, the generic class that {gpu.name} belongs to"
    if match.environment:
        text += f"; it runs only with {' '.join(f'{name}={value}' for name, value in match.environment.items())}"
    if match.condition:
        text += f"; {match.condition}"
    return text


def shown_settings(settings: dict[str, bool]) -> str:
    """Return settings as a target id writes them: ``:sramecc+:xnack-``."""
    return "".join(f":{name}{'+' if on else '-'}" for name, on in sorted(settings.items()))


def shown_targets(uses: Sequence[TargetUse], most: int = 12) -> str:
    """Return the targets that there is whole code for, for a sentence; the first ``most`` of them."""
    names = [use.target for use in uses if use.objects]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else "nothing"
