"""``rocmend machine show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.source import machine_option, python_option, take_snapshot, target_option
from rocmend.core.suggest import unknown
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.machine.root import ChosenPython


@rocmend_command(
    "show",
    examples=(
        ("rocmend machine show", "every fact about this machine and where it was read"),
        ("rocmend machine show gpu.0 --machine DIR", "one group of facts of a captured machine"),
        ("rocmend machine show '*version'", "every version"),
        ("rocmend machine show --json > facts.json", "all as data"),
    ),
)
@click.argument("pattern", default="")
@machine_option
@target_option
@python_option
@output_options()
def command(
    pattern: str, machine_dir: Path | None, target: str | None, python: ChosenPython | None, output_format: str
) -> None:
    """Show the facts of a machine, each with its source.

    What could not be read is listed, too. PATTERN limits the facts to those whose key begins with it, such as gpu.0 or
    torch, or fits it: 'gpu.*.firmware'.
    """
    from rocmend.cli.views.machine import machine_document

    machine = take_snapshot(machine_dir, target=target, python=python)
    shown = machine.matching(pattern)
    if not shown.facts and not shown.gaps:
        raise unknown("machine show", "fact", pattern, sorted(machine.facts), listed="rocmend machine show")
    finish(Outcome("machine show", shown), output_format, lambda: machine_document(shown), advise=True)
