"""How the proofs of a port are laid out."""

from __future__ import annotations

from collections.abc import Sequence

from rocmend.cli.views.port import project_name
from rocmend.port.verify.records import Evidence, Level, Outcome, Proof, Status
from rocmend.report.document import Block, Card, Cell, Code, Document, Section, Text, Tone, table
from rocmend.report.visible import as_markdown

__all__ = ["ladder_blocks", "proof_document", "proof_summary"]

_TONE = {
    Status.PASSED: Tone.GOOD,
    Status.FAILED: Tone.ERROR,
    Status.INCOMPLETE: Tone.WARNING,
    Status.NOT_RUN: Tone.MUTED,
}
_EVIDENCE = {
    Outcome.HOLDS: Tone.GOOD,
    Outcome.BROKEN: Tone.ERROR,
    Outcome.UNKNOWN: Tone.WARNING,
    Outcome.NOTE: Tone.INFO,
}
_SHOWN = 12


def proof_document(proof: Proof, *, everything: bool = False) -> Document:
    """Lay out how far a port was proven.

    Args:
        proof: The result of the verification.
        everything: Whether all evidence is shown, not the first pieces that matter most.
    """
    summary = proof_summary(proof)
    reached = proof.reached
    failed = [level.name for level in proof.levels if level.status is Status.FAILED]
    if failed:
        summary = f"Failed: {', '.join(failed)}. {summary}"
    tone = Tone.ERROR if failed else Tone.GOOD if reached or not proof.generation else Tone.WARNING
    blocks = ladder_blocks(proof, everything=everything)
    footer = f"For {', '.join(proof.targets)}." if proof.targets else ""
    return Document(f"Verification of {project_name(proof.root)}", summary, tone, tuple(blocks), footer)


def proof_summary(proof: Proof, where: str = "") -> str:
    """Return how far a port was proven, in a sentence or two.

    Args:
        proof: The result of the verification.
        where: What was verified, where it is not the project itself: ``in a copy``.
    """
    if reached := proof.reached:
        return f"Proven {where} up to level {reached.number}: {reached.title}.".replace("  ", " ")
    if proof.generation:
        return "Not proven: level 1, identity, did not pass."
    passed = [level.name for level in proof.levels if level.status is Status.PASSED]
    told = f" Passed as it is: {', '.join(passed)}." if passed else ""
    return f"No port was applied here, and there is nothing to rewrite.{told}"


def ladder_blocks(proof: Proof, *, everything: bool = False, first: Sequence[str] = ()) -> list[Block]:
    """Return the levels as a table, then what failed or could not be checked.

    Args:
        proof: The result of the verification.
        everything: Whether all evidence is shown, not the first pieces that matter most.
        first: Commands that have to run before those of the levels that were not run.
    """
    rows = [
        [
            Cell(f"{level.number}\N{NO-BREAK SPACE}{level.name}"),
            Cell(level.status.value, _TONE[level.status]),
            Cell(_told(level), Tone.PLAIN if level.ran else Tone.MUTED),
        ]
        for level in proof.levels
    ]
    blocks: list[Block] = [table(["level", "", "result"], rows)]
    commands = [level.command for level in proof.levels if level.command]
    if commands:
        blocks += [Text("To run the rest:"), Code("\n".join([*first, *commands]), "sh")]
    for level in proof.levels:
        shown = [one for one in level.evidence if everything or one.outcome in {Outcome.BROKEN, Outcome.UNKNOWN}]
        if shown:
            blocks.append(_evidence(level, shown, everything=everything))
    return blocks


def _told(level: Level) -> str:
    """Return what a level came to, or why it was not run."""
    return level.summary if level.ran else level.why or level.title


def _evidence(level: Level, shown: list[Evidence], *, everything: bool) -> Block:
    order = list(_EVIDENCE)
    shown = sorted(shown, key=lambda one: (one.outcome is not Outcome.BROKEN, order.index(one.outcome)))
    cut = shown if everything else shown[:_SHOWN]
    cards: list[Block] = [_card(one) for one in cut]
    if len(shown) > len(cut):
        cards.append(Text(f"… and {len(shown) - len(cut):,} more: see `--format json`.", Tone.MUTED))
    return Section(f"Level {level.number}, {level.name}: {level.status.value}", tuple(cards))


def _card(one: Evidence) -> Card:
    where = f"{one.subject}:{one.line}" if one.line else one.subject
    wave = f"wave{one.wave_size}" if one.wave_size else ""
    title = f"{where} {' '.join(part for part in (one.target, wave) if part)}".strip()
    blocks = (Text(as_markdown(one.detail)),) if one.detail else ()
    return Card(title, _EVIDENCE[one.outcome], one.outcome.value, "", blocks)
