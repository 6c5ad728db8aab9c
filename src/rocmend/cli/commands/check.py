"""``rocmend check``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.gpu_names import product_named
from rocmend.cli.output import finish, output_options, report_file, report_option, shown
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import model_size_option
from rocmend.cli.source import (
    asked_with,
    machine_option,
    python_option,
    take_snapshot,
    target_option,
    workload_option,
)
from rocmend.cli.stored import store_option
from rocmend.core.errors import UsageError
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.bench.records import BenchRun
    from rocmend.cli.check import Check
    from rocmend.cli.keeping import CutShort
    from rocmend.cli.port_check import CheckedProject
    from rocmend.core.units import ModelSize
    from rocmend.kb.load import Knowledge
    from rocmend.machine.facts import Machine
    from rocmend.machine.root import ChosenPython
    from rocmend.probe.records import ProbeRun
    from rocmend.report.document import Document
    from rocmend.report.junit import Suite
    from rocmend.store.store import Store


@rocmend_command(
    "check",
    examples=(
        ("rocmend check", "this machine; the report goes to rocmend-report.html"),
        ("rocmend check --machine strix-halo -o strix-halo.html", "an example machine"),
        ("rocmend check --quick", "in a minute or two: quick operations and a few figures"),
        ("rocmend check --full", "all operations, and more figures"),
        ("rocmend check --target gfx1151", "no AMD GPU here: answer for one"),
        ("rocmend check ~/src/my-cuda-project --target gfx1151", "and plan and prove the port of a project"),
        ("rocmend check --wheel torch.whl --wheel bitsandbytes.whl", "and say whether these wheels run on it"),
    ),
)
@click.argument("project", type=click.Path(path_type=Path), default=None, required=False)
@machine_option
@target_option
@python_option
@workload_option()
@model_size_option
@click.option(
    "--wheel",
    "wheels",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A wheel, library or folder to inspect for the GPU; can be repeated.",
)
@report_option
@click.option("--quick", is_flag=True, help="Try quick operations, and take each figure in less time.")
@click.option("--full", is_flag=True, help="Try all operations and measure more: up to an hour.")
@click.option("--resume", is_flag=True, help="Go on with the newest check of these options that was cut short.")
@click.option("--probe/--no-probe", default=True, show_default=True, help="Try operations on this machine.")
@store_option
@click.option("--no-store", is_flag=True, help="Do not keep the result in the store.")
@output_options("sarif", file=False)
def command(
    project: Path | None,
    machine_dir: Path | None,
    target: str | None,
    python: ChosenPython | None,
    workload: str | None,
    model_size: ModelSize | None,
    wheels: tuple[Path, ...],
    output: Path | None,
    quick: bool,
    full: bool,
    resume: bool,
    probe: bool,
    store_path: Path | None,
    no_store: bool,
    output_format: str,
) -> None:
    """Diagnose this machine and write one HTML report.

    It tries quick operations on the GPU, measures products and copies, inspects wheels, and says what to install and
    what to set. With a PROJECT, the folder of a CUDA project, it plans the project's port and proves it in a copy. It
    leaves one HTML report: one file that needs no network and holds no names, addresses, serial numbers or secrets,
    unless --no-redact is given. Operations are tried and measured under supervision where the active Python
    environment has torch. Exit code 1 means that there is an error or a warning. No setting of the machine and no file
    of the project is changed; a record of the check is kept in the store, unless --no-store is given.
    """
    if quick and full:
        raise UsageError("--quick", "it cannot be given together with --full.")
    if resume and no_store:
        raise UsageError("--resume", "it cannot be given together with --no-store: the store has what was done.")
    check(
        project=project,
        machine_dir=machine_dir,
        target=target,
        python=python,
        workload=workload,
        model_size=model_size,
        wheels=wheels,
        output=output,
        depth="quick" if quick else "full" if full else "",
        resume=resume,
        probe=probe,
        store_path=store_path,
        no_store=no_store,
        output_format=output_format,
    )


def check(
    *,
    output: Path | None,
    output_format: str,
    project: Path | None = None,
    machine_dir: Path | None = None,
    target: str | None = None,
    python: ChosenPython | None = None,
    workload: str | None = None,
    model_size: ModelSize | None = None,
    wheels: tuple[Path, ...] = (),
    depth: str = "",
    resume: bool = False,
    probe: bool = True,
    store_path: Path | None = None,
    no_store: bool = False,
) -> None:
    """Check a machine, leave the report and print the summary; the arguments are the options of the command."""
    from rocmend.cli.check import run_check
    from rocmend.cli.keeping import Begun, CutShort, earlier_runs, keep_check, store_or_warning
    from rocmend.cli.views.check import check_report, check_summary
    from rocmend.kb.load import load_entries
    from rocmend.machine.hypothetical import target_alone

    if project is not None and not project.is_dir():  # said before the machine is read
        raise UsageError("check", f"{project} is not a folder.", next_step="Name the folder of a project to port.")
    file = report_file(output, about=_about(machine_dir, target), project=project)
    about_s = _about_s(probe, machine_dir, target, full=depth == "full")
    with Progress("rocmend check", "reading the machine", about_s=about_s, quick=not about_s) as progress:
        machine = target_alone(
            take_snapshot(machine_dir, target=target, workload=workload, model_size=model_size, python=python)
        )
        knowledge = load_entries()
        store = None if no_store else store_or_warning(store_path)
        cut = CutShort(store, resume=resume)

        def run_probes() -> ProbeRun | str:
            if not probe:
                return "Not tried: --no-probe was given."
            return _probe(machine, knowledge, machine_dir, store, progress, () if depth == "full" else ("smoke",), cut)

        def run_bench(tried: ProbeRun | str) -> tuple[BenchRun, ...] | str:
            if isinstance(tried, str):
                return "Not measured, as nothing was tried."
            from rocmend.cli.quick_bench import quick_bench

            return quick_bench(
                machine,
                store,
                whole=depth == "full",
                progress=progress,
                quick=depth == "quick",
                line=cut.line,
                since=cut.since,
            )

        def run_port(targets: Sequence[str]) -> CheckedProject:
            from rocmend.cli.port_check import check_project

            return check_project(project or Path(), targets, progress)

        begun = Begun()
        here = machine_dir is None and target is None
        with cut:
            result = run_check(
                machine,
                knowledge,
                workload=workload,
                wheels=wheels,
                probe=run_probes,
                bench=run_bench,
                project=run_port if project is not None else None,
                progress=progress,
                asked_with=asked_with(machine_dir, target),
                earlier=earlier_runs(store) if here and store is not None else (),
            )
        progress("writing the report")
        report = check_report(result, machine)
    page = shown(report, "html")
    unwritten = file.tried(page)
    kept = keep_check(store, result, machine, begun, page) if store is not None else ""
    if unwritten is not None and kept:
        unwritten.next_step = f"The store has it: `rocmend store show {kept} --artifact report.html > FILE`."
    others: dict[str, Callable[[], str | Document | Suite]] = {
        "sarif": lambda: _sarif(result),
        **dict.fromkeys(("md", "html"), lambda: report),
    }
    judged = not result.diagnosis.hypothetical_target
    outcome = Outcome("check", result, FINDINGS if result.serious else CLEAN, judged=judged)
    there = "" if unwritten is not None else str(file.path)
    finish(outcome, output_format, lambda: check_summary(result, there), others=others, unwritten=unwritten)


def _about(machine_dir: Path | None, target: str | None) -> str:
    """Return what another machine or GPU than this machine's is called."""
    named = product_named(target) or target
    return "-".join(part for part in (machine_dir.resolve().name if machine_dir else "", named) if part)


