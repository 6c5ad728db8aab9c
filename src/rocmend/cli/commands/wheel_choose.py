"""``rocmend wheel choose``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.source import machine_option, take_snapshot, target_option, workload_option
from rocmend.core.errors import UsageError
from rocmend.core.suggest import unknown
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "choose",
    examples=(
        ("rocmend wheel choose", "how to install PyTorch for the GPU in this machine"),
        ("rocmend wheel choose jax --target gfx1100", "another package, another GPU"),
    ),
)
@click.argument("package", default="torch")
@machine_option
@target_option
@workload_option()
@output_options("md")
def command(
    package: str, machine_dir: Path | None, target: str | None, workload: str | None, output_format: str
) -> None:
    """Print the install command for a package on this GPU, with the alternatives ranked and why.

    PACKAGE is torch unless named. Exit code 1 means that no known way serves the GPU. Nothing is installed.
    """
    from rocmend.cli.views.choices import choices_document
    from rocmend.core.gfx import lookup
    from rocmend.kb.load import load_entries
    from rocmend.setup.choose import choose

    name = lookup(target).name if target is not None else None
    machine = take_snapshot(machine_dir, target=name, workload=workload)
    gpus = machine.indices("gpu")
    if name is None:
        name = str(machine.value(f"gpu.{gpus[0]}.gfx_target", "")) if gpus else ""
    if not name:
        raise UsageError(
            "wheel choose",
            "this machine has no AMD GPU that the driver shows.",
            next_step="Name one: --target gfx1151.",
        )
    result = choose(machine, load_entries(), package, name, workload)
    if package not in result.known_packages:
        raise unknown("wheel choose", "package with an install table", package, result.known_packages)
    serves = any(choice.serves is not False for choice in result.choices)
    outcome = Outcome("wheel choose", result, CLEAN if serves else FINDINGS)
    finish(outcome, output_format, lambda: choices_document(result), details=True)
