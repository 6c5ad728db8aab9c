"""``rocmend store gc``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.stored import agreed, existing_store, store_option
from rocmend.core.units import count_text, size_text
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.store.records import GcReport


@rocmend_command(
    "gc",
    examples=(
        ("rocmend store gc", "remove artifacts that no record refers to; asks first"),
        ("rocmend store gc --dry-run", "show how much would be removed"),
        ("rocmend store gc --yes", "without asking, for scripts"),
        ("rocmend store gc --verify", "then verify everything that remains"),
    ),
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--all",
    "every_artifact",
    is_flag=True,
    help="Remove all artifacts even if no record refers to any; refused otherwise (wrong database?).",
)
@click.option("--verify", is_flag=True, help="Then check every record and artifact against its hash; slow when large.")
@store_option
@output_options()
def command(
    dry_run: bool, yes: bool, every_artifact: bool, verify: bool, store_path: Path | None, output_format: str
) -> None:
    """Remove artifacts that no record refers to.

    Unreferenced machine snapshots and partial files of killed writers are removed, too. No record is removed. Exit
    code 1 means that --verify found damage.
    """
    from rocmend.cli.views.store import gc_document
    from rocmend.store.records import GcReport

    store = existing_store(store_path)
    report, damage = GcReport(0, 0, 0, 0), None
    if store is not None:
        report = store.gc(dry_run=True, every_artifact=every_artifact)
        if not dry_run:
            dry_run = not (report.empty or agreed("store gc", _what(report), store, yes=yes))
        if not dry_run:
            report = store.gc(every_artifact=every_artifact)
        damage = store.verify() if verify else None
    data = {"dry_run": dry_run, "collected": report, "damage": damage}
    outcome = Outcome("store gc", data, FINDINGS if damage else CLEAN)
    finish(outcome, output_format, lambda: gc_document(report, damage, dry_run=dry_run))


def _what(report: GcReport) -> str:
    """Say in a line what would be removed."""
    parts = (
        (report.artifacts, "artifact"),
        (report.machines, "machine snapshot"),
        (report.partial_files, "half-written file"),
    )
    return f"{', '.join(count_text(*part) for part in parts if part[0])} ({size_text(report.freed_bytes)})"
