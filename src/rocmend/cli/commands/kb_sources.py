"""``rocmend kb sources``."""

from __future__ import annotations

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.report.envelope import Outcome


@rocmend_command(
    "sources",
    examples=(
        ("rocmend kb sources", "the sources of the knowledge"),
        ("rocmend kb sources --json", "as data, with the entries that cite each"),
    ),
)
@output_options(private=False)
def command(output_format: str) -> None:
    """List every source with the entries that cite it."""
    from rocmend.cli.views.knowledge import sources_document
    from rocmend.kb.load import load_entries
    from rocmend.kb.sources import list_sources

    citations = list_sources(load_entries().current())
    finish(Outcome("kb sources", citations), output_format, lambda: sources_document(citations))
