"""The words of CMake's commands: values of variables, and generator expressions, as far as they are known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rocmend.port.build.cmake import Argument
from rocmend.port.definitions.macros import Definitions, Unknown, of_options

__all__ = ["VARIABLE", "Doubt", "Word", "constant", "definitions_of", "expanded", "words_of"]

VARIABLE = re.compile(r"\$(?P<env>ENV)?\{([\w.+/-]+)\}")
_EMPTY = re.compile(r"CMAKE_\w+|TORCH_CXX_FLAGS|OpenMP_\w+_FLAGS")
"""Variables of CMake and of packages that define none of a project's macros: empty where the project sets none."""
_MOST_NESTED = 16
_TRUE = {"1", "ON", "YES", "TRUE", "Y"}
_FALSE = {"0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND", ""}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class Doubt(NamedTuple):
    """A block of commands of which it is not known whether it is executed.

    Attributes:
        number: Of the block.
        why: What is not known, with file and line.
    """

    number: int
    why: str


class Word(NamedTuple):
    """A word of a command, or of a variable's value.

    Attributes:
        text: What it says; what is not known stands there as the file has it.
        doubts: Of the blocks that it comes from.
    """

    text: str
    doubts: tuple[Doubt, ...] = ()


def constant(text: str) -> bool | None:
    """Return what a word is that CMake takes for true or false by itself."""
    upper = text.upper()
    if upper in _TRUE:
        return True
    if upper in _FALSE or upper.endswith("-NOTFOUND"):
        return False
    return float(text) != 0 if _NUMBER.fullmatch(text) else None


def words_of(arguments: Sequence[Argument], variables: Mapping[str, Sequence[Word]]) -> list[Word]:
    """Return the words of a command with the values of variables put in."""
    words: list[Word] = []
    for argument in arguments:
        whole = VARIABLE.fullmatch(argument.text)
        if whole and not argument.quoted and not whole["env"] and whole[2] in variables:
            words += variables[whole[2]]
            continue
        text, doubts = _put_in(argument.text, variables)
        parts = [text] if argument.quoted else text.split(";")
        words += [Word(part, doubts) for part in parts if part or argument.quoted]
    return words


def _put_in(text: str, variables: Mapping[str, Sequence[Word]]) -> tuple[str, tuple[Doubt, ...]]:
    doubts: dict[Doubt, None] = {}
    for _ in range(_MOST_NESTED):
        made = VARIABLE.sub(lambda name: _value(name, variables, doubts), text)
        if made == text:
            break
        text = made
    return text, tuple(doubts)


def _value(name: re.Match[str], variables: Mapping[str, Sequence[Word]], doubts: dict[Doubt, None]) -> str:
    if name["env"] or (name[2] not in variables and _EMPTY.fullmatch(name[2])):
        return ""
    if name[2] not in variables:
        return name[0]
    for word in variables[name[2]]:
        doubts.update(dict.fromkeys(word.doubts))
    return ";".join(word.text for word in variables[name[2]])


# -- generator expressions ---------------------------------------------------------------------------------------------


def expanded(text: str, language: str) -> Iterator[tuple[str, bool]]:
    """Yield what a word with generator expressions comes to, each part with whether that is certain.

    Args:
        text: The word.
        language: That of the source: ``HIP`` or ``CXX``.
    """
    for part in _split(text, ";"):
        if not part.startswith("$<") or _closing(part, 0) != len(part):
            yield part, True  # one in the middle of a word stays in it: such a word is not known
            continue
        head, content = _parts(part[2:-1])
        holds = _holds(head, language)
        if head in {"BUILD_INTERFACE", "1"}:
            holds = True
        elif head in {"INSTALL_INTERFACE", "LINK_ONLY"}:
            holds = False
        elif head == "IF":
            condition, *both = _split(content, ",")
            chosen = _holds(condition, language)
            sides = (both[:1], both[1:2]) if chosen is None else ((both[:1] if chosen else both[1:2]),)
            for side in sides:
                yield from ((one, known and chosen is not None) for one, known in expanded("".join(side), language))
            continue
        if holds is not False:
            yield from ((one, known and holds is True) for one, known in expanded(content, language))


def _holds(text: str, language: str) -> bool | None:  # noqa: PLR0911  a case for each expression
    """Return what the condition of a generator expression comes to."""
    if text in {"0", "1"}:
        return text == "1"
    if not text.startswith("$<") or _closing(text, 0) != len(text):
        return None
    head, content = _parts(text[2:-1])
    each = _split(content, ",")
    match head:
        case "COMPILE_LANGUAGE":
            return language in each
        case "COMPILE_LANG_AND_ID":
            return language == each[0] and ("Clang" in each[1:] or (None if language == "CXX" else False))
        case "NOT":
            value = _holds(content, language)
            return None if value is None else not value
        case "AND" | "OR":
            values = [_holds(one, language) for one in each]
            decides = head == "OR"
            return decides if decides in values else None if None in values else not decides
        case "BOOL":
            return None if "$" in content else constant(content) is not False
        case "STREQUAL" if len(each) == 2 and "$" not in content:
            return each[0] == each[1]
        case _:
            return None


def _parts(text: str) -> tuple[str, str]:
    head, *rest = _split(text, ":")
    return head, ":".join(rest)


def _split(text: str, sign: str) -> list[str]:
    """Return the parts of a text between signs that are in no generator expression."""
    parts, depth, start = [], 0, 0
    for at, one in enumerate(text):
        if text.startswith("$<", at):
            depth += 1
        elif one == ">" and depth:
            depth -= 1
        elif one == sign and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _closing(text: str, at: int) -> int:
    """Return the place after the generator expression that begins at a place; -1 where it does not end."""
    depth = 0
    for here in range(at, len(text)):
        if text.startswith("$<", here):
            depth += 1
        elif text[here] == ">":
            depth -= 1
            if not depth:
                return here + 1
    return -1


# -- definitions -------------------------------------------------------------------------------------------------------


def definitions_of(
    words: Iterable[Word], place: str, language: str, within: frozenset[int], *, plain: bool
) -> Definitions:
    """Return the macros of definitions or options.

    Args:
        words: The definitions or options.
        place: The file, line and command, for those that are not known.
        language: That of the source.
        within: Numbers of the doubtful blocks within which this is asked: they are executed then.
        plain: They are macros, with ``-D`` or without.
    """
    made = Definitions({})
    for word in _joined(words):
        if word.text.count("$<") > _MOST_NESTED * 4:
            made |= Definitions({}, unknown=(Unknown("", place),))
            continue
        doubt = next((one.why for one in word.doubts if one.number not in within), "")
        for known in (True, False):
            texts = [text for text, certain in expanded(word.text, language) if certain is known]
            if not plain:
                texts = [part for text in texts for part in text.removeprefix("SHELL:").split()]
            texts = [re.sub(r"\\(.)", r"\1", text) for text in texts if text]
            one = of_options(texts, place, plain=plain)
            made |= one if known and not doubt else one.doubted(doubt or place)
    return made


def _joined(words: Iterable[Word]) -> Iterator[Word]:
    """Yield words, those together over which one generator expression goes, and ``-D`` with what it defines."""
    held: list[Word] = []
    for word in words:
        held.append(word)
        text = ";".join(one.text for one in held)
        if text in {"-D", "-U"}:
            continue
        if len(held) > 1 and held[0].text in {"-D", "-U"}:
            text = "".join(one.text for one in held)
        if text.count("$<") <= text.count(">"):
            yield Word(text, tuple(dict.fromkeys(doubt for one in held for doubt in one.doubts)))
            held = []
    yield from held
