"""Text of others, made harmless to print: what steers a terminal or turns a line around becomes what it looks like."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

__all__ = ["json_safe", "one_line", "visible", "visible_in"]

_T = TypeVar("_T")

_STEERING = (*range(9), *range(11, 32), *range(127, 160))
"""C0 and C1 but for tabs and line ends: they move the cursor, begin a sequence (ESC, 0x9B), overwrite the line (CR)."""

_MISLEADING = (
    0x061C, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),
)  # fmt: skip
"""Direction marks and overrides, zero widths, line separators, tags: a reader sees another text than there is."""

_CONTROLS = {code: f"\\x{code:02x}" for code in _STEERING} | {
    code: f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}" for code in _MISLEADING
}


def _json_escape(code: int) -> str:
    units = chr(code).encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


_IN_JSON = {code: _json_escape(code) for code in (*range(127, 160), *_MISLEADING)}
"""What JSON lets stand as it is; below 32 it escapes by itself."""


def visible(text: str) -> str:
    """Return text without control characters: names and lines of a project must not steer the terminal they are on."""
    return text.replace("\r\n", "\n").translate(_CONTROLS)


def one_line(text: str) -> str:
    """Return ``visible`` text on one line, for a line of progress."""
    return visible(" ".join(text.split()))


def json_safe(text: str) -> str:
    """Return JSON that means the same and can be printed: only strings in it can hold what is escaped."""
    return text.translate(_IN_JSON)


def visible_in(value: _T) -> _T:
    """Return a record with all of its texts ``visible``."""
    made: Any = value
    if type(value) is str:
        made = visible(str(value))
    elif isinstance(value, tuple):
        made = tuple(visible_in(one) for one in value)
    elif isinstance(value, msgspec.Struct):
        fields = value.__struct_fields__
        made = msgspec.structs.replace(value, **{name: visible_in(getattr(value, name)) for name in fields})
    return cast("_T", made)
