"""The gfx-target table and the product table, read from their data files once."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.errors import UnitError, UsageError
from rocmend.core.gfx.model import GfxTarget, Product
from rocmend.core.gfx.names import parse_target_id
from rocmend.core.records import Source
from rocmend.core.suggest import unknown

_DATA = Path(__file__).parent / "data"


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_DATA / name).read_text(encoding="utf-8"))


def _with_sources(known: dict[str, Source], keys: dict[str, str]) -> dict[str, Source]:
    try:
        return {field: known[key] for field, key in keys.items()}
    except KeyError as error:
        raise UnitError("gfx table", f"cites the source {error.args[0]!r}, which the file does not define.") from None


def _target(name: str, row: dict[str, Any], document: dict[str, Any], known: dict[str, Source]) -> GfxTarget:
    """Lay a target's own values over those of its group."""
    own = dict(row)
    merged: dict[str, Any] = {"name": name} | document["group"][own.pop("group")]
    merged["sources"] = document["sources"] | merged.get("sources", {}) | own.pop("sources", {})
    merged |= own
    merged["generic_class"] = merged["generic_class"] or None
    merged["fine_grained"] = {"yes": True, "no": False}.get(merged["fine_grained"])
    merged["sources"] = _with_sources(known, merged["sources"])
    try:
        return msgspec.convert(merged, GfxTarget)
    except msgspec.ValidationError as error:
        raise UnitError("gfx table", f"{name} is not a valid target: {error}.") from error


@cache
def _targets() -> dict[str, GfxTarget]:
    document = _read("targets.toml")
    known = msgspec.convert(document["source"], dict[str, Source])
    return {name: _target(name, row, document, known) for name, row in document["target"].items()}


@cache
def _generics() -> dict[str, tuple[str, ...]]:
    members: dict[str, list[str]] = {}
    for target in _targets().values():
        if target.generic_class is not None:
            members.setdefault(target.generic_class, []).append(target.name)
    return {name: tuple(names) for name, names in members.items()}


@cache
def _by_kfd_version() -> dict[int, GfxTarget]:
    return {target.kfd_version: target for target in _targets().values()}


@cache
def _products() -> tuple[Product, ...]:
    document = _read("products.toml")
    known = msgspec.convert(document["source"], dict[str, Source])
    rows = []
    for gfx, group in document["products"].items():
        for row in group:
            cited = _with_sources(known, {key: key for key in row["sources"]})
            rows.append(row | {"gfx": gfx, "sources": tuple(cited.values())})
    try:
        return msgspec.convert(rows, tuple[Product, ...])
    except msgspec.ValidationError as error:
        raise UnitError("product table", f"is not valid: {error}.") from error


@cache
def further_names() -> tuple[tuple[str, str], ...]:
    """Return names of GPUs that no product of the table has, with their gfx targets."""
    document = _read("products.toml")
    _with_sources(msgspec.convert(document["source"], dict[str, Source]), {key: key for key in document["names"]})
    rows = [(name, gfx) for group in document["names"].values() for gfx, names in group.items() for name in names]
    for _, gfx in rows:
        if gfx not in _targets():
            raise UnitError("product table", f"gives names to {gfx}, which the target table does not hold.")
    return tuple(rows)


class Retired(msgspec.Struct, frozen=True):
    """A target that ROCm does not support any more, and that no build has code for.

    Attributes:
        gfx: Its name.
        chips: What it is called.
        names: How products of it are called, as a pattern over lower case without the maker's words.
        note: Since when.
        source: Who says so.
    """

    gfx: str
    chips: str
    names: str
    note: str
    source: Source


@cache
def _retired() -> tuple[Retired, ...]:
    return msgspec.convert(_read("retired.toml")["target"], tuple[Retired, ...])


def retired(name: str) -> Retired | None:
    """Return the target without support that a name stands for, or None."""
    plain = " ".join(re.sub(r"\b(amd|ati|radeon|instinct|gpu|series)\b|[\s_-]+|\((tm|r)\)", " ", name.lower()).split())
    return next((one for one in _retired() if plain == one.gfx or re.fullmatch(one.names, plain)), None)


def targets() -> tuple[GfxTarget, ...]:
    """Return every gfx target of the table, in the order of their ISA versions."""
    return tuple(_targets().values())


def find(name: str) -> GfxTarget | None:
    """Return the target that a name stands for, or None for one that the table does not hold (or for a generic)."""
    try:
        return _targets().get(parse_target_id(name).processor)
    except UsageError:
        return None


