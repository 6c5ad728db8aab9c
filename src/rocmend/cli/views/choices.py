"""How ways to install are laid out."""

from __future__ import annotations

from rocmend.cli.views.entry import source_links
from rocmend.report.document import Block, Card, Code, Document, Text, Tone
from rocmend.setup.choose import Choice, Choices

_TONE = {True: Tone.GOOD, None: Tone.INFO, False: Tone.MUTED}


def choices_document(result: Choices) -> Document:
    """Lay out the ways, best first, with the reasons."""
    serving = [choice for choice in result.choices if choice.serves is not False]
    target = result.target or "this machine (it has no AMD GPU)"
    if serving:
        summary, tone = f"{len(serving)} ways to install {result.package} for {target}, best first.", Tone.GOOD
    else:
        summary = f"No entry knows a way to install {result.package} for {target}."
        tone = Tone.WARNING
    blocks = tuple(choice_card(choice, number) for number, choice in enumerate(result.choices, 1))
    footer = f"Packages with entries: {', '.join(result.known_packages)}. Nothing was installed."
    return Document(f"{result.package} for {target}", summary, tone, blocks, footer)


def choice_card(choice: Choice, number: int) -> Card:
    """Lay out one way to install."""
    blocks: list[Block] = [Code(choice.command, "bash")] if choice.serves is not False else []
    blocks.append(Text(choice.reason))
    if choice.caution:
        blocks.append(Text(f"**But:** {choice.caution}"))
    label = {True: choice.channel, None: f"{choice.channel}, not known", False: "not for this GPU"}[choice.serves]
    details: tuple[Block, ...] = (source_links(choice.sources),) if choice.sources else ()
    title = f"{number}. {choice.command.splitlines()[0]}" if choice.serves is False else f"Choice {number}"
    return Card(title, _TONE[choice.serves], label, choice.entry_id, tuple(blocks), details, "Sources")
