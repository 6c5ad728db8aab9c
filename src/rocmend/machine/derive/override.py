"""HSA_OVERRIDE_GFX_VERSION: which target it makes each GPU pass as, and whether that can work.

The runtime takes ``HSA_OVERRIDE_GFX_VERSION_<KFD node>`` before the general variable. The value must be
``major.minor.stepping`` in decimal with nothing after it, at most 63.255.255, or the runtime does not start.

Source: ``topology_sysfs_get_node_props`` in libhsakmt/src/topology.c, https://github.com/ROCm/ROCR-Runtime
"""

from __future__ import annotations

import re
from typing import Any

from rocmend.machine.facts import FactSink, Machine, derivation

VARIABLE = "HSA_OVERRIDE_GFX_VERSION"
_FORM = re.compile(r"\s*(\d{1,3})\.\s*(\d{1,3})\.\s*(\d{1,3})\Z")


def parse_override(value: str) -> tuple[int, int, int] | None:
    """Return (major, minor, stepping), or None where the runtime would refuse the value."""
    match = _FORM.match(value)
    if match is None:
        return None
    major, minor, stepping = (int(part) for part in match.groups())
    return (major, minor, stepping) if major <= 63 and minor <= 255 and stepping <= 255 else None


def target_name(version: tuple[int, int, int]) -> str:
    """Return the LLVM name: (9, 0, 10) is gfx90a."""
    major, minor, stepping = version
    return f"gfx{major}{minor:x}{stepping:x}"


@derivation(
    "override",
    facts={
        "override.value": "Value of the variable that applies (the first GPU's); null where none is set.",
        "override.target": "gfx target that it stands for; null where none is set or the value is malformed.",
        "override.sane": "Whether every overridden GPU stays in its LLVM generic class; null where none is overridden.",
        "override.malformed": "Whether a value is not of the form major.minor.stepping.",
        "override.reason": "Why it is or is not sane; empty where none is set.",
        "gpu.*.override_target": "gfx target that this GPU passes as; null where it is not overridden.",
        "gpu.*.override_sane": "Whether this GPU stays in its LLVM generic class; null where it is not overridden.",
        "gpu.*.effective_target": "gfx target that programs see: the override's, else the GPU's own.",
    },
    needs=("gpu.*.gfx_target", "gpu.*.source_node", "env.*"),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Judge the value that applies to each GPU, and all of them together."""
    if machine.fact("env.collected") is None:
        for key in ("override.value", "override.target", "override.sane", "override.malformed", "override.reason"):
            facts.gap(key, "the environment was not read", source="env.collected")
        return
    verdicts: list[bool | None] = []
    reasons: list[str] = []
    applying: list[str] = []
    for index in machine.indices("gpu"):
        variable, value = _applying(machine, index)
        own = machine.value(f"gpu.{index}.gfx_target")
        target, sane, reason = _judge(own, value)
        source = f"env.{variable}, gpu.{index}.gfx_target"
        facts.put(f"gpu.{index}.override_target", target, source=source)
        facts.put(f"gpu.{index}.override_sane", sane, source=source)
        if isinstance(own, str):
            facts.put(f"gpu.{index}.effective_target", target or own, source=source)
        if value is not None:
            applying.append(value)
            verdicts.append(sane)
            reasons.append(reason)
    _state_whole(machine, facts, applying, verdicts, reasons)


def _applying(machine: Machine, index: int) -> tuple[str, str | None]:
    """Return the variable that the runtime reads for a GPU, and its value."""
    node = machine.value(f"gpu.{index}.source_node")
    own = machine.value(f"env.{VARIABLE}_{node}") if isinstance(node, int) else None
    if isinstance(own, str):
        return f"{VARIABLE}_{node}", own
    general = machine.value(f"env.{VARIABLE}")
    return VARIABLE, general if isinstance(general, str) else None


def _judge(own: Any, value: str | None) -> tuple[str | None, bool | None, str]:
    """Return (target, whether it is sane, why) of one GPU's override."""
    from rocmend.core.gfx import find, from_kfd_version, override_between

    if value is None:
        return None, None, ""
    version = parse_override(value)
    if version is None:
        return None, False, f"{value!r} is not of the form major.minor.stepping: the runtime refuses to start."
    wanted = from_kfd_version(version[0] * 10000 + version[1] * 100 + version[2])
    have = find(own) if isinstance(own, str) else None
    if wanted is None:
        return target_name(version), False, f"{target_name(version)} is no target that is known."
    if have is None:
        return wanted.name, None, "the GPU's own target is not known."
    verdict = override_between(have, wanted)
    return wanted.name, verdict.sane, verdict.reason


def _state_whole(
    machine: Machine, facts: FactSink, applying: list[str], verdicts: list[bool | None], reasons: list[str]
) -> None:
    """State what holds for the machine; a variable that is set counts even where no GPU is listed."""
    general = machine.value(f"env.{VARIABLE}")
    value = applying[0] if applying else general
    source = f"env.{VARIABLE}"
    facts.put("override.value", value, source=source)
    given = applying or ([general] if isinstance(general, str) else [])
    facts.put("override.malformed", any(parse_override(item) is None for item in given), source=source)
    version = parse_override(value) if isinstance(value, str) else None
    facts.put("override.target", target_name(version) if version else None, source=source)
    sane = False if False in verdicts else None if None in verdicts or not verdicts else True
    facts.put("override.sane", sane, source=f"{source}, gpu.*.gfx_target")
    bad = [reason for reason, verdict in zip(reasons, verdicts, strict=True) if verdict is not True]
    facts.put("override.reason", next(iter(bad or reasons), ""), source=f"{source}, gpu.*.gfx_target")
