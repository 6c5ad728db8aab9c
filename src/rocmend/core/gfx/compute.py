"""What follows from the table: peaks, and whether one target may pass as another."""

from __future__ import annotations

from rocmend.core.errors import UsageError
from rocmend.core.gfx.model import GfxTarget, Override
from rocmend.core.gfx.table import lookup


def _as_target(target: GfxTarget | str) -> GfxTarget:
    return target if isinstance(target, GfxTarget) else lookup(target)


def peak_tflops(target: GfxTarget | str, dtype: str, compute_units: int, clock_mhz: float) -> float | None:
    """Return the dense peak, ``FLOP per clock per CU x CUs x clock``.

    Args:
        target: The gfx target or its name.
        dtype: ``fp64``, ``fp32``, ``fp16``, ``bf16``, ``int8``, ``fp8`` …
        compute_units: Compute units, e.g. 40.
        clock_mhz: Engine clock in MHz, e.g. 2900.

    Returns:
        Peak in TFLOPS (1e12 operations a second; a multiply-add is two), or None where the target has no such type.

    Raises:
        UsageError: No such target, or a count or clock below zero.
    """
    if not (compute_units >= 0 and 0 <= clock_mhz < float("inf")):  # also refuses NaN
        raise UsageError("peak", f"expected compute units and a clock, got {compute_units} and {clock_mhz} MHz.")
    rate = _as_target(target).flop_per_clock_per_cu.get(dtype)
    return None if rate is None else rate * compute_units * clock_mhz / 1e6


def override_between(have: GfxTarget | str, wanted: GfxTarget | str) -> Override:
    """Judge ``HSA_OVERRIDE_GFX_VERSION`` that makes a GPU pass as another target.

    Args:
        have: The GPU's own target.
        wanted: The target whose code is to be run on it.

    Returns:
        The value, whether it stays inside one LLVM generic class, and why.

    Raises:
        UsageError: No such target.

    Source:
        https://llvm.org/docs/AMDGPUUsage.html#generic-processors
    """
    own, other = _as_target(have), _as_target(wanted)
    value = other.override_value
    if own.name == other.name:
        return Override(value, sane=True, reason=f"{own.name} is what the GPU is; the override changes nothing.")
    if own.generic_class is not None and own.generic_class == other.generic_class:
        return _within_class(own, other, value)
    reason = (
        f"{own.name} ({own.architecture}, {_class_text(own)}) would be handed code for {other.name} "
        f"({other.architecture}, {_class_text(other)}). The instruction sets differ: instructions, register layout or "
        "memory model that the GPU does not have give faults, hangs or wrong results."
    )
    return Override(value, sane=False, reason=reason)


def _within_class(own: GfxTarget, other: GfxTarget, value: str) -> Override:
    lacking = [item for item in other.beyond_generic if item not in own.beyond_generic]
    both = f"{own.name} and {other.name} both belong to {own.generic_class}"
    if lacking:
        reason = f"{both}, but code for {other.name} may use what {own.name} does not have: {', '.join(lacking)}."
        return Override(value, sane=False, reason=reason)
    reason = f"{both}, so the instructions fit; whether the libraries then compute correctly has still to be proved."
    for what, mine, theirs in (
        ("vector registers a SIMD", own.vgprs_per_simd, other.vgprs_per_simd),
        ("bytes of LDS a workgroup", own.lds_per_workgroup_bytes, other.lds_per_workgroup_bytes),
    ):
        if mine < theirs:
            reason += f" {own.name} has {mine} {what} against {theirs}: kernels that need more fail to launch."
    return Override(value, sane=True, reason=reason)


def _class_text(target: GfxTarget) -> str:
    return target.generic_class or "no generic class"
