"""The last resort: an exception that nobody expected becomes a sentence and a file, never a traceback on the screen."""

from __future__ import annotations

import itertools
import platform
import tempfile
import traceback
from collections.abc import Sequence

from rocmend import __version__
from rocmend.core.errors import RocmendError

__all__ = ["DEBUG_VARIABLE", "unexpected"]

DEBUG_VARIABLE = "ROCMEND_DEBUG"
_LEAST_SECRET = 4
"""Characters of a secret that is looked for in a traceback: shorter ones are parts of words."""


def unexpected(error: Exception, arguments: Sequence[str]) -> RocmendError:
    """Write down everything about an exception, and return the error that tells the user where.

    The file is for the user alone (0600), and is made to be passed on: names, addresses and secrets are not in it.

    Args:
        error: What was raised.
        arguments: The command line.
    """
    kind = type(error).__name__
    about = f"rocmend {__version__}, Python {platform.python_version()}, {platform.platform()}"
    try:
        text = _redacted("".join(traceback.format_exception(error)), arguments)
    except Exception as other:  # noqa: BLE001  what failed may be what redacts
        text = f"{kind}; more is not written: redacting it failed with {type(other).__name__}"
    text = f"{about}\n{text}"
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


def _redacted(trace: str, arguments: Sequence[str]) -> str:
    """Return the command line and a traceback without what identifies, and without the command line's secrets."""
    from rocmend.core.redact import REDACTED, redactor_here
    from rocmend.core.secrets import is_secret_name, is_secret_option

    redactor = redactor_here()
    secrets: set[str] = set()
    for before, word in itertools.pairwise(["", *arguments]):
        if is_secret_option(before):
            secrets.add(word)
        name, _, value = word.partition("=")
        while value:  # --env=HF_TOKEN=VALUE
            if is_secret_name(name.lstrip("-")):
                secrets.add(value)
            name, _, value = value.partition("=")
    text = f"command line: {redactor.json(list(arguments))}\n\n{trace}"
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _LEAST_SECRET:
            text = text.replace(secret, REDACTED)
    return redactor.text(text)
