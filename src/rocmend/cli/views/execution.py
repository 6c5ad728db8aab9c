"""Lays out what a command executes of a project."""

from __future__ import annotations

from rocmend.cli.execution import Listing
from rocmend.cli.views.port import project_name
from rocmend.core.units import count_text
from rocmend.port.verify.execution import Step
from rocmend.report.document import Block, Code, Document, Section, Text, Tone
from rocmend.report.visible import as_markdown

__all__ = ["listing_document"]

_SHOWN = 8


def listing_document(found: Listing, *, begins: bool = False) -> Document:
    """Lay out what is executed of a project, or would be.

    Args:
        found: What.
        begins: Whether it is executed now.
    """
    name = project_name(found.root)
    count = sum(len(step.names) for step in found.steps)
    if not count:
        return Document(f"What --run executes in {name}", "There is nothing that --run would execute here.", Tone.GOOD)
    items = count_text(count, "item")
    told = f"Executed now: {items} of the project." if begins else f"With --run: {items} of the project. None ran."
    blocks: tuple[Block, ...] = (*map(_step, found.steps), Text(found.how, Tone.WARNING))
    return Document(f"What --run executes in {name}", told, Tone.WARNING, blocks)


def _step(step: Step) -> Section:
    """Lay out one step: paths and the command on lines of their own, to be copied whole."""
    names = "\n".join([*step.names[:_SHOWN], *_more(len(step.names))])
    blocks: tuple[Block, ...] = (
        Code(names),
        Text("with"),
        Code(step.command, "sh"),
        Text(f"From {as_markdown(step.source)}.", Tone.MUTED),
    )
    return Section(f"{step.level}: {step.kind}", blocks)


def _more(count: int) -> list[str]:
    return [f"… and {count - _SHOWN:,} more: --list --json"] if count > _SHOWN else []
