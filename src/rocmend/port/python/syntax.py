"""Why a file is no Python that can be read here."""

from __future__ import annotations

import re
import sys

__all__ = ["is_python_2", "why_not"]

_PYTHON_2 = re.compile(
    r"^[ \t]*(?:print[ \t]+[\"'\w%]|print[ \t]*>>|exec[ \t]+[\"'\w]|raise[ \t]+\w+[ \t]*,)"
    r"|^[ \t]*except[ \t]+[\w.]+[ \t]*,[ \t]*[a-z_]\w*[ \t]*:"
    r"|\bur[\"']|<>|\b0[0-7]+L?\b(?!\.)|\b\d+L\b",
    re.MULTILINE,
)


def is_python_2(text: str, error: Exception) -> bool:
    """Tell whether a text that ``ast.parse`` refused is Python 2, by the line with the error."""
    lines = text.splitlines()
    number = (error.lineno or 0) if isinstance(error, SyntaxError) else 0
    return 0 < number <= len(lines) and _PYTHON_2.search(lines[number - 1]) is not None


def why_not(text: str, error: Exception) -> str:
    """Return a sentence on why ``ast.parse`` refused a text: Python 2, newer syntax, or an error with its place."""
    if isinstance(error, RecursionError | MemoryError):
        return "it is nested too deeply to be parsed."
    if isinstance(error, SyntaxError):
        at = f"line {error.lineno}: {error.msg}" if error.lineno else f"{error.msg}"
        if is_python_2(text, error):
            return f"it is Python 2 ({at})."
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"it has a syntax error ({at}), or its syntax is newer than the Python {here} that rocmend runs in."
    return f"it is not Python source ({error})."
