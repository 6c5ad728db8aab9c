"""How a run of a benchmark is laid out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rocmend.bench.case import UNITS, Case, Setting
from rocmend.bench.compare import matched
from rocmend.bench.comparison import Overall, compared, overall
from rocmend.bench.records import BenchRun, Measured
from rocmend.bench.session import Subject
from rocmend.bench.stats import Comparison, Difference, Summary
from rocmend.cli.views.bench_calibration import calibrations
from rocmend.cli.views.bench_sensors import mark, sensor_notes, sensor_table
from rocmend.core.units import count_text, listed, size_text, time_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import Block, Card, Cell, Code, Document, Pairs, Section, Table, Text, Tone, table

TONES = {Difference.FASTER: Tone.GOOD, Difference.SLOWER: Tone.WARNING}
QUIET = {Verdict.SKIPPED, Verdict.UNSUPPORTED}
WIDE = 0.3
"""Half an interval over the figure from which on its ends are shown: it need not lie evenly around the figure."""
MOST_NAMED = 6
"""Cases named in a card before the rest is counted."""


def run_document(run: BenchRun, pictures: Sequence[Block] = ()) -> Document:
    """Lay out a run: the answer, the figures, what has none and why, and where it ran."""
    summary, tone = run_summary(run)
    footer = f"Run {run.group}: `rocmend store ls --group {run.group}` lists its records." if run.group else ""
    return Document(run.title, summary, tone, tuple(run_blocks(run, pictures)), footer)


def run_summary(run: BenchRun) -> tuple[str, Tone]:
    """Return the answer in a sentence or two, and its tone."""
    timed = [item for item in run.results if item.summary]
    ran = [item for item in run.results if item.verdict not in QUIET]
    where = _where(run)
    text = f"{len(timed)} of {count_text(len(ran), 'figure')} measured{f' on {where}' if where else ''}."
    if run.conclusions:
        text += f" {run.conclusions[0].text}"
    else:
        text += "".join(f" {_overall(run, setting)}" for setting in run.settings[1:])
    if len(run.settings) == 1 and timed and not run.conclusions:
        text += f" {_best(timed)}"
    if wrong := sum(item.verdict is Verdict.WRONG_OUTPUT for item in run.results):
        text += f" {count_text(wrong, 'result')} wrong, which gets no figure."
    if run.not_run:
        text += f" {len(run.not_run)} not run{f': {run.quarantine}' if run.quarantine else ''}."
    if run.quarantine or wrong or not timed:
        return text, Tone.ERROR
    return text, Tone.GOOD if run.clean else Tone.WARNING


def _where(run: BenchRun) -> str:
    names = dict.fromkeys(_device(item.subject) for item in run.results if item.subject.device_name)
    return listed(list(names)) if len(names) <= 3 else f"{len(names)} devices"


def _device(subject: Subject) -> str:
    target = "" if subject.gfx_target in {"", subject.device} else f" ({subject.gfx_target})"
    return f"{subject.device_name}{target}"


def _best(timed: Sequence[Measured]) -> str:
    case = timed[0].case
    if len({item.case.unit for item in timed}) > 1 or UNITS[case.unit].better == "lower":
        return ""
    best = max(timed, key=lambda item: item.figure or 0.0)
    return f"The highest is {figure_text(best.figure)} {case.unit}{_of_bound(best, ' (', ')')}: {_label(best.case)}."


def _overall(run: BenchRun, setting: Setting) -> str:
    """Say what a setting does to the speed, in all cases."""
    made = [compared(*pair) for pair in matched(run, setting.id)]
    found = [one for one in made if one.low is not None]
    whole = overall(found)
    if whole is None:
        reasons = dict.fromkeys(one.reason for one in made if one.reason)
        why = f": {next(iter(reasons))}" if reasons else ""
        return f"{setting.id} can't be compared with {run.settings[0].id}{why}."
    counts = counts_text(found)
    return (
        f"{setting.id} against {run.settings[0].id}, {count_text(len(found), 'case')}: {counts}; {overall_text(whole)}."
    )


def counts_text(found: Sequence[Comparison]) -> str:
    """Return how many came out how: ``faster in 3, no difference shown in 2``."""
    kinds = (Difference.FASTER, Difference.SLOWER, Difference.NONE, Difference.INCOMPARABLE)
    counts = [(kind, sum(item.difference is kind for item in found)) for kind in kinds]
    return ", ".join(f"{kind.value} in {count}" for kind, count in counts if count)


def overall_text(whole: Overall) -> str:
    """Return a geometric mean in words."""
    mean = "" if whole.cases == 1 else "geometric mean "
    return f"{mean}{whole.ratio:.3f}x the speed, {whole.low:.3f} to {whole.high:.3f}"


def run_blocks(run: BenchRun, pictures: Sequence[Block] = ()) -> list[Block]:
    """Lay out everything below the answer."""
    blocks: list[Block] = [
        *_conclusions(run),
        *_figures(run),
        *sensor_notes(run),
        *pictures,
        *calibrations(run),
        *_failures(run),
    ]
    blocks += [Text(f"{escaped(note[:1].upper() + note[1:])}.", Tone.WARNING) for note in run.notes]
    blocks += [_more(run), *_checks(run), *_settings(run.settings), Pairs(_subject(run))]
    return blocks


def _conclusions(run: BenchRun) -> list[Block]:
    """Lay out what the figures say, but for the first statement, which is the answer already."""
    said = run.conclusions[1:]
    return [Text("\n".join(f"- {escaped(one.text)}" for one in said))] if said else []


def _figures(run: BenchRun) -> list[Table]:
    """Lay out the figures: a table for each unit, a column for each setting."""
    made = []
    by = {(item.case.id, item.setting.id): item for item in run.results}
    cases = list({item.case.id: item.case for item in run.results}.values())
    for unit in dict.fromkeys(case.unit for case in cases):
        rows: list[list[str | Cell]] = []
        for case in cases:
            if case.unit == unit:
                found = [by.get((case.id, setting.id)) for setting in run.settings]
                rows.append([_label(case), *(_cell(item, found[0]) for item in found)])
        better = "" if UNITS[unit].better == "higher" else ", less is better"
        caption = f"{unit}{better}, with 95 % intervals{_bound_words(run)}"
        made.append(table(["case", *(setting.id for setting in run.settings)], rows, caption))
    return made


def _bound_words(run: BenchRun) -> str:
    names = dict.fromkeys(item.bounds[0].name for item in run.results if item.bounds)
    return f"; % of {' or '.join(names)}" if names else ""


def _cell(item: Measured | None, first: Measured | None) -> Cell:
    if item is None:
        return Cell("not run", Tone.MUTED)
    if item.summary is None:
        return Cell(item.verdict.value, Tone.MUTED if item.verdict in QUIET else Tone.ERROR)
    text = f"{interval_text(item)}{mark(item)}{_of_bound(item, ' (', ')')}"
    if first is None or first is item:
        return Cell(text)
    if first.summary is None:
        return Cell(text)
    found = compared(first, item)
    return Cell(f"{text} {difference_text(found)}", TONES.get(found.difference, Tone.PLAIN))


def difference_text(found: Comparison) -> str:
    """Return a comparison in a few words: ``0.83x slower``."""
    if found.ratio is None:
        return found.difference.value
    if found.difference is Difference.NONE:
        return f"{_ratio_text(found.ratio)}x no difference shown"
    return f"{_ratio_text(found.ratio)}x {found.difference.value}"


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.2g}"


def interval_text(item: Measured) -> str:
    """Return a figure with half its interval: ``32.7 ±0.2``; with both ends where it is wide."""
    ends, figure = item.interval, item.figure
    if ends is None or figure is None:
        return figure_text(figure)
    half = max(ends[1] - figure, figure - ends[0])
    if half > WIDE * figure:
        return f"{figure_text(figure)}, {figure_text(ends[0], digits=2)} to {figure_text(ends[1], digits=2)}"
    return f"{figure_text(figure)} ±{figure_text(half, digits=2)}"


def figure_text(value: float | None, *, digits: int = 4) -> str:
    """Return a figure with so many significant digits, without an exponent."""
    if value is None:
        return ""
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e" in text and abs(value) >= 1 else f"{value:.1e}" if "e" in text else text


def _of_bound(item: Measured, before: str, after: str) -> str:
    figure = item.figure
    limits = [bound.figure for bound in item.bounds if bound.figure > 0]
    if figure is None or not limits:
        return ""
    higher = UNITS[item.case.unit].better == "higher"
    share = figure / min(limits) if higher else max(limits) / figure
    return f"{before}{share:.0%}{after}"


def _label(case: Case) -> str:
    return case.title or case.id.removeprefix(f"{case.suite}/")


def _failures(run: BenchRun) -> list[Card]:
    """Lay out what has no figure, those with the same reason together."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for item in run.results:
        if item.verdict is not Verdict.PASS:
            groups.setdefault((item.verdict.value, item.reason), []).append(item)
    cards = []
    for (verdict, reason), items in sorted(groups.items(), key=lambda pair: pair[1][0].verdict in QUIET):
        names = [f"`{_label(item.case)}` ({item.setting.id})" for item in items]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        blocks = (Text(escaped(reason) or "No reason was given."), Text(", ".join(names[:MOST_NAMED]) + more))
        log = items[0].prepared.log
        tone = Tone.MUTED if items[0].verdict in QUIET else Tone.ERROR
        title = f"{count_text(len(items), 'figure')} missing"
        cards.append(
            Card(title, tone, verdict, blocks=blocks, details=(Code(log),) if log else (), details_title="Output")
        )
    return cards


