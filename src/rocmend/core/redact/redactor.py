"""Replacing what identifies a person or a machine in texts, files and JSON values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rocmend.core.redact.names import NAMES, words
from rocmend.core.redact.numbers import NUMBERS, serial
from rocmend.core.redact.places import GROUPS, Places, Rule, joined
from rocmend.core.redact.secrets import SECRETS, secret_value
from rocmend.core.secrets import is_secret_name, is_secret_option

_MAX_ROUNDS = 10  # one replaces, one finds nothing more; text glued together by chance takes a few

_SHORT_CHARS = 300
"""Results of shorter lines are kept: facts, records and logs say the same thing many times."""
_MOST_KEPT = 50_000

_IDENTIFYING_FILE = re.compile(
    r"(?:^|/)(?:unique_id|serial(?:_?number)?|(?:product|board|chassis)_(?:serial|asset_tag)|product_uuid|machine-id|boot_id"
    r"|hostname|wwid|eui|nguid|uuid|fru_id|pcie_bw_serial|board_serial)\Z"
)
"""Files that hold nothing but what identifies. Source: Documentation/ABI in the kernel, machine-id(5), hostname(5)"""
_EDID = b"\x00\xff\xff\xff\xff\xff\xff\x00"
_SERIAL_NAME = re.compile(
    r"(?i)(?:^|[ _.-])(?:serial(?:[ _-]?(?:number|no|num|short))?|s/n|unique[ _]?id|(?:service|asset)[ _-]?tag"
    r"|fru_?id)\Z"
)
_QUAD = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?:[:/]\d{1,5})?")
_CONTEXTS = tuple(
    (re.compile(rf"(?i)(?:^|[ _.-])(?:{named})\Z"), re.compile(formed), before)
    for named, formed, before in (
        (r"host[ _-]?name|node[ _-]?name|computer[ _-]?name|fqdn", r"[A-Za-z0-9][\w.-]{0,252}", "hostname="),
        (r"user_?name|logname|sudo_user|login|user", r"[^\W\d][\w.-]{0,63}", "username="),
        (r"(?:\w*version|release|ver)(?:[ _.-]\w+)?", r"\d.*", "version "),
        (r"display", r".*", "DISPLAY="),
        (r"rd\.(?:luks|lvm|md|dm)[\w.]*|resume|cryptdevice|nfsroot|systemd\.machine_id", r"\S+", "rd.luks.uuid="),
        (r"host|addr(?:ess)?|ip|server|gateway|dns|proxy|peer|listen|bind|endpoint|url", _QUAD.pattern, "address "),
        (
            r"packages?\.[\w.-]+|versions?\.[\w.-]+|nvidia-[\w-]+|cu(?:dnn|blas|fft|sparse|rand|solver)",
            r"\d.*",
            "version ",
        ),
    )
)
"""What a value's name, together with its form, says about it, and the words that say so in a text."""

_FIELD = re.compile(r"[a-z][A-Za-z0-9]*(?:_[a-z0-9]+)*")
"""Keys as programs name their fields."""

_OF_VERSIONS = frozenset({"packages", "versions"})
"""What holds versions by name."""
_GENERAL = frozenset({"value", "raw", "text", "values", "current", "default"})
"""Keys that say nothing about a value; what they belong to does."""


