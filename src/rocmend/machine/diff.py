"""What differs between two snapshots of machines: another day, another boot, or another machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rocmend.machine.facts import KeyPatterns, Machine
from rocmend.machine.root import natural_key

OTHER = "other"
TOPICS = {
    "GPU": ("gpu", "gpus", "pci"),
    "driver": ("amdgpu", "amdxdna", "dri", "dxg", "kfd", "modprobe", "ttm"),
    "firmware": ("firmware",),
    "kernel": ("iommu", "kernel", "numa"),
    "kernel log": ("dmesg", "previous_boot"),
    "ROCm": ("amd_smi", "rocm", "rocm_smi", "rocminfo", "smi"),
    "environment": ("env", "override"),
    "packages": (
        *("packages", "python", "torch", "triton", "jax", "tensorflow", "onnxruntime", "cupy", "mlx"),
        *("bitsandbytes", "flash_attn", "aiter", "vllm"),
    ),
    "Vulkan": ("vulkan", "vulkaninfo"),
    "system": ("cpu", "host", "memory", "os", "user"),
}
"""What the first part of a fact's key says it is about, in the order of a report."""

_FIRMWARE = KeyPatterns(
    ("gpu.*.firmware", "gpu.*.mes_version", "gpu.*.vbios", "gpu.*.kfd_fw_version", "gpu.*.sdma_fw_version")
)
_BIOS = frozenset({"host.bios_date", "host.bios_version"})
_NOT_COMPARED = ("ask.", "model.")  # what was asked, and what follows from it

_NOISE = KeyPatterns(
    (
        *("memory.available_bytes", "dmesg.times", "smi.cards"),
        *("gpu.*.busy_percent", "gpu.*.gtt_used_bytes", "gpu.*.vram_used_bytes", "gpu.*.power_watts"),
        *("gpu.*.temperature_c", "gpu.*.sclk_mhz", "gpu.*.mclk_mhz", "gpu.*.sclk_fraction", "gpu.*.idle_clocks"),
        *("gpu.*.link_speed", "gpu.*.runtime_status", "gpu.*.fine_grained_scope"),
    )
)
"""What changes from one minute to the next: loads, clocks, temperatures, the speed of an idle link."""

_RESTATED = KeyPatterns(
    (
        *(
            "dmesg.classes",
            "kernel.unknown_params_given",
            "kernel.unknown_params_text",
            "override.reason",
            "torch.rocm_match_reason",
        ),
        *("gpu.*.torch_service_reason", "gpu.*.torch_service_cautions"),
    )
)
"""What says in other words what further facts say."""

_COUNTERS = KeyPatterns(("dmesg.*", "previous_boot.classes"))
"""Numbers of lines: that there are some is a difference, how many is noise."""


class FactChange(msgspec.Struct, frozen=True):
    """A fact that is not the same in two machines.

    Attributes:
        key: Its key; ``packages[numpy]`` for a member of a mapping.
        topic: What it is about.
        first: Its value in the first machine; None where it is not set, or not known.
        second: Its value in the second.
        known_in: ``both``, ``first`` or ``second``.
    """

    key: str
    topic: str
    first: Any
    second: Any
    known_in: str = "both"


def differences(first: Machine, second: Machine, *, noise: bool = False) -> tuple[FactChange, ...]:
    """Return the facts that differ, by topic and key.

    Args:
        first: One machine.
        second: The other.
        noise: Compare also what changes from one minute to the next, and what only restates other facts.
    """
    one, other = _values(first), _values(second)
    changes = [
        FactChange(key, topic_of(key), one.get(key), other.get(key), _known_in(key, one, other))
        for key in one.keys() | other.keys()
        if not key.startswith(_NOT_COMPARED) and _differs(key, one, other, noise=noise)
    ]
    order = [*TOPICS, OTHER]
    return tuple(sorted(changes, key=lambda change: (order.index(change.topic), natural_key(change.key))))


def topic_of(key: str) -> str:
    """Return what a fact is about, e.g. ``driver``."""
    fact = key.partition("[")[0]
    if fact in _FIRMWARE or fact in _BIOS:
        return "firmware"
    group = key.partition(".")[0].partition("[")[0]
    return next((topic for topic, groups in TOPICS.items() if group in groups), OTHER)


def _values(machine: Machine) -> dict[str, Any]:
    """Return the value of each fact, mappings of plain values taken apart."""
    return {key: value for fact in machine.facts.values() for key, value in _members(fact.key, fact.value)}


def _members(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value and not any(isinstance(item, dict | list) for item in value.values()):
        yield from ((f"{key}[{name}]", item) for name, item in value.items())
    elif value != {}:  # an empty mapping is no member, as in a machine that has some
        yield key, value


def _known_in(key: str, one: dict[str, Any], other: dict[str, Any]) -> str:
    unset = key.startswith("env.")  # a variable without a fact is not set
    return "both" if unset or (key in one and key in other) else "first" if key in one else "second"


def _differs(key: str, one: dict[str, Any], other: dict[str, Any], *, noise: bool) -> bool:
    first, second = one.get(key), other.get(key)
    fact = key.partition("[")[0]
    if not noise:
        if fact in _NOISE or fact in _RESTATED:
            return False
        if fact in _COUNTERS and not isinstance(first, str | bool) and not isinstance(second, str | bool):
            return bool(first) != bool(second)
    return first != second or _known_in(key, one, other) != "both"
