"""What the readers take before they call a file hostile."""

from __future__ import annotations

import msgspec

MIB = 1 << 20
GIB = 1 << 30


class Limits(msgspec.Struct, frozen=True):
    """Bounds on what one inspection reads; every one can be raised by the caller.

    Attributes:
        members: Most members of an archive, or files of a folder.
        member_bytes: Most bytes one member may inflate to.
        total_bytes: Most bytes all members together may inflate to.
        ratio: Most bytes that one compressed byte may inflate to, judged for members above ``ratio_from_bytes``.
        ratio_from_bytes: Smaller members may compress better than ``ratio`` (an empty table is all zeros).
        bundles_per_file: Most offload bundles or embedded code objects in one file.
        code_objects_per_file: Most code objects in one file.
        zstd_window_bytes: Most address space for a zstd window; pages are touched only as far as data is inflated.
        deep: Read the data sections of host libraries too, where code objects can be embedded outside fat binaries.
    """

    members: int = 200_000
    member_bytes: int = 32 * GIB
    total_bytes: int = 128 * GIB
    ratio: float = 250.0
    ratio_from_bytes: int = 64 * MIB
    bundles_per_file: int = 50_000
    code_objects_per_file: int = 200_000
    zstd_window_bytes: int = 2 * GIB - 1
    deep: bool = True


DEFAULT_LIMITS = Limits()
