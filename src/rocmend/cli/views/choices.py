"""How ways to install are laid out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rocmend.cli.views.entry import source_links
from rocmend.core.units import count_text
from rocmend.kb.template import OWN_PYTHON
from rocmend.report.document import Block, Card, Code, Document, Section, Text, Tone, table
from rocmend.setup.choose import Choice, Choices

_TONE = {True: Tone.GOOD, None: Tone.INFO, False: Tone.MUTED}


def choices_document(result: Choices, *, everything: bool = False) -> Document:
    """Lay out the best way with what to know and how to check it; with ``everything`` all ways, with their sources."""
    title = f"{result.package} for {result.target}"
    if not result.serving:
        summary = f"No way to install {result.package} for {result.target} is known."
        return Document(title, summary, Tone.WARNING, _refused(result.refused), _footer(result))
    if not everything:
        return Document(title, blocks=_answer(result))
    cards = tuple(choice_card(choice, number) for number, choice in enumerate(result.serving, 1))
    summary = f"{count_text(len(cards), 'way')} to install it, best first."
    return Document(title, summary, Tone.GOOD, (*cards, *_refused(result.refused)), _footer(result))


def _answer(result: Choices) -> tuple[Block, ...]:
    first, *others = result.serving
    check = (
        (Section("Check it" if result.installed else "Check it afterwards", (Code("\n".join(first.check), "bash"),)),)
        if first.check
        else ()
    )
    names = ", ".join(f"{choice.place} ({choice.channel})" for choice in others)
    more = f"{count_text(len(others), 'other way')}: {names}. " if others else ""
    if result.installed:
        here: tuple[Block, ...] = (
            Text(
                f"**{result.package} {result.installed} is installed and has code for {result.target}.** "
                "Nothing needs to be installed, unless `rocmend doctor` says so."
            ),
        )
        return (
            *here,
            *check,
            Section("To install another", best_way(result)),
            Text(f"{more}Sources and more: `--all`.", Tone.MUTED),
        )
    return (Section("Install", best_way(result)), *check, Text(f"{more}Sources and more: `--all`.", Tone.MUTED))


def best_way(result: Choices) -> tuple[Block, ...]:
    """Lay out the way to take: its command, why, and what to know."""
    first = result.serving[0]
    command = first.command
    if result.own_environment and command.startswith("pip "):
        folder = OWN_PYTHON.removesuffix("/bin/python")
        command = f"python3 -m venv {folder} && . {folder}/bin/activate\n{command}"
    lines: list[Block] = [Code(command, "bash"), Text(f"**Why:** {_sentence(first.reason)}")]
    if first.replaces:
        lines.append(Text(f"**Note:** it replaces {result.package} {first.replaces}, which pip would keep otherwise."))
    if first.serves is None:
        lines.append(Text(f"**Note:** no entry says whether it carries code for {result.target}."))
    if first.channel != "stable":
        lines.append(Text(f"**Note:** this is a {first.channel} build."))
    if first.caution:
        lines.append(Text(f"**Caution:** {_sentence(first.caution)}"))
    if first.stale_days:
        lines.append(Text(f"**Note:** {_age(first)}"))
    return tuple(lines)


def _age(choice: Choice) -> str:
    return f"this index was last checked on {choice.read}, {choice.stale_days} days ago: it may have changed since."


def _refused(choices: Sequence[Choice]) -> tuple[Block, ...]:
    if not choices:
        return ()
    rows = [[choice.place, choice.reason, choice.entry_id] for choice in choices]
    return (Section("Not for this GPU or machine", (table(["way", "because", "entry"], rows),)),)


def _footer(result: Choices) -> str:
    return f"Other packages: {', '.join(name for name in result.known_packages if name != result.package)}."


def _sentence(text: str) -> str:
    begin = text[:1] if re.match(r"\w*[A-Z0-9]", text) else text[:1].upper()  # vLLM is a name
    return begin + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def choice_card(choice: Choice, number: int) -> Card:
    """Lay out one way to install."""
    blocks: list[Block] = [Code(choice.command, "bash"), Text(_sentence(choice.reason))]
    if choice.caution:
        blocks.append(Text(f"**Caution:** {_sentence(choice.caution)}"))
    if choice.read is not None:
        blocks.append(
            Text(_sentence(_age(choice) if choice.stale_days else f"index checked on {choice.read}"), Tone.MUTED)
        )
    label = choice.channel if choice.serves else f"{choice.channel}, not known"
    details: tuple[Block, ...] = (source_links(choice.sources),) if choice.sources else ()
    return Card(
        f"{number}. {choice.place}", _TONE[choice.serves], label, choice.entry_id, tuple(blocks), details, "Sources"
    )
