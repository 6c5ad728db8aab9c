"""How a run of a benchmark is laid out."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rocmend.bench.case import UNITS, Case, Setting
from rocmend.bench.compare import compared_in, matched
from rocmend.bench.comparison import Overall, busy_share, busy_text, compared, overall, together, unusable
from rocmend.bench.conclude import conclusions
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.records import BenchRun, Measured, subject_of
from rocmend.bench.session import Subject
from rocmend.bench.stats import Comparison, Difference, Summary
from rocmend.cli.progress import rounded_time
from rocmend.cli.views.bench_calibration import calibrations
from rocmend.cli.views.bench_curves import curves
from rocmend.cli.views.bench_figures import QUIET, figures, intervals, of_bound
from rocmend.cli.views.bench_gemm import rooflines
from rocmend.cli.views.bench_memory import bandwidths
from rocmend.cli.views.bench_sensors import every_note, label, sensor_notes, sensor_table
from rocmend.core.units import count_text, figure_text, listed, size_text, time_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import Block, Card, Code, Document, Pairs, Section, Text, Tone, table

MOST_NAMED = 6
"""Cases named in a card before the rest is counted."""
_ANSWERS = 2
_LONG_S = 5.0
"""Seconds of a first run from which on it is said without being asked for."""


def run_document(run: BenchRun) -> Document:
    """Lay out a run: the answer, the figures, what has none and why, and where it ran."""
    summary, tone = run_summary(run)
    footer = ""
    if run.group and (run.results or run.calibrations):
        footer = f"Kept as {run.group}; with times and sensors:\n`rocmend report {run.group} -o {run.suite}.html`"
    return Document(run.title, summary, tone, tuple(run_blocks(run)), footer)


def run_summary(run: BenchRun) -> tuple[str, Tone]:
    """Return the answer in a sentence or two, and its tone."""
    timed = [item for item in run.results if item.summary]
    ran = [item for item in run.results if item.verdict not in QUIET]
    where = _where(run)
    answer = " ".join(one.text for one in _answers(statements(run))) or _best(timed)
    doubt = busy_sentence(timed)
    text = (
        f"{doubt} {answer} {len(timed)} of {count_text(len(ran), 'figure')} measured{f' on {where}' if where else ''}."
    )
    wrong = sum(item.verdict is Verdict.WRONG_OUTPUT for item in run.results)
    if wrong:
        text += f" {count_text(wrong, 'result')} {'is' if wrong == 1 else 'are'} wrong and without a figure."
    if run.lacking:
        text += f" {count_text(len(run.lacking), 'figure')} missing: not supported here."
    if run.not_run:
        text += f" {len(run.not_run)} not run{f': {run.quarantine}' if run.quarantine else ''}."
    text = " ".join(text.split())
    if run.quarantine or wrong or not timed:
        return text, Tone.ERROR
    return text, Tone.GOOD if run.clean and not doubt else Tone.WARNING


def busy_sentence(results: Sequence[Measured]) -> str:
    """Say that figures can't be relied on because the machine was busy; nothing where all can."""
    timed = [item for item in results if item.summary]
    shares = [share for item in timed if (share := busy_share(item))]
    if not shares:
        return ""
    if len(shares) < len(timed):
        return f"{len(shares)} of {count_text(len(timed), 'figure')} can't be relied on: {busy_text(shares)}."
    which = "None of these figures can" if len(timed) > 1 else "This figure can't"
    return f"{_sentence(busy_text(shares))}. {which} be relied on: run it again on an idle machine."


def _answers(said: Sequence[Conclusion]) -> Sequence[Conclusion]:
    """Return the statements that stand first: what to use, or what is best, of two at most."""
    several = len(said) >= _ANSWERS and said[0].topic == said[1].topic and said[0].topic in {"best", "use"}
    return said[:_ANSWERS] if several and said[1].shown else said[:1]


def statements(run: BenchRun) -> list[Conclusion]:
    """Return what the figures say: as the suite puts it, of language models, or of each setting over all cases."""
    timed = [item for item in run.results if item.summary]
    if timed and all(map(unusable, timed)):
        return []
    found = list(run.conclusions) or conclusions(run.results) or _overall(run)
    model = found[0].text.partition(": ")[0] if found else ""
    if model and all(one.text.startswith(f"{model}: ") for one in found):  # the title or the first one has it
        kept = 0 if model in run.title else 1
        found[kept:] = [
            msgspec.structs.replace(one, text=_sentence(one.text.removeprefix(f"{model}: "))) for one in found[kept:]
        ]
    return found


def more_statements(run: BenchRun) -> list[Conclusion]:
    """Return what the figures say beyond the answer."""
    found = statements(run)
    return found[len(_answers(found)) :]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _where(run: BenchRun) -> str:
    names = dict.fromkeys(_device(item.subject) for item in run.results if item.subject.device_name)
    return listed(list(names)) if len(names) <= 3 else f"{len(names)} devices"


