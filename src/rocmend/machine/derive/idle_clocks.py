"""A GPU that is said to be busy while its clock stays at its idle level."""

from __future__ import annotations

from rocmend.machine.derive._inputs import gpu_keys, known, number
from rocmend.machine.facts import FactSink, Machine, derivation

BUSY_PERCENT = 90
IDLE_SHARE = 0.3
"""A clock below this share of the highest counts as idle: lowest levels are 500 to 800 MHz of 1,800 to 2,900."""


@derivation(
    "idle_clocks",
    facts={
        "gpu.*.idle_clocks": "Whether the GPU is at least 90 % busy at idle clocks; null where it is not busy.",
        "gpu.*.sclk_fraction": "Shader clock as a share of the highest.",
    },
    needs=("gpu.*.busy_percent", "gpu.*.sclk_mhz", "gpu.*.sclk_max_mhz"),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Compare load and clock at the moment of the snapshot."""
    for index in machine.indices("gpu"):
        idle, fraction = gpu_keys(index, "idle_clocks", "sclk_fraction")
        keys = gpu_keys(index, "busy_percent", "sclk_mhz", "sclk_max_mhz")
        values = known(machine, facts, (idle, fraction), *keys)
        if values is None:
            continue
        busy, clock, highest = (number(value) for value in values)
        source = ", ".join(keys)
        share = round(clock / highest, 3) if clock is not None and highest else None
        facts.put(fraction, share, source=source)
        if busy is None or clock is None or share is None or busy < BUSY_PERCENT:
            facts.put(idle, None, source=source)
            continue
        facts.put(idle, share <= IDLE_SHARE, source=source)
