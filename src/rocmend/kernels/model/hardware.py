"""What the cost model takes of a GPU: a product's figures, the gfx table's rates, constants with their sources."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any

import msgspec

from rocmend.core import gfx
from rocmend.core.errors import UsageError
from rocmend.core.suggest import unknown


class Constants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Constants of an architecture; ``hardware.toml`` explains each and names its source."""

    bandwidth_part: float
    launch_us: float
    vector_bytes: int
    vector_lanes: int
    lds_bytes: int
    memory_ns: float
    cache_ns: float
    lds_cycles: int
    scalar_cycles: int
    vector_cycles: int
    vector_latency: int
    transcendental_cycles: int
    double_cycles: int
    product_cycles: int
    matrix_shares: bool


class Hardware(msgspec.Struct, frozen=True):
    """A GPU as the model sees it.

    Attributes:
        target: Its gfx target.
        product: The product whose figures these are.
        compute_units: Compute units.
        clock_ghz: Engine clock.
        bandwidth_gb_s: Peak memory bandwidth.
        constants: Of its architecture.
    """

    target: gfx.GfxTarget
    product: str
    compute_units: int
    clock_ghz: float
    bandwidth_gb_s: float
    constants: Constants

    @property
    def wave_size(self) -> int:
        """Lanes of a wavefront."""
        return self.target.wavefront_default

    def matrix_cycles(self, dtype: str, flops: float) -> float:
        """Return the cycles that a SIMD's matrix unit needs for an instruction."""
        rates = self.target.flop_per_clock_per_cu
        rate = rates.get(dtype) or rates.get("fp16") or 256
        return flops * self.target.simd_per_cu / rate


@functools.cache
def _constants(kind: str) -> Constants:
    found = tables()
    values: dict[str, Any] = {**found["any"], **found[kind]}
    values.pop("sources")
    return msgspec.convert(values, Constants)


@functools.cache
def tables() -> dict[str, dict[str, Any]]:
    """Return ``hardware.toml``: constants by architecture, each with its source."""
    text = resources.files("rocmend.kernels.model").joinpath("hardware.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def hardware(target: str, product: str | None = None) -> Hardware:
    """Look up the hardware model of a target.

    Args:
        target: A gfx target.
        product: Part of a product's name; the target's widest product with known figures by default.

    Raises:
        UsageError: No such product, or none of the target's has a published clock and bandwidth.
    """
    about = gfx.lookup(target)
    wanted = (product or "").casefold()
    named = [
        one for one in gfx.products(about.name) if any(wanted in name.casefold() for name in (one.name, *one.aliases))
    ]
    if product and not named:
        names = [one.name for one in gfx.products(about.name)]
        raise unknown("--product", f"product of {target}", product, names, listed=f"rocmend targets {target}")
    known = [one for one in named if one.max_clock_mhz and one.bandwidth_gb_s]
    if not known:
        raise UsageError(
            "--model",
            f"no product of {target} has a published clock and memory bandwidth.",
            next_step="Name another target, e.g. gfx1151, gfx1100, gfx1201 or gfx942.",
        )
    chosen = max(known, key=lambda product: product.compute_units // product.devices)
    return Hardware(
        about,
        chosen.name,
        chosen.compute_units // chosen.devices,
        (chosen.max_clock_mhz or 0) / 1e3,
        (chosen.bandwidth_gb_s or 0) / chosen.devices,
        _constants("cdna" if about.isa_version[0] < 10 else "rdna"),
    )


def hardware_name(target: str, device: str) -> str | None:
    """Return the name of the product that a device's own name, such as ``AMD Radeon RX 7900 XTX``, stands for."""
    names = [one.name for one in gfx.products(target) if one.name.casefold() in device.casefold()]
    return max(names, key=len, default=None)
