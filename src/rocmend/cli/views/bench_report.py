"""How what was measured on a machine is laid out as one document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from rocmend.bench.compare import run_data
from rocmend.bench.conclude import TESTS, by_length, conclusions, depth_of, test_of
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.records import BenchRun, Measured, subject_of
from rocmend.cli.views.bench import run_blocks, run_summary
from rocmend.cli.views.bench_gemm import rooflines
from rocmend.cli.views.bench_memory import bandwidths
from rocmend.core.units import count_text
from rocmend.report.document import Axis, Block, Card, Document, Plot, Point, Section, Series, Text, Tone
from rocmend.report.junit import Case, Suite

_LEAST_DEPTHS = 2
"""Depths that a curve is drawn through."""


def report_data(runs: Sequence[BenchRun]) -> dict[str, Any]:
    """Return the report as data."""
    return {"runs": [run_data(run) for run in runs], "conclusions": _conclusions(runs)}


def _conclusions(runs: Sequence[BenchRun]) -> list[Conclusion]:
    models = conclusions(result for run in runs for result in run.results)
    return [*models, *(one for run in runs for one in run.conclusions)]


def report_document(runs: Sequence[BenchRun]) -> Document:
    """Lay out the report: what follows from the figures first, then each run."""
    devices = list(dict.fromkeys(_device(result) for run in runs for result in run.results if _device(result)))
    figures = sum(result.summary is not None for run in runs for result in run.results)
    found = _conclusions(runs)
    summary = f"{count_text(figures, 'figure')} from {count_text(len(runs), 'run')}."
    blocks: list[Block] = []
    said = [conclusion_card(one) for one in found]
    for run in runs:
        text, tone = run_summary(run)
        said.append(Card(run.title, tone, blocks=(Text(text),)))
    blocks.append(Section("What the figures say", tuple(said)))
    for run in runs:
        told = msgspec.structs.replace(run, conclusions=())  # they stand above
        blocks.append(Section(run.title, tuple(run_blocks(told, _pictures(run)))))
    failed = any(not run.clean for run in runs)
    title = f"Measured on {', '.join(devices)}" if devices else "Measured"
    footer = f"Runs: {', '.join(run.group for run in runs)}. `rocmend compare` compares them with later ones."
    return Document(title, summary, Tone.WARNING if failed else Tone.GOOD, tuple(blocks), footer)


def _pictures(run: BenchRun) -> list[Block]:
    if run.suite == "gemm":
        return rooflines(run)
    return bandwidths(run) if run.suite == "memory" else curves(run.results)


def conclusion_card(one: Conclusion) -> Card:
    """Lay out a conclusion with the figures that it rests on."""
    rests = ", ".join(one.evidence)
    return Card(
        one.text,
        Tone.INFO if one.shown else Tone.MUTED,
        details=(Text(f"It rests on: {rests}."),),
        details_title="The figures behind it",
    )


def _device(result: Measured) -> str:
    name, target = result.subject.device_name, result.subject.gfx_target
    return f"{name} ({target})" if name and target else name


def junit_suite(runs: Sequence[BenchRun]) -> Suite:
    """Return the runs as a JUnit suite: a case without a figure failed."""
    started = min((result.started_at for run in runs for result in run.results), default="")
    cases = tuple(
        Case(subject_of(one.case, one.setting), f"bench.{run.suite}", one.time_ms / 1e3, one.verdict, one.reason)
        for run in runs
        for one in run.results
    )
    return Suite(cases, "rocmend report", started)


def curves(results: Sequence[Measured]) -> list[Block]:
    """Draw the speed of language models over the depth of the context: a plot for each model and test."""
    tests: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for result in results:
        if result.figure is not None and (test := test_of(result)):
            tests[str(result.case.parameters["model"]), test].append(result)
    series: dict[tuple[str, str], dict[str, list[Measured]]] = {}
    for (model, test), some in tests.items():
        for name, chosen in by_length(model, some).items():
            settings = series.setdefault((name, test), defaultdict(list))
            for result in chosen:
                settings[result.setting.id].append(result)
    order = dict.fromkeys(result.setting.id for result in results)  # one setting looks the same in each plot
    plots: list[Block] = []
    for (model, test), settings in series.items():
        if len({depth_of(result) for some in settings.values() for result in some}) < _LEAST_DEPTHS:
            continue
        lines = tuple(
            Series(
                setting,
                tuple(
                    Point(float(depth_of(one)), one.figure or 0.0, f"depth {depth_of(one):,}", one.interval or ())
                    for one in sorted(settings[setting], key=depth_of)
                ),
            )
            for setting in order
            if setting in settings
        )
        caption = f"{model}, {TESTS[test]}"
        plots.append(Plot(Axis("Tokens in the context before"), Axis("Speed", "tok/s"), lines, caption))
    return plots