def _device(subject: Subject) -> str:
    target = "" if subject.gfx_target in {"", subject.device} else f" ({subject.gfx_target})"
    return f"{subject.device_name}{target}"


def _best(timed: Sequence[Measured]) -> str:
    timed = [item for item in timed if not unusable(item)]
    if not timed:
        return ""
    case = timed[0].case
    if len({item.case.id for item in timed}) > 1 and not all(item.bounds for item in timed):
        return ""  # the highest of unlike cases says only which is the lightest
    if len({item.case.unit for item in timed}) > 1 or UNITS[case.unit].better == "lower":
        return ""
    best = max(timed, key=lambda item: item.figure or 0.0)
    return f"The highest is {figure_text(best.figure)} {case.unit}{of_bound(best, ' (', ')')}: {label(best.case)}."


def _overall(run: BenchRun) -> list[Conclusion]:
    """Say what each setting does to the speed, in all cases; all of them are judged together."""
    made = [[(pair, compared(*pair)) for pair in matched(run, setting.id)] for setting in run.settings[1:]]
    means = [overall(one for _, one in pairs) for pairs in made]
    judged = iter(together([whole for whole in means if whole is not None]))
    return [
        _overall_of(run, setting, pairs, next(judged) if whole is not None else None)
        for setting, pairs, whole in zip(run.settings[1:], made, means, strict=True)
    ]


def _overall_of(
    run: BenchRun,
    setting: Setting,
    made: Sequence[tuple[tuple[Measured, Measured], Comparison]],
    whole: Overall | None,
) -> Conclusion:
    if whole is None:
        reasons = dict.fromkeys(one.reason for _, one in made if one.reason)
        why = f": {next(iter(reasons))}" if reasons else ""
        return Conclusion("setting", f"{setting.id} can't be compared with {run.settings[0].id}{why}.", (), shown=False)
    each = [one for (_, name), one in compared_in(run).items() if name == setting.id and one.low is not None]
    about = f"{setting.id} against {run.settings[0].id}, {count_text(len(each), 'case')}"
    return Conclusion(
        "setting",
        f"{about}: {counts_text(each)}; {overall_text(whole)}.",
        tuple(subject_of(other.case, other.setting) for (_, other), one in made if one.low is not None),
        shown=whole.difference is not Difference.NONE,
    )


def counts_text(found: Sequence[Comparison]) -> str:
    """Return how many came out how: ``faster in 3, no difference shown in 2``."""
    kinds = (Difference.FASTER, Difference.SLOWER, Difference.NONE, Difference.INCOMPARABLE)
    counts = [(kind, sum(item.difference is kind for item in found)) for kind in kinds]
    return ", ".join(f"{kind.value} in {count}" for kind, count in counts if count)


def overall_text(whole: Overall) -> str:
    """Return a geometric mean in words."""
    mean = "" if whole.cases == 1 else "on average "
    return f"{mean}{whole.ratio:.3f}x the speed (95 % interval {whole.low:.3f} to {whole.high:.3f})"


def run_blocks(run: BenchRun, *, said: bool = True) -> list[Block]:
    """Lay out everything below the answer.

    Args:
        run: The run.
        said: Say what the figures say, but for the first statements, which are the answer already.
    """
    failed, quiet = _failures(run)
    rest = more_statements(run) if said else []
    blocks: list[Block] = [Text("\n".join(f"- {escaped(one.text)}" for one in rest))] if rest else []
    notes = [Text(f"{escaped(_sentence(note))}.", Tone.WARNING) for note in run.notes]
    blocks.append(Section("Figures", (*figures(run), *sensor_notes(run), *notes, *_first_runs(run), *failed, *quiet)))
    blocks += calibrations(run)
    if pictures := _pictures(run):
        blocks.append(Section("Plots", tuple(pictures)))
    blocks += [*intervals(run), *_more(run), *_checks(run), *_settings(run.settings)]
    blocks.append(Section("Measured on", (Pairs(_subject(run)),)))
    return blocks


def _pictures(run: BenchRun) -> list[Block]:
    if run.suite == "gemm":
        return rooflines(run)
    return bandwidths(run) if run.suite == "memory" else curves(run.results)


