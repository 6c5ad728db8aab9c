"""``rocmend share import``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.progress import Progress
from rocmend.cli.stored import store_option
from rocmend.core.errors import RocmendError
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "import",
    examples=(
        ("rocmend share import rocmend-share.zip", "keep the evidence that somebody sent"),
        ("rocmend share import received/*.zip", "that of many"),
    ),
)
@click.argument(
    "archives", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.zip...", nargs=-1, required=True
)
@store_option
@output_options()
def command(archives: tuple[Path, ...], store_path: Path | None, output_format: str) -> None:
    """Keep the evidence of archives that others made with `rocmend share`.

    Their runs are kept under names that begin with `shared-`, apart from those of this machine. Records that the store
    has already, or made itself, are not added. Exit code 1 means that an archive or a record of one could not be read;
    the others are kept.
    """
    from rocmend.cli.views.shared import import_document
    from rocmend.store.exchange import read_archive, take
    from rocmend.store.store import Store

    rows: list[dict[str, Any]] = []
    with Progress("rocmend share import", quick=True, ticks=False) as progress, Store.open(store_path) as store:
        for number, archive in enumerate(archives):
            progress(archive.name, number, len(archives))
            try:
                received = read_archive(archive)
                taken = take(store, received)
            except RocmendError as error:
                rows.append({"file": archive, "problem": str(error)})
                continue
            found: dict[str, Any] = {
                "added": taken.added,
                "known": taken.known,
                "own": taken.own,
                "groups": taken.groups,
            }
            found |= {"refused": received.refused}
            rows.append({"file": archive, **found})
    failed = any("problem" in row or row.get("refused") for row in rows)
    outcome = Outcome("share import", rows, FINDINGS if failed else CLEAN)
    finish(outcome, output_format, lambda: import_document(rows))
