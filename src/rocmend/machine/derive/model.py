"""Whether a model of a given size fits into GPU memory."""

from __future__ import annotations

from rocmend.machine.derive._inputs import why_missing
from rocmend.machine.facts import FactSink, Machine, derivation


@derivation(
    "model",
    facts={
        "model.fits": "Whether the model's weights alone fit into the largest GPU memory; null without size or GPU.",
        "model.fits_hip": "The same for a HIP process, which on an APU gets VRAM or GTT and not both.",
        "model.fits_with_larger_gtt": "Whether they would fit on an APU with the suggested ttm.pages_limit.",
    },
    needs=(
        *("ask.model_bytes", "gpu.*.memory_ceiling_bytes", "gpu.*.hip_memory_bytes", "gpu.*.is_apu"),
        "gpus.amd_present",
        *("gpu.*.vram_total_bytes", "ttm.suggested_pages_limit"),
    ),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Compare the size asked about with the largest ceiling."""
    size = machine.value("ask.model_bytes")
    for key, ceiling in (("model.fits", "memory_ceiling_bytes"), ("model.fits_hip", "hip_memory_bytes")):
        if size is None or machine.value("gpus.amd_present") is False:
            facts.put(key, None, source="ask.model_bytes, gpus.amd_present")
            continue
        known = {index: machine.value(f"gpu.{index}.{ceiling}") for index in machine.indices("gpu")}
        ceilings = [value for value in known.values() if isinstance(value, int)]
        source = ", ".join(["ask.model_bytes", *(f"gpu.{index}.{ceiling}" for index in known)])
        if not known:
            facts.gap(key, "the driver shows no GPU", source=source)
            continue
        if any(size <= value for value in ceilings) or len(ceilings) == len(known):
            facts.put(key, any(size <= value for value in ceilings), source=source)
        else:
            missing = next(index for index, value in known.items() if not isinstance(value, int))
            facts.gap(key, why_missing(machine, f"gpu.{missing}.{ceiling}"), source=source)
    _with_larger_gtt(machine, facts, size)


def _with_larger_gtt(machine: Machine, facts: FactSink, size: int | None) -> None:
    pages = machine.value("ttm.suggested_pages_limit")
    apus = [index for index in machine.indices("gpu") if machine.value(f"gpu.{index}.is_apu") is True]
    source = "ask.model_bytes, ttm.suggested_pages_limit"
    if size is None or not apus or not isinstance(pages, int):
        facts.put("model.fits_with_larger_gtt", None, source=source)
        return
    vram = max(int(machine.value(f"gpu.{index}.vram_total_bytes") or 0) for index in apus)
    facts.put("model.fits_with_larger_gtt", size <= max(vram, pages * 4096), source=source)
