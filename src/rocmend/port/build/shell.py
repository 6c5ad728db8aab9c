"""Shell scripts and commands within other files: words with places, and lines that can be put behind a condition.

Enough of POSIX sh and bash is read to tell commands, words, quotes, comments and here-documents apart; nothing is run
or expanded.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rocmend.port.nesting import MOST_NESTED, NestingError

__all__ = ["Command", "Script", "Word", "script"]


class Word(NamedTuple):
    """A word of a command.

    Attributes:
        text: As it is written.
        value: Without quotes and backslashes.
        start: Of the word.
        end: After it.
    """

    text: str
    value: str
    start: int
    end: int


class Command(NamedTuple):
    """A simple command.

    Attributes:
        words: Its words, assignments before it included; reserved words (``if``, ``then``, ``!`` …) left out.
        start: Of the first word.
        end: After the last word.
        statement: The place of the lines that it stands on, with the commands joined to it.
        alone: Whether those lines can be put behind a condition as they are.
        settled: Whether it stands in an if-chain that already tells ROCm and CUDA apart.
        inner: Whether it stands within ``$(…)`` or backquotes.
    """

    words: tuple[Word, ...]
    start: int
    end: int
    statement: tuple[int, int] = (0, 0)
    alone: bool = False
    settled: bool = False
    inner: bool = False

    @property
    def assignments(self) -> tuple[Word, ...]:
        """Return the assignments before the command's name."""
        count = 0
        while count < len(self.words) and _ASSIGNS.match(self.words[count].text):
            count += 1
        return self.words[:count]

    @property
    def name(self) -> str:
        """Return the command's name without its folder; empty where there are assignments only."""
        rest = self.words[len(self.assignments) :]
        return rest[0].value.rpartition("/")[2] if rest else ""

    @property
    def arguments(self) -> tuple[Word, ...]:
        """Return the words after the command's name."""
        return self.words[len(self.assignments) + 1 :]


class Script(NamedTuple):
    """The commands of a piece of shell, in the order of their places."""

    commands: tuple[Command, ...]


_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_RESERVED = {
    "if",
    "then",
    "elif",
    "else",
    "fi",
    "for",
    "while",
    "until",
    "do",
    "done",
    "case",
    "esac",
    "{",
    "}",
    "!",
    "function",
    "time",
    "in",
    "select",
}
_ROCM = re.compile(
    r"(?<![A-Za-z])(?:[A-Za-z]*_)?(?:ROCM|HIP|rocm|hip|rocminfo|rocm-smi|amd-smi|hipcc|kfd|AMD|amd)(?![A-Za-z])"
)
_HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\2")
_OPERATOR = re.compile(r"&&|\|\||;;&?|\|&?|;|&(?!>)|\(|\)|\r?\n")


class _Statement:
    """The commands of one logical line, as they are read.

    Attributes:
        words: Of the command being read.
        begun: Where the line begins.
        first: Index of its first command.
        plain: Whether nothing but commands stands on it.
        joined: Whether an operator asks for more after the line's end.
        nesting: Parentheses that are open.
        chains: The if-chains that are open: index of their first command, and whether a condition names ROCm.
    """

    def __init__(self, at: int, *, inner: bool) -> None:
        self.words: list[Word] = []
        self.begun = at
        self.first = 0
        self.plain = True
        self.joined = False
        self.nesting = 0
        self.chains: list[tuple[int, bool]] = []
        self.inner = inner

    def end_command(self, commands: list[Command]) -> None:
        """Make a command of the words."""
        kept = self.words
        self.words = []
        begins = next((number for number, word in enumerate(kept) if word.text not in _RESERVED), len(kept))
        first, kept = kept[:begins], kept[begins:]
        names_rocm = bool(first) and any(_ROCM.search(word.text) for word in kept)
        for reserved in (word.text for word in first):
            self.plain = self.plain and reserved in {"time", "!"}  # these may stand behind a condition as well
            if reserved == "if":
                self.chains.append((len(commands), False))
                if len(self.chains) > MOST_NESTED:
                    raise NestingError("conditionals")
            elif reserved == "fi" and self.chains:
                since, rocm = self.chains.pop()
                if rocm:
                    commands[since:] = [one._replace(settled=True) for one in commands[since:]]
            elif reserved in {"for", "case", "select", "function"}:
                return
            if reserved in {"if", "elif"} and self.chains and names_rocm:
                self.chains[-1] = (self.chains[-1][0], True)
        if kept:
            commands.append(Command(tuple(kept), kept[0].start, kept[-1].end, inner=self.inner))

    def end(self, at: int, commands: list[Command]) -> None:
        """Give the line's commands its place."""
        alone = self.plain and not self.inner and self.nesting == 0
        for number in range(self.first, len(commands)):
            commands[number] = commands[number]._replace(statement=(self.begun, at), alone=alone)
        self.first = len(commands)
        self.plain = True
        self.joined = False

    def operator(self, sign: str) -> None:
        """Take note of an operator that is no line end."""
        self.joined = sign in {"&&", "||", "|", "|&"}
        if sign in "()":
            self.nesting = max(self.nesting + (1 if sign == "(" else -1), 0)
        if sign in {"(", ")"} or sign.startswith(";;"):
            self.plain = False


