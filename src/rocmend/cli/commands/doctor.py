"""``rocmend doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.names import ENTRY
from rocmend.cli.output import finish, output_options, tell
from rocmend.cli.quantities import model_size_option
from rocmend.cli.source import machine_option, python_option, take_snapshot, target_option, workload_option
from rocmend.core.errors import UsageError
from rocmend.core.records import Severity
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.core.units import ModelSize
    from rocmend.kb.load import Knowledge
    from rocmend.machine.facts import Machine
    from rocmend.machine.root import ChosenPython
    from rocmend.report.document import Document


@rocmend_command(
    "doctor",
    examples=(
        ("rocmend doctor", "what is wrong with this machine, and what to do about it"),
        ("rocmend doctor --for llama.cpp --model-size 60GiB", "for one workload and a model of this size"),
        ("rocmend doctor --machine strix-halo", "an example machine"),
        ("rocmend doctor --plan sh > plan.sh", "what to do as a script that asks at each step"),
        ("rocmend doctor --explain gfx1151-cwsr-save-area-too-small", "one finding explained"),
    ),
)
@machine_option
@target_option
@python_option
@workload_option()
@model_size_option
@click.option(
    "--explain", "entry_id", type=ENTRY, metavar="ID", default=None, help="Explain one finding in detail and stop."
)
@click.option(
    "--plan",
    "script",
    type=OneOf(["sh"]),
    default=None,
    help="Print the plan as a shell script that explains each step, asks, and goes on after a reboot. Paths and names "
    "of this machine stay in it, as it is there to be run; tokens and passwords do not. It exits with 0 once written.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Print the steps and findings in full: risks, checks, undo, evidence."
)
@output_options("jsonl", "sarif")
def command(
    machine_dir: Path | None,
    target: str | None,
    python: ChosenPython | None,
    workload: str | None,
    model_size: ModelSize | None,
    entry_id: str | None,
    script: str | None,
    verbose: bool,
    output_format: str,
) -> None:
    """Say what is wrong with this machine, and what to do.

    Each finding has its evidence, remedy, risk and source. Exit code 1 means that there is an error or a warning.
    Nothing is ever changed.
    """
    from rocmend.cli.plan import with_installs
    from rocmend.doctor.diagnose import diagnose
    from rocmend.kb.load import load_entries
    from rocmend.machine.hypothetical import target_alone

    if script is not None:
        _check_script_options()
    knowledge = load_entries()
    if entry_id is not None:
        knowledge.get(entry_id)
    machine = take_snapshot(machine_dir, target=target, workload=workload, model_size=model_size, python=python)
    machine = target_alone(machine)
    known = machine.value("gpu.0.memory_ceiling_bytes") is not None
    if model_size is not None and machine.hypothetical_target and not known:
        tell("rocmend: --model-size is not used: how much memory a machine with that GPU has is not known.")
    if entry_id is not None:
        _explain(entry_id, knowledge, machine, workload, output_format)
    diagnosis = with_installs(diagnose(machine, knowledge), machine, knowledge, workload)
    serious = any(finding.severity in {Severity.ERROR, Severity.WARNING} for finding in diagnosis.findings)

    if script is not None:
        import platform

        from rocmend.cli.output import leave, write_result
        from rocmend.cli.views.plan_script import plan_script
        from rocmend.machine.collect import THIS_MACHINE

        if target and diagnosis.hypothetical_target:
            raise UsageError(
                "doctor",
                f"nothing was judged, as this machine has no {target}: there is no plan for it.",
                next_step=f"Run `rocmend doctor --target {target}` for its known problems.",
            )
        unwritten = write_result(plan_script(diagnosis, platform.node() if machine.name == THIS_MACHINE else ""))
        leave(CLEAN, unwritten)  # so that `doctor --plan sh > plan.sh && sh plan.sh` goes on

    def sarif_text() -> str:
        from rocmend.report import sarif

        return sarif.render(diagnosis.findings, machine=diagnosis.about)

    def lines() -> str:
        from rocmend.cli.output import json_lines

        return json_lines(diagnosis.findings)

    from rocmend.cli.views.diagnosis import diagnosis_document

    judged = not diagnosis.hypothetical_target
    outcome = Outcome("doctor", diagnosis, FINDINGS if serious else CLEAN, judged=judged)
    others = {"sarif": sarif_text, "jsonl": lines}
    brief = output_format == "human" and not verbose

    def document() -> Document:
        return diagnosis_document(diagnosis, machine, brief=brief)

    finish(outcome, output_format, document, details=verbose, others=others)


def _explain(entry_id: str, knowledge: Knowledge, machine: Machine, workload: str | None, output_format: str) -> None:
    from rocmend.cli.plan import explained_with_installs
    from rocmend.cli.views.entry import entry_document
    from rocmend.doctor.explain import explain

    explanation = explained_with_installs(explain(entry_id, knowledge, machine), machine, knowledge, workload)
    outcome = Outcome("doctor", explanation)
    finish(outcome, output_format, lambda: entry_document(explanation, knowledge), details=True)


def _check_script_options() -> None:
    """Refuse what ``--plan`` would pass over.

    Raises:
        UsageError: One of ``--explain``, ``--json``, ``--format`` and ``--no-redact`` was given.
    """
    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    if any(context.get_parameter_source(name) is not default for name in ("entry_id", "output_format", "no_redact")):
        raise UsageError(
            "--plan",
            "it prints a shell script: --explain, --json, --format and --no-redact have no meaning beside it.",
            next_step="Leave them out; `rocmend doctor --json` has the plan as data.",
        )
