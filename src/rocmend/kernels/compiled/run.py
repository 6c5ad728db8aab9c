"""Compile what ops launch, for targets: record, compile in workers what is not known yet, check, and make rows.

Imports neither torch nor triton: the workers do.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from rocmend.core.errors import UsageError
from rocmend.kernels import registry
from rocmend.kernels import target as targets
from rocmend.kernels.compiled.cache import Cache, Result
from rocmend.kernels.compiled.checks import Finding, judge
from rocmend.kernels.compiled.measure import Measured
from rocmend.kernels.compiled.pool import Pool
from rocmend.kernels.compiled.spec import Spec
from rocmend.kernels.compiled.table import Row
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.compiled.toolchains import choose_toolchain, serves
from rocmend.kernels.tuning import records

DEFAULT_TARGETS = (
    *("gfx1010", "gfx1030", "gfx1100", "gfx1103", "gfx1150", "gfx1151", "gfx1201"),
    *("gfx906", "gfx90a", "gfx942", "gfx950"),
)
SAME_CODE = {
    "gfx1030": ("gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
    "gfx1150": ("gfx1152", "gfx1153"),
    "gfx1201": ("gfx1200",),
}
"""Other targets whose machine code is that of one of the table, as LLVM gives them the same features.

Not gfx1101 with gfx1100, nor gfx1102 with gfx1103: LLVM sets up the scalar registers of a launch in another way.
"""
FAST_TARGETS = ("gfx1100", "gfx942")
RECORD_LIMIT_S = 300.0

Progress = Callable[[str], None]


class Unserved(msgspec.Struct, frozen=True):
    """A target that no installed Triton compiles for.

    Attributes:
        target: The target.
        versions: Versions of Triton that do.
        why: What happens with others.
    """

    target: str
    versions: str
    why: str


class Skipped(msgspec.Struct, frozen=True):
    """A case whose op says that no kernel of its own is fit for a target.

    Attributes:
        op: The op.
        case: The case.
        target: The target.
        reason: In the op's words.
    """

    op: str
    case: str
    target: str
    reason: str


class Problem(msgspec.Struct, frozen=True):
    """A finding that belongs to no row: a case that cannot be recorded, a record that nothing uses.

    Attributes:
        op: The op.
        subject: The case, with its target, or the record.
        check: A key of ``CHECKS``.
        detail: What was found.
    """

    op: str
    subject: str
    check: str
    detail: str


class Report(msgspec.Struct, frozen=True):
    """What compiling came to.

    Attributes:
        rows: One a specialisation and target.
        problems: Findings that belong to no row.
        skipped: What ops say they do not do on a target.
        unserved: Targets that were left out.
        tritons: Versions of Triton used.
        compiled: Rows compiled now.
        remembered: Rows whose result was known from before.
    """

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
    skipped: tuple[Skipped, ...]
    unserved: tuple[Unserved, ...]
    tritons: tuple[str, ...]
    compiled: int
    remembered: int

    @property
    def failed(self) -> int:
        """Rows with findings, and findings without a row."""
        return sum(bool(row.findings) for row in self.rows) + len(self.problems)


class Selection(msgspec.Struct, frozen=True):
    """What to compile, and with what.

    Attributes:
        ops: Names; empty for all.
        targets: Names.
        toolchains: The Tritons at hand.
        subset: ``all``; ``table``: one specialisation of each kernel with each tuning record and width of its first
            operand's elements; ``fast``: one of each kernel.
        hidden: Also the records that more specific ones hide.
        jobs: Workers at once.
        time_limit_s: Of one compilation.
        fresh: Forget what was compiled before.
    """

    ops: tuple[str, ...]
    targets: tuple[str, ...]
    toolchains: tuple[Toolchain, ...]
    subset: Literal["all", "table", "fast"] = "all"
    hidden: bool = False
    jobs: int = 1
    time_limit_s: float = 180.0
    fresh: bool = False


def compile_ops(selection: Selection, progress: Progress = lambda _text: None, cache: Cache | None = None) -> Report:
    """Compile what the representative cases of ops launch.

    Args:
        selection: What to compile, and with what.
        progress: Told what is being done.
        cache: Where results are kept; None for the user's.

    Raises:
        UsageError: No such op, or no Triton at hand serves any of the targets.
    """
    names = selection.ops or tuple(op.name for op in registry.ops())
    for name in names:
        registry.get(name)
    chosen = {name: choose_toolchain(name, selection.toolchains) for name in selection.targets}
    unserved = tuple(
        Unserved(name, serves(name).versions, serves(name).why) for name, found in chosen.items() if found is None
    )
    if len(unserved) == len(chosen):
        raise UsageError(
            "kernels compile",
            f"no installed Triton compiles for {', '.join(chosen)}.",
            why=f"{unserved[0].target} needs triton {unserved[0].versions}: {unserved[0].why}.",
            next_step="rocmend kernels compile --fetch-triton VERSION installs another one alongside.",
        )
    recordings = _record(selection, names, chosen, progress)
    unused = _unused(recordings, names, selection)
    if unused and (others := [op.name for op in registry.ops() if op.name not in names]):
        # Their kernels may be launched with records of these ops, as those of fused products are.
        unused = _unused(recordings | _record(selection, others, chosen, progress), names, selection)
    specs = _ordered(recordings, names, selection)
    results, remembered = _compile(selection, specs, cache or Cache(), progress)
    rows = tuple(_row(spec, results[spec.key]) for spec in specs)
    skipped, problems = _problems(recordings)
    tritons = tuple(sorted({row.triton for row in rows}))
    return Report(rows, (*problems, *unused), skipped, unserved, tritons, len(rows) - remembered, remembered)


def _record(
    selection: Selection, names: Sequence[str], chosen: dict[str, Toolchain | None], progress: Progress
) -> dict[tuple[str, str], dict[str, Any]]:
    """Record every op with every Triton that is needed; an answer by op and version."""
    by_toolchain: dict[Toolchain, list[str]] = {}
    for target, toolchain in chosen.items():
        if toolchain is not None:
            by_toolchain.setdefault(toolchain, []).append(target)
    answers: dict[tuple[str, str], dict[str, Any]] = {}

    def done(name: tuple[str, str], answer: dict[str, Any]) -> None:
        answers[name] = answer
        progress(f"recorded {len(answers)} of {len(names) * len(by_toolchain)}: {name[0]}")

    tasks = [
        ((op, toolchain.version), toolchain, {"do": "record", "op": op, "targets": wanted, "hidden": selection.hidden})
        for toolchain, wanted in by_toolchain.items()
        for op in names
    ]
    Pool[tuple[str, str]](selection.jobs, RECORD_LIMIT_S).map(tasks, done)
    return answers


def _ordered(
    recordings: dict[tuple[str, str], dict[str, Any]], names: Sequence[str], selection: Selection
) -> list[Spec]:
    """Order the specializations to compile by op, then case, then target."""
    specs: list[Spec] = []
    for name in names:
        own = [
            msgspec.convert(spec, Spec)
            for (op, _), answer in recordings.items()
            if op == name and "ok" in answer
            for spec in answer["ok"]["specs"]
        ]
        own.sort(key=lambda spec: selection.targets.index(spec.target))
        specs += _chosen(own, selection.subset)
    return specs


def _chosen(specs: Sequence[Spec], subset: str) -> list[Spec]:
    """Return those of a subset, in their order."""
    alike: dict[object, list[int]] = {}
    for at, spec in enumerate(specs):
        alike.setdefault(spec.key if subset == "all" else (spec.kernel, spec.target), []).append(at)
    kept: list[int] = []
    for places in alike.values():
        # Large groups of quantized weights take the most registers.
        first = max(places, key=lambda at: _group_size(specs[at]))
        kept += _covering({at: _shown(specs[at]) for at in places}, first) if subset == "table" else [first]
    return [specs[at] for at in sorted(kept)]


def _covering(shows: dict[int, set[object]], first: int) -> list[int]:
    """Return few specialisations, a given one among them, that cover together what all cover."""
    found, missing = [first], set().union(*shows.values()) - shows[first]
    while missing:
        best = max(shows, key=lambda at: len(shows[at] & missing))  # the first of those that show as much
        found.append(best)
        missing -= shows[best]
    return found


def _shown(spec: Spec) -> set[object]:
    """Return the features that a specialization covers: its record with operand width or group size, and its format."""
    shown: set[object] = {(spec.record, "operand", spec.operand_bits)}
    if size := _group_size(spec):
        shown |= {(spec.record, "group", size), ("format", spec.constant("MODE"), spec.constant("BITS"))}
    return shown


def _group_size(spec: Spec) -> int:
    """Return the size of a group of quantized weights; 0 where there are none (heads have groups, too)."""
    quantized = spec.op in _with_formats()
    return (spec.constant("GROUP_SIZE", "GROUP") or 0) if quantized else 0


@functools.cache
def _with_formats() -> frozenset[str]:
    return frozenset(op.name for op in registry.ops() if op.formats)


def _compile(
    selection: Selection, specs: Sequence[Spec], cache: Cache, progress: Progress
) -> tuple[dict[str, Result], int]:
    results = {} if selection.fresh else {spec.key: known for spec in specs if (known := cache.find(spec)) is not None}
    waiting = {spec.key: spec for spec in specs if spec.key not in results}
    remembered, wanted, before = len(specs) - len(waiting), len(waiting), len(results)
    toolchains = {toolchain.version: toolchain for toolchain in selection.toolchains}

    def done(spec: Spec, answer: dict[str, Any]) -> None:
        if "ok" in answer:
            result = Result(msgspec.convert(answer["ok"], Measured))
        else:
            result = Result(None, _reason(str(answer["error"])))
        results[spec.key] = result
        if not answer.get("passing"):
            cache.keep(spec, result)
        progress(f"compiled {len(results) - before} of {wanted}: {spec.op} {spec.kernel_name} for {spec.target}")

    tasks = [(spec, toolchains[spec.triton], {"do": "compile", "spec": spec}) for spec in waiting.values()]
    Pool[Spec](selection.jobs, selection.time_limit_s).map(tasks, done)
    return results, remembered


def _reason(text: str) -> str:
    """Return an error's telling part: its first and last lines, without the folders that differ between machines."""
    lines = [re.sub(r"(?:/[^\s/:]+)+/", "", line.strip()) for line in text.splitlines() if line.strip()]
    return " ".join(lines[:1] + lines[-2:] if len(lines) > 3 else lines)[:400]


