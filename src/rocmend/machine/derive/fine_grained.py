"""What rocminfo says of each GPU: fine-grained memory and the instruction sets that it accepts.

A pool is coarse-grained, fine-grained, or fine-grained in an extended scope, where atomics act at system scope and a
system that does not comply may need actions of its own for coherence.

Source: ``hsa_amd_memory_pool_global_flag_t`` in hsa_ext_amd.h, https://github.com/ROCm/ROCR-Runtime
"""

from __future__ import annotations

from typing import Any

from rocmend.machine.derive._inputs import why_missing
from rocmend.machine.facts import FactSink, Machine, derivation


@derivation(
    "fine_grained",
    facts={
        "gpu.*.fine_grained": "Whether a pool of the GPU is fine-grained, in an extended scope or not, by its flags.",
        "gpu.*.fine_grained_scope": "system (FINE GRAINED), extended (EXTENDED FINE GRAINED) or none.",
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
        outputs = [f"gpu.{index}.{name}" for name in ("fine_grained", "fine_grained_scope", "isa")]
        if agent is None:
            listed = isinstance(agents, list)
            reason = "rocminfo does not list it" if listed else why_missing(machine, "rocminfo.agents")
            for output in outputs:
                facts.gap(output, reason, source="rocminfo.agents")
            continue
        scope = _scope(agent.get("pools"))
        facts.put(outputs[0], None if scope is None else scope != "none", source="rocminfo.agents")
        facts.put(outputs[1], scope, source="rocminfo.agents")
        isa = agent.get("isa")
        facts.put(outputs[2], [str(name) for name in isa] if isinstance(isa, list) else [], source="rocminfo.agents")


def _is_gpu(agent: Any) -> bool:
    return isinstance(agent, dict) and (
        str(agent.get("device_type", "")).upper() == "GPU" or str(agent.get("gfx") or "").startswith("gfx")
    )


def _scope(pools: Any) -> str | None:
    """Return the widest coherence that a pool's flags promise; null where no pool has flags."""
    if not isinstance(pools, list):
        return None
    flags = [str(pool.get("flags") or "").upper() for pool in pools if isinstance(pool, dict) and pool.get("flags")]
    if not flags:
        return None
    if any("FINE GRAINED" in flag.replace("EXTENDED FINE GRAINED", "") for flag in flags):
        return "system"
    return "extended" if any("EXTENDED FINE GRAINED" in flag for flag in flags) else "none"
