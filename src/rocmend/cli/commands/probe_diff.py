"""``rocmend probe diff``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "diff",
    examples=(
        ("rocmend probe diff probe-20261101-101500-3f2a last", "the newest run against an earlier one"),
        ("rocmend probe diff probe-20261101 last", "a beginning of an id is enough where no other run has it"),
        ("rocmend probe diff A B --store team.sqlite", "two runs of another store, perhaps of two machines"),
    ),
)
@click.argument("before")
@click.argument("after")
@click.option("--store", "store_path", type=click.Path(path_type=Path), default=None, help="The store that holds both.")
@click.option(
    "--other-store",
    type=click.Path(path_type=Path),
    default=None,
    help="The store that holds AFTER, where it is another.",
)
@output_options("jsonl")
def command(before: str, after: str, store_path: Path | None, other_store: Path | None, output_format: str) -> None:
    """Compare two probe runs.

    It shows the verdicts, errors and times that changed from BEFORE to AFTER. `last` stands for the newest run. Exit
    code 1 means that something that passed does not pass any more.
    """
    from rocmend.cli.output import json_lines
    from rocmend.cli.views.probe import diff_document
    from rocmend.probe.diff import diff, load_group
    from rocmend.store.store import Store

    with Store.open(store_path, create=False) as store:
        first = load_group(store, before)
        second = load_group(store, after) if other_store is None else {}
    if other_store is not None:
        with Store.open(other_store, create=False) as store:
            second = load_group(store, after)
    found = diff(first, second)
    outcome = Outcome("probe diff", found, FINDINGS if found.worse else CLEAN)
    finish(outcome, output_format, lambda: diff_document(found), others={"jsonl": lambda: json_lines(found.changes)})