class Redactor(Places):
    """Replaces identifying text; remembers what it replaced, so that one thing keeps one placeholder.

    Args:
        hosts: The machine's names; a fully qualified one also stands for its first part.
        users: Names of people and of their accounts.

    Attributes:
        replaced: How many different things of each kind were replaced.
    """

    def __init__(self, *, hosts: Iterable[str] = (), users: Iterable[str] = (), kept: Collection[str] = ()) -> None:
        super().__init__(hosts=hosts, users=users, kept=kept)
        known = words(self.kinds, kept)
        self._done: dict[str, str] = {}
        rules = (*SECRETS, *NAMES, *NUMBERS, *([known] if known else []))
        self._over_lines = [rule for rule in rules if rule.lines]
        self._rules = [rule for rule in rules if not rule.lines]
        self._key_rules = [rule for rule in self._rules if rule is not known]
        self._kept = kept
        self._learned_rules: list[Rule] = []
        self._rules_for = 0
        self._needed = tuple({need for rule in rules for need in rule.needs})

    def text(self, text: str) -> str:
        """Replace everything that identifies, until nothing changes any more: a result is stable."""
        made = text
        for _ in range(_MAX_ROUNDS):
            before = made
            made = self._once(made, self._over_lines)
            made = "\n".join(map(self._line, made.split("\n")))
            made = self._once(made, self._of_learned())
            if made == before:
                break
        return made

    def _of_learned(self) -> list[Rule]:
        """Return the rule for names that texts have told so far."""
        if len(self.learned) != self._rules_for:
            self._rules_for = len(self.learned)
            rule = words(self.learned, self._kept)
            self._learned_rules = [rule] if rule else []
        return self._learned_rules

    def _line(self, line: str) -> str:
        """Replace in a line: a rule costs something only on lines that hold what it needs."""
        if line in self._done:
            return self._done[line]
        made = line
        for _ in range(_MAX_ROUNDS):
            before, made = made, self._once(made, self._rules)
            if made == before:
                break
        if len(line) <= _SHORT_CHARS:
            if len(self._done) >= _MOST_KEPT:
                self._done.clear()
            self._done[line] = self._done[made] = made
        return made

    def _once(self, text: str, rules: Sequence[Rule]) -> str:
        lower = text.lower()
        missing = frozenset([need for need in self._needed if need not in lower])
        for pattern, replace, needs, _ in rules:
            if not needs or not missing.issuperset(needs):
                text = pattern.sub(lambda match, replace=replace: replace(self, match), text)  # type: ignore[misc]
        return text

    def path(self, path: str) -> str:
        """Replace what identifies in a path of the machine."""
        return self.text(path)

    def field(self, name: str, value: str) -> str:
        """Replace what identifies in the value of a variable, a field or a setting, which its name says more about."""
        if is_secret_name(name):
            return secret_value(self, value)
        if _SERIAL_NAME.search(name) and re.fullmatch(r"[\w.-]{3,80}", value):
            return serial(self, value)
        for named, formed, before in _CONTEXTS:
            if named.search(name) and formed.fullmatch(value):
                return self.text(before + value)[len(before) :]
        return self.text(value)

    def file(self, path: str, data: bytes) -> bytes:
        """Replace what identifies in a file's contents; of some files that is all that they hold."""
        if data.startswith(_EDID):
            self.zeros(data.hex())
            return _EDID + bytes(120)
        held = data.strip()
        if _IDENTIFYING_FILE.search(path) and held and b"\n" not in held:
            name = "hostname" if path.endswith("hostname") else "serial"
            text = held.decode(errors="replace")
            made = self.text(text)
            return (self.field(name, text) if made == text else made).encode(errors="replace") + b"\n"
        return self.data(data)

    def data(self, data: bytes) -> bytes:
        """Replace what identifies in bytes."""
        return self.text(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def json(self, value: Any, name: str = "") -> Any:
        """Replace what identifies in every text of a JSON value, keys included.

        Args:
            value: A JSON value.
            name: What it is called; of the items of an object this is their key.
        """
        if isinstance(value, str):
            return self.field(name, value) if name else self.text(value)
        if isinstance(value, Mapping):
            named = value.get("name") or value.get("key") if "value" in value else None
            outer = named if isinstance(named, str) else name
            inside = f"{name}." if name in _OF_VERSIONS else ""
            return {
                self._key(str(key)): self.json(item, outer if str(key) in _GENERAL else f"{inside}{key}")
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return self._items(value, name)
        if isinstance(value, int) and not isinstance(value, bool) and _SERIAL_NAME.search(name):
            made = serial(self, str(value))
            return int(made) if made.isdecimal() else made
        return value

    def _key(self, key: str) -> str:
        """Replace in the key of an object; a name that is no whole word of a field's name is not looked for in it."""
        if _FIELD.fullmatch(key) and self.kinds.keys().isdisjoint((joined(key), *key.split("_"))):
            return self._once(key, self._key_rules)
        return self.text(key)

    def _items(self, items: Sequence[Any], name: str) -> list[Any]:
        """Replace in a list; in one of a command's words, an option may say what the next one is."""
        made = []
        for number, item in enumerate(items):
            before = items[number - 1] if number else None
            if isinstance(item, str) and isinstance(before, str) and is_secret_option(before):
                made.append(secret_value(self, item) if not item.startswith("-") else self.text(item))
            else:
                made.append(self.json(item, name))
        return made

    def told(self) -> str:
        """Return what was replaced, in words: ``2 names, 3 addresses``; ``nothing`` where there was nothing."""
        counts: dict[str, int] = {}
        for kind, count in self.replaced.items():
            group = GROUPS.get(kind, kind)
            counts[group] = counts.get(group, 0) + count
        singular = {
            "names": "name",
            "addresses": "address",
            "secrets": "secret",
            "serial numbers and ids": "serial number or id",
        }
        order = ("names", "addresses", "serial numbers and ids", "secrets")
        return (
            ", ".join(
                f"{counts[group]} {group if counts[group] > 1 else singular[group]}"
                for group in order
                if group in counts
            )
            or "nothing"
        )
