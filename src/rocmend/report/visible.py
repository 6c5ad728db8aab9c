"""Text of others, made harmless to print: control characters and Markdown's marks become what they look like."""

from __future__ import annotations

import re
from typing import Any, TypeVar, cast

import msgspec

__all__ = ["as_markdown", "visible", "visible_in"]

_T = TypeVar("_T")

_CONTROLS = {
    **{code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))},
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
}
"""All but tabs and line ends: what moves a terminal's cursor, or turns the direction of what follows."""

_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_MARKS = re.compile(r"[\\*<]|(?<![^\W_])_|_(?![^\W_])|\[(?=.*\]\()|&(?=#?\w+;)", re.DOTALL)


def visible(text: str) -> str:
    """Return text without control characters: names and lines of a project must not steer the terminal they are on."""
    return text.replace("\r\n", "\n").translate(_CONTROLS)


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


def as_markdown(text: str) -> str:
    """Return plain text as Markdown that shows it as it is: ``__CUDA_ARCH__`` is no bold word. Code in ticks stays."""
    parts, at = [], 0
    for code in _CODE.finditer(text):
        parts += [_MARKS.sub(r"\\\g<0>", text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, _MARKS.sub(r"\\\g<0>", text[at:])])