def _row(spec: Spec, result: Result) -> Row:
    if result.measured is None:
        findings: tuple[Finding, ...] = (Finding("error", result.error),)
    else:
        findings = judge(result.measured, targets.by_name(spec.target))
    return Row(
        op=spec.op,
        kernel=spec.kernel_name,
        identity=spec.identity,
        case=spec.case,
        record=spec.record,
        config=" ".join(f"{name}={value}" for name, value in spec.config.items()),
        target=spec.target,
        triton=spec.triton,
        measured=result.measured,
        findings=findings,
    )


def _problems(
    recordings: dict[tuple[str, str], dict[str, Any]],
) -> tuple[tuple[Skipped, ...], tuple[Problem, ...]]:
    skipped: list[Skipped] = []
    problems: list[Problem] = []
    for (op, _), answer in recordings.items():
        if "error" in answer:
            problems.append(Problem(op, "all cases", "record", _reason(str(answer["error"]))))
            continue
        for problem in answer["ok"]["problems"]:
            if problem["meant"]:
                skipped.append(Skipped(op, problem["case"], problem["target"], problem["reason"]))
            else:
                problems.append(
                    Problem(op, f"{problem['case']} on {problem['target']}", "record", _reason(problem["reason"]))
                )
    return tuple(skipped), tuple(problems)


