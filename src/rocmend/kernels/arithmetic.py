"""Small integer functions for host code; Triton's own of these names cost a microsecond or two a call."""

from __future__ import annotations


def cdiv(a: int, b: int) -> int:
    """Return a / b rounded up."""
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    """Return the smallest power of two that is not less than n; 1 for 0."""
    return 1 << (n - 1).bit_length() if n > 0 else 1
