"""How what was measured on a machine is laid out as one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rocmend.bench.compare import run_data
from rocmend.bench.conclude import conclusions
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.records import BenchRun, Measured, subject_of
from rocmend.cli.views.bench import busy_sentence, escaped, more_statements, run_blocks, run_summary, statements
from rocmend.core.units import count_text
from rocmend.report.document import Block, Card, Document, Pairs, Section, Text, Tone
from rocmend.report.junit import Case, Suite


def report_data(runs: Sequence[BenchRun]) -> dict[str, Any]:
    """Return the report as data."""
    return {"runs": [run_data(run) for run in runs], "conclusions": _conclusions(runs)}


def _conclusions(runs: Sequence[BenchRun]) -> list[Conclusion]:
    models = conclusions(*(run.results for run in runs))
    return [*models, *(one for run in runs for one in run.conclusions)]


def report_document(runs: Sequence[BenchRun]) -> Document:
    """Lay out the report: what follows from the figures first, then each run."""
    devices = list(dict.fromkeys(_device(result) for run in runs for result in run.results if _device(result)))
    figures = sum(result.summary is not None for run in runs for result in run.results)
    missing = sum(len(run.failed) + len(run.lacking) + len(run.not_run) for run in runs)
    summary = f"{count_text(figures, 'figure')} from {count_text(len(runs), 'run')}"
    summary += f"; {count_text(missing, 'figure')} missing." if missing else "."
    doubt = busy_sentence([result for run in runs for result in run.results])
    summary = f"{doubt} {summary}".lstrip()
    cards = [_card(run) for run in runs]
    known = {(one.topic, one.evidence) for run in runs for one in statements(run)}
    pooled = [one for one in _conclusions(runs) if (one.topic, one.evidence) not in known]
    if pooled:
        cards.append(_said("Over all runs", "", pooled, pooled, Tone.INFO))
    blocks: list[Block] = [Section("What the figures say", tuple(cards))]
    blocks += [Section(run.title, tuple(run_blocks(run, said=False))) for run in runs]
    failed = any(not run.clean for run in runs)
    title = f"Measured on {', '.join(devices)}" if devices else "Measured"
    footer = f"Runs: {', '.join(run.group for run in runs)}."
    if any(len(item.blocks) > 1 for run in runs for item in run.results):  # single figures can't be compared
        footer += " `rocmend compare` compares them with later ones."
    return Document(title, summary, Tone.WARNING if failed or doubt else Tone.GOOD, tuple(blocks), footer)


def _card(run: BenchRun) -> Card:
    """Lay out what a run says."""
    text, tone = run_summary(run)
    return _said(run.title, text, statements(run), more_statements(run), tone)


def _said(title: str, text: str, said: Sequence[Conclusion], listed: Sequence[Conclusion], tone: Tone) -> Card:
    """Lay out statements with the figures that they rest on; those that are not in the text are listed."""
    lines = "\n".join(f"- {escaped(one.text)}" for one in listed)
    rests = tuple((one.text, ", ".join(one.evidence), "") for one in said if one.evidence)
    return Card(
        title,
        tone,
        blocks=tuple(Text(part) for part in (escaped(text), lines) if part),
        details=(Pairs(rests),) if rests else (),
        details_title="The cases that each statement rests on",
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
