"""The last resort: an exception that nobody expected becomes a sentence and a file, never a traceback on the screen."""

from __future__ import annotations

import platform
import tempfile
import traceback
from collections.abc import Sequence

from rocmend import __version__
from rocmend.core.errors import RocmendError

__all__ = ["DEBUG_VARIABLE", "unexpected"]

DEBUG_VARIABLE = "ROCMEND_DEBUG"


def unexpected(error: Exception, arguments: Sequence[str]) -> RocmendError:
    """Write down everything about an exception, and return the error that tells the user where.

    Args:
        error: What was raised.
        arguments: The command line.
    """
    kind = type(error).__name__
    text = "\n".join((
        f"rocmend {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"command line: {list(arguments)}",
        "",
        "".join(traceback.format_exception(error)),
    ))  # fmt: skip
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="rocmend-error-", suffix=".txt", delete=False, errors="replace"
        ) as file:
            file.write(text)
    except OSError as full:
        where = f"The details could not be written ({full.strerror}); {DEBUG_VARIABLE}=1 prints them."
    else:
        where = f"The details are in {file.name}; {DEBUG_VARIABLE}=1 prints them."
    detail = " ".join(str(error).split())[:300]
    return RocmendError(
        "rocmend",
        f"an error that should not happen: {kind}{': ' if detail else ''}{detail}",
        why="This is a fault of rocmend, not of yours.",
        next_step=f"{where} Please report it with that file.",
    )
