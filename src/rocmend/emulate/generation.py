"""What differs between the generations of AMD GPUs, as far as executing their code goes."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.core.errors import UsageError

__all__ = ["TARGETS", "Generation", "generation_of"]

TARGETS = {
    "gfx906": 9, "gfx908": 9, "gfx90a": 9, "gfx942": 9, "gfx950": 9,
    "gfx1010": 10, "gfx1011": 10, "gfx1012": 10, "gfx1030": 10, "gfx1031": 10, "gfx1032": 10, "gfx1034": 10,
    "gfx1035": 10, "gfx1036": 10,
    "gfx1100": 11, "gfx1101": 11, "gfx1102": 11, "gfx1103": 11, "gfx1150": 11, "gfx1151": 11, "gfx1152": 11,
    "gfx1153": 11, "gfx1200": 12, "gfx1201": 12,
}  # fmt: skip
"""Targets whose code is executed, and the major version of their instruction set."""

_LDS_BYTES = {"gfx950": 160 << 10}


class Generation(NamedTuple):
    """A target, as the emulator sees it.

    Args:
        target: The gfx target.
        major: Of its instruction set.
        lanes: Of a wavefront.
    """

    target: str
    major: int
    lanes: int

    @property
    def cdna2(self) -> bool:
        """Whether vector and accumulation registers are one file, and work-item ids are packed (gfx90a and later)."""
        return self.target in {"gfx90a", "gfx942", "gfx950"}

    @property
    def cdna3(self) -> bool:
        """Whether it is gfx942 or gfx950, whose scratch needs no set-up by the kernel."""
        return self.target in {"gfx942", "gfx950"}

    @property
    def loses_halves(self) -> bool:
        """Whether a load of 16 bits does not keep the other half of its register: those with ECC of registers."""
        return self.cdna2 or self.target == "gfx908"

    @property
    def fnuz(self) -> bool:
        """Whether its 8-bit floats are the FNUZ ones."""
        return self.target == "gfx942"

    @property
    def packed_ids(self) -> bool:
        """Whether the three work-item ids share a register."""
        return self.major >= 11 or self.cdna2

    @property
    def lds_bytes(self) -> int:
        """Most LDS of a workgroup."""
        return _LDS_BYTES.get(self.target, 64 << 10)


def generation_of(target: str, lanes: int) -> Generation:
    """Return what a target is.

    Raises:
        UsageError: Its code is not executed here.
    """
    plain = target.partition(":")[0]
    if plain not in TARGETS:
        raise UsageError("emulate", f"code for {target} is not executed.", next_step=f"Targets: {', '.join(TARGETS)}.")
    return Generation(plain, TARGETS[plain], lanes)
