"""Secrets in an attempt's environment: handed to the program, kept nowhere.

A variable is a secret where its name says so (``HF_TOKEN``), or its value has the form of a known kind of token or a
URL with a password. What is written down holds ``***`` in its place. A value that is ``***`` is taken from the
environment of the rocmend that runs the attempt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from rocmend.core.secrets import hide_tokens, holds_token, is_secret_variable
from rocmend.runner.executor import NotStartedError

HIDDEN = "***"

_PLAIN = re.compile(r"-?\d{0,9}(?:\.\d{1,9})?|true|false|yes|no|on|off|none|auto", re.IGNORECASE)
"""No secret, whatever the name says: TOKENIZERS_PARALLELISM=false, MAX_TOKENS=4096."""


def is_hidden(name: str, value: str | None) -> bool:
    """Whether a variable's value is not to be kept or shown."""
    if not value:
        return False
    return value == HIDDEN or (is_secret_variable(name) and not _PLAIN.fullmatch(value)) or holds_token(value)


def without_secrets(env: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return an environment as it is kept and shown."""
    return {name: HIDDEN if is_hidden(name, value) else value for name, value in env.items()}


def without_secret(argument: str) -> str:
    """Return a command line's argument as it is kept and shown: ``NAME=VALUE`` is looked at as a variable."""
    found = re.fullmatch(r"((?:--?env=|-e=?)?-{0,2}([A-Za-z_][A-Za-z0-9_-]*)=)(.+)", argument, re.DOTALL)
    if found and is_hidden(found[2], found[3]):
        return found[1] + HIDDEN
    return hide_tokens(argument, HIDDEN)


def with_secrets(env: Mapping[str, str | None], ours: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """Return an environment with the values that were not kept taken from our own.

    Args:
        env: The attempt's variables.
        ours: Where they are taken from; None for this process's environment.

    Raises:
        NotStartedError: One is not set here.
    """
    ours = os.environ if ours is None else ours
    missing = sorted(name for name, value in env.items() if value == HIDDEN and name not in ours)
    if missing:
        names = ", ".join(missing)
        raise NotStartedError(
            "environment",
            f"expected a value for {names} in the environment, got none.",
            why="Secret values are not stored: the attempt only records that it needs them.",
            next_step=f"Set it for this command, e.g. `read -rs {missing[0]}; export {missing[0]}`, and run it again.",
        )
    return {name: ours[name] if value == HIDDEN else value for name, value in env.items()}


def secret_values(asked: Mapping[str, str | None], given: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the values that must not be kept.

    Args:
        asked: The variables as the attempt states them, perhaps with ``***``.
        given: The same, as ``with_secrets`` returns them.
    """
    return tuple(value for name, value in given.items() if value and is_hidden(name, asked[name]))


class Scrubber:
    """Puts ``***`` for secrets in a stream of bytes, wherever reads cut it.

    Args:
        values: The secrets. Those shorter than six characters are left alone: they would be found everywhere.
    """

    def __init__(self, values: tuple[str, ...]) -> None:
        kept = (value.encode("utf-8", "surrogateescape") for value in values if len(value) >= 6)
        self._values = tuple(sorted(kept, key=len, reverse=True))
        self._find = re.compile(b"|".join(map(re.escape, self._values))) if self._values else None
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take in bytes; return what is known to be clean. What may be the beginning of a secret is held back."""
        if self._find is None:
            return data
        data = self._find.sub(HIDDEN.encode(), self._held + data)
        cut = len(data) - self._begun(data)
        self._held = data[cut:]
        return data[:cut]

    def rest(self) -> bytes:
        """Return what was held back, at the stream's end."""
        held, self._held = self._held, b""
        return held

    def text(self, text: str) -> str:
        """Return a whole text without secrets."""
        if self._find is None:
            return text
        data = text.encode("utf-8", "surrogateescape")
        return self._find.sub(HIDDEN.encode(), data).decode("utf-8", "surrogateescape")

    def _begun(self, data: bytes) -> int:
        """Return how many bytes at the end may begin a secret."""
        most = min(len(self._values[0]) - 1, len(data))
        for length in range(most, 0, -1):
            tail = data[-length:]
            if any(value.startswith(tail) for value in self._values if len(value) > length):
                return length
        return 0
