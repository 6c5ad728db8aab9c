"""Why amdgpu holds a GPU's clocks down: the throttle fields of the binary file ``gpu_metrics``.

Sources: drivers/gpu/drm/amd/include/kgd_pp_interface.h (the layouts, by format and content revision),
drivers/gpu/drm/amd/pm/swsmu/inc/amdgpu_smu.h (the bits that do not depend on the ASIC)
"""

from __future__ import annotations

import struct

import msgspec

_BITS = {
    "power limit": range(8),
    "current limit": range(16, 24),
    "temperature": (32, 33, 37, 38, 39, 42, 43, 44, 45, 46, 47),
    "temperature of memory": (34, 40, 41),
    "temperature of the edge": (35,),
    "temperature of the hotspot": (36,),
    "power mode": (56, 57),
}
"""Bits of ``indep_throttle_status`` by what they mean."""

_STATUS_AT = {(1, 3): 112, (2, 2): 120, (2, 3): 120, (2, 4): 120}
"""Where ``indep_throttle_status`` stands, by format and content revision."""

_COUNTERS_AT = {
    (1, 6): {
        108: "processor hot",
        112: "power limit",
        116: "temperature",
        120: "temperature",
        124: "temperature of memory",
    },
    (3, 0): {
        228: "processor hot",
        232: "power limit",
        236: "power limit",
        240: "power limit",
        244: "temperature of the processor",
        248: "temperature",
        252: "temperature",
    },
}
"""Where counters of the time under a limit stand, in the layouts that have them in place of a status."""
_ALL_ONES = 2**64 - 1


class Throttle(msgspec.Struct, frozen=True):
    """What holds the clocks down.

    Attributes:
        now: The limits in force, in words.
        counters: Time under a limit, in units of the firmware, by its place in the file; it counts where it grows.
        revision: Format and content revision of the layout.
    """

    now: tuple[str, ...] = ()
    counters: dict[int, int] = {}
    revision: tuple[int, int] = (0, 0)

    def since(self, earlier: Throttle | None) -> tuple[str, ...]:
        """Return the limits in force now, or since an earlier reading."""
        names = dict.fromkeys(self.now)
        if earlier is not None and earlier.revision == self.revision:
            meanings = _COUNTERS_AT.get(self.revision, {})
            names |= dict.fromkeys(
                meanings[place] for place, value in self.counters.items() if value > earlier.counters.get(place, value)
            )
        return tuple(names)


def parse_throttle(data: bytes) -> Throttle | None:
    """Read the throttle fields; None where the layout has none that is known, or the file is cut."""
    if len(data) < 4:
        return None
    size, major, minor = struct.unpack_from("<HBB", data)
    revision = (major, minor)
    if len(data) < size:
        return None
    if (place := _STATUS_AT.get(revision)) is not None and size >= place + 8:
        (status,) = struct.unpack_from("<Q", data, place)
        if status == _ALL_ONES:  # what the driver writes where the firmware does not say
            return None
        return Throttle(tuple(name for name, bits in _BITS.items() if any(status >> bit & 1 for bit in bits)))
    places = _COUNTERS_AT.get(revision)
    if places is None or size < max(places) + 4:
        return None
    return Throttle((), {place: struct.unpack_from("<I", data, place)[0] for place in places}, revision)
