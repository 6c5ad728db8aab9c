"""Peak compute and memory bandwidth of each GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocmend.machine.derive._inputs import gpu_keys, known, number
from rocmend.machine.facts import FactSink, Machine, derivation

if TYPE_CHECKING:
    from rocmend.core.gfx import Product


@derivation(
    "peaks",
    facts={
        "gpu.*.product": "Product that the GPU is, by the product table; null where that cannot be told.",
        "gpu.*.peaks_tflops": "Dense peaks by dtype at the highest clock that the driver states: an upper bound.",
        "gpu.*.peak_fp16_tflops": "Dense FP16 peak at the boost clock of the product, as its maker specifies it; of an "
        "unknown product at the driver's highest clock. Null where the target has none or is not in the table.",
        "gpu.*.bandwidth_gb_s": "Peak memory bandwidth of the product; null where the table has none.",
    },
    needs=(
        *("gpu.*.gfx_target", "gpu.*.compute_units", "gpu.*.max_clock_mhz", "gpu.*.sclk_max_mhz"),
        *("gpu.*.name", "gpu.*.pci_device_id", "gpu.*.pci_revision", "gpu.*.device_id"),
    ),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Compute peaks from the table's rates; take the bandwidth from the product table."""
    for index in machine.indices("gpu"):
        outputs = gpu_keys(index, "product", "peaks_tflops", "peak_fp16_tflops", "bandwidth_gb_s")
        keys = gpu_keys(index, "gfx_target", "compute_units")
        values = known(machine, facts, outputs, *keys)
        if values is not None:
            gfx, units = str(values[0]), int(number(values[1]) or 0)
            product = _product(machine, facts, index, gfx, units)
            _fp16_peak(facts, index, gfx, units, product)
            _peaks(machine, facts, index, gfx, units)


def _fp16_peak(facts: FactSink, index: int, gfx: str, units: int, product: Product | None) -> None:
    """State the FP16 peak by specification: cards of a product differ in the highest clock that they are set to."""
    from rocmend.core.gfx import peak_tflops

    if product is None or product.max_clock_mhz is None:
        return
    peak = peak_tflops(gfx, "fp16", units, product.max_clock_mhz)
    source = f"gpu.{index}.compute_units, {product.name} at {product.max_clock_mhz} MHz"
    facts.put(f"gpu.{index}.peak_fp16_tflops", None if peak is None else round(peak, 2), source=source)


def _peaks(machine: Machine, facts: FactSink, index: int, gfx: str, units: int) -> None:
    from rocmend.core.gfx import find, peak_tflops

    table_key, fp16_key = gpu_keys(index, "peaks_tflops", "peak_fp16_tflops")
    clock_keys = gpu_keys(index, "max_clock_mhz", "sclk_max_mhz")
    clock_key = next((key for key in clock_keys if number(machine.value(key))), None)
    if clock_key is None:
        known(machine, facts, (table_key, fp16_key), f"gpu.{index}.max_clock_mhz")
        return
    clock = number(machine.value(clock_key)) or 0.0
    target = find(gfx)
    peaks = {name: peak_tflops(target, name, units, clock) for name in target.flop_per_clock_per_cu} if target else {}
    rounded = {name: round(peak, 2) for name, peak in peaks.items() if peak is not None}
    source = f"gpu.{index}.gfx_target, gpu.{index}.compute_units, {clock_key}"
    facts.put(table_key, rounded, source=source)
    facts.put(fp16_key, rounded.get("fp16"), source=source)


def _product(machine: Machine, facts: FactSink, index: int, gfx: str, units: int) -> Product | None:
    from rocmend.core.gfx import find, product_for

    source = ", ".join(gpu_keys(index, "gfx_target", "name", "pci_device_id", "compute_units"))
    device = machine.value(f"gpu.{index}.pci_device_id") or machine.value(f"gpu.{index}.device_id")
    revision = machine.value(f"gpu.{index}.pci_revision")
    if isinstance(device, str) and isinstance(revision, str) and revision:
        device = f"{device}:{revision.removeprefix('0x')}"
    name = machine.value(f"gpu.{index}.name")
    product = product_for(gfx, name, device, compute_units=units) if find(gfx) else None
    facts.put(f"gpu.{index}.product", product.name if product else None, source=source)
    facts.put(f"gpu.{index}.bandwidth_gb_s", product.bandwidth_gb_s if product else None, source=source)
    return product
