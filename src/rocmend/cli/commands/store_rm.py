"""``rocmend store rm``."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.quantities import WHEN
from rocmend.cli.stored import agreed, existing_store, store_option
from rocmend.core.errors import UsageError
from rocmend.core.units import count_text
from rocmend.report.envelope import Outcome


@rocmend_command(
    "rm",
    examples=(
        ("rocmend store rm 20260131-1200", "remove the record whose id begins with this"),
        ("rocmend store rm --older-than 90d --dry-run", "show which records of older runs would be removed"),
        ("rocmend store rm sdma-hang --yes", "remove an experiment's records, without asking"),
    ),
)
@click.argument("record_ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--older-than", "end", type=WHEN, metavar="WHEN", help="Records older than an age (90d, 2w) or a date (UTC)."
)
@click.option("--group", metavar="ID", help="Records of this run.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@store_option
@output_options()
def command(
    record_ids: tuple[str, ...],
    end: dt.datetime | None,
    group: str | None,
    yes: bool,
    dry_run: bool,
    store_path: Path | None,
    output_format: str,
) -> None:
    """Remove records by their ids, age or group.

    The id of a run that kept several records (`kernels check` prints it) removes them all.
    Their artifacts and machine snapshots stay until `rocmend store gc` runs.
    """
    from rocmend.cli.views.store import removal_document
    from rocmend.store.errors import no_store
    from rocmend.store.place import Place

    if bool(record_ids) == bool(end or group):
        raise UsageError("store rm", "select records by id, or with --older-than and --group.")
    store = existing_store(store_path)
    ids: list[str] = []
    removed = 0
    if store is None and record_ids:
        raise no_store(Place(store_path).database)
    if store is not None:
        if record_ids:
            ids = list(dict.fromkeys(record for name in record_ids for record in store.named(name)))
        else:
            ids = [summary.id for summary in store.summaries(group=group, until=end)]
        wanted = ids and not dry_run and agreed("store rm", count_text(len(ids), "record"), store, yes=yes)
        removed = store.remove(ids) if wanted else 0
    data = {"chosen": ids, "removed": removed, "dry_run": dry_run}
    finish(Outcome("store rm", data), output_format, lambda: removal_document(ids, removed=removed, dry_run=dry_run))
