"""Numbers with units, as a person reads them."""

from __future__ import annotations

GIB = 1 << 30
"""Bytes in a gibibyte."""

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size_bytes: float) -> str:
    """Return a size in binary units with three significant digits: ``15.5 GiB``."""
    value = float(size_bytes)
    for unit in _BINARY:
        if abs(value) < 1024 or unit == _BINARY[-1]:
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 100 else f"{value:.3g} {unit}"


def time_text(time_ms: float) -> str:
    """Return a duration: ``3.2 ms``, ``12.5 s``, ``4 min 10 s``."""
    if time_ms < 1000:
        return f"{time_ms:.3g} ms"
    seconds = time_ms / 1000
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def count_text(count: int, singular: str, plural: str = "") -> str:
    """Return ``1 finding``, ``3 findings``."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def parse_size(text: str) -> int:
    """Return a size in bytes: ``42``, ``18G``, ``18 GiB``, ``18GB`` (decimal), ``512MiB``.

    A bare ``K``, ``M``, ``G`` or ``T`` is binary, as llama.cpp and free(1) use it.

    Raises:
        ValueError: Not a size.
    """
    import re

    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(I?B)?\s*", text.upper())
    if not match:
        raise ValueError(f"{text!r} is not a size; write 18GiB, 18GB, 512MiB or a number of bytes")
    number, prefix, suffix = match.groups()
    base = 1000 if suffix == "B" and prefix else 1024
    return int(float(number) * base ** ("KMGT".index(prefix) + 1 if prefix else 0))
