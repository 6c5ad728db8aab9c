"""What a command says that was interrupted and can be gone on with."""

from __future__ import annotations

import shlex
import sys
from typing import Self

from rocmend.cli.output import tell


class Resumable:
    """Says, where a run is interrupted, how to go on with it.

    Args:
        kept: The results are kept.
    """

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept
        self._group = ""
        self._done = self._total = 0

    def note(self, group: str, done: int, total: int) -> None:
        """Take note of a result of a run: how many are done now, of how many."""
        self._group, self._done, self._total = group, done, total

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt and self.kept and self._group:
            tell(f"{self._done} of {self._total} are done and kept. To go on: {_again(self._group)}")


def command_line() -> str:
    """Return the command line as it was typed, quoted for a shell."""
    return shlex.join(["rocmend", *sys.argv[1:]])


def _again(group: str) -> str:
    """Return the command line that goes on with a run: the same once more, with its id."""
    words, given = [], iter(sys.argv[1:])
    for word in given:
        if word == "--resume":
            next(given, None)
        elif not word.startswith("--resume="):
            words.append(word)
    return shlex.join(["rocmend", *words, "--resume", group])
