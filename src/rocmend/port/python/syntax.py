"""Why a file is no Python that can be read here."""

from __future__ import annotations

import re
import sys

__all__ = ["why_not"]

_PYTHON_2 = re.compile(
    r"^[ \t]*(?:print[ \t]+[\"'\w%]|print[ \t]*>>|exec[ \t]+[\"'\w]|raise[ \t]+\w+[ \t]*,)"
    r"|^[ \t]*except[ \t]+[\w.]+[ \t]*,[ \t]*[a-z_]\w*[ \t]*:"
    r"|\bur[\"']|<>|\b0[0-7]+L?\b(?!\.)|\b\d+L\b",
    re.MULTILINE,
)


def why_not(text: str, error: Exception) -> str:
    """Return a sentence on why ``ast.parse`` refused a text: Python 2, newer syntax, or an error with its place."""
    if isinstance(error, RecursionError | MemoryError):
        return "it is nested too deeply to be parsed."
    if isinstance(error, SyntaxError):
        at = f"line {error.lineno}: {error.msg}" if error.lineno else f"{error.msg}"
        lines = text.splitlines()
        line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
        if _PYTHON_2.search(line):
            return f"it is Python 2 ({at})."
        if _in_a_later_python(text):
            here = f"{sys.version_info.major}.{sys.version_info.minor}"
            return (
                f"its syntax is newer than the Python {here} that rocmend runs in ({at}). Run rocmend in a newer one."
            )
        return f"it has a syntax error ({at})."
    return f"it is no Python source ({error})."


def _in_a_later_python(text: str) -> bool:
    """Tell whether LibCST, whose grammar goes beyond that of the running interpreter, can parse the text."""
    try:
        import libcst
    except ImportError:
        return False
    try:
        libcst.parse_module(text)
    except (libcst.ParserSyntaxError, ValueError, RecursionError):
        return False
    return True
