"""What compiling translation units came to, as evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rocmend.codeobject.hip import Failure, HipFailure, HipObject, Syntax, findings
from rocmend.codeobject.hip import Level as DiagnosticLevel
from rocmend.codeobject.hip.headers import STAND_INS, how_to_get, is_of_nvidia
from rocmend.core.gfx import lookup
from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.definitions.macros import Definitions
from rocmend.port.nesting import NestingError
from rocmend.port.verify.records import Evidence, Outcome
from rocmend.port.verify.units import Unit

__all__ = ["SAYS_NOTHING", "Made", "Way", "told"]

_MACRO = re.compile(r"(?:undeclared identifier|unknown type name) '[A-Z][A-Z0-9_]+'")
_LACKING = re.compile(
    r"(?:undeclared identifier|no member named|no matching|unknown type name|no type named|no template)\b[^']*"
    r"'[^']*(?:half|bfloat|bf16|__h[a-z]+\d?\b|\bh2?[a-z]+\b|Complex|group|tile|partition|coalesced|HIP_"
    r"|hip(?:blas|sparse|solver|cub|rand|_fp8)|HIP(?:BLAS|SPARSE|SOLVER|CUB|RAND)|fp8)"
    r"|no (?:member|type|template)\b.* in (?:namespace )?'(?:hipcub|thrust)\b"
)
"""Errors that a header gives which lacks a name, for names of the kinds that rocmend's own headers have."""

SAYS_NOTHING = {Failure.TIMED_OUT, Failure.UNREADABLE, Failure.OUT_OF_MEMORY}
"""Reasons that are not the source's."""

_SHOWN = 3


class Way(NamedTuple):
    """How a unit is compiled.

    Args:
        unit: The unit.
        target: The gfx target; empty for the host's side.
        macros: What its build defines.
        unsure: Why it is not known what that is; empty where it is known, as far as the unit asks for it.
        several: Whether several builds compile it.
    """

    unit: Unit
    target: str
    macros: Definitions
    unsure: str
    several: bool


class Made(NamedTuple):
    """What one unit came to for one target.

    Args:
        way: How it was compiled.
        result: The code object, or why there is none.
        elsewhere: The first file that errors are in, where all of them are in headers of others; empty otherwise.
    """

    way: Way
    result: HipObject | HipFailure | Syntax
    elsewhere: str = ""

    @property
    def unit(self) -> Unit:
        """Return the unit."""
        return self.way.unit

    @property
    def target(self) -> str:
        """Return the gfx target; empty for the host's side."""
        return self.way.target


def told(made: Sequence[Made], sources: Mapping[str, bytes]) -> tuple[dict[str, tuple[str, ...]], list[Evidence]]:
    """Return the units that wait for headers which are not installed, each with those, and all evidence.

    Args:
        made: What was compiled.
        sources: The project's, by path.
    """
    absent = _absent(made)
    unsure = _undecided(made, sources)
    evidence = [one for each in made if each.unit.path not in absent for one in _evidence(each, unsure)]
    evidence += _missing(absent)
    evidence += (Evidence(path, Outcome.UNKNOWN, f"it compiles, but {why}.") for path, why in unsure.items())
    evidence += [_stand_ins(made)] if any(one.result.stand_ins for one in made) else []
    return absent, evidence


def _absent(made: Sequence[Made]) -> dict[str, tuple[str, ...]]:
    """Return the units of which nothing can be said because headers are not installed, each with those headers."""
    lacking: dict[str, set[str]] = {}
    decided: set[str] = set()
    for one in made:
        failure = one.result if isinstance(one.result, HipFailure) else None
        headers = failure.missing_headers if failure and failure.reason is Failure.MISSING_HEADER else ()
        if headers and (one.elsewhere or not any(is_of_nvidia(header) for header in headers)):
            lacking.setdefault(one.unit.path, set()).update(headers)
        elif failure is not None:
            decided.add(one.unit.path)
    return {path: tuple(sorted(names)) for path, names in lacking.items() if path not in decided}


def _missing(absent: Mapping[str, tuple[str, ...]]) -> list[Evidence]:
    """Say once of each header that is not installed how to get it, and which units wait for it."""
    units: dict[str, list[str]] = {}
    for path, headers in absent.items():
        for header in headers:
            units.setdefault(header, []).append(path)
    found = []
    for header, paths in sorted(units.items()):
        shown = ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
        detail = f"{how_to_get(header)} It is needed by {shown}."
        found.append(Evidence(header, Outcome.UNKNOWN, detail, data={"units": paths}))
    return found


