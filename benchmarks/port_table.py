"""Write the page of what ``rocmend port`` makes of a collection of CUDA programs, from the log of ``port_projects.py``.

python -m benchmarks.port_table LOG --title TEXT --repository URL -o PAGE
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.port_projects import records

from rocmend.port.rule import rules

Record = Mapping[str, Any]

_PROGRAMS = (
    "The CUDA programs of [{name}]({repository}) at commit `{source}`, ported by `rocmend port --apply` and compiled "
    "by `rocmend port verify --level compile`, with no change by hand. Nothing of them is in rocmend. Nothing was run: "
    "that a program compiles does not say that its results are right."
)
_COMPILED = (
    "All {units:,} translation units are compiled: their kernels to machine code for {names}, and the host's side is "
    "read; with {toolchain}. The headers of ROCm's other libraries are {lacking}. *nvcc compiles*: the original of "
    "each unit to PTX for `{arch}`, with nvcc {nvcc} and the macros of its Makefile, tried where the ported program "
    "does not compile; nothing is linked. *Undecided*: a header is not installed, all errors are in headers of others, "
    "or the compiler crashed."
)
_COMMAND = """```console
$ python benchmarks/port_projects.py HeCBench/src/*-cuda --log FILE --seed {seed} --nvcc nvcc
$ python -m benchmarks.port_table FILE -o docs/reference/port-hecbench.md
```"""
_MEASURED = (
    "With rocmend {commits}; a program that failed was measured again after a mend, so that the findings of the others "
    "are those of the version that they were measured with. A program may take {limit_s:g} s. "
    "Headers of other folders that a program's Makefile names were copied beside it."
)

_PLACE = re.compile(r"^(?:\S+?:\d+(?::\d+)?: )?(?:fatal )?(?:error: )?")
_QUOTED = re.compile(r"'([^']*)'")
_LACKING = re.compile(r"undeclared identifier|no member named|unknown type name|no type named|no template named")
_HEADER = re.compile(r"([\w./+-]+) (?:is not found|belongs to)")
_NVCC_HEADER = re.compile(r"([\w./+-]+): No such file")
_SHOWN = 110


class Reason(NamedTuple):
    """Why a program does not compile.

    Attributes:
        kind: What the table groups by.
        detail: The name or the error.
        undecided: Whether it says nothing about the port.
    """

    kind: str
    detail: str
    undecided: bool


def verdict(record: Record, target: str) -> str:
    """Return what a program came to for a target: yes, no, undecided or not measured."""
    if "failed" in record:
        return "not measured"
    if target not in record["targets"]:
        return "not measured"
    if not record["units"]:
        return "no unit"
    outcomes = {
        outcome
        for unit in record["units"].values()
        for where in ("host", target)
        for outcome, *_ in unit.get(where, ())
    }
    return "no" if "broken" in outcomes else "undecided" if "unknown" in outcomes else "yes"


def reason(record: Record) -> Reason:
    """Return the first reason for which a program does not compile; errors of a source before headers that lack."""
    if "failed" in record:
        return Reason("not measured", record["failed"], undecided=True)
    if not record["units"]:
        return Reason("no CUDA C++ source", record["levels"]["compile"][1], undecided=True)
    found = [
        (outcome, detail, errors)
        for unit in record["units"].values()
        for told in unit.values()
        for outcome, detail, errors in told
    ]
    outcome, detail, errors = min(found, key=lambda one: one[0] != "broken")
    absent = _HEADER.search(detail)
    if outcome == "unknown" and absent and not errors[1:]:
        return Reason("a header that is not installed", f"`{absent[1]}`", undecided=True)
    error = _PLACE.sub("", errors[0] if errors else detail)
    kind, name = "another error", ""
    if "NVIDIA's" in detail:
        kind, name = "a header of NVIDIA is still included", detail.split()[0]
    elif _LACKING.search(error) and (quoted := _QUOTED.search(error)):
        kind, name = "a name that HIP or its libraries lack", quoted[1]
    else:
        kind = next((told for words, told in _KINDS if words in error.lower()), kind)
    return Reason(kind, f"`{name}`" if name else shown(error), outcome == "unknown")


_KINDS = (
    ("frontend command failed", "the compiler crashed"),
    ("image/texture api not supported", "the target has no image instructions"),
    ("no matching", "a call that HIP declares otherwise"),
    ("lds:", "more LDS than the GPU has"),
    ("invalid instruction", "inline assembly of NVIDIA"),
    ("invalid input constraint", "inline assembly of NVIDIA"),
    ("invalid output constraint", "inline assembly of NVIDIA"),
)
"""Words of errors, and what these are about."""


def shown(text: str) -> str:
    """Return an error as a cell of a table, cut to a length that can be read."""
    text = " ".join(text.split()).replace("|", "\\|")
    return f"{text[:_SHOWN]}…" if len(text) > _SHOWN else text


def builds(record: Record) -> bool | None:
    """Tell whether nvcc compiles all originals of a program; None where it was not tried."""
    before = record.get("before")
    return None if before is None else not any(before.values())


def by_hand(record: Record) -> list[str]:
    """Return the rules that leave something of a program to a person."""
    return sorted({rule for rule, outcome, *_ in record.get("issues", ()) if outcome == "manual"})


def names(records_: Iterable[Record]) -> str:
    """Return the names of programs, in order."""
    return ", ".join(sorted(str(one["project"]).removesuffix("-cuda") for one in records_))


def rate(part: int, whole: int) -> str:
    """Return a share in per cent."""
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "none"


def summary(found: Sequence[Record], conditions: Record, targets: list[str]) -> list[str]:
    """Return the table of how many programs compile, before and after."""
    tried = [one for one in found if builds(one) is not None]
    lines = ["| | programs |", "|---|--:|", f"| in the repository | {conditions['projects']} |"]
    lines += [f"| measured | {len(found)} |"] if len(found) < conditions["projects"] else []
    lines.append(f"| port is the original without ROCm (level 1) | {sum(_passed(one, 'identity') for one in found)} |")
    for target in targets:
        counts = Counter(verdict(one, target) for one in found)
        rest = ", ".join(f"{number} {word}" for word, number in sorted(counts.items()) if word not in {"yes", "no"})
        told = f"{counts['no']} do not{f'; {rest}' if rest else ''}"
        lines.append(f"| compile for {target} | {counts['yes']}; {told} |")
    every = [one for one in found if all(verdict(one, target) == "yes" for target in targets)]
    lines.append(f"| compile for {' and '.join(targets)} | {rate(len(every), len(found))} |")
    pool = [one for one in found if builds(one) is not False and one.get("units")]
    if tried:
        both = sum(one in every for one in pool)
        lines.append(f"| the same, without those whose original nvcc does not compile here | {rate(both, len(pool))} |")
    lines.append(f"| nothing is left for a person (level 2) | {sum(_passed(one, 'static') for one in found)} |")
    return ["\n".join(lines)]


def _passed(record: Record, level: str) -> bool:
    return bool(record.get("levels", {}).get(level, ("",))[0] == "passed")


def failures(found: Sequence[Record], targets: list[str]) -> list[str]:
    """Return the tables of reasons and of the programs that do not compile for all targets."""
    bad = [one for one in found if any(verdict(one, target) != "yes" for target in targets)]
    groups: dict[tuple[bool, str], list[Record]] = {}
    for one in bad:
        why = reason(one)
        groups.setdefault((why.undecided, why.kind), []).append(one)
    reasons = ["| reason | decided | programs | of these nvcc compiles | which |", "|---|---|--:|--:|---|"]
    for (undecided, kind), those in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        good = sum(bool(builds(one)) for one in those)
        reasons.append(f"| {kind} | {'no' if undecided else 'yes'} | {len(those)} | {good} | {names(those)} |")
    each = ["| program | not for | nvcc | first reason | by hand |", "|---|---|---|---|---|"]
    for one in sorted(bad, key=lambda one: str(one["project"])):
        where = [target for target in targets if verdict(one, target) != "yes"]
        place = "all" if where == targets else ", ".join(where)
        nvcc = {True: "yes", False: "no", None: ""}[builds(one)] + first_error(one)
        told = ", ".join(by_hand(one)) or "nothing"
        each.append(f"| {names([one])} | {place} | {nvcc} | {reason(one).detail} | {told} |")
    said = "*By hand*: the rules that left something in the program to a person when it was ported."
    heads = ("## Why the others do not", "## Each program that does not compile")
    return [heads[0], "\n".join(reasons), heads[1], said, "\n".join(each)]


def first_error(record: Record) -> str:
    """Return the first error of nvcc in a program, after a colon; empty where there is none."""
    error = next((error for error in record.get("before", {}).values() if error), "")
    if not error:
        return ""
    absent = _NVCC_HEADER.search(error)
    return f": `{absent[1]}` is not here" if absent else f": {shown(error.partition('error')[2].lstrip(' :') or error)}"


def findings(found: Sequence[Record]) -> list[str]:
    """Return the table of what rules found, by rule."""
    titles = {one.id: one.title for one in rules()}
    places = Counter((rule, outcome) for one in found for rule, outcome, *_ in one.get("issues", ()))
    programs: dict[tuple[str, str], set[str]] = {}
    for one in found:
        for rule, outcome, *_ in one.get("issues", ()):
            programs.setdefault((rule, outcome), set()).add(one["project"])
    counts = Counter(outcome for _, outcome in places.elements())
    auto, suggest, manual = (counts[word] for word in ("auto", "suggest", "manual"))
    told = f"{auto:,} places are rewritten, {suggest:,} suggested, {manual:,} left for a person."
    lines = ["| rule | what it reports | places | programs |", "|---|---|--:|--:|"]
    for (rule, outcome), number in sorted(places.items(), key=lambda item: -len(programs[item[0]])):
        if outcome == "manual":
            lines.append(f"| {rule} | {titles.get(rule, '')} | {number} | {len(programs[rule, outcome])} |")
    return ["## What is left for a person, by rule", told, "\n".join(lines)]


def page(log: Path, title: str, repository: str, libraries: str) -> str:
    """Return the page."""
    lines = list(records(log))
    runs = [one["conditions"] for one in lines if "conditions" in one]
    conditions = max(reversed(runs), key=lambda one: int(one["projects"]))  # of the last run of all
    found = list({one["project"]: one for one in lines if "project" in one}.values())
    targets = [name for name in found[0]["targets"] if all(name in one["targets"] for one in found)]
    commits = sorted({one["rocmend"] for one in found})
    units = sum(len(one.get("units", ())) for one in found)
    headers = f"{libraries or 'given'} (`ROCMEND_HIP_HEADERS`)" if conditions["headers"] else "not given"
    name, whole = repository.rpartition("/")[2], conditions["projects"]
    release = conditions["nvcc"].partition(",")[0]
    order = f"in a random order (seed {conditions['seed']})"
    sample = f" {len(found)} of {whole} are measured: those that were done first {order}, so slow ones may be missing."
    text = [
        f"# {title}",
        _PROGRAMS.format(name=name, repository=repository, source=conditions["source"][:10])
        + (sample if len(found) < whole else ""),
        *summary(found, conditions, targets),
        _COMPILED.format(
            **conditions | {"units": units, "names": ", ".join(targets), "lacking": headers, "nvcc": release}
        ),
        *failures(found, targets),
        *findings(found),
        "## How it was measured",
        _COMMAND.format(**conditions),
        _MEASURED.format(commits=", ".join(f"`{one}`" for one in commits), **conditions),
    ]
    return "\n\n".join(one if "\n" in one else textwrap.fill(one, 120) for one in text) + "\n"


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument("log", type=Path)
    parser.add_argument("--title", default="Porting HeCBench")
    parser.add_argument("--repository", default="https://github.com/zjin-lcf/HeCBench")
    parser.add_argument("--libraries", default="", help="whose headers of ROCm's libraries were given")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.write_text(page(options.log, options.title, options.repository, options.libraries), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
