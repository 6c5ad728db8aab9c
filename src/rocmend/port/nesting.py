"""How deep what a stranger wrote may be nested, so that looking at all that is around a place takes a bounded time."""

from __future__ import annotations

__all__ = ["MOST_NESTED", "NestingError"]

MOST_NESTED = 256
"""Clang's limit for brackets (https://clang.llvm.org/docs/UsersManual.html#cmdoption-fbracket-depth), and what the C++
standard asks of a compiler for conditionals (https://eel.is/c++draft/implimits)."""


class NestingError(RecursionError):
    """A file nests something deeper than is read: it is skipped, and this says why."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} are nested more than {MOST_NESTED} deep")
