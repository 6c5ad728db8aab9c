"""Processor and memory."""

from __future__ import annotations

import re

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.system import parse_cpuinfo, parse_meminfo
from rocmend.machine.root import Root

CPUINFO = "/proc/cpuinfo"
MEMINFO = "/proc/meminfo"
HUGEPAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
MAX_CPUINFO_BYTES = 4 << 20

_SIZES = {
    "memory.total_bytes": "MemTotal",
    "memory.available_bytes": "MemAvailable",
    "memory.swap_total_bytes": "SwapTotal",
}


@collector(
    "memory",
    facts={
        "cpu.model": "Processor's name; null where the architecture prints none.",
        "cpu.vendor": "AuthenticAMD, GenuineIntel …; null where the architecture prints none.",
        "cpu.count": "Logical processors.",
        "memory.total_bytes": "Memory that the kernel manages (a VRAM carve-out is not in it).",
        "memory.available_bytes": "Memory that a process could get now.",
        "memory.swap_total_bytes": "Swap space.",
        "memory.transparent_hugepages": "always, madvise or never; null where the kernel has none.",
    },
    time_limit_s=2.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Read /proc/cpuinfo and /proc/meminfo."""
    text = root.read_or_none(CPUINFO, max_bytes=MAX_CPUINFO_BYTES)
    if text:
        cpu = parse_cpuinfo(text)
        facts.put("cpu.model", cpu.model or None, source=CPUINFO)
        facts.put("cpu.vendor", cpu.vendor or None, source=CPUINFO)
        facts.put("cpu.count", cpu.count, source=CPUINFO)
    sizes = parse_meminfo(root.read_or_none(MEMINFO) or "")
    for key, name in _SIZES.items():
        if name in sizes:
            facts.put(key, sizes[name], source=MEMINFO)
    chosen = re.search(r"\[(\w{1,20})\]", root.read_or_none(HUGEPAGES) or "")
    facts.put("memory.transparent_hugepages", chosen[1] if chosen else None, source=HUGEPAGES)
