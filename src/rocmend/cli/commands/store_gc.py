"""``rocmend store gc``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.stored import store_option
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "gc",
    examples=(
        ("rocmend store gc", "drop what no record names any more"),
        ("rocmend store gc --dry-run", "how much that would be"),
        ("rocmend store gc --verify", "and read everything that stays, to see whether it is as it was written"),
    ),
)
@click.option("--dry-run", is_flag=True, help="Only tell what would go.")
@click.option("--verify", is_flag=True, help="Then check every record and artifact against its hash; slow when large.")
@store_option
@output_options("md")
def command(dry_run: bool, verify: bool, store_path: Path | None, output_format: str) -> None:
    """Drop artifacts and machine snapshots that no record names, and what killed writers left half-written.

    No record is removed. Exit code 1 means that --verify found damage.
    """
    from rocmend.cli.views.store import gc_document
    from rocmend.store.store import Store

    with Store.open(store_path, create=False) as store:
        report = store.gc(dry_run=dry_run)
        damage = store.verify() if verify else None
    data = {"dry_run": dry_run, "collected": report, "damage": damage}
    outcome = Outcome("store gc", data, FINDINGS if damage else CLEAN)
    finish(outcome, output_format, lambda: gc_document(report, damage, dry_run=dry_run))
