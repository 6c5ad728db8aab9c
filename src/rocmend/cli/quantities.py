"""The types of options that take a size, a duration or a time: each with its unit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from rocmend.core.errors import UsageError
from rocmend.core.units import DURATION_FORMS, MODEL_FORMS, parse_duration, parse_model_size, parse_size, time_text

__all__ = ["MODEL_SIZE", "SIZE", "WHEN", "Duration"]

if TYPE_CHECKING:
    _Base = click.ParamType[Any]
else:  # older versions of click have no such parameter
    _Base = click.ParamType

_YEAR_S = 366 * 86400.0


class _Parsed(_Base):
    """A value that a function of ``rocmend.core.units`` reads."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what the text stands for.

        Raises:
            UsageError: It stands for nothing; the forms are shown.
        """
        del ctx
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            option = param.opts[0] if param is not None else self.name
            message, _, forms = str(error).partition("; ")
            told = f"{forms[:1].upper()}{forms[1:]}." if forms else ""
            raise UsageError(option, f"{message}.", next_step=told) from None


class Duration(_Parsed):
    """A duration, in seconds.

    Args:
        least_s: The shortest that makes sense.
    """

    def __init__(self, least_s: float = 0.0) -> None:
        super().__init__("duration", self._checked)
        self._least_s = least_s

    def _checked(self, text: str) -> float:
        seconds = parse_duration(text)
        if seconds > _YEAR_S:
            raise ValueError(f"{text[:40]!r} is more than a year; write {DURATION_FORMS}")
        if seconds < self._least_s:
            raise ValueError(f"{text[:40]!r} is less than {time_text(self._least_s * 1000)}; write {DURATION_FORMS}")
        return seconds


def _when(text: str) -> dt.datetime:
    """Return the time (UTC) that an age such as ``90d``, or an ISO date or time, stands for."""
    try:
        return dt.datetime.now(dt.UTC) - dt.timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError):
        pass
    try:
        time = dt.datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        forms = f"write an age ({DURATION_FORMS}) or a date such as 2026-01-31 (UTC)"
        raise ValueError(f"{text[:40]!r} is neither an age nor a date; {forms}") from None


SIZE = _Parsed("size", parse_size)
"""In bytes."""
WHEN = _Parsed("when", _when)
"""A point in time."""
MODEL_SIZE = _Parsed("model size", parse_model_size)
"""A ``rocmend.core.units.ModelSize``."""

model_size_option = click.option(
    "--model-size", type=MODEL_SIZE, metavar="SIZE", default=None, help=f"Size of the model to run: {MODEL_FORMS}."
)
