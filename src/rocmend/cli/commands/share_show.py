"""``rocmend share show``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, json_lines, output_options
from rocmend.report.envelope import Outcome


@rocmend_command(
    "show",
    examples=(
        ("rocmend share show rocmend-share.zip", "what somebody sent: the machine, and what its evidence says"),
        ("rocmend share show rocmend-share.zip --format jsonl", "its records, one per line"),
    ),
)
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.zip")
@output_options("jsonl")
def command(archive: Path, output_format: str) -> None:
    """Show what an archive of `rocmend share` holds.

    Nothing of it is run, and nothing is written. `rocmend share import` keeps its evidence.
    """
    from rocmend.cli.views.shared import archive_document
    from rocmend.store.exchange import read_archive

    received = read_archive(archive)
    data = {
        "manifest": received.manifest,
        "sha256": received.sha256,
        "records": received.records,
        "machines": sorted(received.machines),
        "refused": received.refused,
    }
    others = {"jsonl": lambda: json_lines(received.records)}
    finish(Outcome("share show", data), output_format, lambda: archive_document(received), others=others)
