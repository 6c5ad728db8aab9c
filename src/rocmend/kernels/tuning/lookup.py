"""Find the tuning record for a kernel: the user's own measurements first, then the records that ship with the op."""

from __future__ import annotations

import contextlib
import functools
import itertools
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from rocmend.core.errors import UnitError
from rocmend.kernels import backends, caches
from rocmend.kernels.ops import folders
from rocmend.kernels.target import Target
from rocmend.kernels.tuning.config import Config
from rocmend.kernels.tuning.record import Record, triton_version
from rocmend.kernels.tuning.user import user_records


class Asked(NamedTuple):
    """A look-up of a tuning record, as ``observed`` keeps it."""

    op: str
    kernel: str
    shape_class: str
    config: Config


UNMEASURED = "default, not measured on this target"
_AMD = ("gfx", "wave", "amd")

_found: caches.Cache[Config] = caches.Cache(isolate=False)
_forced: dict[tuple[str, str], Config] = {}
_observed: list[Asked] | None = None


@functools.cache
def records(op: str) -> tuple[Record, ...]:
    """Return an op's own tuning records: of ``tuning.toml`` in its folder, and of its kernels in back ends.

    Raises:
        UnitError: The file is wrong, or two records say different things of the same case.
    """
    files = [path / "tuning.toml" for path in (folders().get(op), *backends.folders(op)) if path]
    found = []
    for row in [
        row
        for file in files
        if file.is_file()
        for row in tomllib.loads(file.read_text(encoding="utf-8")).get("record", [])
    ]:
        try:
            kernel, kinds, targets = row["kernel"], _each(row.get("class", "*")), _each(row.get("target", "any"))
            for kind, target in itertools.product(kinds, targets):
                name = f"{op}/tuning.toml: the record {kernel}/{kind}@{target}"
                config = Config(row["config"], row.get("source", "default"), name)
                found.append(Record(kernel, kind, target, row.get("triton", ""), config))
        except KeyError as error:
            raise UnitError("tuning", f"{op}/tuning.toml: a record lacks {error}.") from None
    keys = [record[:4] for record in found]
    if twice := {key for key in keys if keys.count(key) > 1}:
        raise UnitError("tuning", f"{op}/tuning.toml: two records for {min(twice)}.", next_step="Keep one of them.")
    return tuple(found)


def _each(names: str | list[str]) -> list[str]:
    """Return the names that a record is for: one, or several."""
    return [names] if isinstance(names, str) else names


def provenance_problem(op: str, record: Record) -> str:
    """Check the source of a record and return the problem, or an empty string.

    A record that names AMD hardware must say which model proposed it, where it was measured or who published it, or
    that it is a default that nobody measured there.
    """
    source = record.config.source
    if record.target == "any" or not record.target.startswith(_AMD):
        return ""
    if source.startswith(("model ", "run: ", UNMEASURED)) or "https://" in source:
        return ""
    return (
        f"{op}/tuning.toml: the record {record.kernel}/{record.shape_class}@{record.target} has the source {source!r}. "
        f"Say 'model VERSION (TARGET)', 'run: GPU, date, versions', a URL or {UNMEASURED!r}."
    )


def find(op: str, kernel: str, shape_class: str, target: Target) -> Config:
    """Look a record up, whatever is forced; see ``config_for``."""
    key = (op, kernel, shape_class, target)
    found = _found.get(key)
    return _found.keep(key, _search(*key)) if found is None else found


def _search(op: str, kernel: str, shape_class: str, target: Target) -> Config:
    version = triton_version()
    for source in (user_records(op), records(op)):
        for name in target.lookup:
            for wanted in (shape_class, "*"):
                for record in source:
                    if (record.kernel, record.shape_class, record.target) != (kernel, wanted, name):
                        continue
                    if not record.triton or SpecifierSet(record.triton).contains(version, prereleases=True):
                        return record.config
    raise UnitError(
        "tuning",
        f"{op} has no tuning record for kernel {kernel}, class {shape_class}, target {target.name}.",
        next_step=f'Add a record with target = "any" to the tuning.toml of {op}.',
    )


def config_for(op: str, kernel: str, shape_class: str, target: Target) -> Config:
    """Return the tuning record for a kernel: the most specific target first, then the class, then any class.

    Raises:
        UnitError: The op has no record that covers the target.
    """
    if _forced and (config := _forced.get((op, kernel))) is not None:
        return config
    config = find(op, kernel, shape_class, target)
    if _observed is not None:
        _observed.append(Asked(op, kernel, shape_class, config))
    return config


@contextlib.contextmanager
def forced(op: str, kernel: str, config: Config) -> Iterator[None]:
    """Use one record for a kernel inside, whatever the shapes: how tuning and compile checks go through records."""
    before = _forced.get((op, kernel))
    _forced[op, kernel] = config
    caches.forget()
    try:
        yield
    finally:
        caches.forget()
        if before is None:
            del _forced[op, kernel]
        else:
            _forced[op, kernel] = before


@contextlib.contextmanager
def observed() -> Iterator[list[Asked]]:
    """Keep what is looked up inside, but for forced records: tells which records a launch depends on."""
    global _observed  # noqa: PLW0603  one switch for the process: records are looked up deep inside ops
    before, _observed = _observed, []
    caches.forget()
    try:
        yield _observed
    finally:
        _observed = before
