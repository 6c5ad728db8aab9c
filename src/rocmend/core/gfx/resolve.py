"""From the names that people use (``RX 7900 XTX``, ``strix-halo``, ``8060S``) to a gfx target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import msgspec

from rocmend.core.errors import UsageError
from rocmend.core.gfx import table
from rocmend.core.gfx.names import MAX_NAME_CHARS, parse_target_id
from rocmend.core.suggest import nearest

__all__ = ["NamedGpu", "known_names", "resolve"]

_VENDOR = frozenset(["amd", "ati", "radeon", "instinct", "ryzen", "gpu", "apu", "series", "card", "r", "tm", "plus"])
_OTHER_VENDORS = re.compile(
    r"\b(nvidia|geforce|rtx|gtx|tesla|quadro|intel|arc|iris|apple)\b|^[abhlv]\d{2,3}$", re.IGNORECASE
)
_VARIANTS = frozenset(["x", "xt", "xtx", "xtb", "gre", "le", "m", "s", "d", "mobile", "max", "pro", "extreme", "lp"])
"""A word that makes another product of the name before it: an RX 7600 M is no RX 7600."""
_TOKEN = re.compile(r"[a-z0-9]+")
_SETTINGS = re.compile(r"(?::[a-z]+[+-])+\Z")
_GENERIC_NAME = ("graphics",)
_TARGET_WITHIN = re.compile(r"\bgfx[0-9a-f]{3,4}\b")
_LEAST = 3
_LEAST_PREFIX = 4
_LONG = 24
_SHOWN = 6
_SHOWN_NAMES = 3


class NamedGpu(msgspec.Struct, frozen=True):
    """What a name stands for.

    Attributes:
        asked: The name as it was given.
        gfx: The gfx target, with settings where the name has them: ``gfx1100``, ``gfx90a:xnack-``.
        names: The products or chips that the name fits; empty where it is the target's own name.
        product: The product, by its name in the table, where the name is of one and of no other.
    """

    asked: str
    gfx: str
    names: tuple[str, ...] = ()
    product: str = ""

    @property
    def said(self) -> str:
        """What to tell who asked, ``Radeon RX 7900 XTX is gfx1100``; "" where the target's own name was given."""
        if not self.names:
            return ""
        if len(self.names) == 1 or len(self.asked) > _LONG:
            return f"{self.names[0]} is {self.gfx}"
        more = " …" if len(self.names) > _SHOWN_NAMES else ""
        shown = ", ".join(self.names[:_SHOWN_NAMES])
        return f"{self.asked.strip()} ({shown}{more}) is {self.gfx}"


class _Name(msgspec.Struct, frozen=True):
    """A name of a GPU: as it is written, its words without the maker's, and its target."""

    shown: str
    words: tuple[str, ...]
    gfx: str

    @property
    def runs(self) -> Iterator[str]:
        """Every run of its words that is long enough to be asked for, and all of them: ``Z1``."""
        count = len(self.words)
        for start in range(count):
            for end in range(start + 1, count + 1):
                run = "".join(self.words[start:end])
                if len(run) >= _LEAST or len(self.words) == end - start:
                    yield run


def resolve(name: str) -> NamedGpu:
    """Return the gfx target that a person means.

    Args:
        name: A target (``gfx1151``, ``1151``, ``gfx90a:xnack-``), or a product, processor, chip or code name, whole or
            in part. Case, spaces, hyphens and the maker's words (AMD, Radeon, Instinct, Ryzen) do not matter.

    Raises:
        UsageError: The name fits GPUs of several targets, which are listed; or none, with the nearest names.
    """
    text = name.strip().lower()
    if len(text) > MAX_NAME_CHARS:
        parse_target_id(name)  # refuses it
    settings = _SETTINGS.search(text)
    plain = text[: settings.start()] if settings else text
    suffix = settings[0] if settings else ""
    if retired := table.retired(plain):
        raise _retired(name, retired)
    own = _own_name(plain)
    if own:
        return NamedGpu(name, str(parse_target_id(own + suffix)))
    words = _words(plain)
    found = () if words == _GENERIC_NAME else _matching(words)
    targets = tuple(dict.fromkeys(item.gfx for item in found))
    if not targets:
        raise _unknown(name, words)
    if len(targets) > 1:
        raise _ambiguous(name, found, targets)
    names = tuple(dict.fromkeys(item.shown for item in found))
    return NamedGpu(name, str(parse_target_id(targets[0] + suffix)), names, _product(names, targets[0]))


