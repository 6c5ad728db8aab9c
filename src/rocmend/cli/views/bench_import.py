"""How imported results are laid out: a table for each model, a column for each machine, back end or environment."""

from __future__ import annotations

from rocmend.bench.imported import Found, Imported, measured_of, pivot
from rocmend.cli.views.bench import escaped
from rocmend.cli.views.bench_curves import curves
from rocmend.cli.views.bench_figures import spread_text
from rocmend.core.units import count_text, figure_text, size_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import Block, Card, Cell, Document, Pairs, Section, Text, Tone, table

_MOST_SHOWN = 20


def document(found: Found, kept: tuple[int, int], group: str) -> Document:
    """Lay out what files hold.

    Args:
        found: What they hold.
        kept: How many results were kept, and how many the store had.
        group: Id of the group that they are kept under; empty where none are.
    """
    failed = sum(item.entry.verdict is not Verdict.PASS for item in found.results)
    models = len({item.entry.model for item in found.results})
    text = count_text(len(found.results) - failed, "figure")
    text += f" and {count_text(failed, 'failed run')}" if failed else ""
    text += f" of {count_text(models, 'model')}, from {_files(len(found.read))}."
    if found.problems:
        text += f" {count_text(len(found.problems), 'place')} could not be read."
    if found.unknown:
        text += f" {_files(len(found.unknown))} hold{'s' if len(found.unknown) == 1 else ''} no results that are known."
    tone = Tone.ERROR if not found.results else Tone.WARNING if found.problems else Tone.GOOD
    blocks = [
        *_tables(found),
        *curves([measured_of(item) for item in found.results]),
        *_failures(found),
        *_problems(found),
        *_sources(found),
    ]
    footer = "Nothing was kept."
    if group and any(kept):
        had = f" {kept[1]} were kept before." if kept[1] else ""
        footer = f"{kept[0]} kept as evidence of others.{had} `rocmend store ls --kind imported` lists it."
    return Document("Imported results", text, tone, tuple(blocks), footer)


def _files(count: int) -> str:
    return count_text(count, "file")


def _tables(found: Found) -> list[Block]:
    made: list[Block] = []
    for model, (tests, columns, cells) in pivot(found.results).items():
        timed = [test for test in tests if any(_figure(cells.get((test, column))) for column in columns)]
        shown = [column for column in columns if any(_figure(cells.get((test, column))) for test in timed)]
        rows: list[list[str | Cell]] = [
            [test, *(_cell(cells.get((test, column)), cells.get((test, shown[0]))) for column in shown)]
            for test in timed
        ]
        if rows:
            compared = f"; % against {shown[0]}" if len(shown) > 1 else ""
            caption = f"{model}{_size(found, model)}: tokens per second ± standard deviation{compared}"
            made.append(table(["test", *shown], rows, caption))
    return made


def _size(found: Found, model: str) -> str:
    rows = [item.entry.row for item in found.results if item.entry.model == model and item.entry.row]
    size = next((row.size_bytes for row in rows if row.size_bytes), 0)
    return f" ({size_text(size)})" if size else ""


def _figure(item: Imported | None) -> float | None:
    return item.entry.row.rate if item is not None and item.entry.row is not None else None


def _cell(item: Imported | None, first: Imported | None) -> Cell:
    if item is None or item.entry.row is None:
        return Cell("", Tone.MUTED)
    row, before = item.entry.row, _figure(first)
    text = figure_text(row.rate) if row.spread is None else spread_text(row.rate, row.spread)
    if item is first or not before:
        return Cell(text)
    change = row.rate / before - 1
    tone = Tone.GOOD if change > 0.01 else Tone.WARNING if change < -0.01 else Tone.PLAIN
    return Cell(text, tone, note=f"({change * 100:+.1f} %)")


def _failures(found: Found) -> list[Block]:
    groups: dict[tuple[str, str], list[Imported]] = {}
    for item in found.results:
        if item.entry.verdict is not Verdict.PASS:
            groups.setdefault((item.entry.verdict.value, item.entry.reason), []).append(item)
    cards: list[Block] = []
    for (verdict, reason), items in list(groups.items())[:_MOST_SHOWN]:
        names = list(dict.fromkeys(f"`{item.entry.model}` ({item.entry.label})" for item in items))
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        blocks = (Text(escaped(reason) or "The file says no reason."), Text(", ".join(names[:6]) + more))
        cards.append(Card(f"{count_text(len(items), 'run')} failed", Tone.WARNING, verdict, blocks=blocks))
    return cards


def _problems(found: Found) -> list[Block]:
    rows = [(problem.file, problem.text, "") for problem in found.problems[:_MOST_SHOWN]]
    if len(found.problems) > _MOST_SHOWN:
        rows.append(("", f"and {len(found.problems) - _MOST_SHOWN} more", ""))
    made: list[Block] = [Section("Not read", (Pairs(tuple(rows)),))] if rows else []
    if found.unknown:
        names = [f"`{name}`" for name in found.unknown[:_MOST_SHOWN]]
        more = f" and {len(found.unknown) - _MOST_SHOWN} more" if len(found.unknown) > _MOST_SHOWN else ""
        made.append(Text(f"Not recognized: {', '.join(names)}{more}."))
    return made


def _sources(found: Found) -> list[Block]:
    rows: dict[tuple[str, str], tuple[str, str, str]] = {}
    for item in found.results:
        row = item.entry.row
        parts = [row.gpu, f"llama.cpp {row.build}" if row.build else "", row.time[:10]] if row else []
        parts += [f"{name}: {value}" for name, value in item.entry.facts.items() if name in _FACTS]
        text = ", ".join(part for part in parts if part) or "the file says nothing of its device, build or date"
        rows.setdefault((item.column, text), (item.column, text, item.file))
    shown = tuple(rows.values())
    made = shown[:_MOST_SHOWN]
    rest = [Text(f"And {len(shown) - len(made)} more.")] if len(shown) > len(made) else []
    return [Section("Where it is from", (Pairs(made), *rest), folded=len(shown) > 6)] if made else []


_FACTS = ("device", "source", "date", "note", "image", "image_digest", "host", "kernel")
