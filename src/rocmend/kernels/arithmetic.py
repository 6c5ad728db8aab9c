"""Small integer functions for host code; Triton's own of these names cost a microsecond or two a call."""

from __future__ import annotations


def cdiv(a: int, b: int) -> int:
    """Return a / b rounded up."""
    return -(-a // b)


def next_power_of_2(n: int, least: int = 1) -> int:
    """Return the smallest power of two that is neither less than n nor than another power of two."""
    return max(1 << (n - 1).bit_length() if n > 0 else 1, least)
