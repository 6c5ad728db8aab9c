"""How experiments are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocmend.cli.views.store import VERDICT_TONE
from rocmend.core.units import count_text, time_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import (
    Block,
    Card,
    Cell,
    Code,
    Document,
    Link,
    Links,
    Pairs,
    Section,
    Span,
    Text,
    Timeline,
    TimelineRow,
    Tone,
    table,
)
from rocmend.report.visible import as_markdown, visible

if TYPE_CHECKING:
    from rocmend.lab.boot import RebootPlan
    from rocmend.lab.experiment import Experiment
    from rocmend.lab.laboratory import RunReport
    from rocmend.lab.minimize import Minimized
    from rocmend.lab.outcome import Outcome
    from rocmend.lab.plan import Step
    from rocmend.lab.service import LabPlan, LabReport, LabStatus
    from rocmend.runner.remote.confine import Rule

_STATUS_TONE = {"works": Tone.GOOD, "sometimes works": Tone.WARNING, "blocked": Tone.ERROR, "nothing run": Tone.MUTED}


_MOST_PASSED = 3
"""Trials named that passed; where more did, they are in the table."""
_TIMES = {1: "once", 2: "twice"}


def plan_document(plan: LabPlan, file: str) -> Document:
    """Lay out what is to be run."""
    rows = [[step.trial.id, step.difference, _predicted(step), step.trial.hypothesis] for step in plan.steps]
    blocks: list[Block] = [
        Text(plan.question),
        table(["trial", "changes to the baseline", "predicted", "hypothesis"], rows),
        *_rule_blocks(plan.rules),
        *_reboot_blocks(plan.reboots),
    ]
    summary = f"{count_text(len(plan.steps), 'trial')}, each run {_TIMES.get(plan.repeats, f'{plan.repeats} times')}"
    if plan.reboots:
        waiting = sum(len(item.trials) for item in plan.reboots)
        summary += f"; {count_text(waiting, 'needs', 'need')} a different boot configuration"
    return Document(
        plan.title,
        f"{summary}.",
        Tone.PLAIN,
        tuple(blocks),
        f"Nothing was run. Run them with `rocmend lab run {file}`.",
    )


def _predicted(step: Step) -> str:
    texts = [
        f"{item.verdict.value}{' after ' + item.phase if item.phase else ''} ({item.entry})"
        for item in step.predictions
    ]
    return "; ".join(texts) or "no prediction"


def _rule_blocks(rules: Sequence[Rule]) -> list[Block]:
    """Show what a run is denied and given back."""
    if not rules:
        return []
    rows = [[rule.effect.value, visible(rule.what), visible(rule.text), visible(rule.reason)] for rule in rules]
    return [Section("What a run may do", (table(["", "what", "how", "why"], rows, key=1),))]


def _reboot_blocks(reboots: Sequence[RebootPlan]) -> list[Block]:
    if not reboots:
        return []
    intro = Text(
        "These trials need another boot configuration. rocmend does not change it: follow the steps for your system, "
        "reboot, then run `rocmend lab resume`, which checks the new boot."
    )
    return [Section("Reboots", (intro, *(_reboot_card(item) for item in reboots)))]


def _reboot_card(plan: RebootPlan) -> Card:
    steps: list[Block] = []
    for step in plan.steps:
        steps += [Text(f"{step.system}:"), Code("\n".join(step.commands), step.language)]
    steps += [Text(note) for note in plan.notes]
    return Card(f"{', '.join(plan.trials)}: {', '.join(plan.wants)}", Tone.ADVICE, "reboot", blocks=tuple(steps))


def status_document(status: LabStatus, file: str) -> Document:
    """Lay out how far an experiment is."""
    done = sum(min(item.runs, status.repeats) for item in status.outcomes)
    wanted = status.repeats * len(status.outcomes)
    summary, tone = f"{_passed(status)}{done} of {wanted} runs made.", Tone.PLAIN
    if status.quarantine:
        summary, tone = f"{summary} This host is quarantined: {status.quarantine}.", Tone.ERROR
    notes: list[Block] = []
    if status.unrecorded:
        text = (
            f"{count_text(status.unrecorded, 'attempt')} running, or interrupted: continue with `rocmend lab resume "
            f"{file}`."
        )
        notes.append(Text(text, Tone.WARNING))
    if status.stale:
        text = f"{count_text(status.stale, 'record')} of trials whose definition changed: not counted."
        notes.append(Text(text, Tone.MUTED))
    footer = f"`rocmend lab report {file}` shows the conclusions."
    return Document(
        status.title, summary, tone, (_outcome_table(status.outcomes), *_reasons(status.outcomes), *notes), footer
    )


def _passed(status: LabStatus) -> str:
    """Return which of the trials that ran passed every time; nothing where none ran."""
    ran = [item for item in status.outcomes if item.runs]
    passed = [item.trial.id for item in ran if item.verdict == Verdict.PASS]
    named = f": {', '.join(passed)}" if 0 < len(passed) <= _MOST_PASSED else ""
    return f"{len(passed)} of {count_text(len(ran), 'trial')} passed{named}. " if ran else ""


def run_document(report: RunReport, status: LabStatus, file: str) -> Document:
    """Lay out what a run did, and how far the experiment is."""
    made = count_text(sum(report.ran.values()), "run")
    parts = [f"{made} made"]
    if report.kept:
        parts.append(f"{sum(report.kept.values())} had been made before")
    if report.recovered:
        parts.append(f"{report.recovered} had finished unrecorded")
    if report.waiting:
        parts.append(f"{count_text(len(report.waiting), 'trial waits', 'trials wait')} for another boot")
    if report.stopped:
        parts.append("stopped before the end")
    rest = status_document(status, file)
    notes = [
        Text(f"{as_markdown(name)} could not be run: {as_markdown(reason)}", Tone.WARNING)
        for name, reason in report.void.items()
    ]
    notes += [
        Text(f"{as_markdown(name)} waits: {as_markdown(lacking)}", Tone.WARNING)
        for name, lacking in report.waiting.items()
    ]
    if report.waiting:
        notes.append(Text(f"`rocmend lab plan {file}` shows how to set up that boot."))
    summary = f"{_passed(status)}{'; '.join(parts)}."
    if report.quarantine:
        summary += f" This host is quarantined: {report.quarantine}."
    tone = Tone.ERROR if report.quarantine else Tone.PLAIN
    return Document(status.title, summary, tone, (*rest.blocks, *notes), rest.footer)


def _outcome_table(outcomes: Sequence[Outcome]) -> Block:
    rows: list[list[str | Cell]] = [
        [
            item.trial.id,
            visible(item.difference),
            Cell(visible(item.text), _tone(item)),
            str(item.runs),
            time_text(item.time_ms) if item.runs else "",
        ]
        for item in outcomes
    ]
    return table(["trial", "changes to the baseline", "outcome", "runs", "time"], rows)


def _reasons(outcomes: Sequence[Outcome]) -> list[Block]:
    """Say why each trial came out as it did, or was not run."""
    why = [(item.trial.id, visible(item.reason if item.runs else item.waiting or item.void), "") for item in outcomes]
    rows = tuple(row for row in why if row[1])
    return [Section("Why", (Pairs(rows),))] if rows else []


def _tone(outcome: Outcome) -> Tone:
    if not outcome.runs:
        return Tone.MUTED
    return Tone.WARNING if outcome.verdict == "flaky" else VERDICT_TONE[Verdict(outcome.verdict)]


def report_document(report: LabReport) -> Document:
    """Lay out the whole report."""
    head, conclusion = report.experiment.experiment, report.conclusion
    says = [Text(as_markdown(conclusion.sentence))] if conclusion.sentence else []
    says += [Text(as_markdown(item.text)) for item in report.minimized]
    blocks: list[Block] = [
        Section("Question", (Text(head.question), *([Text(head.background)] if head.background else [])))
    ]
    if says:
        blocks.append(Section("Conclusion", tuple(says)))
    blocks.append(Section("Trials", (_strategy_table(report.status.outcomes),)))
    ran = [item for item in report.status.outcomes if item.timeline]
    if ran:
        blocks.append(Section("Phases", (_timeline(ran),)))
    if report.experiment.success:
        blocks.append(Section("Success", (_success(report),)))
    if conclusion.next:
        blocks.append(
            Section("What to try next", (Text("\n".join(f"1. {as_markdown(item)}" for item in conclusion.next)),))
        )
    blocks += _reboot_blocks(report.reboots)
    if conclusion.comparisons:
        blocks.append(Section("What the conclusion rests on", (_comparisons(report),)))
    if head.sources:
        blocks.append(Links("Source", tuple(Link(item, item) for item in head.sources)))
    stale = report.status.stale
    footer = "Times are wall-clock. Intervals are 95 % Wilson score intervals."
    if stale:
        footer += f" {count_text(stale, 'record')} of trials whose definition changed: not counted."
    tone = _STATUS_TONE[conclusion.status]
    return Document(head.title, visible(conclusion.status_text), tone, tuple(blocks), footer)


def _strategy_table(outcomes: Sequence[Outcome]) -> Block:
    rows: list[list[str | Cell]] = [
        [
            item.trial.id,
            item.trial.hypothesis,
            visible(item.difference),
            Cell(visible(item.text), _tone(item)),
            str(item.runs),
            _told(item),
        ]
        for item in outcomes
    ]
    columns = ["trial", "hypothesis", "changes to the baseline", "outcome", "runs", "prediction"]
    told = len(columns) if any(row[-1] for row in rows) else -1  # without predictions there is no column of them
    return table(columns[:told], [row[:told] for row in rows])


def _told(outcome: Outcome) -> str:
    words = {True: "came true", False: "was wrong", None: "not tested"}
    return "; ".join(
        f"{told.prediction.verdict.value}{' after ' + told.prediction.phase if told.prediction.phase else ''}: "
        f"{words[told.came_true]} ({told.prediction.entry})"
        for told in outcome.told
    )


def _timeline(outcomes: Sequence[Outcome]) -> Timeline:
    """Draw the newest run of each trial; its last phase has the tone of what came out."""
    rows = []
    for item in outcomes:
        last = len(item.timeline) - 1
        spans = tuple(
            Span(
                visible(span.name),
                span.begin_ms / 1000,
                span.end_ms / 1000,
                _tone(item) if index == last else Tone.INFO,
            )
            for index, span in enumerate(item.timeline)
        )
        rows.append(TimelineRow(item.trial.id, spans, visible(item.text)))
    return Timeline(tuple(rows), "Phases of the newest run of each trial")


def _success(report: LabReport) -> Block:
    """List the criteria, and which trials met them all."""
    passed = [item.trial.id for item in report.status.outcomes if item.verdict == Verdict.PASS]
    rows = []
    for item in report.experiment.success:
        if not item.tested:
            rows.append((item.text, "to be judged by hand", ""))
        else:
            met = f"met by {', '.join(passed)}" if passed else "no trial met it every time"
            rows.append((item.text, met, _bounds(report, item.text)))
    return Pairs(tuple(rows))


def _bounds(report: LabReport, text: str) -> str:
    figures = [f"{item.trial.id}: {item.figures[text]:g}" for item in report.status.outcomes if text in item.figures]
    return visible(", ".join(figures))


def _comparisons(report: LabReport) -> Block:
    rows = [
        [
            f"{item.first} and {item.second}",
            report.experiment.factor_named(item.factor).setting(item.after),
            {"same": "no difference", "unclear": "too few runs to tell"}.get(item.effect, visible(item.text)),
        ]
        for item in report.conclusion.comparisons
    ]
    return table(["trials that differ in one factor", "setting", "effect"], rows)


def minimized_document(experiment: Experiment, found: Minimized) -> Document:
    """Lay out the smallest difference."""
    from rocmend.lab.minimize import minimized_text

    rows = [
        [
            item.trial,
            ", ".join(experiment.factor_named(name).called for name in item.changes) or "none",
            visible(item.text),
            found.second if item.like_second else found.first,
        ]
        for item in found.tested
    ]
    tested = table(["trial", f"taken from {found.second}", "outcome", "like"], rows)
    summary = minimized_text(experiment, found)
    tone = Tone.WARNING if found.incomplete else Tone.GOOD
    title = f"{experiment.experiment.title}: from {found.first} to {found.second}"
    return Document(title, visible(summary), tone, (tested,), f"{count_text(found.runs, 'new run')}.")
