"""``rocmend report``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options, tell
from rocmend.cli.stored import existing_store, store_option
from rocmend.core.errors import UsageError
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "report",
    examples=(
        ("rocmend report -o my-gpu.html", "the newest run of each benchmark, as one page"),
        ("rocmend report llama gemm", "of these two"),
        ("rocmend report bench-llama-20260131-120000-1a2b --format md", "one run, as Markdown"),
    ),
)
@click.argument("selection", metavar="[SUITE|RUN]...", nargs=-1)
@store_option
@output_options("junit")
def command(selection: tuple[str, ...], store_path: Path | None, output_format: str) -> None:
    """Write up what was measured on this machine.

    It takes the newest run of each benchmark that the store has: what follows from the figures in words, tables, plots,
    and the conditions that they were taken under. Each statement names the cases that it rests on. Exit code 1 means
    that a figure is missing.
    """
    from rocmend.bench.stored import chosen_runs
    from rocmend.cli.views.bench_report import junit_suite, report_data, report_document

    store = existing_store(store_path)
    for name in selection:
        if "/" in name or Path(name).is_file():
            raise UsageError(
                "report",
                f"{name} is a file; it takes runs of the store.",
                next_step="`rocmend store ls --groups` lists them; `rocmend compare` takes files.",
            )
    runs, missing = chosen_runs(store, selection) if store is not None else ([], list(selection))
    if not runs:
        raise UsageError(
            "report",
            f"nothing has been measured yet{' with ' if missing else ''}{' or '.join(missing)}.",
            next_step=f"`rocmend bench {missing[0]} --help` explains how."
            if missing
            else "`rocmend bench gemm --quick` measures matrix products in a minute.",
        )
    for name in missing:
        tell(f"There is no run of `rocmend bench {name}` yet; the report is of the others.")
    outcome = Outcome("report", report_data(runs), CLEAN if all(run.clean for run in runs) else FINDINGS)
    finish(outcome, output_format, lambda: report_document(runs), others={"junit": lambda: junit_suite(runs)})
