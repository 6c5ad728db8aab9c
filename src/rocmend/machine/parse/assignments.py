"""Constants of a generated Python module, read as text: nothing is imported or executed."""

from __future__ import annotations

import re

MAX_CHARS = 1 << 18
"""Generated version modules are under a kilobyte; what follows this many characters is not looked at."""

_ASSIGNMENT = re.compile(
    r"""^([A-Za-z_]\w{0,80})[ \t]*(?::[^=\n]{0,120})?=[ \t]*
        (?: "([^"\\\n]{0,1000})" | '([^'\\\n]{0,1000})' | (None|True|False) | (-?\d{1,18}) )
        [ \t]*(?:\#[^\n]*)?$""",
    re.MULTILINE | re.VERBOSE,
)

_CONSTANTS: dict[str, bool | None] = {"None": None, "True": True, "False": False}

Constant = str | int | bool | None


def parse_assignments(text: str) -> dict[str, Constant]:
    """Return module-level ``name = constant`` assignments (annotated or not); other lines are passed over.

    Args:
        text: Source of a module such as ``torch/version.py``.

    Returns:
        Name to string, integer, bool or None; of several assignments of a name the last, as Python would have it.
    """
    found: dict[str, Constant] = {}
    for match in _ASSIGNMENT.finditer(text[:MAX_CHARS].replace("\r\n", "\n")):
        name, double, single, constant, number = match.groups()
        if constant is not None:
            found[name] = _CONSTANTS[constant]
        elif number is not None:
            found[name] = int(number)
        else:
            found[name] = double if double is not None else single
    return found


def text_of(values: dict[str, Constant], name: str) -> str | None:
    """Return a non-empty string constant, or None."""
    value = values.get(name)
    return value if isinstance(value, str) and value else None
