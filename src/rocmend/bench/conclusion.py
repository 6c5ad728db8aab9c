"""What the figures of a run say in words."""

from __future__ import annotations

import msgspec


class Conclusion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A statement.

    Attributes:
        topic: What it is about: ``best``, ``crossing``, ``decay``, ``size``, ``limit``, ``setting``, ``use``.
        text: The statement, a sentence or two.
        evidence: The cases under their settings that it rests on, as the store calls them.
        shown: The intervals carry it; false where the statement is that nothing is shown.
    """

    topic: str
    text: str
    evidence: tuple[str, ...]
    shown: bool = True