def _more(run: BenchRun) -> Section:
    """Lay out what stands behind the figures: times, first runs, bounds, memory."""
    rows: list[list[str | Cell]] = []
    for item in run.results:
        if item.summary is None:
            continue
        peak = item.prepared.detail.get("peak_bytes")
        rows.append(
            [
                f"{_label(item.case)}{f' @ {item.setting.id}' if len(run.settings) > 1 else ''}",
                time_text(item.summary.median * 1e3),
                "" if item.prepared.first_s is None else time_text(item.prepared.first_s * 1e3),
                f"{item.summary.runs:,} in {item.summary.blocks}",
                _outliers(item.summary),
                size_text(peak) if peak else "",
            ]
        )
    names = ["case", "run", "first run", "runs in blocks", "slow runs", "peak memory"]
    kept = [index for index in range(len(names)) if index == 0 or any(row[index] for row in rows)]
    made = table([names[index] for index in kept], [[row[index] for index in kept] for row in rows])
    sensors = sensor_table(run.results, settings=len(run.settings) > 1)
    return Section("Times", (made, *sensors, *_bounds(run)), folded=True)


def _outliers(summary: Summary) -> str:
    """Say how many runs were far slower than the median; they count like all others."""
    if not summary.outliers:
        return ""
    return f"{summary.outliers:,}, up to {summary.slowest / summary.median:.1f}x"