def _evidence(made: Made, unsure: Mapping[str, str]) -> list[Evidence]:
    path, target = made.unit.path, made.target
    size = lookup(target).wavefront_default if target else 0
    result = made.result
    holds = Outcome.NOTE if path in unsure else Outcome.HOLDS  # the unit has evidence of its own then
    if isinstance(result, HipFailure):
        return [_failure(made, result, size)]
    if isinstance(result, Syntax):
        return [Evidence(path, holds, "the host code compiles", time_ms=result.time_ms)]
    figures = {
        "kernels": [
            {
                "name": kernel.name,
                "wavefront_size": kernel.wavefront_size,
                "vgprs": kernel.vgprs,
                "sgprs": kernel.sgprs,
                "lds_bytes": kernel.lds_bytes,
                "scratch_bytes": kernel.scratch_bytes,
                "vgpr_spills": kernel.vgpr_spills,
            }
            for kernel in result.kernels
        ],
        "warnings": [str(one) for one in result.diagnostics],
        "from_cache": result.from_cache,
    }
    count = len(result.kernels)
    kernels = f"{count} kernel{'s' if count != 1 else ''}"
    found = [Evidence(path, holds, kernels, 0, target, size, result.time_ms, figures)]
    for one in findings(result):
        wrong = Outcome.UNKNOWN if made.way.unsure else Outcome.BROKEN
        outcome = wrong if one.severity is Severity.ERROR else Outcome.NOTE
        found.append(Evidence(path, outcome, f"{one.check}: {one.kernel} {one.detail}".strip(), 0, target, size))
    return found


def _failure(made: Made, failure: HipFailure, size: int) -> Evidence:
    """Say what stands in the way; what is not here says nothing about the source."""
    alien = any(is_of_nvidia(header) for header in failure.missing_headers)
    absent = failure.reason is Failure.MISSING_HEADER and not alien
    ours = bool(failure.stand_ins and failure.errors) and _of_stand_ins(failure)
    # what the back end cannot translate is the source's: an instruction that the target lacks
    crashed = failure.reason is Failure.CRASHED and not any("in backend" in one.message for one in failure.errors)
    untold = crashed or failure.reason in SAYS_NOTHING
    unsure = made.way.unsure or _any_macro(made.way.macros, failure)
    unknown = absent or ours or bool(made.elsewhere) or untold or bool(unsure)
    outcome = Outcome.UNKNOWN if unknown else Outcome.BROKEN
    line = next((one.line for one in failure.errors if one.file.endswith(made.unit.path)), 0)
    side = "" if made.target else "host code: "
    lacking = " ROCm's own header may define it; rocmend's substitute header was used here." if ours else ""
    if made.elsewhere and not ours:
        lacking = f" All errors are in headers that are not the project's ({made.elsewhere})."
    if made.way.several:
        lacking += f" (Built as in {made.way.macros.build}.)"
    if unsure:
        lacking += f" That may be because {unsure}."
    data = {"reason": str(failure.reason), "errors": [str(one) for one in failure.errors][:20]}
    return Evidence(
        made.unit.path, outcome, side + failure.message + lacking, line, made.target, size, failure.time_ms, data
    )


def _any_macro(macros: Definitions, failure: HipFailure) -> str:
    """Return why a name that is not declared may be a macro of the build; empty where it is none."""
    why = next((one.why for one in macros.unknown if not one.name), "")
    return f"the macros are not all known ({why})" if why and any(map(_MACRO.search, map(str, failure.errors))) else ""


def _undecided(made: Sequence[Made], sources: Mapping[str, bytes]) -> dict[str, str]:
    """Return why units that compile are undecided: it is not known how they are built, or no kernel was compiled."""
    by_unit: dict[str, list[Made]] = {}
    for one in made:
        by_unit.setdefault(one.unit.path, []).append(one)
    found = {}
    for path, ways in by_unit.items():
        if any(isinstance(one.result, HipFailure) for one in ways):
            continue
        unsure = next((one.way.unsure for one in ways if one.way.unsure), "")
        if not unsure and not any(isinstance(one.result, HipObject) and one.result.kernels for one in ways):
            unsure = _without_kernels(path, sources.get(path, b""))
        if unsure:
            found[path] = unsure
    return found


def _without_kernels(path: str, data: bytes) -> str:
    """Return what a unit's text has for ROCm that no object of it has; empty where it has no kernel."""
    if b"__global__" not in data:
        return ""
    file = CudaFile(path, data)
    try:
        kernels = [one for one in file.functions if b"__global__" in one.qualifiers and file.on_rocm(one.name.start)]
    except NestingError:
        return "it is nested too deep to see which of its kernels were compiled"
    if not kernels:
        return ""
    first = kernels[0].name
    return (
        "none of its kernels was compiled under these macros, for instance "
        f"{first.text.decode(errors='replace')} (line {file.line_of(first.start)}): a condition leaves them out, or "
        "nothing in it instantiates the templates"
    )


def _of_stand_ins(failure: HipFailure) -> bool:
    """Tell whether each error may be one of rocmend's own headers: a name that they lack, or a library's call."""
    explained: list[bool] = []
    for one in failure.diagnostics:
        if one.level is DiagnosticLevel.ERROR:
            explained.append(_LACKING.search(one.message) is not None)
        elif one.level is DiagnosticLevel.NOTE and explained and Path(one.file).is_relative_to(STAND_INS):
            # a candidate of a library's call; those of HIP's own types are as HIP has them
            explained[-1] |= Path(one.file).relative_to(STAND_INS).parts[0] != "hip"
    return all(explained)


def _stand_ins(made: Sequence[Made]) -> Evidence:
    names = sorted({name for one in made for name in one.result.stand_ins})
    return Evidence(
        ", ".join(names),
        Outcome.NOTE,
        "ROCm's own header is not installed, so rocmend's substitute was used: kernels compile to real code, but the "
        "two headers may not declare exactly the same names, and a kernel's registers and LDS may differ",
    )
