"""What is checked of an entry's settings: that ``rocmend env`` prints each only where it applies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rocmend.kb.entry import Entry, Setting
from rocmend.kb.predicate import PredicateError, compile_predicate
from rocmend.kb.rules import Context, Findings

_FAMILY = re.compile(r"\bRDNA ?\d|\bCDNA ?\d|\bgfx\d|\bMI\d{2,3}|\bInstinct\b|\bStrix\b", re.IGNORECASE)
_OF_ONE_FAMILY = frozenset({"rdna1", "gfx1151"})
"""Topics that are about one family of GPUs."""


def check_versions(entry: Entry, context: Context) -> Findings:
    """Yield settings that are printed for versions outside of the entry's scope."""
    del context
    wanted: list[tuple[str, set[str]]] = []
    if entry.scope.rocm:
        wanted.append(("rocm", {"rocm.version", "torch.rocm_version", "torch.hip_version"}))
    if entry.scope.kernel:
        wanted.append(("kernel", {"kernel.version", "kernel.release"}))
    wanted += [(name, {f"{name}.version", f"{name}.rocm_version", "packages"}) for name in entry.scope.package]
    for setting in entry.setting:
        read = set(_facts(setting))
        for name, facts in wanted:
            if not read & facts:
                yield (
                    "KB031",
                    f"setting {setting.name}: the scope limits {name}, but its when checks none of {_listed(facts)}",
                )


def check_family(entry: Entry, context: Context) -> Findings:
    """Yield settings for one family of GPUs that are printed for all."""
    del context
    for setting in entry.setting:
        named = _FAMILY.search(f"{setting.name.replace('_', ' ')} {setting.why}")
        limited = bool(entry.scope.gfx) or any(fact.startswith("gpu.") for fact in _facts(setting))
        if not limited and (named or entry.topic in _OF_ONE_FAMILY):
            of = named[0] if named else f"the topic {entry.topic}"
            yield "KB032", f"setting {setting.name}: it is for {of}, but neither scope.gfx nor when limits the GPU"


def check_workloads(entry: Entry, context: Context) -> Findings:
    """Yield workloads of settings that the entry's scope rules out."""
    del context
    for setting in entry.setting:
        beyond = [name for name in setting.workload if entry.scope.workload and name not in entry.scope.workload]
        if beyond:
            yield "KB033", f"setting {setting.name}: {', '.join(beyond)} is outside the scope's workloads"


def _facts(setting: Setting) -> Iterator[str]:
    try:
        predicate = compile_predicate(setting.when) if setting.when.strip() else None
    except PredicateError:  # KB013 says so
        return
    for parts in predicate.names if predicate is not None else ():
        yield parts[0] if parts[0] == "packages" else ".".join(parts)


def _listed(facts: set[str]) -> str:
    return ", ".join(sorted(facts))


SETTING_CHECKS: tuple[Callable[[Entry, Context], Findings], ...] = (check_versions, check_family, check_workloads)
