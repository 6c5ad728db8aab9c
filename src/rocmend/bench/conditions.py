"""What is known about the machine of a run, and what is to be said before one begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocmend.core.units import size_text

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

_FACTS = {
    "system": "os.name",
    "kernel": "kernel.release",
    "product": "host.product",
    "firmware": "host.bios_version",
    "processor": "cpu.model",
    "memory": "memory.total_bytes",
    "ROCm": "rocm.version",
    "driver": "amdgpu.version",
}
"""What a figure may depend on, by the name that it is shown with."""


def machine_facts(machine: Machine) -> dict[str, str]:
    """Return what a figure may depend on, by the name that it is shown with."""
    found = {}
    for name, key in _FACTS.items():
        value = machine.value(key)
        if value not in {None, ""}:
            found[name] = size_text(value) if key.endswith("_bytes") else str(value)
    return found
