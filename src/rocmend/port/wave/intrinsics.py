"""CUDA's operations across the lanes of a warp, and the helpers that stand in for them (``support/warp32.h``)."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BALLOTS", "INTRINSICS", "SOURCES", "TRIGGERS", "Intrinsic"]


class Intrinsic(NamedTuple):
    """One operation.

    Attributes:
        name: CUDA's name.
        helper: The helper that does the same within 32 lanes of a wavefront of 32 or 64.
        kind: ``shuffle``, ``vote``, ``ballot``, ``match``, ``reduce`` or ``sync``.
        masked: Whether its first argument is a mask of lanes.
    """

    name: bytes
    helper: bytes
    kind: str
    masked: bool


def _table() -> dict[bytes, Intrinsic]:
    made = {}
    for kind, names, masked in (
        ("shuffle", b"shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync", True),
        ("vote", b"any_sync all_sync uni_sync", True),
        ("ballot", b"ballot_sync", True),
        ("match", b"match_any_sync match_all_sync", True),
        (
            "reduce",
            b"reduce_add_sync reduce_min_sync reduce_max_sync reduce_and_sync reduce_or_sync reduce_xor_sync",
            True,
        ),
        ("sync", b"syncwarp", True),
        ("ballot", b"activemask ballot", False),
        ("vote", b"any all", False),
        ("shuffle", b"shfl shfl_up shfl_down shfl_xor", False),
    ):
        for name in names.split():
            made[b"__" + name] = Intrinsic(b"__" + name, b"warp32_" + name, kind, masked)
    return made


INTRINSICS: dict[bytes, Intrinsic] = _table()

BALLOTS = frozenset(name for name, one in INTRINSICS.items() if one.kind in {"ballot", "match"})
"""Those whose result is a mask of lanes."""

SOURCES = (
    "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html",
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#warp-shuffle-functions",
    "measured: kernels ported by these rules, run with 32 and with 64 lanes a wave, give what 32-lane warps give",
)
"""Where the rules about these operations come from."""

TRIGGERS: tuple[bytes, ...] = (
    b"__shfl",
    b"__any",
    b"__all",
    b"__uni_sync",
    b"__ballot",
    b"__match_",
    b"__reduce_",
    b"__activemask",
    b"__syncwarp",
)
"""Bytes of which a file with one of the operations holds one."""
