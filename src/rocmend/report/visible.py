"""Text of others in Markdown: what looks like a mark, a tag or a link stays text."""

from __future__ import annotations

import re

from rocmend.core.visible import visible, visible_in

__all__ = ["as_code", "as_markdown", "harmless", "visible", "visible_in"]

_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_MARKS = re.compile(
    r"[\\*<`]|(?<![^\W_])_|_(?![^\W_])|\[(?=[^\n]*\]\s*[(\[:])|!(?=\[)|&(?=#?\w+;)|(?m:^)(?:#(?=#*\s)|>|~(?=~~))"
)
_ACTIVE = re.compile(r"(?<!\\)(?:<(?!https?://[^\s<>]*>)|!(?=\[)|\[(?=[^\]\n]*\]\(\s*(?!https?://|#)))")
_FENCED = re.compile(
    r"^ {0,3}(`{3,})[^`\n]*\n.*?(?:^ {0,3}\1`*[ \t]*$|\Z)|(?<!`)(`+)(?!`)[^\n]*?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE
)


def _outside(code: re.Pattern[str], marks: re.Pattern[str], text: str) -> str:
    """Put a backslash before marks, but for those in code."""
    parts, at = [], 0
    for found in code.finditer(text):
        parts += [marks.sub(r"\\\g<0>", text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*parts, marks.sub(r"\\\g<0>", text[at:])])


def as_markdown(text: str) -> str:
    """Return plain text as Markdown that shows it as it is: ``__CUDA_ARCH__`` is no bold word. Code in ticks stays."""
    return _outside(_CODE, _MARKS, text)


def as_code(text: str) -> str:
    """Return plain text as a Markdown code span, whatever ticks it holds."""
    text = " ".join(text.split())
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def harmless(markdown: str) -> str:
    """Return Markdown without what acts: raw HTML, pictures, and links to anything but the web."""
    return _outside(_FENCED, _ACTIVE, markdown)
