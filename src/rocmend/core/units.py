"""Numbers with units, as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

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
    """Return a duration: ``40 µs``, ``3.2 ms``, ``12.5 s``, ``4 min 10 s``."""
    if 0 < time_ms < 0.1:
        return f"{time_ms * 1e3:.3g} µs"
    if time_ms < 1000:
        return f"{time_ms:.3g} ms"
    seconds = time_ms / 1000
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def share_text(share: float) -> str:
    """Return a share in per cent: ``41 %``; of a little, ``0.3 %``."""
    percent = share * 100
    return f"{percent:.1f} %" if 0.05 <= abs(percent) < 0.95 else f"{percent:.0f} %"


def figure_text(value: float | None, *, digits: int = 4) -> str:
    """Return a figure with so many significant digits, without an exponent: ``1,199``; nothing for none."""
    if value is None:
        return ""
    text = f"{value:#.{digits}g}".rstrip(".")
    if abs(value) >= 1000 or ("e" in text and abs(value) >= 1):
        return f"{float(text):,.0f}"
    return f"{value:.1e}" if "e" in text else text


def count_text(count: int, singular: str, plural: str = "") -> str:
    """Return ``1 finding``, ``3 findings``."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: ``a, b and c``."""
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"


class ModelSize(NamedTuple):
    """How large a model is.

    Attributes:
        size_bytes: The room that its weights take.
        text: The size as it was given, and what was assumed of it.
    """

    size_bytes: int
    text: str


SIZE_FORMS = "18GB (18 x 10^9 bytes), 18GiB (18 x 2^30 bytes) or 512MiB"
DURATION_FORMS = "30s, 5min, 2h or 7d"
MODEL_FORMS = "18GB or 18GiB of weights, 8B, 500M or 30B-A3B (parameters, at 16 bits each) or 8B@4bit"
PARAMETER_BITS = 16
"""Bits of a parameter where a count of parameters says nothing of them: float16 or bfloat16."""

_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_SIZE = re.compile(rf"{_NUMBER}\s*([KMGTP])(I?)B|{_NUMBER}\s*B", re.IGNORECASE | re.ASCII)
_PARAMETERS = re.compile(
    rf"{_NUMBER}\s*([BM])(?:[ -]?A\d{{1,4}}(?:\.\d{{1,3}})?B)?(?:\s*@\s*q?(\d{{1,2}}(?:\.\d{{1,2}})?)(?:[ -]?bits?)?)?",
    re.IGNORECASE | re.ASCII,
)
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART = rf"{_NUMBER}\s*(ms|min|[smhdw])\s*"
_DURATION = re.compile(rf"(?:{_PART})+", re.ASCII)
_PARTS = re.compile(_PART, re.ASCII)


def parse_size(text: str) -> int:
    """Return a size in bytes: ``18GB`` (decimal), ``18 GiB``, ``512MiB``, ``4096B``.

    A number without a unit is refused, and so is a bare ``G``, which is 10^9 to some programs and 2^30 to others.

    Raises:
        ValueError: Not a size, or of no bytes.
    """
    if text.strip() == "0":  # no unit would make it a size
        raise ValueError(f"{text[:40]!r} is less than a byte; write {SIZE_FORMS}")
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} {_no_unit(text, 'size')}; write {SIZE_FORMS}")
    number, prefix, binary, plain = match.groups()
    base = 1024 if binary else 1000
    size = int(Fraction(number or plain) * (base ** ("KMGTP".index(prefix.upper()) + 1) if prefix else 1))
    if size < 1:
        raise ValueError(f"{text[:40]!r} is less than a byte; write {SIZE_FORMS}")
    return size


def parse_duration(text: str) -> float:
    """Return a duration in seconds: ``250ms``, ``30s``, ``5min`` (or ``5m``), ``1h30min``, ``7d``, ``2w``.

    Raises:
        ValueError: Not a duration, or none that passes.
    """
    if _DURATION.fullmatch(text.strip()) is None:
        raise ValueError(f"{text[:40]!r} {_no_unit(text, 'duration')}; write {DURATION_FORMS}")
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in _PARTS.findall(text))
    if seconds <= 0:
        raise ValueError(f"{text[:40]!r} is no time at all; write {DURATION_FORMS}")
    return seconds


def parse_model_size(text: str) -> ModelSize:
    """Return the size of a model that is given in bytes, or in parameters: ``8B@4bit``, ``8B@q4``, ``500M``.

    Of ``30B-A3B``, a mixture of experts, all 30 billion lie in memory. ``500M`` without a ``B`` is no size in bytes.

    Raises:
        ValueError: Neither.
    """
    match = _PARAMETERS.fullmatch(text.strip())
    if match is None:
        try:
            return ModelSize(parse_size(text), text.strip())
        except ValueError:
            raise ValueError(f"{text[:40]!r} {_no_unit(text, 'size of a model')}; write {MODEL_FORMS}") from None
    count, bits = match[1], match[3] or str(PARAMETER_BITS)
    scale, word = (10**9, "billion") if match[2] in "Bb" else (10**6, "million")
    size = int(Fraction(count) * scale * Fraction(bits) / 8)
    if size < 1:
        raise ValueError(f"{text[:40]!r} is less than a byte")
    assumed = "" if match[3] else ", which is assumed"
    return ModelSize(size, f"{count} {word} parameters at {bits} bits each{assumed}: {size_text(size)} of weights")


def _no_unit(text: str, what: str) -> str:
    """Say what is wrong with a text: a number alone lacks the unit."""
    return "has no unit" if re.fullmatch(_NUMBER, text.strip(), re.ASCII) else f"is not a {what}"
