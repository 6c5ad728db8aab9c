"""What a kernel runs on or is compiled for: a gfx target, an NVIDIA architecture, or the CPU."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocmend.core import gfx
from rocmend.core.suggest import unknown

if TYPE_CHECKING:
    import torch

# Most shared memory of a thread block by compute capability, bytes.
# https://docs.nvidia.com/cuda/cuda-c-programming-guide/#features-and-technical-specifications
NVIDIA_LDS_BYTES = {70: 98304, 75: 65536, 80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}


UNKNOWN_UNITS = 64
"""Compute units to plan for where neither a device nor a product says how many there are."""


@dataclass(frozen=True, slots=True)
class Target:
    """A compilation target.

    Args:
        name: ``gfx1151``, ``sm90`` or ``cpu``.
        vendor: ``amd``, ``nvidia`` or ``cpu``.
        wave_size: Lanes of a wavefront (AMD: the size that HIP and Triton use by default) or warp; 1 on the CPU.
        lds_bytes: Most local (shared) memory of a workgroup.
        lookup: Names that tuning records may be filed under, from the most specific to ``any``.
        matrix_dtypes: Element types that its matrix unit takes, as ``fp16``, ``bf16``, ``int8``.
        compute_units: Compute units (streaming multiprocessors) of the device at hand; 0 where there is only a target.
    """

    name: str
    vendor: str
    wave_size: int
    lds_bytes: int
    lookup: tuple[str, ...]
    matrix_dtypes: tuple[str, ...] = ()
    compute_units: int = 0

    def __hash__(self) -> int:
        """Return the name's hash: targets are looked up by on every launch."""
        return hash(self.name)

    @property
    def generation(self) -> int:
        """The number in the name: 90 of ``sm90``, 11 of ``gfx1151``, 9 of ``gfx942``; 0 on the CPU."""
        if self.vendor == "amd":
            return int(self.name[3:-2], 10)
        return int(self.name[2:]) if self.vendor == "nvidia" else 0

    @property
    def units(self) -> int:
        """Compute units to plan for: those of the device at hand, else of the largest product of the target."""
        return self.compute_units or (_most_units(self.name) if self.vendor == "amd" else UNKNOWN_UNITS)


CPU = Target("cpu", "cpu", 1, 1 << 20, ("cpu", "any"))


@functools.cache
def _most_units(name: str) -> int:
    """Return the compute units of the largest GPU of a gfx target that is sold."""
    counts = (product.compute_units // product.devices for product in gfx.products() if product.gfx == name)
    return max(counts, default=UNKNOWN_UNITS)


@functools.cache
def by_name(name: str, *, compute_units: int = 0) -> Target:
    """Return the target called ``gfx…``, ``sm…`` or ``cpu``.

    Raises:
        UsageError: No such target.
    """
    if name == "cpu":
        return CPU
    if match := re.fullmatch(r"sm_?(\d{2,3})", name):
        number = int(match[1])
        lds = NVIDIA_LDS_BYTES.get(number, 101376)
        dtypes = ("fp16", "bf16", "int8") if number >= 80 else ("fp16",)
        lookup: tuple[str | None, ...] = (f"sm{number}", f"sm{number // 10}x", "nvidia", "any")
        return Target(f"sm{number}", "nvidia", 32, lds, tuple(str(entry) for entry in lookup), dtypes, compute_units)
    found = gfx.find(name.partition(":")[0])
    if found is None:
        known = [*(target.name for target in gfx.targets()), *(f"sm{number}" for number in NVIDIA_LDS_BYTES), "cpu"]
        raise unknown("kernels", "target", name, known, listed="rocmend targets")
    lookup = (found.name, found.generic_class, found.generation, f"wave{found.wavefront_default}", "amd", "any")
    return Target(
        found.name,
        "amd",
        found.wavefront_default,
        found.lds_per_workgroup_bytes,
        tuple(dict.fromkeys(entry for entry in lookup if entry)),
        found.matrix_dtypes,
        compute_units,
    )


@functools.lru_cache(maxsize=64)
def of_device(device: torch.device) -> Target:
    """Return the target of a torch device, read from its driver; never assumed."""
    if device.type != "cuda":
        return CPU
    import torch

    properties = torch.cuda.get_device_properties(device)
    arch = getattr(properties, "gcnArchName", "")
    units = properties.multi_processor_count
    name = arch.partition(":")[0] if torch.version.hip else f"sm{properties.major}{properties.minor}"
    target = by_name(name, compute_units=units)
    size = int(getattr(properties, "warp_size", target.wave_size))
    if size == target.wave_size:
        return target
    from dataclasses import replace

    return replace(target, wave_size=size)
