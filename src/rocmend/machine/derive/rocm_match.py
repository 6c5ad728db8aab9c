"""The ROCm that torch was built with against the system's."""

from __future__ import annotations

from rocmend.machine.derive._inputs import known
from rocmend.machine.facts import FactSink, Machine, derivation


@derivation(
    "rocm_match",
    facts={
        "torch.rocm_match": "match, minor-differs, major-differs or unknown; null where torch is no ROCm build.",
        "torch.rocm_match_reason": "Why, and what it means.",
    },
    needs=("torch.backend", "torch.rocm_version", "torch.hip_version", "torch.source", "rocm.version", "rocm.kind"),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Compare the versions; ROCm wheels count where torch is TheRock's, since only such a torch loads them."""
    from rocmend.codeobject.versions import match_rocm

    outputs = ("torch.rocm_match", "torch.rocm_match_reason")
    values = known(machine, facts, outputs, "torch.backend", "rocm.version", "rocm.kind")
    if values is None:
        return
    backend, system, kind = values
    if backend != "rocm":
        facts.put(outputs[0], None, source="torch.backend")
        facts.put(outputs[1], "", source="torch.backend")
        return
    key = "torch.rocm_version" if machine.value("torch.rocm_version") else "torch.hip_version"
    loaded = kind != "wheel" or machine.value("torch.source") == "therock"
    found = match_rocm(str(machine.value(key) or ""), str(system or "") if loaded else "")
    facts.put(outputs[0], found.state.value, source=f"{key}, rocm.version")
    facts.put(outputs[1], found.reason, source=f"{key}, rocm.version")