class _Reader:
    """Reads one piece of shell.

    Args:
        text: The file.
        end: Where the piece ends.
        make: Whether it stands in a Makefile: there ``$(…)`` is make's, and ``$$`` the shell's ``$``.
        depth: How many substitutions it stands within.
    """

    def __init__(self, text: str, end: int, *, make: bool, depth: int = 0) -> None:
        self.text = text
        self.end = end
        self.make = make
        self.depth = depth
        self.commands: list[Command] = []
        self.pending: list[tuple[str, bool]] = []

    def read(self, at: int) -> None:
        """Read commands up to the end."""
        line = _Statement(at, inner=self.depth > 0)
        while (at := self._blank(at)) < self.end:
            if self.text[at] == "#" and not (line.words and line.words[-1].end == at):
                stop = self.text.find("\n", at, self.end)
                at = self.end if stop < 0 else stop - (self.text[stop - 1] == "\r")
            elif operator := _OPERATOR.match(self.text, at, self.end):
                had = bool(line.words)
                line.end_command(self.commands)
                if not operator.group().endswith("\n"):
                    line.operator(operator.group())
                elif not line.joined or had:
                    line.end(at, self.commands)
                at = operator.end()
                if operator.group().endswith("\n"):
                    at = self._heredocs(at)
            else:
                at = self._more(at, line)
        line.end_command(self.commands)
        line.end(min(at, self.end), self.commands)

    def _more(self, at: int, line: _Statement) -> int:
        """Read a word or the announcement of a here-document; return the place after it."""
        if not line.words and not line.joined and line.first == len(self.commands):
            line.begun = at
        heredoc = _HEREDOC.match(self.text, at, self.end)
        if heredoc and not self.text.startswith("<<<", at):
            self.pending.append((heredoc.group(3), bool(heredoc.group(1))))
            line.plain = False
            return heredoc.end()
        word = self._word(at)
        line.words.append(word)
        return max(word.end, at + 1)

    def _blank(self, at: int) -> int:
        while at < self.end:
            if self.text[at] in " \t":
                at += 1
            elif self.text.startswith("\\\n", at):
                at += 2
            elif self.text.startswith("\\\r\n", at):
                at += 3
            else:
                break
        return at

    def _heredocs(self, at: int) -> int:
        """Return the place after the here-documents that were announced."""
        for name, tabs in self.pending:
            while at < self.end:
                line = self.text.find("\n", at, self.end)
                stop = self.end if line < 0 else line
                written = self.text[at:stop].rstrip("\r")
                at = stop + (line >= 0)
                if (written.lstrip("\t") if tabs else written) == name:
                    break
        self.pending.clear()
        return at

    def _word(self, start: int) -> Word:
        at = start
        value: list[str] = []
        while at < self.end:
            sign = self.text[at]
            if sign in " \t\n\r;&|()" and not (sign == "&" and value and value[-1] in "<>"):
                break
            if sign in "<>" and value and value[-1] not in "<>&" and not "".join(value).isdigit():
                break
            if sign == "\\":
                if self.text.startswith(("\\\n", "\\\r\n"), at):
                    break
                value.append(self.text[at + 1 : at + 2])
                at += 2
            elif sign == "'":
                close = self.text.find("'", at + 1, self.end)
                close = self.end if close < 0 else close
                value.append(self.text[at + 1 : close])
                at = close + 1
            elif sign == '"':
                at = self._double(at + 1, value)
            elif sign in "$`":
                at = self._dollar(at, value)
            else:
                value.append(sign)
                at += 1
        at = max(min(at, self.end), start + 1)
        return Word(self.text[start:at], "".join(value), start, at)

    def _double(self, at: int, value: list[str]) -> int:
        while at < self.end and self.text[at] != '"':
            if self.text[at] == "\\":
                value.append(self.text[at + 1 : at + 2])
                at += 2
            elif self.text[at] in "$`":
                at = self._dollar(at, value)
            else:
                value.append(self.text[at])
                at += 1
        return at + 1

    def _dollar(self, at: int, value: list[str]) -> int:
        """Read an expansion; commands within it are read as well."""
        start = at
        if self.text[at] == "`":
            close = self.text.find("`", at + 1, self.end)
            close = self.end if close < 0 else close
            self._inner(at + 1, close)
            at = close + 1
        else:
            dollars = "$$" if self.make and self.text.startswith("$$", at) else "$"
            after = at + len(dollars)
            sign = self.text[after : after + 1]
            if sign == "(" and self.text.startswith("((", after):
                close = self.text.find("))", after, self.end)
                at = self.end if close < 0 else close + 2
            elif sign == "(":
                close = self._closed(after, "(", ")")
                if not self.make or dollars == "$$":
                    self._inner(after + 1, close - 1)
                at = close
            elif sign == "{":
                at = self._closed(after, "{", "}")
            else:
                at = after
        value.append(self.text[start:at])
        return at

    def _inner(self, start: int, end: int) -> None:
        if self.depth > 16 or end <= start:
            return
        reader = _Reader(self.text, end, make=self.make, depth=self.depth + 1)
        reader.read(start)
        self.commands += reader.commands

    def _closed(self, at: int, opening: str, closing: str) -> int:
        """Return the place after the sign that closes the one at a place."""
        depth = 0
        quote = ""
        while at < self.end:
            sign = self.text[at]
            if sign == "\\" and quote != "'":
                at += 2
                continue
            if quote:
                quote = "" if sign == quote else quote
            elif sign in "'\"":
                quote = sign
            elif sign == opening:
                depth += 1
            elif sign == closing:
                depth -= 1
                if depth == 0:
                    return at + 1
            at += 1
        return self.end


def script(text: str, start: int, end: int, *, make: bool = False) -> Script:
    """Return the commands of a piece of shell.

    Args:
        text: The file.
        start: Where the piece begins.
        end: Where it ends.
        make: Whether it is a Makefile's recipe.
    """
    reader = _Reader(text, end, make=make)
    reader.read(start)
    ordered = sorted(reader.commands, key=lambda one: one.start)
    return Script(tuple(ordered))
