"""The agents that the HSA runtime sees, as rocminfo prints them."""

from __future__ import annotations

import msgspec

from rocmend.core.supervise import CommandResult, Ending
from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.rocminfo import Agent, parse_rocminfo
from rocmend.machine.root import Root
from rocmend.machine.toolstatus import tool_status

COMMAND = ("rocminfo",)
TIME_LIMIT_S = 10.0


@collector(
    "rocminfo",
    facts={
        "rocminfo.status": "How rocminfo ended: ok, absent, timeout, error, denied.",
        "rocminfo.message": "What it said where it did not end well; empty otherwise.",
        "rocminfo.agents": "Agents: name, device_type, gfx, marketing_name, node, isa, xnack, compute_units, pools …",
        "rocminfo.gfx_targets": "gfx targets of the GPU agents, in order.",
        "rocminfo.runtime_version": "HSA runtime version; null where it is not printed.",
        "rocminfo.module_version": "Version of the DKMS kernel module as it prints it; null for the kernel's own.",
        "rocminfo.xnack_enabled": "XNACK is enabled; null where it is not printed.",
    },
    time_limit_s=14.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Run rocminfo."""
    result = root.run(COMMAND, time_limit_s=TIME_LIMIT_S)
    source = " ".join(COMMAND)
    info = parse_rocminfo(result.stdout)
    status, message = tool_status(result)
    if status == "ok" and not info.agents:
        status, message = "error", "it printed no agents"
    facts.put("rocminfo.status", status, source=source, raw=message)
    facts.put("rocminfo.message", message, source=source)
    if not _printed(result) or not info.agents:
        for key in ("agents", "gfx_targets", "runtime_version", "module_version", "xnack_enabled"):
            facts.gap(f"rocminfo.{key}", f"rocminfo: {status}{f' ({message})' if message else ''}", source=source)
        return
    facts.put("rocminfo.agents", [_plain(agent) for agent in info.agents], source=source)
    facts.put("rocminfo.gfx_targets", [agent.gfx for agent in info.agents if agent.gfx], source=source)
    facts.put("rocminfo.runtime_version", info.runtime_version or None, source=source)
    facts.put("rocminfo.module_version", info.module_version or None, source=source)
    facts.put("rocminfo.xnack_enabled", info.xnack_enabled, source=source)


def _printed(result: CommandResult) -> bool:
    return result.ending in {Ending.EXITED, Ending.SIGNALLED, Ending.TIMEOUT}


def _plain(agent: Agent) -> dict[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(agent)
    return plain
