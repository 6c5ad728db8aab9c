"""What was replaced, and by which placeholder: the same thing always by the same one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from rocmend.core.redact.words import GENERIC_NAMES, KNOWN_GROUPS, REDACTED

_PLACEHOLDER = re.compile(
    r"(?i)redacted|(?:user|host|group|person|serial-|name-|label-|network-|id-)\d+|(?:person\d+|redacted)@example\.invalid"
)

GROUPS = {
    "user": "names",
    "host": "names",
    "group": "names",
    "email": "names",
    "name": "names",
    "network": "names",
    "label": "names",
    "ip address": "addresses",
    "mac address": "addresses",
    "uuid": "serial numbers and ids",
    "serial number": "serial numbers and ids",
    "machine id": "serial numbers and ids",
    "device id": "serial numbers and ids",
    "id": "serial numbers and ids",
    "secret": "secrets",
}
"""Each kind of thing, and what a report calls it."""


Replace = Callable[["Places", re.Match[str]], str]
"""Returns what stands in the place of a match; what it returns must be left alone the next time."""


class LazyPattern:
    """A pattern that is compiled where it is needed first: few of them ever are, and all take 70 ms."""

    __slots__ = ("_compiled", "_flags", "_text")

    def __init__(self, text: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._text, self._flags = text, flags
        self._compiled: re.Pattern[str] | None = None

    def sub(self, replace: Callable[[re.Match[str]], str], text: str) -> str:
        """Return the text with every match replaced."""
        if self._compiled is None:
            self._compiled = re.compile(self._text, self._flags)
        return self._compiled.sub(replace, text)


class Rule(NamedTuple):
    """One kind of text to replace.

    Attributes:
        pattern: Finds it; linear in the text's length.
        replace: Returns what stands in its place.
        needs: Lower-case texts, one of which is in every text that holds it; empty where there is no such thing.
        lines: It may go over several lines.
    """

    pattern: LazyPattern
    replace: Replace
    needs: tuple[str, ...] = ()
    lines: bool = False


def is_placeholder(text: str) -> bool:
    """Tell whether a text is one of ours."""
    return _PLACEHOLDER.fullmatch(text) is not None


class Places:
    """Placeholders given so far.

    Args:
        hosts: The machine's names; a fully qualified one also stands for its first part.
        users: Names of people and of their accounts.
        kept: Words, in lower case, that are taken for a name only where they stand as a host, an account or a home.
    """

    def __init__(self, *, hosts: Iterable[str] = (), users: Iterable[str] = (), kept: Collection[str] = ()) -> None:
        self._known: dict[str, dict[str, str]] = {}
        names = {part for host in hosts for part in (host, host.partition(".")[0]) if part}
        words = dict.fromkeys(names, "host") | {name: "user" for name in users if name}
        self._kept_names = {joined(word) for word in kept}
        self.kinds = {joined(name): kind for name, kind in words.items() if self._is_telling(name)}
        self.learned: dict[str, str] = {}

    def _is_telling(self, name: str) -> bool:
        """Whether a name is looked for wherever it stands: it is no common word, and no placeholder."""
        common = name.lower() in GENERIC_NAMES or joined(name) in self._kept_names
        return not common and len(name) > 2 and not name.isdigit() and not is_placeholder(name)

    def learn(self, host: str) -> None:
        """Look for a host's name everywhere from now on: a log says that it is one."""
        for name in (host, host.partition(".")[0]):
            if self._is_telling(name) and joined(name) not in self.kinds:
                self.learned[joined(name)] = "host"

    @property
    def replaced(self) -> dict[str, int]:
        """Number of different things replaced, by kind."""
        return {kind: len(known) for kind, known in sorted(self._known.items()) if known}

    def place(self, kind: str, found: str, form: str) -> str:
        """Return the placeholder of ``found``; one that is a placeholder already stays."""
        if is_placeholder(found):
            return found
        known = self._known.setdefault(kind, {})
        return known.setdefault(found, form.format(number=len(known) + 1))

    def number(self, kind: str, found: str) -> int:
        """Return the number of a thing among those of its kind."""
        known = self._known.setdefault(kind, {})
        return int(known.setdefault(found.lower(), str(len(known) + 1)))

    def secret(self, value: str) -> str:
        """Replace a password, key or token; all of them look the same afterwards."""
        if not is_placeholder(value):
            self._known.setdefault("secret", {})[value] = REDACTED
        return REDACTED

    def host(self, name: str) -> str:
        """Replace a host name."""
        short = name.partition(".")[0]
        if re.fullmatch(r"host\d+|localhost|ip-redacted", short):
            return name
        return self.place("host", joined(short), "host{number}")

    def user(self, name: str) -> str:
        """Replace an account's name; root stays."""
        return name if name in {"", "root", "nobody"} else self.place("user", joined(name), "user{number}")

    def group(self, name: str) -> str:
        """Replace a group's name, unless systems have such a group of themselves or it is a number."""
        if not name or name in KNOWN_GROUPS | GENERIC_NAMES or name.isdigit():
            return name
        if re.fullmatch(r"(?:group|user)\d+", name):
            return name
        if self.kinds.get(joined(name)) == "user":
            return self.user(name)
        return self.place("group", name, "group{number}")

    def named(self, kind: str, found: str) -> str:
        """Replace a name of another kind: of a network, a label, a namespace."""
        return self.place(kind, found.strip(), f"{kind}-{{number}}")

    def digits(self, kind: str, found: str, form: str) -> str:
        """Return a placeholder of digits in the form of ``found``; zeros, and placeholders, stay."""
        digits = re.sub(r"[^0-9A-Fa-f]", "", found)
        return found if re.fullmatch(r"0+\d{0,4}", digits) else form.format(self.number(kind, found))

    def zeros(self, block: str) -> str:
        """Replace the digits of a long block of hexadecimal numbers by zeros."""
        made = re.sub(r"[0-9A-Fa-f]", "0", block)
        if made != block:
            self.number("serial number", re.sub(r"\s", "", block)[:64])
        return made


def joined(name: str) -> str:
    """Return a name as it is compared: whatever its case, and whatever joins its parts."""
    return re.sub(r"[\s._-]+", "-", name.casefold())
