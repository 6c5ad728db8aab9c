"""How many AMD GPUs there are, which targets, and which of them have no driver."""

from __future__ import annotations

from rocmend.machine.derive._inputs import why_missing
from rocmend.machine.facts import FactSink, Machine, derivation


@derivation(
    "gpus",
    facts={
        "gpus.count": "Number of GPUs that the KFD lists.",
        "gpus.targets": "Their distinct gfx targets.",
        "gpus.undriven": "PCI slots of AMD GPUs that the amdgpu driver does not drive.",
        "gpus.amd_present": "Whether there is an AMD GPU at all, driven or not.",
    },
    needs=("gpu.*.gfx_target", "kfd.present", "pci.amd_gpus", "host.kind", "rocminfo.gfx_targets"),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Count the GPUs; where the KFD is known to be absent there are none."""
    indices = [index for index in machine.indices("gpu") if machine.fact(f"gpu.{index}.gfx_target")]
    gap = machine.gap("gpu.0.gfx_target")
    if indices or gap is None or machine.value("kfd.present") is False:
        source = ", ".join(f"gpu.{index}.gfx_target" for index in indices) or "kfd.present"
        facts.put("gpus.count", len(indices), source=source)
        targets = dict.fromkeys(str(machine.value(f"gpu.{index}.gfx_target")) for index in indices)
        facts.put("gpus.targets", list(targets), source=source)
    else:
        for key in ("gpus.count", "gpus.targets"):
            facts.gap(key, gap.reason, source=gap.source)
    _from_pci(machine, facts, bool(indices))


def _from_pci(machine: Machine, facts: FactSink, listed: bool) -> None:
    """State what the PCI bus says: a GPU under another driver, or under none, is there all the same."""
    cards = machine.value("pci.amd_gpus")
    if not isinstance(cards, list):
        reason = why_missing(machine, "pci.amd_gpus")
        facts.gap("gpus.undriven", reason, source="pci.amd_gpus")
        if listed:
            facts.put("gpus.amd_present", True, source="gpus.count")
        else:
            facts.gap("gpus.amd_present", reason, source="pci.amd_gpus")
        return
    undriven = [card for card in cards if isinstance(card, dict) and card.get("driver") != "amdgpu"]
    facts.put("gpus.undriven", [str(card.get("slot", "?")) for card in undriven], source="pci.amd_gpus")
    seen = machine.value("rocminfo.gfx_targets")
    present = bool(cards) or listed or bool(seen)
    if not present and str(machine.value("host.kind")).startswith("wsl"):
        facts.gap("gpus.amd_present", "WSL hands GPUs on through /dev/dxg, not over PCI", source="host.kind")
        return
    facts.put("gpus.amd_present", present, source="pci.amd_gpus, gpus.count, rocminfo.gfx_targets")
