"""The kernel: its release, its command line, NUMA and IOMMU."""

from __future__ import annotations

import re

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.system import parse_cmdline, parse_int, parse_release
from rocmend.machine.root import Root

RELEASE = "/proc/sys/kernel/osrelease"
CMDLINE = "/proc/cmdline"
BALANCING = "/proc/sys/kernel/numa_balancing"
NODES = "/sys/devices/system/node"
IOMMU_GROUPS = "/sys/kernel/iommu_groups"
IOMMU_DEVICES = "/sys/class/iommu"


@collector(
    "kernel",
    facts={
        "kernel.release": "Kernel release, as `uname -r` prints it.",
        "kernel.version": "Leading dotted numbers of the release.",
        "kernel.abi": "The distribution's build number: 1018 of 6.14.0-1018-oem; null where there is none.",
        "kernel.flavour": "Rest of the release: generic, oem, arch1-1, microsoft-standard-WSL2 …",
        "kernel.cmdline": "The command line it was started with.",
        "kernel.params": "Its parameters: name to value, null for a bare word.",
        "numa.balancing": "Automatic NUMA balancing: 0 off, 1 on; null where the kernel has none.",
        "numa.nodes": "Number of NUMA nodes.",
        "iommu.devices": "IOMMUs that are switched on, by name; empty for none.",
        "iommu.groups": "Number of IOMMU groups; 0 means that no IOMMU translates.",
    },
    time_limit_s=2.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Read /proc and /sys."""
    release = root.read_or_none(RELEASE)
    if release:
        facts.put("kernel.release", release, source=RELEASE)
        parsed = parse_release(release)
        if parsed is not None:
            facts.put("kernel.version", parsed.version, source=RELEASE, raw=release)
            facts.put("kernel.abi", parsed.abi, source=RELEASE, raw=release)
            facts.put("kernel.flavour", parsed.flavour, source=RELEASE, raw=release)
    cmdline = root.read_or_none(CMDLINE)
    if cmdline is not None:
        facts.put("kernel.cmdline", cmdline, source=CMDLINE)
        facts.put("kernel.params", parse_cmdline(cmdline), source=CMDLINE)
    facts.put("numa.balancing", parse_int(root.read_or_none(BALANCING)), source=BALANCING)
    nodes = [name for name in root.list_dir(NODES) if re.fullmatch(r"node\d{1,5}", name)]
    facts.put("numa.nodes", len(nodes) or 1, source=NODES)
    facts.put("iommu.devices", root.list_dir(IOMMU_DEVICES), source=IOMMU_DEVICES)
    facts.put("iommu.groups", len(root.list_dir(IOMMU_GROUPS)), source=IOMMU_GROUPS)
