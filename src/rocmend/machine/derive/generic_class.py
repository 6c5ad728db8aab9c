"""The LLVM generic target whose code a GPU runs."""

from __future__ import annotations

from rocmend.machine.facts import FactSink, Machine, derivation


@derivation(
    "generic_class",
    facts={
        "gpu.*.generic_class": "LLVM generic target that the GPU belongs to; null where there is none.",
        "gpu.*.architecture": "RDNA3.5, CDNA3 …; null where the target is not in the table.",
    },
    needs=("gpu.*.gfx_target",),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Look the target up in the gfx table."""
    from rocmend.core.gfx import find

    for index in machine.indices("gpu"):
        key = f"gpu.{index}.gfx_target"
        name = machine.value(key)
        if isinstance(name, str):
            target = find(name)
            facts.put(f"gpu.{index}.generic_class", target.generic_class if target else None, source=key)
            facts.put(f"gpu.{index}.architecture", target.architecture if target else None, source=key)
