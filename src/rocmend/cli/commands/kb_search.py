"""``rocmend kb search``."""

from __future__ import annotations

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.core.errors import UsageError
from rocmend.report.envelope import Outcome


@rocmend_command(
    "search",
    examples=(
        ("rocmend kb search cwsr hang", "entries with these words, best first"),
        ("rocmend kb search HIP error: invalid device function", "what an error message is about"),
        ("rocmend kb search hipblaslt --json", "as data"),
    ),
)
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="Show at most this many.")
@output_options(private=False)
def command(words: tuple[str, ...], limit: int, output_format: str) -> None:
    """Search the knowledge entries, by words or by an error message.

    The words are looked up in titles, tags and texts. Any of them may match: rare ones count most, and so do words that
    stand side by side. The name of a GPU is looked up by its gfx target too.
    """
    from rocmend.cli.views.knowledge import hits_document
    from rocmend.kb.general import headline
    from rocmend.kb.load import load_entries
    from rocmend.kb.search import search, words_in

    query = " ".join(words)
    if not words_in(query):
        raise UsageError(
            "kb search",
            f"{query[:80]!r} has no word to look for.",
            next_step="Give a symptom or a package: `rocmend kb search hang`.",
        )
    found = search(load_entries(), query)
    hits = found[:limit]
    data = [
        {
            "id": hit.entry.id,
            "title": headline(hit.entry),
            "status": hit.entry.status,
            "score": hit.score,
            "found": hit.found,
        }
        for hit in hits
    ]
    finish(Outcome("kb search", data), output_format, lambda: hits_document(query, hits, len(found)))
