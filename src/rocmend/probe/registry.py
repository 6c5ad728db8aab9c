"""What a probe is, and where all of them are registered."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocmend.core.errors import UsageError
from rocmend.core.registry import LoadProblem, Registry
from rocmend.core.suggest import unknown

if TYPE_CHECKING:
    from rocmend.probe.case import Case, Context

Build = Callable[["Context"], "Case"]

FLOATS = ("float32", "float16", "bfloat16")
"""The dtypes that networks are run in."""

SMOKE = "smoke"
"""The selection of one quick probe for each thing that everything else needs."""

ALIASES = {
    "fp32": "float32",
    "f32": "float32",
    "float": "float32",
    "fp16": "float16",
    "f16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "fp64": "float64",
    "f64": "float64",
    "double": "float64",
    "c64": "complex64",
    "i8": "int8",
    "i32": "int32",
    "int": "int32",
    "i64": "int64",
    "long": "int64",
}

SILENCE_S = {
    "quick": {
        "import": 180.0,
        "context": 120.0,
        "setup": 120.0,
        "compile": 120.0,
        "first-run": 120.0,
        "steady": 120.0,
        "compare": 120.0,
        "tidying": 60.0,
    },
    "library": {"first-run": 300.0, "steady": 180.0},
    "jit": {"compile": 900.0, "first-run": 900.0, "steady": 300.0},
}
"""Seconds of silence allowed in each phase by allowance class; ``quick`` is what the others start from.

First runs compile: a library's own kernels (MIOpen, rocFFT, rocSOLVER) for minutes, torch.compile and Triton up to a
quarter of an hour.
"""


@dataclass(frozen=True)
class Probe:
    """One operation that is tried.

    Attributes:
        id: Stable id, e.g. ``conv2d-forward``.
        title: What it does, in a line.
        family: Which part of a network it belongs to; the name of its file.
        dtypes: Element types that it is run in, the most important first.
        build: Makes the case; called in the child.
        needs: What has to be there: ``cuda`` (any GPU), ``two-devices``, ``triton``, ``compile``.
        allowance: Class of time allowances (see `SILENCE_S`).
        tags: What it exercises, in the words that knowledge entries are tagged with.
        smoke: It belongs to the quick selection, in its first dtype.
        slow: The kind of slow first run that it may meet, by its id among the supervisor's.
        alone: It changes its process for good (compilers, process groups), and gets one of its own.
    """

    id: str
    title: str
    family: str
    dtypes: tuple[str, ...]
    build: Build
    needs: tuple[str, ...] = ()
    allowance: str = "quick"
    tags: tuple[str, ...] = ()
    smoke: bool = False
    slow: str = ""
    alone: bool = False

    def silence_s(self) -> dict[str, float]:
        """Return the silence that each phase is allowed, in seconds."""
        return SILENCE_S["quick"] | SILENCE_S[self.allowance]


registry: Registry[Probe] = Registry("probe", "rocmend.probe.catalogue")


@dataclass(frozen=True)
class Family:
    """A family of probes: what a file of the catalogue registers its probes with.

    Attributes:
        name: Its name, that of the file.
        tags: Tags of every probe of it.
        allowance: Time allowances of its probes.
        slow: The kind of slow first run that its probes may meet.
        alone: Its probes change their process for good, and get one of their own.
    """

    name: str
    tags: tuple[str, ...] = ()
    allowance: str = "quick"
    slow: str = ""
    alone: bool = False

    def probe(  # noqa: PLR0913  each but the first two has a default
        self,
        probe_id: str,
        title: str,
        dtypes: tuple[str, ...] = FLOATS,
        *,
        needs: tuple[str, ...] = (),
        tags: tuple[str, ...] = (),
        allowance: str = "",
        smoke: bool = False,
    ) -> Callable[[Build], Build]:
        """Return a decorator that registers the function that builds a probe's case.

        Raises:
            UnitError: The id is taken.
        """

        def decorate(build: Build) -> Build:
            made = Probe(
                probe_id,
                title,
                self.name,
                dtypes,
                build,
                needs,
                allowance or self.allowance,
                tuple(dict.fromkeys((*self.tags, *tags))),
                smoke,
                self.slow,
                self.alone,
            )
            registry.register(probe_id)(made)
            return build

        return decorate


def probes() -> list[Probe]:
    """Return all probes by family and id."""
    return sorted((probe for _, probe in registry), key=lambda probe: (probe.family, probe.id))


def problems() -> list[LoadProblem]:
    """Return the modules of the catalogue that could not be loaded."""
    registry.load()
    return registry.problems


def dtype_name(text: str) -> str:
    """Return torch's name of a dtype that may be given by a common short name, e.g. ``bf16``."""
    return ALIASES.get(text.lower(), text.lower())


def select(patterns: Sequence[str] = (), dtypes: Sequence[str] = ()) -> list[tuple[Probe, str]]:
    """Return the probes asked for, each with one of its dtypes.

    Args:
        patterns: Ids or globs over ids, families, tags, or ``smoke``; none for all.
        dtypes: Only these; none for all. A pattern may name one itself: ``matmul:float16``.

    Raises:
        UsageError: A pattern or a dtype fits nothing.
    """
    known = probes()
    wanted = {dtype_name(dtype) for dtype in dtypes}
    _check_dtypes(wanted, known)
    chosen: dict[tuple[str, str], tuple[Probe, str]] = {}
    for pattern in patterns or ("*",):
        found = list(_fitting(pattern, known))
        if not found:
            names = dict.fromkeys((SMOKE, *(name for probe in known for name in (probe.family, *probe.tags, probe.id))))
            raise unknown("probe", "probe, family or tag", pattern, names, listed="rocmend probe --list")
        chosen.update({(probe.id, dtype): (probe, dtype) for probe, dtype in found if not wanted or dtype in wanted})
    order = {probe.id: place for place, probe in enumerate(known)}
    pairs = sorted(chosen.values(), key=lambda pair: (order[pair[0].id], pair[0].dtypes.index(pair[1])))
    if not pairs:
        raise UsageError(
            "probe", "no probe selected runs in that dtype.", next_step="`rocmend probe --list` says which do."
        )
    return pairs


def _check_dtypes(wanted: set[str], known: Iterable[Probe]) -> None:
    there = {dtype for probe in known for dtype in probe.dtypes}
    for dtype in sorted(wanted - there):
        raise unknown("probe", "dtype of a probe", dtype, sorted(there))


def _fitting(pattern: str, known: Iterable[Probe]) -> Iterable[tuple[Probe, str]]:
    name, _, dtype = pattern.partition(":")
    for probe in known:
        if name == SMOKE:
            if probe.smoke:
                yield probe, probe.dtypes[0]
        elif name in {probe.family, *probe.tags} or fnmatch.fnmatchcase(probe.id, name):
            yield from ((probe, each) for each in probe.dtypes if not dtype or each == dtype_name(dtype))
