"""What rocminfo says of each GPU: fine-grained memory and the instruction sets that it accepts."""

from __future__ import annotations

from typing import Any

from rocmend.machine.derive._inputs import why_missing
from rocmend.machine.facts import FactSink, Machine, derivation


@derivation(
    "fine_grained",
    facts={
        "gpu.*.fine_grained": "Whether a global pool of the GPU is fine-grained, by rocminfo's pool flags.",
        "gpu.*.isa": "Instruction sets that the runtime lists for the GPU.",
    },
    needs=("gpu.*.source_node", "gpu.*.gfx_target", "rocminfo.agents"),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Match agents to GPUs by KFD node, else by their order, which is the KFD's."""
    agents = machine.value("rocminfo.agents")
    indices = machine.indices("gpu")
    gpus = [agent for agent in agents if _is_gpu(agent)] if isinstance(agents, list) else []
    for position, index in enumerate(indices):
        node = machine.value(f"gpu.{index}.source_node")
        agent = next((item for item in gpus if isinstance(node, int) and item.get("node") == node), None)
        if agent is None and position < len(gpus) and "node" not in gpus[position]:
            agent = gpus[position]
        outputs = (f"gpu.{index}.fine_grained", f"gpu.{index}.isa")
        if agent is None:
            listed = isinstance(agents, list)
            reason = "rocminfo does not list it" if listed else why_missing(machine, "rocminfo.agents")
            for output in outputs:
                facts.gap(output, reason, source="rocminfo.agents")
            continue
        facts.put(outputs[0], _fine_grained(agent.get("pools")), source="rocminfo.agents")
        isa = agent.get("isa") or agent.get("isas") or []
        facts.put(outputs[1], [str(name) for name in isa] if isinstance(isa, list) else [], source="rocminfo.agents")


def _is_gpu(agent: Any) -> bool:
    return isinstance(agent, dict) and (
        str(agent.get("device_type", "")).upper() == "GPU" or str(agent.get("gfx") or "").startswith("gfx")
    )


def _fine_grained(pools: Any) -> bool | None:
    """Return whether a pool's flags say fine-grained (in an extended scope or not); null where none has flags."""
    if not isinstance(pools, list):
        return None
    flags = [str(pool.get("flags") or "").upper() for pool in pools if isinstance(pool, dict) and pool.get("flags")]
    return any("FINE GRAINED" in flag or "FINE_GRAINED" in flag for flag in flags) if flags else None
