"""The output of rocminfo: the agents that the HSA runtime sees.

Source: rocminfo.cc in https://github.com/ROCm/rocminfo (names of the lines), as printed by ROCm 5.7 to 7.2.
"""

from __future__ import annotations

import re

import msgspec

MAX_CHARS = 4 << 20
MAX_AGENTS = 1024

_LINE = re.compile(r"^([ \t]{0,12})([A-Za-z][\w .()/-]{0,60}?):{1,2}[ \t]*(.{0,400}?)[ \t]*$")
_HEADING = re.compile(r"^[ \t]*(Agent|Pool|ISA)[ \t]+(\d{1,5})[ \t]*$")
_ISA = re.compile(r"amdgcn-amd-amdhsa--([a-z0-9-]+(?::[a-z]+[+-])*)$")
_NUMBER = re.compile(r"(\d{1,18})(?:\(0x[0-9a-fA-F]+\))?")


class Pool(msgspec.Struct):
    """A memory pool of an agent.

    Attributes:
        segment: GLOBAL, GROUP …
        flags: Words after FLAGS: ``COARSE GRAINED``, ``EXTENDED FINE GRAINED``, ``KERNARG, FINE GRAINED`` …
        size_bytes: Its size; None where none is printed.
    """

    segment: str = ""
    flags: str = ""
    size_bytes: int | None = None


class Agent(msgspec.Struct):
    """A processor, GPU or other device that the runtime sees.

    Attributes:
        name: Its name; the gfx target, for a GPU.
        device_type: CPU, GPU or DSP.
        marketing_name: As printed.
        node: KFD node number.
        gfx: gfx target, for a GPU; empty otherwise.
        isa: Targets whose code it runs, features included: ``gfx942:sramecc+:xnack-``, ``gfx11-generic``.
        xnack: xnack in its first ISA: True on, False off, None where the target does not say.
        compute_units: Compute units.
        wavefront_size: Lanes of a wavefront.
        chip_id: PCI device id.
        memory_properties: ``APU`` on an APU.
        pools: Its memory pools.
    """

    name: str = ""
    device_type: str = ""
    marketing_name: str = ""
    node: int | None = None
    gfx: str = ""
    isa: list[str] = []
    xnack: bool | None = None
    compute_units: int | None = None
    wavefront_size: int | None = None
    chip_id: int | None = None
    memory_properties: str = ""
    pools: list[Pool] = []


class RocmInfo(msgspec.Struct):
    """What rocminfo printed.

    Attributes:
        agents: In order.
        runtime_version: HSA runtime version, e.g. ``1.18``; empty where it is not printed.
        module_version: Version of the DKMS kernel module; empty for the kernel's own.
        module_loaded: The kernel module is loaded; None where that is not said.
        xnack_enabled: XNACK is enabled system-wide; None where that is not said.
        complete: The output goes to its end.
    """

    agents: list[Agent] = []
    runtime_version: str = ""
    module_version: str = ""
    module_loaded: bool | None = None
    xnack_enabled: bool | None = None
    complete: bool = False


class _Reader:
    """Where in the output we are."""

    def __init__(self) -> None:
        self.info = RocmInfo()
        self.agent: Agent | None = None
        self.section = ""

    def heading(self, kind: str) -> None:
        if kind == "Agent":
            self.agent = Agent() if len(self.info.agents) < MAX_AGENTS else None
            self.section = ""
            if self.agent is not None:
                self.info.agents.append(self.agent)
        elif self.agent is not None:
            self.section = kind
            if kind == "Pool":
                self.agent.pools.append(Pool())

    def system(self, key: str, value: str) -> None:
        if key == "Runtime Version":
            self.info.runtime_version = value
        elif key == "XNACK enabled":
            self.info.xnack_enabled = {"YES": True, "NO": False}.get(value)

    def line(self, agent: Agent, key: str, value: str) -> None:
        if key == "Pool Info":
            self.section = ""
        elif key == "ISA Info":
            self.section = "ISA"
        elif self.section == "Pool" and agent.pools:
            self.pool(agent.pools[-1], key, value)
        elif self.section == "ISA":
            if key == "Name" and (match := _ISA.search(value)):
                agent.isa.append(match[1])
        else:
            self.property(agent, key, value)

    @staticmethod
    def pool(pool: Pool, key: str, value: str) -> None:
        if key == "Segment":
            segment, _, flags = value.partition(";")
            pool.segment = segment.strip()
            pool.flags = flags.replace("FLAGS:", "").strip()
        elif key == "Size":
            number = _NUMBER.match(value)
            pool.size_bytes = int(number[1]) * (1024 if value.endswith("KB") else 1) if number else None

    @staticmethod
    def property(agent: Agent, key: str, value: str) -> None:
        number = _NUMBER.match(value)
        if key in {"Name", "Device Type", "Marketing Name", "Memory Properties"}:
            name = key.lower().replace(" ", "_")
            if not getattr(agent, name):
                setattr(agent, name, value)
        elif number and key in {"Node", "Compute Unit", "Wavefront Size", "Chip ID"}:
            name = {"Compute Unit": "compute_units"}.get(key, key.lower().replace(" ", "_"))
            setattr(agent, name, int(number[1]))


def parse_rocminfo(text: str) -> RocmInfo:
    """Read what rocminfo printed; unknown lines are passed over, a cut output gives what is there."""
    reader = _Reader()
    info = reader.info
    for line in text[:MAX_CHARS].splitlines():
        if line.startswith("ROCk module"):
            version = re.search(r"version (\S{1,40})", line)
            info.module_version = version[1] if version else ""
            info.module_loaded = "NOT loaded" not in line
        elif "*** Done ***" in line:
            info.complete = True
        elif (heading := _HEADING.match(line)) is not None:
            reader.heading(heading[1])
        elif (match := _LINE.match(line)) is not None:
            if reader.agent is None:
                reader.system(match[2], match[3])
            else:
                reader.line(reader.agent, match[2], match[3])
    for agent in info.agents:
        _conclude(agent)
    return info


def _conclude(agent: Agent) -> None:
    """Fill in what follows from other lines."""
    if agent.device_type == "GPU" or agent.name.startswith("gfx"):
        agent.gfx = agent.name.partition(":")[0]
    first = agent.isa[0] if agent.isa else ""
    agent.xnack = True if "xnack+" in first else False if "xnack-" in first else None
