"""Memory in use, and limits on it."""

from __future__ import annotations

from typing import Any

from rocmend.mlx import memory
from rocmend.mlx.evaluate import let_go
from rocmend.mlx.transforms import tree

__all__ = [
    "clear_cache", "get_active_memory", "get_array_buffer_size", "get_cache_memory", "get_memory_limit",
    "get_peak_memory", "reset_peak_memory", "set_cache_limit", "set_memory_limit", "set_wired_limit",
]  # fmt: skip


def get_active_memory() -> int:
    """Return the bytes that arrays take on the default device, without what is held for later.

    On the CPU this counts all of torch's tensors, which takes some milliseconds.
    """
    let_go()
    return memory.active()


def get_peak_memory() -> int:
    """Return the most bytes in use since the program began or ``reset_peak_memory`` was called.

    On the CPU, where torch keeps no record, this is the most that ``get_active_memory`` has returned or that the
    arrays that evaluations were asked for have taken. What is let go during an evaluation is not in it.
    """
    return memory.peak()


def reset_peak_memory() -> None:
    """Set the peak to zero."""
    let_go()
    memory.reset_peak()


def get_cache_memory() -> int:
    """Return the bytes that are held for later arrays and not in use. On the CPU nothing is held."""
    return memory.cached()


def get_array_buffer_size(*args: Any) -> int:
    """Return the bytes of the buffers behind arrays. A buffer that several arrays see is counted once.

    Args:
        args: arrays and trees of arrays; other leaves are passed over.

    Raises:
        ValueError: an array is not computed yet.
    """
    values = [x._n.data for x in tree.arrays_of(args)]
    if any(value is None for value in values):
        raise ValueError(
            "[get_array_buffer_size] Arrays must be evaluated before querying buffer size. Call eval on them first."
        )
    return memory.buffers(values)


def set_memory_limit(limit: int) -> int:
    """Set the bytes above which unused memory is given back after each evaluation.

    It is a guideline: an evaluation that needs more takes it, as long as there is any. By default it is the memory of
    the default device.

    Args:
        limit: bytes.

    Returns:
        The limit before.

    Raises:
        ValueError: it is negative.
    """
    return memory.set_limit("memory", limit, memory.total())


def get_memory_limit() -> int:
    """Return the bytes above which unused memory is given back, as ``set_memory_limit`` sets them."""
    return memory.LIMITS.get("memory", memory.total())


def set_cache_limit(limit: int) -> int:
    """Set the bytes of unused memory above which it is given back after each evaluation.

    Args:
        limit: bytes; 0: hold nothing. By default as much as the memory limit.

    Returns:
        The limit before.

    Raises:
        ValueError: it is negative.
    """
    return memory.set_limit("cache", limit, memory.LIMITS.get("memory", memory.total()))


def set_wired_limit(limit: int) -> int:
    """Remember a limit on memory that stays resident. It has no effect: memory of a GPU always does.

    Args:
        limit: bytes.

    Returns:
        The limit before; 0 at first.

    Raises:
        ValueError: it is negative, or more than there is.
    """
    if limit > memory.total():
        raise ValueError(f"[set_wired_limit] {limit} bytes are more than the {memory.total()} of this device.")
    return memory.set_limit("wired", limit, 0)


def clear_cache() -> None:
    """Give back the memory that is held for later arrays and not in use."""
    let_go()
    memory.clear()
