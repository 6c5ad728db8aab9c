"""``mlx.core.metal``: there is no Metal here. The names of functions that moved to ``mlx.core`` work."""

from __future__ import annotations

from rocmend.mlx.ops.memory import (
    clear_cache,
    get_active_memory,
    get_cache_memory,
    get_peak_memory,
    reset_peak_memory,
    set_cache_limit,
    set_memory_limit,
    set_wired_limit,
)
from rocmend.mlx.ops.streams import device_info

__all__ = [
    "clear_cache", "device_info", "get_active_memory", "get_cache_memory", "get_peak_memory", "is_available",
    "reset_peak_memory", "set_cache_limit", "set_memory_limit", "set_wired_limit", "start_capture", "stop_capture",
]  # fmt: skip

_NONE = "There is no Metal here: arrays are computed by torch. Use torch.profiler, or rocprofv3 on an AMD GPU."


def is_available() -> bool:
    """Return False: arrays are computed by torch."""
    return False


def start_capture(path: str) -> None:
    """Raise: there is no Metal to record.

    Args:
        path: where a recording would go.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(f"[metal.start_capture] {_NONE}")


def stop_capture() -> None:
    """Raise: there is no Metal to record.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(f"[metal.stop_capture] {_NONE}")
