"""An instruction's text, taken apart: name, operands, modifiers."""

from __future__ import annotations

import re
from typing import NamedTuple

from rocmend.emulate.decode.operands import split

__all__ = ["Parts", "parts_of"]

_SUFFIX = re.compile(r"_(?:e32|e64_dpp|e64|dpp8|dpp|sdwa)$")


class Parts(NamedTuple):
    """An instruction's text, taken apart.

    Args:
        name: Without the encoding's suffix.
        operands: As LLVM writes them.
        modifiers: What follows the operands: ``offset:16``, ``glc``.
        text: The whole.
    """

    name: str
    operands: list[str]
    modifiers: list[str]
    text: str

    def value(self, name: str, default: int = 0) -> int:
        """Return the number of a modifier ``name:NUMBER``."""
        found = next((one for one in self.modifiers if one.startswith(f"{name}:")), None)
        return int(found.partition(":")[2], 0) if found else default

    def bits(self, name: str) -> list[int]:
        """Return the digits of a modifier ``name:[0,1,…]``."""
        found = next((one for one in self.modifiers if one.startswith(f"{name}:[")), None)
        return [int(one) for one in found.partition("[")[2][:-1].split(",")] if found else []


def parts_of(text: str) -> Parts:
    """Take an instruction's text apart."""
    name, _, rest = text.partition(" ")
    operands = split(rest.strip())
    modifiers: list[str] = []
    if operands:
        last, *more = _words(operands[-1])
        operands[-1], modifiers = last, more
    return Parts(_SUFFIX.sub("", name), operands, modifiers, text)


def _words(text: str) -> list[str]:
    """Split at spaces outside of brackets."""
    words, depth, word = [], 0, ""
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == " " and not depth:
            words.append(word)
            word = ""
        else:
            word += letter
    return [one for one in [*words, word] if one]
