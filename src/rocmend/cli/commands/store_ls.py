"""``rocmend store ls``."""

from __future__ import annotations

import datetime as dt
import itertools
from pathlib import Path

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.gpu_names import GpuName
from rocmend.cli.output import finish, json_lines, no_output_file, output_options, redactor
from rocmend.cli.quantities import WHEN
from rocmend.cli.stored import existing_store, store_option
from rocmend.cli.streams import write_data
from rocmend.core.evidence import KINDS
from rocmend.core.suggest import unknown
from rocmend.core.verdict import Verdict
from rocmend.report.envelope import Outcome
from rocmend.report.redacted import json_lines as redacted_lines


@rocmend_command(
    "ls",
    examples=(
        ("rocmend store ls", "the newest records"),
        ("rocmend store ls --kind probe --verdict hang --since 7d", "the probes that hung this week"),
        ("rocmend store ls --limit 0 --format jsonl", "all records, one per line"),
    ),
)
@click.option("--kind", metavar="KIND", help=f"Only this kind: {', '.join(KINDS)}.")
@click.option("--subject", metavar="ID", help="Only this probe, strategy or workload.")
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    metavar="VERDICT",
    type=OneOf([verdict.value for verdict in Verdict]),
    help="Only this verdict (repeatable): pass, wrong-output, hang, crash …",
)
@click.option(
    "--gfx",
    "gfx_target",
    type=GpuName(others=r"gfx\w+|sm\w+|cpu"),
    metavar="GPU",
    help="Only runs on this GPU: gfx1151, 'RX 7900 XTX' …",
)
@click.option("--group", metavar="ID", help="Only this run.")
@click.option(
    "--since", "start", type=WHEN, metavar="WHEN", help="Only runs since an age (12h, 7d) or a date (2026-01-31, UTC)."
)
@click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(min=0), help="List at most this many; 0 lists all."
)
@click.option(
    "--groups", is_flag=True, help="List the runs (of probes, benchmarks, experiments) instead of their records."
)
@store_option
@output_options("jsonl")
def command(
    kind: str | None,
    subject: str | None,
    verdicts: tuple[str, ...],
    gfx_target: str | None,
    group: str | None,
    start: dt.datetime | None,
    limit: int,
    groups: bool,
    store_path: Path | None,
    output_format: str,
) -> None:
    """List the records of the store, newest first."""
    from rocmend.cli.views.store import groups_document, list_document

    store = existing_store(store_path)
    known = list(dict.fromkeys((*KINDS, *(store.kinds() if store else ()))))
    if kind is not None and kind not in known:
        raise unknown("--kind", "kind of evidence", kind, known)
    if groups:
        runs = store.groups(limit + 1 if limit else None) if store else []
        found, more = runs[: limit or None], bool(limit) and len(runs) > limit
        others = {"jsonl": lambda: json_lines(found)}
        finish(Outcome("store ls", found), output_format, lambda: groups_document(found, more=more), others=others)
    records = (
        store.query(
            kind=kind,
            subject=subject,
            verdict=tuple(map(Verdict, verdicts)) or None,
            gfx_target=gfx_target,
            group=group,
            since=start,
        )
        if store
        else iter(())
    )
    if output_format == "jsonl":
        no_output_file("JSON Lines")
        for record in itertools.islice(records, limit or None):
            write_data(redacted_lines(json_lines([record]), redactor()))
        raise click.exceptions.Exit(0)
    narrowed = any((kind, subject, verdicts, gfx_target, group, start))
    listed = list(itertools.islice(records, limit or None))
    more = next(records, None) is not None
    finish(Outcome("store ls", listed), output_format, lambda: list_document(listed, more=more, narrowed=narrowed))