def lookup(name: str) -> GfxTarget:
    """Return the target that a name stands for.

    Args:
        name: ``gfx1151``, ``gfx90a:sramecc+:xnack-``, ``amdgcn-amd-amdhsa--gfx1151``; upper case too.

    Raises:
        UsageError: No such target, with the nearest names; or the name is a generic target.
    """
    processor = parse_target_id(name).processor
    found = _targets().get(processor)
    if found is not None:
        return found
    if processor in _generics():
        members = ", ".join(_generics()[processor])
        raise UsageError(
            "gfx target",
            f"{processor} is a generic target, not one GPU's.",
            why=f"Its code runs on {members}.",
            next_step="Name one of those.",
        )
    raise unknown("gfx target", "gfx target", processor, _targets(), listed="rocmend targets")


def from_kfd_version(version: int) -> GfxTarget | None:
    """Return the target with this ``gfx_target_version`` (110501 is gfx1151), or None where the table has none."""
    return _by_kfd_version().get(version)


def generic_targets() -> tuple[str, ...]:
    """Return the LLVM generic targets that some target of the table belongs to."""
    return tuple(_generics())


def generic_members(name: str) -> tuple[str, ...]:
    """Return the targets of the table that run a generic target's code.

    Args:
        name: ``gfx11-generic``, in any spelling that ``lookup`` takes.

    Raises:
        UsageError: No such generic target.
    """
    processor = parse_target_id(name).processor
    try:
        return _generics()[processor]
    except KeyError:
        known = ", ".join(_generics())
        raise UsageError(
            "gfx target", f"no generic target is called {processor!r}.", next_step=f"Known: {known}."
        ) from None


def products(gfx: str | None = None) -> tuple[Product, ...]:
    """Return the products of the table, or those of one gfx target.

    Raises:
        UsageError: No such gfx target.
    """
    if gfx is None:
        return _products()
    name = lookup(gfx).name
    return tuple(product for product in _products() if product.gfx == name)


def product_for(
    gfx: str,
    name: str | None = None,
    device_id: str | int | None = None,
    *,
    compute_units: int | None = None,
) -> Product | None:
    """Return the product that a GPU is, or None where that cannot be told.

    Args:
        gfx: The gfx target.
        name: The marketing name that a tool printed; it may carry more words than the table's.
        device_id: PCI device id: ``0x1586``, ``1586`` or 5510; with a revision ``0x744c:c8``.
        compute_units: Compute units that the driver counts; tells siblings with one device id apart.

    Returns:
        The product that most of what is given agrees with; None where two agree alike.

    Raises:
        UsageError: No such gfx target.
    """
    device = None if device_id is None else _pci_text(device_id)
    scores = [(_agreement(item, name, device, compute_units), len(item.name), item) for item in products(gfx)]
    best = max((score for score, _, _ in scores), default=0)
    if best <= 0:
        return None
    found = [(length, item) for score, length, item in scores if score == best]
    longest = max(length for length, _ in found)  # "PRO W7900 Dual Slot" also reads as "PRO W7900"
    named = [item for length, item in found if length == longest] if name else [item for _, item in found]
    return named[0] if len(named) == 1 else None


def _agreement(product: Product, name: str | None, device: str | None, compute_units: int | None) -> int:
    """Weigh what agrees: a name or count is worth two, a device id one, or two with its revision."""
    score = 2 if name and _named(product, name) else 0
    if device is not None:
        wanted, _, revision = device.partition(":")
        if revision and device in product.pci:
            score += 2
        elif wanted in product.device_ids:
            score += 1
    if compute_units is not None:
        score += 2 if product.compute_units // product.devices == compute_units else -2
    return score


def _pci_text(device_id: str | int) -> str:
    if isinstance(device_id, int):
        return f"0x{device_id:04x}"
    text = device_id.strip().lower()
    return text if text.startswith("0x") else f"0x{text}"


def _words(name: str) -> list[str]:
    return name.lower().replace("(tm)", " ").replace("(r)", " ").replace("™", " ").replace("/", " ").split()


def _named(product: Product, name: str) -> bool:
    """Whether a printed name holds all words of the product's name or of an alias, in one piece."""
    printed = f" {' '.join(_words(name))} "
    return any(f" {' '.join(_words(known))} " in printed for known in (product.name, *product.aliases))
