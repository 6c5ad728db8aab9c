"""``rocmend port golden``."""

from __future__ import annotations

import platform
from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.report.document import Document, Text, Tone
from rocmend.report.envelope import Outcome


@rocmend_command(
    "golden",
    examples=(
        ("rocmend port golden . --name h200", "on the NVIDIA machine: keep what the project's functions give there"),
        ("rocmend port golden . --name cpu --device cpu", "what they give on this processor"),
        ("rocmend port verify . --level python", "on the AMD machine: compare with what was kept"),
    ),
)
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option("--name", metavar="NAME", required=True, help="What the vectors are called: NAME.json.")
@click.option("--machine", metavar="TEXT", default="", help="What they are from, for the reader [default: this host].")
@click.option(
    "--device", type=click.Choice(("auto", "cpu", "cuda")), default="auto", show_default=True, help="Where they run."
)
@output_options("md")
def command(path: Path, name: str, machine: str, device: str, output_format: str) -> None:
    """Keep what a project's functions give on this machine, to be compared with what a port gives on another.

    The functions stand in the project's pyproject.toml: [tool.rocmend.port] golden = ["package.module:function"]. They
    are called with tensors of fixed seeds, in the shapes and types that the page on porting names. The vectors go to
    .rocmend/golden in the project; carry them along to the other machine.
    """
    from rocmend.port.verify.job import Job
    from rocmend.port.verify.python_run import capture

    with Job(path, (), None) as job:
        written = capture(job, name, machine or platform.node(), device=device)
    text = f"Kept in `{written}`. `rocmend port verify` compares with it, here and wherever it is carried."
    outcome = Outcome("port golden", {"path": str(written), "name": name, "device": device})
    finish(
        outcome, output_format, lambda: Document("Golden vectors", text, Tone.GOOD, (Text("Nothing else changed."),))
    )
