"""Conditions of CMake as a plain build for ROCm decides them: True, False, and None where that is not known."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from rocmend.port.build.cmake import Argument
from rocmend.port.definitions.cmake_words import VARIABLE, Word, constant

__all__ = ["both", "either", "holds", "names_rocm", "negated", "of_option"]

_ROCM = re.compile(r"(?:\w+_)?(?:ROCM|HIP|AMD|AMDGPU)(?:_FOUND|_ENABLED|_PLATFORM)?", re.IGNORECASE)
_NVIDIA = re.compile(r"(?:\w+_)?(?:CUDA\w*|NVIDIA|NVCC)(?:_\w+)?", re.IGNORECASE)
_DENIES = re.compile(r"(?:^|_)(?:NO|NOT|DISABLE|WITHOUT|SKIP)(?:_|$)", re.IGNORECASE)
_SYSTEM = {"UNIX": True, "LINUX": True, "WIN32": False, "APPLE": False, "MSVC": False, "MINGW": False}
_ASKS = {"EXISTS", "COMMAND", "POLICY", "TEST", "IS_DIRECTORY", "IS_ABSOLUTE", "IS_NEWER_THAN", "IS_SYMLINK"}
_DEEPEST = 64


def holds(
    arguments: Sequence[Argument], variables: Mapping[str, Sequence[Word]], targets: Collection[str]
) -> bool | None:
    """Return whether a condition holds.

    Args:
        arguments: Its words.
        variables: What is set.
        targets: The names of the targets that there are.
    """
    reader = _Condition(arguments, variables, targets)
    try:
        value = reader.either(0)
    except (IndexError, RecursionError):
        return None
    return value if reader.at == len(arguments) else None


def names_rocm(word: str) -> bool | None:
    """Tell whether a word stands for ROCm; False where it stands for CUDA, None where it says neither."""
    rocm, nvidia = bool(_ROCM.fullmatch(word)), bool(_NVIDIA.fullmatch(word))
    return None if rocm == nvidia else rocm


def of_option(name: str, value: bool | None, *, chosen: bool) -> bool | None:
    """Return what an option is in a build for ROCm: one named for ROCm is on, others have their defaults.

    Args:
        name: Of the option.
        value: Its default.
        chosen: The project has options or branches of its own for ROCm: whoever builds for it may turn CUDA's off.
    """
    side = names_rocm(name)
    if side:
        return not _DENIES.search(name)
    return None if side is False and chosen and value is not bool(_DENIES.search(name)) else value


def negated(value: bool | None) -> bool | None:
    """Return the contrary."""
    return None if value is None else not value


def both(one: bool | None, other: bool | None) -> bool | None:
    """Return whether both hold."""
    return False if one is False or other is False else None if one is None or other is None else True


def either(one: bool | None, other: bool | None) -> bool | None:
    """Return whether one of them holds."""
    return negated(both(negated(one), negated(other)))


class _Condition:
    def __init__(
        self, arguments: Sequence[Argument], variables: Mapping[str, Sequence[Word]], targets: Collection[str]
    ) -> None:
        self.arguments = arguments
        self.variables = variables
        self.targets = targets
        self.at = 0

    def either(self, depth: int) -> bool | None:
        return self._row("OR", either, self.both, depth)

    def both(self, depth: int) -> bool | None:
        return self._row("AND", both, self.one, depth)

    def _row(
        self,
        sign: str,
        joined: Callable[[bool | None, bool | None], bool | None],
        part: Callable[[int], bool | None],
        depth: int,
    ) -> bool | None:
        value = part(depth)
        while self.at < len(self.arguments) and self._sign(self.at) == sign:
            self.at += 1
            value = joined(value, part(depth))
        return value

    def _sign(self, at: int) -> str:
        return "" if self.arguments[at].quoted else self.arguments[at].text

    def one(self, depth: int) -> bool | None:
        if depth > _DEEPEST:
            raise RecursionError
        first = self.arguments[self.at]
        word = self._sign(self.at)
        self.at += 1
        if word == "NOT":
            return negated(self.one(depth + 1))
        if word == "(":
            value = self.either(depth + 1)
            self.at += 1
            return value
        if word in {"DEFINED", "TARGET"} or word in _ASKS:
            self.at += 1
            return self._exists(word, self.arguments[self.at - 1].text)
        if self.at < len(self.arguments) and self._sign(self.at) not in {"AND", "OR", ")"}:
            self.at += 2
            return self._compared(first, self.arguments[self.at - 2].text, self.arguments[self.at - 1])
        return self._name(first)

    def _exists(self, word: str, name: str) -> bool | None:
        if word == "TARGET":
            return True if name in self.targets else None
        if word != "DEFINED":
            return None
        plain = name.removeprefix("CACHE{").removesuffix("}")
        if plain.startswith("ENV{"):
            return False
        if plain in self.variables:
            return None if any(one.doubts for one in self.variables[plain]) else True
        return None if plain.startswith("CMAKE_") or plain.endswith("_FOUND") else bool(names_rocm(plain))

    def _compared(self, left: Argument, sign: str, right: Argument) -> bool | None:
        side = names_rocm(right.text) if sign == "STREQUAL" else None
        if side is not None:  # a choice between the two, however the build is told of it
            return side
        one, other = self._text(left), self._text(right)
        if one is None or other is None:
            return None
        if sign == "STREQUAL":
            return one == other
        if sign == "EQUAL" and one.isdecimal() and other.isdecimal():
            return int(one) == int(other)
        return None

    def _text(self, argument: Argument) -> str | None:
        """Return the text of a side of a comparison; None where it is not known."""
        whole = VARIABLE.fullmatch(argument.text)
        name = whole[2] if whole and not whole["env"] else "" if argument.quoted else argument.text
        if name in self.variables:
            words = self.variables[name]
            text = ";".join(one.text for one in words)
            return None if "${" in text or any(one.doubts for one in words) else text
        return None if "$" in argument.text or name.startswith("CMAKE_") else argument.text

    def _name(self, argument: Argument) -> bool | None:
        whole = VARIABLE.fullmatch(argument.text)
        word = whole[2] if whole and not whole["env"] else argument.text
        if not whole and (value := constant(word)) is not None:
            return value
        if word in self.variables:
            words = self.variables[word]
            inner = words[0].text if whole and len(words) == 1 and not words[0].doubts else ""
            return self._value(self.variables.get(inner, words))
        if argument.quoted and not whole:
            return False
        if word in _SYSTEM:
            return _SYSTEM[word]
        side = names_rocm(word)
        if side is not None:
            return side is not bool(_DENIES.search(word))
        return None if "$" in word or word.startswith("CMAKE_") or word.endswith("_FOUND") else False

    def _value(self, words: Sequence[Word]) -> bool | None:
        if any(word.doubts for word in words):
            return None
        text = ";".join(word.text for word in words)
        return None if "${" in text else constant(text) is not False