def _bounds(run: BenchRun) -> list[Block]:
    found = {(bound.name, bound.source): bound for item in run.results for bound in item.bounds}
    lines = [f"- {escaped(name)}{f': {escaped(source)}' if source else ''}" for name, source in found]
    return [Text("Bounds:\n\n" + "\n".join(lines))] if lines else []


def _checks(run: BenchRun) -> list[Block]:
    """Lay out how the output was checked, where a suite says so."""
    rows: dict[tuple[str, str], tuple[str, str, str]] = {}
    for item in run.results:
        output, doubt = item.prepared.detail.get("output"), item.prepared.detail.get("doubt")
        for text in (output.get("said") if isinstance(output, dict) else None, doubt):
            if isinstance(text, str) and item.prepared.verdict is Verdict.PASS:
                rows[item.setting.id, text] = (item.setting.id, text, "")
    return [Section("Output compared with the CPU", (Pairs(tuple(rows.values())),))] if rows else []


def _settings(settings: Sequence[Setting]) -> list[Block]:
    told = [setting for setting in settings if setting.env or setting.options or setting.note]
    rows = [(setting.id, _set(setting) or "nothing set", setting.note) for setting in told]
    return [Pairs(tuple(rows))] if rows else []


def _subject(run: BenchRun) -> tuple[tuple[str, str, str], ...]:
    rows = {}
    for item in run.results:
        subject = item.subject
        if subject.device_name:
            name = _device(subject)
            rows[f"device {name}"] = ("device", name, subject.device)
        if subject.versions:
            text = ", ".join(f"{name} {version}" for name, version in subject.versions.items())
            rows.setdefault(f"software {text}", ("software", text, ""))
    if run.machine:
        rows["machine"] = ("machine", ", ".join(f"{name} {value}" for name, value in run.machine.items()), "")
    return tuple(rows.values())


def list_document(title: str, cases: Sequence[Case], settings: Sequence[Setting]) -> Document:
    """Lay out what a run would measure."""
    made = table(["case", "unit"], [[case.id, case.unit] for case in cases])
    named = table(
        ["setting", "variables", "what for"],
        [[setting.id, _set(setting), setting.note] for setting in settings],
    )
    summary = f"{count_text(len(cases), 'case')} under {count_text(len(settings), 'setting')}."
    footer = "`--select GLOB` and `--setting ID` choose some of them."
    return Document(title, summary, Tone.PLAIN, (made, named), footer)


def _set(setting: Setting) -> str:
    """Return what a setting sets; where that is nothing, the variables that it takes away."""
    given = [f"{name}={value}" for name, value in setting.env.items() if value is not None]
    given += [f"{name}: {value}" for name, value in setting.options.items()]
    taken = ", ".join(setting.env)
    return ", ".join(given) or (f"{taken} unset" if taken else "")


def escaped(text: str) -> str:
    """Return a text with what Markdown would read as markup escaped."""
    return re.sub(r"([\\`*_\[<>#|])", r"\\\1", text)
