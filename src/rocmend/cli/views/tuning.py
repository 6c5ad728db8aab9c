"""How tuning is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocmend.core.units import count_text
from rocmend.report.document import Block, Cell, Code, Document, Section, Text, Tone, table

if TYPE_CHECKING:
    from rocmend.kernels.tuning.tune import Tuned, Tuning


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
    dropped = [f"{look}: {why}" for result in one.results for look, why in result.dropped.items()]
    if dropped:
        blocks.append(Text(f"{count_text(len(dropped), 'candidate')} dropped:"))
        blocks.append(Code("\n".join(dropped[:12]) + (f"\nand {len(dropped) - 12} more" if len(dropped) > 12 else "")))
    return Section(one.op, tuple(blocks))


def _row(result: Tuned) -> list[str | Cell]:
    gain = f"{(result.gain - 1) * 100:.0f} %" if result.gain > 1 else ""
    return [
        result.kernel or "(implementation)",
        result.shape_class,
        f"{result.tried}/{result.of}",
        result.after or "none passed",
        Cell(gain, Tone.GOOD),
    ]
