"""``rocmend kb show``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.names import ENTRY
from rocmend.cli.output import finish, output_options
from rocmend.cli.source import machine_option, take_snapshot
from rocmend.report.envelope import Outcome


@rocmend_command(
    "show",
    examples=(
        ("rocmend kb show gfx1151-cwsr-save-area-too-small", "everything an entry says"),
        ("rocmend kb show gfx1151-cwsr-save-area-too-small --machine strix-halo", "with the values of a machine"),
        ("rocmend kb show gfx1151-cwsr-save-area-too-small --format md", "as Markdown, to quote in an issue"),
    ),
)
@click.argument("entry_id", metavar="ID", type=ENTRY)
@machine_option
@output_options()
def command(entry_id: str, machine_dir: Path | None, output_format: str) -> None:
    """Show a knowledge entry.

    It has the claim, its scope, figures, remedies, contradictions and sources: in general words, or with --machine
    with the values of that machine, if the entry applies to it.
    """
    from rocmend.cli.views.entry import entry_document
    from rocmend.doctor.explain import explain
    from rocmend.kb.load import load_entries

    knowledge = load_entries()
    machine = take_snapshot(machine_dir) if machine_dir is not None else None
    explanation = explain(entry_id, knowledge, machine)
    finish(Outcome("kb show", explanation), output_format, lambda: entry_document(explanation, knowledge))
