"""``rocmend machine diff``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.names import THIS, THIS_OR_MACHINE
from rocmend.cli.output import finish, output_options
from rocmend.cli.source import machine_directory, take_snapshot
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine


@rocmend_command(
    "diff",
    examples=(
        ("rocmend machine diff before-update this", "what an update changed, against a capture made before it"),
        ("rocmend machine diff strix-halo strix-halo-healthy", "two of the machines that `rocmend demo` lists"),
        ("rocmend machine diff mine theirs --all --json", "two captures, with clocks and counters, for a script"),
    ),
)
@click.argument("first", metavar="A", type=THIS_OR_MACHINE)
@click.argument("second", metavar="B", type=THIS_OR_MACHINE)
@click.option("--all", "noise", is_flag=True, help="Compare also loads, clocks, counters and what restates others.")
@output_options()
def command(first: str, second: str, noise: bool, output_format: str) -> None:
    """Compare the facts and findings of two machines.

    It shows the facts that differ, and the findings that appear and vanish from A to B. A and B are folders of captured
    machines, names that `rocmend demo` lists, or `this` for this machine. Exit code 1 means that they differ.
    """
    from rocmend.cli.views.machine_diff import MachineDiff, diff_document, finding_changes
    from rocmend.doctor.diagnose import diagnose
    from rocmend.kb.load import load_entries
    from rocmend.machine.diff import differences

    one, other = _machine(first), _machine(second)
    knowledge = load_entries()
    before, after = diagnose(one, knowledge), diagnose(other, knowledge)
    result = MachineDiff(
        one.name,
        other.name,
        differences(one, other, noise=noise),
        appeared=finding_changes(after, before),
        vanished=finding_changes(before, after),
    )
    outcome: Any = Outcome("machine diff", result, CLEAN if result.same else FINDINGS)
    finish(outcome, output_format, lambda: diff_document(result))


def _machine(given: str) -> Machine:
    return take_snapshot(None if given == THIS else machine_directory(Path(given)))
