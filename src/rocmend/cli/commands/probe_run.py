"""``rocmend probe``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.names import PROBE
from rocmend.cli.output import file_option, finish, output_options, report_file, shown, tell
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import Duration
from rocmend.cli.resumable import Resumable, ResumeOption, command_line
from rocmend.cli.source import python_option, take_snapshot
from rocmend.core.errors import UsageError
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.cli.output import OutputFile
    from rocmend.machine.root import ChosenPython
    from rocmend.probe.records import ProbeRun
    from rocmend.report.document import Document
    from rocmend.report.junit import Suite
    from rocmend.store.store import Store


def _variables(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not name or not equals:
            raise UsageError("--env", f"{value!r} is not NAME=VALUE.")
        found[name] = text
    return found


def _begun(store: Store, _command: str, name: str) -> tuple[str, str]:
    """Return the id of a run, and the command line that it was begun with."""
    from rocmend.probe.run import begun_with, find_run

    group = find_run(store, name)
    return group, begun_with(store, group)


@rocmend_command(
    "run",
    examples=(
        ("rocmend probe", "every probe on the GPU, or on the CPU where there is none"),
        ("rocmend probe --select smoke", "ten quick ones"),
        (
            "rocmend probe --select convolution --select 'attention-*:bf16'",
            "a family, and some of another in one dtype",
        ),
        ("rocmend probe --isolate --select conv2d-forward", "one operation again, in a process of its own"),
        (
            "rocmend probe --python ~/torch/bin/python -o report.html",
            "the torch of another environment, as a report",
        ),
        ("rocmend probe --list", "list the probes"),
    ),
)
@click.option("--device", metavar="DEVICE", default="auto", show_default=True, help="auto, cpu, cuda, or e.g. cuda:1.")
@click.option(
    "--select",
    "selection",
    metavar="WHAT",
    type=PROBE,
    multiple=True,
    help="An id, glob, family, tag or `smoke`; with :DTYPE. Repeatable.",
)
@click.option("--dtype", "dtypes", metavar="DTYPE", multiple=True, help="Only this dtype, e.g. bf16. Repeatable.")
@click.option(
    "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Probes that run at the same time."
)
@click.option("--isolate", is_flag=True, help="A process for each probe: slower; use it when a result is in doubt.")
@python_option
@click.option(
    "--env", "env", metavar="NAME=VALUE", multiple=True, callback=_variables, help="Set for the probes. Repeatable."
)
@click.option(
    "--time-limit",
    type=Duration(),
    default=None,
    metavar="TIME",
    help="For each probe in all, e.g. 5min.",
)
@click.option(
    "--silence",
    type=Duration(),
    default=None,
    metavar="TIME",
    help="For each phase of a probe, e.g. 30s.",
)
@click.option(
    "--store", "store_path", type=click.Path(path_type=Path), default=None, help="The store that keeps the results."
)
@click.option("--no-store", is_flag=True, help="Do not keep the results.")
@click.option(
    "--resume",
    cls=ResumeOption,
    find=_begun,
    metavar="RUN",
    default=None,
    help="Go on with a run that was cut short, with the options that it was begun with: its id, or `last`.",
)
@click.option("--list", "list_only", is_flag=True, help="List the probes that fit, and stop.")
@file_option("Write an HTML report too.")
@click.option("-v", "--verbose", is_flag=True, help="Print tracebacks and figures.")
@output_options("jsonl", "junit", file=False)
def command(
    device: str,
    selection: tuple[str, ...],
    dtypes: tuple[str, ...],
    jobs: int,
    isolate: bool,
    python: ChosenPython | None,
    env: dict[str, str],
    time_limit: float | None,
    silence: float | None,
    store_path: Path | None,
    no_store: bool,
    resume: str | None,
    list_only: bool,
    output: Path | None,
    verbose: bool,
    output_format: str,
) -> None:
    """Test operations against a float64 reference.

    It shows what works on this device and what does not. They run under supervision, in a process that is replaced when
    one of them hangs, crashes or changes its settings. What does not pass there is repeated in a process of its own,
    and that result counts. Results are kept in the store. Exit code 1 means that something did not pass, or failed only
    after other operations.
    """
    if list_only:
        _list(selection, dtypes, output_format, report_file(output) if output is not None else None)
    if no_store and (resume or store_path):
        raise UsageError("--no-store", "it cannot be given together with --store or --resume.")
    from rocmend.probe.estimate import about_s

    # what is wrong with them is said before anything is opened or started
    expected_s = about_s(selection, dtypes, jobs=jobs, isolate=isolate)
    file = report_file(output) if output is not None else None
    with contextlib.ExitStack() as stack:
        begun = stack.enter_context(Resumable(kept=not no_store, group=resume or ""))
        progress = stack.enter_context(Progress("rocmend probe", "reading the machine"))
        from rocmend.kb.load import load_entries
        from rocmend.probe.launch import START
        from rocmend.probe.run import run_probes
        from rocmend.store.store import Store

        store = None if no_store else stack.enter_context(Store.open(store_path))
        if store is not None:
            expected_s = about_s(selection, dtypes, jobs=jobs, isolate=isolate, store=store)

        def begins(name: str, done: int, total: int) -> None:
            if name != START:  # before that it may end at once, for want of a torch or a device
                progress.expect(expected_s)
            progress(name, done, total)

        machine = take_snapshot(None, python=python)
        run = run_probes(
            selection,
            device=device,
            dtypes=dtypes,
            jobs=jobs,
            python=str(machine.value("python.executable", "")) if python is not None else None,
            store=store,
            machine=machine,
            knowledge=load_entries(),
            env=env,
            time_limit_s=time_limit or 0.0,
            silence_s=silence or 0.0,
            isolate=isolate,
            on_start=begins,
            on_result=lambda result, done, total: begun.note(result.group, done, total),
            resume=resume,
            command=command_line(),
        )
    if run.resumed and run.resumed == len(run.results) and not run.not_run:
        tell(f"{run.group} was complete: nothing was left to run.")
    _print(run, output_format, file, verbose=verbose)


def _print(run: ProbeRun, output_format: str, file: OutputFile | None, *, verbose: bool) -> None:
    from rocmend.cli.output import json_lines
    from rocmend.cli.views.probe import junit_case, run_document

    unwritten = file.tried(shown(run_document(run), "html")) if file is not None else None

    def suite() -> Suite:
        from rocmend.report.junit import Suite

        started = min((result.started_at for result in run.results), default="")
        return Suite(tuple(map(junit_case, run.results)), "rocmend probe", started)

    outcome = Outcome("probe run", run, CLEAN if run.clean else FINDINGS)
    others: dict[str, Callable[[], str | Document | Suite]] = {"junit": suite, "jsonl": lambda: json_lines(run.results)}
    finish(outcome, output_format, lambda: run_document(run), details=verbose, others=others, unwritten=unwritten)


def _list(selection: tuple[str, ...], dtypes: tuple[str, ...], output_format: str, file: OutputFile | None) -> None:
    from rocmend.cli.output import json_lines
    from rocmend.cli.views.probe import list_document
    from rocmend.probe.docs import probe_rows
    from rocmend.probe.registry import problems, select

    chosen = {probe.id for probe, _ in select(selection, dtypes)}
    rows = [row for row in probe_rows() if row.id in chosen]
    data: dict[str, Any] = {
        "probes": rows,
        "problems": [f"{problem.module}: {problem.reason}" for problem in problems()],
    }
    outcome = Outcome("probe run", data)
    if file is not None:
        file.write(shown(list_document(rows), "html"))
    finish(outcome, output_format, lambda: list_document(rows), others={"jsonl": lambda: json_lines(rows)})
