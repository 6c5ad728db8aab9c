"""How ops, choices and checks of kernels are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.core.units import count_text, size_text
from rocmend.core.verdict import Verdict
from rocmend.kernels.rungs import Run, told
from rocmend.report.document import Block, Card, Cell, Code, Document, Pairs, Section, Text, Tone, table

if TYPE_CHECKING:
    from rocmend.kernels.explain import Explained, RecordRow
    from rocmend.kernels.op import Op
    from rocmend.kernels.suite.supervise import OpRun

_TONE = {
    Verdict.PASS: Tone.GOOD,
    Verdict.SKIPPED: Tone.MUTED,
    Verdict.UNSUPPORTED: Tone.WARNING,
    Verdict.INFRA: Tone.WARNING,
    Verdict.OOM: Tone.WARNING,
}
_TIERS = {"vendor": "vendor", "triton": "triton", "reference": "torch"}
MOST_NAMED = 8


class OpRow(msgspec.Struct, frozen=True):
    """What is listed of an op.

    Attributes:
        name: Its name.
        summary: One line.
        functions: Its public functions.
        implementations: Name and tier, in order of preference.
        dtypes: Element types.
        domain: Shapes and options.
        tolerance: By dtype, in words.
        mlx: Its twin in MLX.
        runs: Records of its suite having run.
        sources: What was followed.
    """

    name: str
    summary: str
    functions: tuple[str, ...]
    implementations: tuple[tuple[str, str], ...]
    dtypes: tuple[str, ...]
    domain: str
    tolerance: dict[str, str]
    mlx: str
    runs: tuple[Run, ...]
    sources: tuple[str, ...]


def op_row(op: Op, runs: tuple[Run, ...]) -> OpRow:
    """Return what is listed of an op."""
    tolerance = {name: _tolerance(one.ulps, one.scaled) for name, one in op.tolerance.items()}
    return OpRow(
        name=op.name,
        summary=op.summary,
        functions=tuple(op.functions),
        implementations=tuple((one.name, one.tier) for one in op.implementations),
        dtypes=op.dtypes,
        domain=op.domain,
        tolerance=tolerance,
        mlx=op.mlx or "",
        runs=runs,
        sources=op.sources,
    )


def _tolerance(ulps: float, scaled: float) -> str:
    if not ulps and not scaled:
        return "bitwise equal"
    parts = [f"{ulps:g} ulp"] if ulps else []
    return " + ".join([*parts, f"{scaled:.2g} of the largest"] if scaled else parts)


def list_document(rows: Sequence[OpRow], problems: Sequence[str], *, whole: bool) -> Document:
    """Lay out the ops: a row each, or all about those named."""
    blocks: list[Block] = []
    if whole:
        blocks += [Section(row.name, (Text(_escaped(row.summary)), Pairs(_pairs(row)))) for row in rows]
    else:
        listed = [
            [
                row.name,
                " ".join(_TIERS[tier] for tier in dict.fromkeys(tier for _, tier in row.implementations)),
                _short(row.dtypes),
                _ran(row),
            ]
            for row in rows
        ]
        blocks.append(table(["op", "tiers", "dtypes", "ran, cases passed"], listed))
    blocks += [Text(f"Could not be loaded: {_escaped(problem)}", Tone.ERROR) for problem in problems]
    recorded = sum(1 for row in rows if row.runs)
    summary = f"{count_text(len(rows), 'op')}, {recorded} with a recorded run."
    footer = "`rocmend kernels check` runs the suites here; `rocmend kernels list OP` shows one in detail."
    return Document("Kernels", summary, Tone.ERROR if problems else Tone.PLAIN, tuple(blocks), footer)


def _ran(row: OpRow) -> str:
    return told({(run.rung, run.target): run for run in row.runs}) or "no record"


def _short(dtypes: Sequence[str]) -> str:
    names = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64"}
    shown = [names.get(name, name) for name in dtypes]
    return " ".join(shown[:3]) + (f" +{len(shown) - 3}" if len(shown) > 3 else "")


def _pairs(row: OpRow) -> tuple[tuple[str, str, str], ...]:
    rows = [
        ("functions", ", ".join(row.functions), f"as {row.mlx}" if row.mlx else ""),
        ("implementations", ", ".join(f"{name} ({tier})" for name, tier in row.implementations), "in this order"),
        ("dtypes", ", ".join(row.dtypes), ""),
        ("domain", row.domain, ""),
        ("tolerance", "; ".join(f"{name}: {text}" for name, text in row.tolerance.items()), "against float64"),
    ]
    for run in row.runs:
        versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
        where = f"{run.passed} of {run.count} cases on {run.device_name or run.target}"
        rows.append((f"ran ({run.rung})", where, f"{run.date}, {versions}, {run.origin}"))
    if not row.runs:
        rows.append(("ran", "no record", ""))
    rows += [("source", url, "") for url in row.sources]
    return tuple(rows)


def explain_document(found: Explained) -> Document:
    """Lay out a choice."""
    problem = " ".join(f"{name}={value}" for name, value in found.problem.items())
    taken = next((one for one in found.considered if one.taken), None)
    summary = (
        f"{taken.implementation} ({taken.tier}): {taken.reason}."
        if taken
        else "No implementation supports this: the call fails."
    )
    listed: list[list[str | Cell]] = [
        [
            one.implementation,
            one.tier,
            Cell("taken", Tone.GOOD) if one.taken else Cell("no", Tone.MUTED),
            one.reason,
        ]
        for one in found.considered
    ]
    if found.odd_addresses:
        summary += f" Tensors at odd addresses (no multiples of 16 bytes): {found.odd_addresses}."
    blocks: list[Block] = [table(["implementation", "tier", "", "why"], listed)]
    if found.calls:
        called: list[list[str | Cell]] = [[one.op, one.implementation, one.tier, one.reason] for one in found.calls]
        blocks.append(table(["op", "implementation", "tier", "why"], called, f"What {found.chosen} calls"))
    if found.records:
        rows: list[list[str | Cell]] = [
            [
                row.kernel if row.op == found.op else f"{row.op}.{row.kernel}",
                row.shape_class,
                row.target,
                _config(row.config),
                _source(row, found.target),
            ]
            for row in found.records
        ]
        blocks.append(
            table(
                ["kernel", "class", "target", "parameters", "source"],
                rows,
                "Tuning records of the kernels that may be launched",
            )
        )
    blocks.append(Pairs(_cost_rows(found)))
    title = f"{found.op} {problem} on {found.target}"
    return Document(title, summary, Tone.PLAIN if taken else Tone.ERROR, tuple(blocks))


def _source(row: RecordRow, target: str) -> str:
    """Say where a record comes from; the records of other machines ship with rocmend."""
    if row.origin == "shipped":
        return f"default, not measured on {target}" if row.source == "default" else row.source
    return f"{row.source} ({row.origin})"


def _config(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _operations(flops: float) -> str:
    """Return a number of operations with its prefix: ``117 MFLOP``."""
    for unit in ("FLOP", "kFLOP", "MFLOP", "GFLOP"):
        if flops < 1000:
            return f"{flops:.3g} {unit}"
        flops /= 1000
    return f"{flops:.4g} TFLOP"


def _cost_rows(found: Explained) -> tuple[tuple[str, str, str], ...]:
    rows = [
        ("shape class", found.shape_class, "kernels tune keeps measured choices by it"),
        ("cost", f"{_operations(found.flops)}, {size_text(found.bytes)}", "each operand is read or written once"),
    ]
    if found.other_records:
        why = f"for other problems or targets, or not for Triton {found.triton}"
        rows.insert(1, ("other records", str(found.other_records), why))
    floor = found.floor
    if floor is not None:
        times = [value for value in (floor.travel_us, floor.arithmetic_us) if value is not None]
        known = [f"{floor.bandwidth_gb_s:g} GB/s"] if floor.bandwidth_gb_s else []
        known += [f"{floor.peak_tflops:.4g} TFLOPS"] if floor.peak_tflops else []
        note = f"{floor.product}: {', '.join(known)}, published peaks"
        rows.append(("least time", f"{max(times):.4g} µs" if times else "not known", note))
    return tuple(rows)


def check_rows(runs: Sequence[OpRun]) -> list[dict[str, Any]]:
    """Return runs as plain rows."""
    return [dict(msgspec.to_builtins(run)) for run in runs]


def check_document(runs: Sequence[OpRun], kept: str | None) -> Document:
    """Lay out a check: the answer, a row an op, what did not pass, and where it is kept, if it is."""
    failed = [run for run in runs if run.verdict not in {Verdict.PASS, Verdict.SKIPPED}]
    cases, passed = sum(run.count for run in runs), sum(run.passed for run in runs)
    device = runs[0].device_name if runs else ""
    targets = list(dict.fromkeys(run.target for run in runs))
    summary = f"{passed} of {count_text(cases, 'case')} passed on {device} ({', '.join(targets)})."
    if runs and runs[0].rung == "emulated":
        known = sum(run.known for run in runs)
        summary += f" There are {known} of these sizes." if known > cases else ""
        summary += " This executes the machine code, not on a GPU, and says nothing about its speed."
    if targets == ["cpu"]:
        summary += " This checks the kernels in Triton's interpreter only, not on a GPU."
    rows: list[list[str | Cell]] = [
        [
            run.op if len(targets) < 2 else f"{run.op} {run.target}",
            Cell(run.verdict.value, _TONE.get(run.verdict, Tone.ERROR)),
            f"{run.passed}/{run.count}",
            f"{run.worst:.2f}",
            f"{run.time_ms / 1e3:.1f}",
            ", ".join(f"{name} {count}" for name, count in run.implementations.items()),
        ]
        for run in runs
    ]
    blocks: list[Block] = [table(["op", "verdict", "passed", "worst error", "time, s", "computed by"], rows)]
    blocks += [_failure(run) for run in failed]
    if runs:
        versions = ", ".join(f"{name} {version}" for name, version in runs[0].versions.items())
        blocks.append(Text(f"With {versions}. An error of 1 is the limit.", Tone.MUTED))
    tone = Tone.ERROR if failed else Tone.GOOD
    footer = (
        f"Kept as {kept}: `rocmend store ls --group {kept}` lists its records, `rocmend store rm {kept}` removes them, "
        "`rocmend kernels list` shows what ran where."
        if kept
        else ""
    )
    return Document("Kernels checked", summary, tone, tuple(blocks), footer)


def _failure(run: OpRun) -> Card:
    lines = [
        f"{one.case}{f' ({one.implementation})' * bool(one.implementation)}: {one.verdict.value}, "
        + (one.detail or "no reason was given")
        for one in run.not_passed
    ]
    shown = "\n".join(lines[:MOST_NAMED])
    if len(lines) > MOST_NAMED:
        shown += f"\nand {len(lines) - MOST_NAMED} more"
    title = f"{run.op} on {run.target}" if run.rung == "emulated" else run.op
    return Card(title, _TONE.get(run.verdict, Tone.ERROR), run.verdict.value, title, (Code(shown),))


def _escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_[]<>#|" else char for char in text)
