"""``rocmend port lint``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "lint",
    examples=(
        ("rocmend port lint csrc/reduce.cu train.py", "what needs porting in two files"),
        (
            "rocmend port lint $(git diff --name-only --diff-filter=d main)",
            "what needs porting in the files that a branch changed",
        ),
        ("rocmend port lint --baseline known.json train.py", "only findings that are not in the baseline"),
    ),
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--select", metavar="ID", multiple=True, help="Rules to use: ids or prefixes (CU,PY01).")
@click.option("--ignore", metavar="ID", multiple=True, help="Rules not to use.")
@click.option(
    "--baseline",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="Known findings (`rocmend port --write-baseline`): only new ones are reported.",
)
@output_options("jsonl", "sarif")
def command(
    files: tuple[Path, ...], select: tuple[str, ...], ignore: tuple[str, ...], baseline: Path | None, output_format: str
) -> None:
    """Check single files for code that needs a port.

    For editors, pre-commit and reviews. Run it in the project's folder, whose settings apply ([tool.rocmend.port] in
    pyproject.toml). Files that no rule reads or that the project excludes are passed over, with a line that says so; a
    path that is not a file that can be read is an error. Nothing is written. Exit code 1 means that there is a
    finding; notes are not reported.
    """
    from rocmend.cli.porting import linted, listed
    from rocmend.cli.views.port_lint import lint_document

    found = linted(files, select=listed(select), ignore=listed(ignore), baseline=baseline)

    def sarif() -> str:
        from rocmend.cli.views.port_sarif import render

        return render(found)

    def lines() -> str:
        from rocmend.cli.output import json_lines

        return json_lines(found.issues)

    outcome = Outcome("port lint", found, FINDINGS if found.files else CLEAN)
    finish(outcome, output_format, lambda: lint_document(found), others={"sarif": sarif, "jsonl": lines})
