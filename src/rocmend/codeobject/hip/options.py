"""The options that a gfx target and a wave size come to."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.core.errors import UsageError
from rocmend.core.gfx import GfxTarget, lookup, parse_target_id

__all__ = ["Device", "device"]


class Device(NamedTuple):
    """What is compiled for.

    Args:
        target: The gfx target.
        name: Its name with the features that were asked for: ``gfx90a:xnack-``.
        wave_size: Lanes of a wavefront.
    """

    target: GfxTarget
    name: str
    wave_size: int

    @property
    def offload(self) -> tuple[str, ...]:
        """Return clang's options for it."""
        return (f"--offload-arch={self.name}", *self.wave_option)

    @property
    def wave_macros(self) -> tuple[str, ...]:
        """Return the macros that clang before 22 defined: what was written for a ROCm up to 7 still asks for them."""
        return tuple(f"-D{name}={self.wave_size}" for name in ("__AMDGCN_WAVEFRONT_SIZE", "__AMDGCN_WAVEFRONT_SIZE__"))

    @property
    def wave_option(self) -> tuple[str, ...]:
        """Return the option that forces the wave size; none where the target has one alone, or it is the default."""
        if self.wave_size == self.target.wavefront_default:
            return ()
        return ("-mwavefrontsize64",) if self.wave_size == 64 else ("-mno-wavefrontsize64",)


def device(target: str, wave_size: int | None) -> Device:
    """Return what is compiled for.

    Args:
        target: ``gfx1151``, ``gfx90a:xnack-`` …
        wave_size: Lanes of a wavefront; None for what HIP takes on the target.

    Raises:
        UsageError: No such target, or it has no such wave size.
    """
    known = lookup(target)
    size = known.wavefront_default if wave_size is None else wave_size
    if size not in known.wavefront_sizes:
        sizes = " and ".join(str(one) for one in known.wavefront_sizes)
        raise UsageError("hip compile", f"{known.name} runs wavefronts of {sizes} lanes, got {size}.")
    return Device(known, str(parse_target_id(target)), size)
