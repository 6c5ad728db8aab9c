"""GPUs inside WSL 2, where there is neither KFD nor PCI: what the runtime says of them, through /dev/dxg."""

from __future__ import annotations

from rocmend.machine.facts import FactSink, Machine, derivation

_VRAM_FLAGS = "COARSE GRAINED"


@derivation(
    "wsl_gpus",
    facts={
        "gpu.*.gfx_target": "gfx target; in WSL 2 as rocminfo names it.",
        "gpu.*.name": "Marketing name; in WSL 2 as rocminfo names it.",
        "gpu.*.compute_units": "Compute units; in WSL 2 as rocminfo counts them.",
        "gpu.*.wavefront_size": "Lanes of a wavefront; in WSL 2 as rocminfo names it.",
        "gpu.*.device_id": "PCI device id; in WSL 2 rocminfo's chip id.",
        "gpu.*.is_apu": "It shares the processor's memory; in WSL 2 from the product or the target.",
        "gpu.*.vram_total_bytes": "Dedicated memory; in WSL 2 the runtime's largest pool of the GPU.",
    },
    needs=("host.kind", "rocminfo.agents"),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """State the GPUs that rocminfo lists where nothing else does."""
    agents = machine.value("rocminfo.agents")
    if machine.value("host.kind") != "wsl2" or machine.indices("gpu") or not isinstance(agents, list):
        return
    from rocmend.core.gfx import find, product_for

    gpus = [agent for agent in agents if isinstance(agent, dict) and agent.get("gfx")]
    if gpus:
        facts.gap("gpu.*", "inside WSL 2 only the driver on Windows knows this", source="rocminfo")
    for index, agent in enumerate(gpus):
        target = find(str(agent["gfx"]))
        chip = agent.get("chip_id")
        device = f"0x{chip:04x}" if isinstance(chip, int) else None
        name = str(agent.get("marketing_name") or "") or None
        product = product_for(target.name, name, device) if target else None
        is_apu = product.is_apu if product else target.is_apu if target else None
        stated = {
            "gfx_target": agent["gfx"],
            "name": name,
            "compute_units": agent.get("compute_units"),
            "wavefront_size": agent.get("wavefront_size"),
            "device_id": chip,
            "is_apu": is_apu,
            "vram_total_bytes": _vram(agent) if is_apu is False else None,
        }
        for key, value in stated.items():
            if value is not None:
                facts.put(f"gpu.{index}.{key}", value, source="rocminfo")


def _vram(agent: dict[str, object]) -> int | None:
    pools = agent.get("pools")
    sizes = [
        pool["size_bytes"]
        for pool in (pools if isinstance(pools, list) else [])
        if isinstance(pool, dict) and pool.get("flags") == _VRAM_FLAGS and isinstance(pool.get("size_bytes"), int)
    ]
    return max(sizes, default=None)
