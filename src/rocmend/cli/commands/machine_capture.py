"""``rocmend machine capture``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options, progress, progress_done
from rocmend.report.document import Document, Pairs, Tone
from rocmend.report.envelope import Outcome


@rocmend_command(
    "capture",
    examples=(
        ("rocmend machine capture my-machine", "keep what the collectors read, redacted, in the folder my-machine"),
        ("rocmend doctor --machine my-machine", "diagnose it elsewhere"),
    ),
)
@click.argument("directory", type=click.Path(path_type=Path))
@output_options("md")
def command(directory: Path, output_format: str) -> None:
    """Capture this machine's facts into a folder that can be shared.

    Host and user names, home paths, serial numbers, MAC and IP addresses and unique ids are replaced by placeholders.
    Read the folder before you share it: it holds plain files.
    """
    from rocmend.machine.capture import capture

    result = capture(directory, progress=progress)
    progress_done()
    finish(Outcome("machine capture", result), output_format, lambda: _document(directory))


def _document(directory: Path) -> Document:
    rows = (("folder", str(directory), ""), ("read it", f"rocmend doctor --machine {directory}", ""))
    return Document("Captured this machine", "Names and serial numbers were replaced.", Tone.GOOD, (Pairs(rows),))