def _product(names: Sequence[str], gfx: str) -> str:
    """Return the one product that all of these names are of; "" where one is a chip's, or of several products."""
    chip = table.lookup(gfx).chip
    fitting = {name: {one.name for one in table.products(gfx) if name in {one.name, *one.aliases}} for name in names}
    if any(name in chip for name in names):
        return ""
    found = set().union(*fitting.values())
    return found.pop() if len(found) == 1 and all(fitting.values()) else ""


def known_names() -> tuple[tuple[str, str, str], ...]:
    """Return what can be typed for a GPU, for completion: (word without spaces, gfx target, the name in full)."""
    rows = [(target.name, target.name, target.chip) for target in table.targets()]
    rows += [("-".join(item.words), item.gfx, item.shown) for item in _names()]
    meant: dict[str, set[str]] = {}
    for word, gfx, _ in rows:
        meant.setdefault(word, set()).add(gfx)
    return tuple({row[0]: row for row in rows if len(meant[row[0]]) == 1}.values())


def _own_name(text: str) -> str:
    """Return the target where a text is a target's own name, in any spelling; "" where it is not.

    Raises:
        UsageError: It begins as such a name does and there is no such target.
    """
    compact = re.sub(r"[\s_-]", "", text)
    if table.find(compact) is not None:
        return compact
    if table.find(f"gfx{compact}") is not None and not _matching((compact,)):
        return f"gfx{compact}"
    if text.startswith(("gfx", "amdgcn", "hip")) or not text:
        return table.lookup(text).name
    within = _TARGET_WITHIN.search(text)
    if within and table.find(within[0]) is not None:
        return within[0]
    return next((target.name for target in table.targets() if target.override_value == text), "")


def _words(text: str) -> tuple[str, ...]:
    plain = re.sub(r"\((tm|r|c)\)|™|®|\+", "", text.lower())
    return tuple(word for word in _TOKEN.findall(plain) if word not in _VENDOR)


@cache
def _names() -> tuple[_Name, ...]:
    """Return every name there is: products, their other names, chips, architectures."""
    rows: list[tuple[str, str]] = []
    for product in table.products():
        rows += [(name, product.gfx) for name in (product.name, *product.aliases)]
    rows += table.further_names()
    for target in table.targets():
        rows += [(chip, target.name) for chip in (*target.chip.split(", "), target.architecture)]
    return tuple(_Name(shown, _words(shown), gfx) for shown, gfx in dict.fromkeys(rows))


@cache
def _by_run() -> dict[str, tuple[_Name, ...]]:
    runs: dict[str, list[_Name]] = {}
    for item in _names():
        for run in dict.fromkeys(item.runs):
            runs.setdefault(run, []).append(item)
    return {run: tuple(items) for run, items in runs.items()}


def _matching(words: Sequence[str]) -> tuple[_Name, ...]:
    """Return the names that fit best: the same, with the words in them, in the words, that begin with them."""
    compact = "".join(words)
    within = _by_run().get(compact, ())
    same = tuple(item for item in within if compact == "".join(item.words))
    same = same or tuple(item for item in within if compact == "".join(_core(item.words)))
    return same or within or _inside(words) or _beginning(compact)


