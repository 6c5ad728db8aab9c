"""``rocmend kb lint``."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.names import ENTRY
from rocmend.cli.output import finish, output_options
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "lint",
    examples=(
        ("rocmend kb lint", "check every entry"),
        ("rocmend kb lint my-entry --entries my-knowledge/", "check one of your own entries"),
    ),
)
@click.argument("ids", nargs=-1, metavar="[ID]...", type=ENTRY)
@click.option(
    "--entries", type=click.Path(path_type=Path, file_okay=False, exists=True), help="A folder of further entries."
)
@click.option(
    "--today",
    type=click.DateTime(["%Y-%m-%d"]),
    default=None,
    help="Judge overdue reviews as of this day instead of today.",
)
@output_options(private=False)
def command(ids: tuple[str, ...], entries: Path | None, today: dt.datetime | None, output_format: str) -> None:
    """Check the knowledge entries.

    Checked are sources, reviews, links, scope, the table of indexes, and that predicates give what their cases say.
    Exit code 1 means that something is wrong; a review that is due is a warning. The codes are explained in the
    documentation's page on writing an entry.
    """
    from rocmend.cli.views.knowledge import lint_document
    from rocmend.kb.lint import lint
    from rocmend.kb.load import load_entries

    knowledge = load_entries(entries)
    broken = {Path(problem.path).stem for problem in knowledge.problems}
    for name in ids:
        if name not in broken:
            knowledge.get(name)
    day = today.date() if today is not None else dt.datetime.now(tz=dt.UTC).date()
    problems = lint(knowledge, today=day, only=ids)
    outcome = Outcome("kb lint", problems, FINDINGS if any(not problem.warning for problem in problems) else CLEAN)
    checked = len(ids) or len(knowledge.entries) + len(knowledge.problems)
    finish(outcome, output_format, lambda: lint_document(problems, checked))
