"""Conditions on ``USE_ROCM`` in the languages that builds are written in."""

from __future__ import annotations

import re
from typing import NamedTuple

from rocmend.port.build.kinds import Kind

__all__ = ["GATES", "UNIT", "Gate", "movable"]

UNIT = "  "
"""What stands before each line within a condition, where the kind is indented."""


class Gate(NamedTuple):
    """How a kind of file says "for ROCm this, else that", each part a line of its own.

    Attributes:
        rocm: Opens what holds for ROCm.
        other: Opens what holds for everything else.
        otherwise: Stands between the two.
        close: Ends it.
        indented: Whether its lines are indented as what they stand around, and what they hold by ``UNIT`` more.
    """

    rocm: str
    other: str
    otherwise: str
    close: str
    indented: bool


GATES = {
    Kind.CMAKE: Gate("if(USE_ROCM)", "if(NOT USE_ROCM)", "else()", "endif()", indented=True),
    Kind.MAKE: Gate("ifdef USE_ROCM", "ifndef USE_ROCM", "else", "endif", indented=False),
    Kind.SHELL: Gate('if [ -n "${USE_ROCM:-}" ]; then', 'if [ -z "${USE_ROCM:-}" ]; then', "else", "fi", indented=True),
}
"""By kind.

A build for ROCm is asked for with ``-DUSE_ROCM=ON``, ``make USE_ROCM=1`` or ``USE_ROCM=1`` in the environment.
"""

_STAYS = re.compile(rb"\t|\r(?!\n)|<<|\\\Z")
"""What is indented by tabs, or goes on after the line."""
_SPANS = {Kind.CMAKE: re.compile(rb"\\|\[=*\["), Kind.SHELL: re.compile(rb"[\\\"'`]")}
"""What may begin a text that goes on over the end of a line."""


def movable(kind: Kind, text: bytes) -> bool:
    """Return whether whole statements mean the same indented: surely no text or word goes on over the end of a line.

    A single line has none. CMake's strings have double quotes alone, so without a backslash and without bracket
    arguments an even number of them a line closes each. A shell's nest, so of several lines none may have a quote.
    """
    lines = text.splitlines()
    if _STAYS.search(text.rstrip(b"\r\n")) or kind not in _SPANS:
        return False
    if len(lines) <= 1:
        return True
    return _SPANS[kind].search(text) is None and all(line.count(b'"') % 2 == 0 for line in lines)
