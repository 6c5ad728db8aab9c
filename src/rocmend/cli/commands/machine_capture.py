"""``rocmend machine capture``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.progress import Progress
from rocmend.cli.source import python_option
from rocmend.report.document import Document, Pairs, Tone
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.machine.capture import Capture
    from rocmend.machine.root import ChosenPython


@rocmend_command(
    "capture",
    examples=(
        ("rocmend machine capture my-machine", "keep what the collectors read, redacted, in the folder my-machine"),
        ("rocmend machine capture my-machine --force", "again, in place of the capture in that folder"),
        ("rocmend doctor --machine my-machine", "diagnose it elsewhere"),
    ),
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace a capture, in a folder that holds nothing else.")
@python_option
@output_options()
def command(directory: Path, force: bool, python: ChosenPython | None, output_format: str) -> None:
    """Capture this machine's facts into a folder.

    The folder can be shared. Names of people, hosts and networks, home paths, serial numbers, MAC and IP addresses,
    unique ids, passwords, keys and tokens are replaced by placeholders. Read the folder before you share it: it holds
    plain files.

    The folder has to be new or empty; with --force it may hold an earlier capture, and nothing else.
    """
    from rocmend.machine.capture import capture
    from rocmend.machine.live import LiveRoot

    root = LiveRoot(recording=True, python=python)
    with Progress("rocmend machine capture", quick=True, ticks=False) as progress:
        result = capture(directory, progress=progress, root=root, force=force)
    data = {
        "directory": result.directory,
        "files": result.files,
        "commands": result.commands,
        "replaced": result.redactor.replaced,
    }
    finish(Outcome("machine capture", data), output_format, lambda: _document(result))


def _document(result: Capture) -> Document:
    rows = (
        ("folder", str(result.directory), ""),
        ("read it", f"rocmend doctor --machine {result.directory}", ""),
        ("replaced", result.redactor.told(), ""),
    )
    summary = "Names, addresses, serial numbers and secrets were replaced. Read it before you share it."
    return Document("Captured this machine", summary, Tone.GOOD, (Pairs(rows),))