def _beginning(compact: str) -> tuple[_Name, ...]:
    """Return the names that begin with a series' name: ``MI300`` is the MI300X and the MI300A."""
    if len(compact) < _LEAST_PREFIX or not compact[-1].isdigit():
        return ()
    return tuple(
        item
        for item in _names()
        if (core := "".join(_core(item.words))).startswith(compact) and not core[len(compact) :][:1].isdigit()
    )


def _core(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(words[1:] if words and words[0] in {"rx", "pro"} else words)


def _inside(words: Sequence[str]) -> tuple[_Name, ...]:
    """Return the names that stand in a longer text, such as a tool prints, but for those within another of them."""
    found: dict[tuple[int, int], list[_Name]] = {}
    by_core: dict[str, list[_Name]] = {}
    for item in _names():
        core = _core(item.words)
        if len(core) > 1 or any(letter.isdigit() for word in core for letter in word):
            by_core.setdefault("".join(core), []).append(item)
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            run = "".join(words[start:end])
            followed_by_variant = end < len(words) and words[end] in _VARIANTS
            if len(run) >= _LEAST and run in by_core and not followed_by_variant:
                found[start, end] = by_core[run]
    outer = [span for span in found if not any(_holds(other, span) for other in found)]
    return tuple(item for span in outer for item in found[span])


def _holds(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


def _short(name: str) -> str:
    return name.removeprefix("Radeon ").removeprefix("Instinct ")


def _ambiguous(name: str, found: Iterable[_Name], targets: Sequence[str]) -> UsageError:
    by_target: dict[str, list[str]] = {}
    for item in found:
        by_target.setdefault(item.gfx, []).append(item.shown)
    shown = [_candidate(gfx, names) for gfx, names in list(by_target.items())[:_SHOWN]]
    more = f"; and {len(targets) - _SHOWN} more targets" if len(targets) > _SHOWN else ""
    return UsageError(
        "gfx target",
        f"{name.strip()!r} can be any of {len(targets)} gfx targets.",
        why="; ".join(shown) + more + ".",
        next_step="Name the product in full, or the target. `rocminfo | grep gfx` prints it on a machine with ROCm.",
    )


def _candidate(gfx: str, names: Sequence[str]) -> str:
    """Write a target with what of it is meant; its chip where the names alone do not tell it from the others."""
    target = table.lookup(gfx)
    own = [name for name in names if name not in {target.chip, target.architecture}]
    more = ", …" if len(own) > _SHOWN_NAMES else ""
    products = own or [item.name for item in table.products(gfx)]
    return f"{gfx} ({target.chip}: {', '.join(products[:_SHOWN_NAMES])}{more})"


def _retired(name: str, found: table.Retired) -> UsageError:
    return UsageError(
        "gfx target",
        f"{name.strip()!r} is {found.chips} ({found.gfx}), which ROCm does not support any more.",
        why=f"{found.note} Source: {found.source.url}",
        next_step="Programs with a Vulkan back end, such as llama.cpp, may run on it.",
    )


def _unknown(name: str, words: Sequence[str]) -> UsageError:
    shown = name.strip() if len(name) <= 40 else f"{name[:40]}…"
    known = {"".join(item.words): f"{_short(item.shown)} ({item.gfx})" for item in reversed(_names())}
    known |= {"".join(_core(item.words)): f"{_short(item.shown)} ({item.gfx})" for item in reversed(_names())}
    other = bool(_OTHER_VENDORS.search(name.strip()))
    near = [] if other or words == _GENERIC_NAME else nearest("".join(words), known, most=4)
    meant = f"Did you mean {' or '.join(list(dict.fromkeys(known[item] for item in near))[:3])}? " if near else ""
    generic = "It is the name that most APUs go by: the processor's name says more (`lscpu`)."
    return UsageError(
        "gfx target",
        f"{shown!r} is not an AMD GPU." if other else f"no AMD GPU that is known here is called {shown!r}.",
        why=generic if words == _GENERIC_NAME else "",
        next_step=f"{meant}`rocmend targets` lists all targets; `rocminfo | grep gfx` prints the one of this machine.",
    )
