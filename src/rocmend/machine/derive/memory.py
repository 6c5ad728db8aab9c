"""What a process can allocate on each GPU, and how an APU's memory is divided.

An APU's GPU has the part of RAM that the firmware set aside as VRAM, and through the GTT as much of the rest as TTM's
``pages_limit`` allows. Vulkan programs see both; the KFD, since Linux 6.10, takes only the larger one: GTT where it is
larger than VRAM (``apu_prefer_gtt`` in drivers/gpu/drm/amd/amdgpu/amdgpu_amdkfd.c), else VRAM.
"""

from __future__ import annotations

from rocmend.machine.derive._inputs import gpu_keys, known
from rocmend.machine.facts import FactSink, Machine, derivation

PAGE_BYTES = 4096
SYSTEM_SHARE = 0.1
"""Share of RAM left to the system in a suggested limit, and never less than SYSTEM_BYTES."""
SYSTEM_BYTES = 8 << 30


@derivation(
    "memory",
    facts={
        "gpu.*.memory_ceiling_bytes": "What a process can allocate: VRAM, or VRAM and GTT on an APU.",
        "gpu.*.hip_memory_bytes": "What a HIP process can allocate: on an APU the larger of VRAM and GTT.",
        "gpu.*.carve_out_fraction": "Share of an APU's RAM that the firmware set aside as VRAM; null for a card.",
        "gpu.*.gtt_fraction": "GTT as a share of the RAM that the system sees; null for a card.",
        "ttm.suggested_pages_limit": "Pages that leave the system a tenth of RAM, at least 8 GiB; null with no APU.",
        "ttm.suggested_limit_bytes": "The same in bytes.",
    },
    needs=(
        *("gpu.*.is_apu", "gpu.*.vram_total_bytes", "gpu.*.gtt_total_bytes"),
        *("memory.total_bytes", "ttm.limit_bytes"),
    ),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Add up the parts of each GPU's memory."""
    total = machine.value("memory.total_bytes")
    any_apu = False
    for index in machine.indices("gpu"):
        outputs = gpu_keys(index, "memory_ceiling_bytes", "hip_memory_bytes", "carve_out_fraction", "gtt_fraction")
        keys = gpu_keys(index, "is_apu", "vram_total_bytes")
        values = known(machine, facts, outputs, *keys)
        if values is None:
            continue
        if values[0] is None:
            for output in outputs:
                facts.gap(output, "it is not known whether the GPU shares the processor's memory", source=keys[0])
            continue
        if values[0]:
            any_apu = True
            _apu(machine, facts, index, int(values[1] or 0))
            continue
        for output in outputs[:2]:
            facts.put(output, values[1], source=keys[1])
        for output in outputs[2:]:
            facts.put(output, None, source=keys[0])
    if any_apu and isinstance(total, int):
        kept = max(int(total * SYSTEM_SHARE), SYSTEM_BYTES)
        suggested = (total - kept) // PAGE_BYTES if total > kept else None
        size = None if suggested is None else suggested * PAGE_BYTES
        facts.put("ttm.suggested_pages_limit", suggested, source="memory.total_bytes")
        facts.put("ttm.suggested_limit_bytes", size, source="memory.total_bytes")
    elif not any_apu:
        for key in ("ttm.suggested_pages_limit", "ttm.suggested_limit_bytes"):
            facts.put(key, None, source="gpu.*.is_apu")


def _apu(machine: Machine, facts: FactSink, index: int, vram: int) -> None:
    """State an APU's figures."""
    ceiling, hip, carve_out, fraction = gpu_keys(
        index, "memory_ceiling_bytes", "hip_memory_bytes", "carve_out_fraction", "gtt_fraction"
    )
    vram_key, gtt_key = gpu_keys(index, "vram_total_bytes", "gtt_total_bytes")
    total = machine.value("memory.total_bytes")
    if isinstance(total, int) and total + vram > 0:
        facts.put(carve_out, round(vram / (total + vram), 3), source=f"{vram_key}, memory.total_bytes")
    else:
        known(machine, facts, (carve_out,), "memory.total_bytes")
    values = known(machine, facts, (ceiling, hip, fraction), gtt_key)
    if values is None or not isinstance(values[0], int):
        return
    limit = machine.value("ttm.limit_bytes")
    gtt = min(values[0], limit) if isinstance(limit, int) else values[0]
    source = f"{vram_key}, {gtt_key}" + (", ttm.limit_bytes" if isinstance(limit, int) else "")
    facts.put(ceiling, vram + gtt, source=source)
    facts.put(hip, max(vram, gtt), source=source)
    if isinstance(total, int) and total > 0:
        facts.put(fraction, round(gtt / total, 3), source=f"{gtt_key}, memory.total_bytes")
    else:
        known(machine, facts, (fraction,), "memory.total_bytes")
