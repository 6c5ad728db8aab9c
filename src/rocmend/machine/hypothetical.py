"""A machine as it would be with another GPU: for questions about hardware that is not here."""

from __future__ import annotations

from typing import Any

import msgspec

from rocmend.core.gfx import Product, lookup, products
from rocmend.core.records import Fact, Gap
from rocmend.machine.derivations import derive_all
from rocmend.machine.facts import ASKED_FACTS, DERIVATIONS, KeyPatterns, Machine, declared_facts

_SOURCE = "the target asked for; no such GPU was read"
_GB = 1 << 30
"""Makers call a memory of 24 GiB 24 GB."""


def with_target(machine: Machine, name: str, product: str = "") -> Machine:
    """Return the machine with one GPU of a target in place of its own, unless it has one of that target already.

    What the target alone decides is stated (its name, version, wavefront size, whether it is an APU), and what the
    product does; all else about the GPU is unknown. Derived facts are computed anew.

    Args:
        machine: The facts as they were read.
        name: The gfx target, e.g. ``gfx1151``.
        product: The product of that target, as the table names it: ``Radeon RX 7900 XTX``; empty for any.

    Raises:
        UsageError: No such target.
    """
    target = lookup(name)
    if any(machine.value(f"gpu.{index}.gfx_target") == target.name for index in machine.indices("gpu")):
        return machine
    derived = KeyPatterns(key for _, derivation in DERIVATIONS for key in derivation.facts)
    kept = {key: fact for key, fact in machine.facts.items() if not key.startswith("gpu.") and key not in derived}
    stated = {
        "gpu.0.gfx_target": target.name,
        "gpu.0.gfx_target_version": target.kfd_version,
        "gpu.0.wavefront_size": target.wavefront_default,
        "gpu.0.is_apu": target.is_apu,
        "gpu.0.simd_per_cu": target.simd_per_cu,
        **next((_of_product(one) for one in products(target.name) if one.name == product), {}),
    }
    facts = kept | {key: Fact(key, value, _SOURCE) for key, value in stated.items()}
    gaps = {key: gap for key, gap in machine.gaps.items() if not key.startswith("gpu.") and key not in derived}
    gaps["gpu.*"] = Gap("gpu.*", f"there is no {target.name} here to read it from", _SOURCE)
    runs = tuple(run for run in machine.collectors if not run.name.startswith("derive."))
    changed = msgspec.structs.replace(machine, facts=facts, gaps=gaps, collectors=runs, hypothetical_target=target.name)
    return derive_all(changed)


def _of_product(product: Product) -> dict[str, Any]:
    """Return what the table has of one GPU of a product; an APU's memory is the machine's."""
    found = {
        "name": f"AMD {product.name}",
        "compute_units": product.compute_units // product.devices,
        "max_clock_mhz": product.max_clock_mhz,
    }
    if product.memory_gb and not product.is_apu:
        found["vram_total_bytes"] = int(product.memory_gb * _GB) // product.devices
    return {f"gpu.0.{name}": value for name, value in found.items() if value is not None}


def target_alone(machine: Machine) -> Machine:
    """Return what is known of a target that the machine does not have: nothing of the machine itself.

    Its kernel, its software and its settings say nothing about a machine with another GPU. A machine as it is comes
    back unchanged.

    Args:
        machine: The facts.
    """
    if not machine.hypothetical_target:
        return machine
    facts = {key: fact for key, fact in machine.facts.items() if fact.source == _SOURCE or key in ASKED_FACTS}
    reason = f"nothing of {machine.name} was judged: it has no {machine.hypothetical_target}"
    groups = {pattern.partition(".")[0] for pattern, _, _ in declared_facts()} - {"ask", "gpu"}
    gaps = {key: Gap(key, reason, _SOURCE) for group in groups for key in (group, f"{group}.*")}
    gaps["gpu.*"] = machine.gaps["gpu.*"]
    return derive_all(msgspec.structs.replace(machine, facts=facts, gaps=gaps, collectors=()))