def _failures(run: BenchRun) -> tuple[list[Card], list[Card]]:
    """Lay out what has no figure, those with the same reason together; apart, what can have none here."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for item in run.results:
        if item.verdict is not Verdict.PASS:
            groups.setdefault((item.verdict.value, item.reason), []).append(item)
    failed: list[Card] = []
    quiet: list[Card] = []
    for (verdict, reason), items in groups.items():
        names = [f"`{label(item.case)}` ({item.setting.id})" for item in items]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        blocks = (Text(escaped(reason) or "No reason was given."), Text(", ".join(names[:MOST_NAMED]) + more))
        log = items[0].prepared.log
        silent = items[0].verdict in QUIET
        card = Card(
            f"{count_text(len(items), 'figure')} missing",
            Tone.MUTED if silent else Tone.ERROR,
            verdict,
            blocks=blocks,
            details=(Code(log),) if log else (),
            details_title="Output",
            folded=silent,
        )
        (quiet if silent else failed).append(card)
    return failed, quiet


def _first_runs(run: BenchRun) -> list[Block]:
    """Say how long the longest first run took, where that is long: it compiles, or searches for an algorithm."""
    timed = [item for item in run.results if item.summary is not None and item.prepared.first_s is not None]
    longest = max(timed, key=lambda item: item.prepared.first_s or 0.0, default=None)
    took = (longest.prepared.first_s or 0.0) if longest is not None else 0.0
    if longest is None or took < max(_LONG_S, 2 * (longest.summary.median if longest.summary else 0.0)):
        return []
    name = f"{label(longest.case)}{f', {longest.setting.id}' if len(run.settings) > 1 else ''}"
    text = f"First runs, which compile or search, took up to {time_text(took * 1e3)} ({name})"
    return [Text(f"{escaped(text)}; they are not in the figures.", Tone.MUTED)]


def _more(run: BenchRun) -> list[Section]:
    """Lay out what stands behind the figures: times, first runs, bounds, memory."""
    rows: list[list[str]] = []
    for item in run.results:
        if item.summary is None:
            continue
        peak = item.prepared.detail.get("peak_bytes")
        rows.append(
            [
                f"{label(item.case)}{f', {item.setting.id}' if len(run.settings) > 1 else ''}",
                time_text(item.summary.median * 1e3),
                "" if item.prepared.first_s is None else time_text(item.prepared.first_s * 1e3),
                f"{item.summary.runs:,} in {item.summary.blocks}",
                _outliers(item.summary),
                size_text(peak) if peak else "",
            ]
        )
    if not rows:
        return []
    names = ["", "median run", "first run", "runs in blocks", "slow runs", "peak memory"]
    kept = [index for index in range(len(names)) if index == 0 or any(row[index] for row in rows)]
    made = table([names[index] for index in kept], [[row[index] for index in kept] for row in rows])
    sensors = sensor_table(run.results, settings=len(run.settings) > 1)
    title = "Times and sensors" if sensors else "Times"
    return [Section(title, (made, *sensors, *every_note(run), *_bounds(run)), folded=True, detail=True)]


def _outliers(summary: Summary) -> str:
    """Say how many runs were far slower than the median; they count like all others."""
    if not summary.outliers:
        return ""
    return f"{summary.outliers:,}, up to {figure_text(summary.slowest / summary.median, digits=2)}x"


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
    return [Section("Settings", (Pairs(tuple(rows)),))] if rows else []


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
        if item.origin:
            text = item.origin.get("command", "")
            rows.setdefault(f"made {text}", ("measured by", text, f"rocmend {item.origin.get('rocmend', '')}".strip()))
    if run.machine:
        rows["machine"] = ("machine", ", ".join(f"{name} {value}" for name, value in run.machine.items()), "")
    return tuple(rows.values())


def list_document(
    title: str,
    cases: Sequence[Case],
    settings: Sequence[Setting],
    more: Sequence[Setting] = (),
    *,
    timing_s: Sequence[float],
    whole_s: float,
    memory_bytes: int,
) -> Document:
    """Lay out what a run would measure.

    Args:
        title: What the suite measures.
        cases: Its cases.
        settings: Its settings.
        more: Settings that are measured only where they are named.
        timing_s: Seconds that timing takes at least, and at most.
        whole_s: Seconds that all of it takes about, at most.
        memory_bytes: Of the largest case in a process; 0 where that is not known.
    """
    made = table(["case", "unit"], [[case.id, case.unit] for case in cases])
    heads = ["setting", "variables", "what for"]
    named, others = (table(heads, [[one.id, _set(one), one.note] for one in some]) for some in (settings, more))
    beside = [Section("Only where named with --setting", (others,))] if more else []
    summary = f"{count_text(len(cases), 'case')} under {count_text(len(settings), 'setting')}."
    least, most = (time_text(seconds * 1e3) for seconds in timing_s)
    summary += f" Timing takes {least if least == most else f'{least} to {most}'}"
    summary += f", with preparing and checking about {rounded_time(whole_s)} at most."
    if memory_bytes:
        summary += f" Memory: up to {size_text(memory_bytes)} for operands in the process of each setting."
    footer = "`--select GLOB` and `--setting ID` choose some of them."
    return Document(title, summary, Tone.PLAIN, (made, named, *beside), footer)


def _set(setting: Setting) -> str:
    """Return what a setting sets."""
    given = [f"{name}={value}" for name, value in setting.env.items() if value is not None]
    given += [name if value is True else f"{name}: {value}" for name, value in setting.options.items()]
    return ", ".join(given)


def escaped(text: str) -> str:
    """Return a text with what Markdown would read as markup escaped."""
    return re.sub(r"([\\`*_\[<>#|])", r"\\\1", text)
