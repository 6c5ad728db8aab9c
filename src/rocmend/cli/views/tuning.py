"""How tuning is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocmend.core.units import count_text
from rocmend.report.document import Block, Cell, Code, Document, Section, Text, Tone, table

if TYPE_CHECKING:
    from rocmend.kernels.tuning.propose import Proposal, Proposals
    from rocmend.kernels.tuning.tune import Tuned, Tuning

MOST_REASONS = 12


def tune_document(found: Sequence[Tuning]) -> Document:
    """Lay out what was tuned."""
    blocks: list[Block] = [_op(one) for one in found]
    kept = sum(result.kept and bool(result.kernel) for one in found for result in one.results)
    open_ops = [one.op for one in found if not one.finished]
    summary = f"{count_text(kept, 'new record')}."
    if open_ops:
        summary += (
            f" Not all configurations of {', '.join(open_ops)} were tried: run it again, or use a larger --budget."
        )
    device = found[0].device_name if found else ""
    footer = f"Records are kept in {found[0].file}." if found else ""
    return Document(
        f"Kernels tuned on {device}", summary, Tone.WARNING if open_ops else Tone.GOOD, tuple(blocks), footer
    )


def _op(one: Tuning) -> Section:
    blocks: list[Block] = []
    if one.results:
        rows = [_row(result) for result in one.results]
        blocks.append(table(["kernel", "class", "tried", "in use now", "faster by"], rows))
    else:
        blocks.append(Text("It has no search space and no realistic cases to tune with.", Tone.MUTED))
    blocks += _dropped([result.dropped for result in one.results])
    return Section(one.op, tuple(blocks))


def _dropped(each: Sequence[dict[str, str]]) -> list[Block]:
    """Show why candidates were dropped: each reason once, with how many and the first of them."""
    by_reason: dict[str, list[str]] = {}
    for some in each:
        for look, why in some.items():
            by_reason.setdefault(why, []).append(look)
    if not by_reason:
        return []
    count = sum(map(len, by_reason.values()))
    lines = [
        f"{looks[0]}: {why}" if len(looks) == 1 else f"{looks[0]} and {len(looks) - 1} more: {why}"
        for why, looks in sorted(by_reason.items(), key=lambda one: -len(one[1]))
    ]
    shown = "\n".join(lines[:MOST_REASONS])
    if len(lines) > MOST_REASONS:
        shown += f"\nand {count_text(len(lines) - MOST_REASONS, 'other reason')}"
    return [Text(f"{count_text(count, 'candidate')} dropped:"), Code(shown)]


def proposals_document(found: Sequence[Proposals], records: str, file: str) -> Document:
    """Lay out what the cost model proposes: a table an op, then the records as TOML unless they are in a file."""
    proposed = sum(one.proposed for op in found for one in op.results)
    first = found[0]
    summary = (
        f"{count_text(proposed, 'record')} proposed for {first.target}. The times are estimates of cost model "
        f"{first.model} with the figures of {first.product}: nothing was run."
    )
    blocks: list[Block] = [_proposals(one) for one in found]
    if records and not file:
        blocks.append(Section("Records", (Code(records.rstrip()),)))
    open_ops = [one.op for one in found if not one.finished]
    footer = f"Written to {file}." if file and records else ""
    if open_ops:
        footer += f" Not all candidates of {', '.join(open_ops)} were estimated: use a larger --budget."
    tone = Tone.WARNING if open_ops else Tone.GOOD
    return Document(f"Tuning records proposed for {first.target}", summary, tone, tuple(blocks), footer.strip())


def _proposals(one: Proposals) -> Section:
    if not one.results:
        return Section(one.op, (Text("None of its kernels for this target has a search space.", Tone.MUTED),))
    rows = [_proposal(result) for result in one.results]
    head = ["kernel", "class", "estimated", "bound by", "in use, µs", "best, µs", "best"]
    return Section(one.op, (table(head, rows), *_dropped([result.dropped for result in one.results])))


def _proposal(one: Proposal) -> list[str | Cell]:
    before = f"{one.before_us:.1f}" if one.before_us else "none"
    changed = {name: value for name, value in one.after.items() if one.before.get(name) != value}
    text = " ".join(f"{name}={value}" for name, value in changed.items())
    return [
        one.kernel,
        one.shape_class,
        f"{one.estimated}/{one.of}",
        one.bound or "not known",
        before,
        f"{one.after_us:.1f}" if one.after_us else "none",
        Cell(text or "as in use", Tone.GOOD if one.proposed else Tone.MUTED),
    ]


def _row(result: Tuned) -> list[str | Cell]:
    gain = f"{(result.gain - 1) * 100:.0f} %" if result.gain > 1 else ""
    return [
        result.kernel or "(implementation)",
        result.shape_class,
        f"{result.tried}/{result.of}",
        result.after or "none passed",
        Cell(gain, Tone.GOOD),
    ]
