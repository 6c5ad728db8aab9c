"""``rocmend port verify``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.execution import announce, execution_of, execution_options, listing
from rocmend.cli.output import finish, output_options
from rocmend.cli.progress import Progress
from rocmend.cli.source import targets_option
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

_LEVELS = ("identity", "static", "compile", "emulated", "nvidia", "python", "amd")


@rocmend_command(
    "verify",
    examples=(
        ("rocmend port verify .", "all levels that do not run the project's code"),
        ("rocmend port verify . --list", "list what the other levels would run"),
        ("rocmend port verify . --run", "all levels that this machine can run; runs the project's code"),
        ("rocmend port verify . --level python --run --container IMAGE", "its modules and tests, in a container"),
        ("rocmend port verify . --level compile --target gfx1151 --target gfx942", "that it compiles for these"),
    ),
)
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option("--level", type=OneOf(_LEVELS), default=None, help="The last level to run [default: all that can run].")
@targets_option
@execution_options
@click.option("--jobs", type=click.IntRange(1, 256), default=2, show_default=True, help="Compilers that run at once.")
@click.option("--no-cache", is_flag=True, help="Do not use the cache.")
@click.option("-v", "--verbose", is_flag=True, help="Show all evidence.")
@output_options()
def command(
    path: Path,
    level: str | None,
    targets: tuple[str, ...],
    run: bool,
    listed: bool,
    container: str,
    pass_env: tuple[str, ...],
    jobs: int,
    no_cache: bool,
    verbose: bool,
    output_format: str,
) -> None:
    """Verify a port, level by level.

    The levels: identity (without ROCm the port is identical to the original), static (no CUDA-only names are left),
    compile (wave32 and wave64 code objects, checked), emulated (AMD machine code on the CPU), nvidia (machine code and
    output unchanged), python (works with and without ROCm), amd (runs on an AMD GPU).

    Levels python and amd, and the programs of nvidia, run the project's code, and only with --run: in a copy of the
    project, with a home folder of its own, without the variables that hold secrets, within limits; as this user, or in
    a container. --list shows what would run. Exit code 1 means that a level failed, that the one named with --level
    did not run, or that level 1 of a port did not pass. Exit code 2 means that the project was not ported yet.
    """
    from rocmend.cli.porting import project_folder, require_port
    from rocmend.port.verify.ladder import planned, up_to, verify

    project_folder("port verify", path)
    levels = up_to(level) if level else ()
    execution = execution_of(asked=run or listed, container=container, pass_env=pass_env)
    if run or listed:
        steps = listing(str(path), planned(path, levels=levels, execution=execution), execution)
        if listed:
            from rocmend.cli.views.execution import listing_document

            finish(Outcome("port verify", steps, CLEAN), output_format, lambda: listing_document(steps))
        announce(steps)
    require_port(path, targets)
    with Progress("rocmend port verify", "starting", quick=True, ticks=False) as progress:
        proof = verify(
            path,
            levels=levels,
            targets=targets,
            progress=lambda name, done, of: progress(f"level {name}", done, of, "parts"),
            jobs=jobs,
            cache=not no_cache,
            execution=execution if run else None,
        )
    from rocmend.cli.views.proof import proof_document

    if level is None:
        missed = bool(proof.generation) and proof.reached is None
    else:
        missed = any(one.name == level and (not one.ran or one.command) for one in proof.levels)
    outcome = Outcome("port verify", proof, FINDINGS if proof.failed or missed else CLEAN)
    finish(outcome, output_format, lambda: proof_document(proof, everything=verbose), details=verbose)
