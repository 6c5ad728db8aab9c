"""``rocmend port golden``."""

from __future__ import annotations

import platform
import re
import shlex
from pathlib import Path

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.execution import Listing, announce, execution_of, execution_options, listing
from rocmend.cli.output import finish, output_options
from rocmend.core.errors import DataError, UsageError
from rocmend.core.units import count_text
from rocmend.report.document import Block, Cell, Document, Section, Text, Tone, table
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "golden",
    examples=(
        ("rocmend port golden . --name h200 --list", "which project functions would be called"),
        ("rocmend port golden . --name h200 --run", "on the NVIDIA machine: record their results"),
        ("rocmend port golden . --name cpu --device cpu --run", "record their results on the CPU"),
        ("rocmend port verify . --level python --run", "on the AMD machine: compare with the recorded results"),
    ),
)
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option("--name", metavar="NAME", required=True, help="Name of the vectors' file: NAME.json.")
@click.option("--machine", metavar="TEXT", default="", help="Where they were recorded [default: this host].")
@click.option(
    "--device", type=OneOf(("auto", "cpu", "cuda")), default="auto", show_default=True, help="Where they run."
)
@execution_options
@output_options()
def command(
    path: Path,
    name: str,
    machine: str,
    device: str,
    run: bool,
    listed: bool,
    container: str,
    pass_env: tuple[str, ...],
    output_format: str,
) -> None:
    """Record what a project's functions return on this machine.

    `rocmend port verify --level python --run` on another machine compares with it. The functions are named in the
    project's pyproject.toml: [tool.rocmend.port] golden = ["package.module:function"]. They are called with tensors of
    fixed seeds, in the shapes and types that the page on porting lists. The results go to .rocmend/golden in the
    project; copy that folder to the other machine.

    This runs the project's code, in a copy, and only with --run; --list shows which functions are called. Exit code 1
    means that some functions could not be called.
    """
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise UsageError(
            "port golden", f"{name!r} cannot be a file name.", next_step="Use letters, digits, dots, - and _."
        )
    from rocmend.cli.porting import project_folder
    from rocmend.port.verify import golden
    from rocmend.port.verify.job import Job
    from rocmend.port.verify.python_run import capture, golden_steps

    project_folder("port golden", path)
    execution = execution_of(asked=run or listed, container=container, pass_env=pass_env)
    with Job(path, execution=execution if run or listed else None) as job:
        steps = listing(str(path), golden_steps(job), execution)
        if listed:
            from rocmend.cli.views.execution import listing_document

            finish(Outcome("port golden", steps, CLEAN), output_format, lambda: listing_document(steps))
        if not run and steps.steps:
            raise _not_asked(path, name, steps)
        announce(steps)
        kept_in = capture(job, name, machine or platform.node(), device=device)
        vectors, _ = golden.read(job.tree, kept_in)
        failed = [one for one in vectors if one.error]
        if len(failed) == len(vectors):
            job.tree.unlink(kept_in)
            why = failed[0].error if failed else "there are none"
            raise DataError("golden vectors", f"no function could be called: {why}.", next_step="Nothing was kept.")
        written = job.root / kept_in
    kept = f"{count_text(len(vectors) - len(failed), 'vector')} kept in `{written}`."
    blocks: list[Block] = [Text("`rocmend port verify` compares with them, here and on other machines.")]
    if failed:
        rows = [[Cell(one.name), Cell(one.error)] for one in failed]
        blocks.append(Section("Could not be called", (table(["function", "why"], rows),), Tone.WARNING))
    data = {
        "path": str(written),
        "name": name,
        "device": device,
        "vectors": len(vectors),
        "failed": {one.name: one.error for one in failed},
    }
    outcome = Outcome("port golden", data, FINDINGS if failed else CLEAN)
    tone = Tone.WARNING if failed else Tone.GOOD
    finish(outcome, output_format, lambda: Document("Golden vectors", kept, tone, tuple(blocks)))


def _not_asked(path: Path, name: str, found: Listing) -> UsageError:
    called = ", ".join(one for step in found.steps for one in step.names)
    return UsageError(
        "port golden",
        f"it calls functions of the project ({called}), and --run was not given.",
        why="That executes the project's code.",
        next_step=shlex.join(["rocmend", "port", "golden", str(path), "--name", name, "--run"]),
    )