def _sarif(result: Check) -> str:
    """Return the findings about the machine, and those in the project as a run of their own."""
    from rocmend.report import sarif

    found = sarif.render(result.diagnosis.findings, machine=result.diagnosis.about)
    if result.project is None:
        return found
    from rocmend.cli.views import port_sarif

    return sarif.joined(found, port_sarif.render(result.project.port.analysis))


def _about_s(probe: bool, machine_dir: Path | None, target: str | None, *, full: bool) -> float:
    """Return how long a check takes, about; 0 where it is over at once."""
    from rocmend.probe.estimate import about_s

    return about_s([] if full else ["smoke"]) if probe and machine_dir is None and target is None else 0.0


def _probe(
    machine: Machine,
    knowledge: Knowledge,
    machine_dir: Path | None,
    store: Store | None,
    progress: Progress,
    selection: Sequence[str],
    cut: CutShort,
) -> ProbeRun | str:
    """Try operations, or say why not."""
    if machine.hypothetical_target:
        return f"Not tried: no {machine.hypothetical_target} is here."
    if machine_dir is not None:
        return "Not tried: a captured machine runs nothing. `rocmend probe` tries operations on the machine itself."
    from rocmend.probe.launch import ProbeError
    from rocmend.probe.run import run_probes
    from rocmend.runner.interpreter import InterpreterError

    def tell(name: str, done: int, total: int) -> None:
        progress(name, done, total, "operations")

    try:
        return run_probes(
            selection,
            machine=machine,
            knowledge=knowledge,
            store=store,
            on_start=tell,
            on_result=cut.note,
            resume=cut.group or None,
            command=cut.line,
        )
    except (ProbeError, InterpreterError) as error:
        return f"Not tried with {error.subject}: {error.message} {error.next_step}".strip()
