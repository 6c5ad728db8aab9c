"""``rocmend kb show``."""

from __future__ import annotations

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.report.envelope import Outcome


@rocmend_command(
    "show",
    examples=(
        ("rocmend kb show gfx1151-cwsr-save-area-too-small", "everything an entry says"),
        ("rocmend kb show gfx1151-cwsr-save-area-too-small --format md", "as Markdown, to quote in an issue"),
    ),
)
@click.argument("entry_id", metavar="ID")
@output_options("md", private=False)
def command(entry_id: str, output_format: str) -> None:
    """Show a knowledge entry.

    It has the claim, its scope, figures, remedies, contradictions and sources.
    """
    from rocmend.cli.views.entry import entry_document
    from rocmend.doctor.explain import explain
    from rocmend.kb.load import load_entries

    knowledge = load_entries()
    explanation = explain(entry_id, knowledge)
    finish(Outcome("kb show", explanation), output_format, lambda: entry_document(explanation.entry, knowledge))
