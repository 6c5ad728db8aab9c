"""``rocmend port undo``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "undo",
    examples=(
        ("rocmend port undo .", "every file gets the bytes that it had before the port"),
        ("rocmend port undo . --keep-changed", "but for files that were changed by hand since"),
    ),
)
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option("--keep-changed", is_flag=True, help="Leave files that were changed by hand since as they are.")
@output_options()
def command(path: Path, keep_changed: bool, output_format: str) -> None:
    """Undo a port.

    Every file gets its original bytes back, or none does. Refused if a file was changed by hand since the port, or if
    the record of the port came with the project: git tracks it, another user owns it, or it points outside the project.
    Exit code 1 means that changed files were kept.
    """
    from rocmend.cli.porting import project_folder
    from rocmend.port.undo import undo

    project_folder("port undo", path)
    undone = undo(path, keep_changed=keep_changed)
    from rocmend.cli.views.port import undone_document

    outcome = Outcome("port undo", undone, FINDINGS if undone.kept else CLEAN)
    finish(outcome, output_format, lambda: undone_document(undone))
