"""``rocmend kb search``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.source import machine_option, take_snapshot, target_option
from rocmend.core.errors import UsageError
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.kb.load import Knowledge


@rocmend_command(
    "search",
    examples=(
        ("rocmend kb search cwsr hang", "entries with these words, best first"),
        ("rocmend kb search HIP error: invalid device function", "what an error message is about"),
        ("rocmend kb search slow loading --target strix-halo", "for one GPU; --machine and --here know more"),
    ),
)
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="Show at most this many.")
@click.option("--here", is_flag=True, help="Put first what this machine's GPUs and its findings are about.")
@machine_option
@target_option
@output_options()
def command(
    words: tuple[str, ...], limit: int, here: bool, machine_dir: Path | None, target: str | None, output_format: str
) -> None:
    """Search the knowledge entries, by words or by an error message.

    Known error messages come first (`rocmend explain` says more about them). Of words, any may match: rare ones count
    most, and so do words that stand side by side; mistyped ones, synonyms and names of GPUs are understood.
    """
    from rocmend.cli.views.knowledge import hits_document
    from rocmend.kb.general import advice, headline
    from rocmend.kb.load import load_entries
    from rocmend.kb.search import SearchIndex, words_in

    query = " ".join(words)
    if not words_in(query):
        raise UsageError(
            "kb search",
            f"{query[:80]!r} has no word to look for.",
            next_step="Give a symptom or a package: `rocmend kb search hang`.",
        )
    knowledge = load_entries().current()
    targets: tuple[str, ...] = (target,) if target else ()
    findings: tuple[str, ...] = ()
    if here or machine_dir is not None:
        targets, findings = _machine(machine_dir, target, knowledge)
    found = SearchIndex(knowledge).search(query, targets=targets, findings=findings)
    hits = found[:limit]
    data = [
        {
            "id": hit.entry.id,
            "title": headline(hit.entry),
            "advice": advice(hit.entry),
            "status": hit.entry.status,
            "score": hit.score,
            "found": hit.found,
            **({"line": hit.line} if hit.line else {}),
        }
        for hit in hits
    ]
    finish(Outcome("kb search", data), output_format, lambda: hits_document(query, hits, len(found)))


def _machine(
    machine_dir: Path | None, target: str | None, knowledge: Knowledge
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the targets of a machine's GPUs, and what a diagnosis finds."""
    from rocmend.doctor.diagnose import diagnose

    machine = take_snapshot(machine_dir, target=target)
    diagnosis = diagnose(machine, knowledge)
    targets = {machine.value(f"gpu.{number}.gfx_target") for number in machine.indices("gpu")}
    return tuple(filter(None, {target, *targets})), tuple(finding.entry_id for finding in diagnosis.findings)