def _unused(
    recordings: dict[tuple[str, str], dict[str, Any]], names: Iterable[str], selection: Selection
) -> list[Problem]:
    """List the tuning records of ops that no recorded case looked up, where all targets were recorded."""
    served = {target for target in selection.targets if choose_toolchain(target, selection.toolchains) is not None}
    if not served.issuperset(DEFAULT_TARGETS):  # a record that another target's hides may be meant for another
        return []
    used = {name for answer in recordings.values() if "ok" in answer for name in answer["ok"]["used"]}
    return [
        Problem(name, record, "unused", "no case looks it up")
        for name in names
        for record in unused_records(name, used, selection.targets)
    ]


def unused_records(op: str, used: set[str], target_names: Sequence[str]) -> list[str]:
    """Return an op's records that apply to one of the targets and that no case looked up.

    A record for versions of Triton is only missed where every target was compiled: another version may be meant.
    """
    from rocmend.kernels.compiled.names import name_of

    lookups = [set(targets.by_name(name).lookup) for name in target_names]
    return [
        name
        for found in records(op)
        if any(found.target in lookup for lookup in lookups)
        and not found.triton
        and (name := name_of(op, found)) not in used
    ]


__all__ = ["DEFAULT_TARGETS", "FAST_TARGETS", "Problem", "Report", "Selection", "Skipped", "Unserved", "compile_ops"]
