"""``rocmend check``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options, progress, progress_done
from rocmend.cli.source import machine_option, take_snapshot, target_option, workload_option
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "check",
    examples=(
        ("rocmend check", "this machine; the report goes to rocmend-report.html"),
        ("rocmend check --machine examples/machines/strix-halo -o strix-halo.html", "a captured machine"),
        ("rocmend check --target gfx1151", "no AMD GPU here: answer for one"),
        ("rocmend check --wheel torch.whl --wheel bitsandbytes.whl", "and say whether these wheels run on it"),
    ),
)
@machine_option
@target_option
@workload_option()
@click.option("--model-size", metavar="SIZE", default=None, help="Size of the model to run, e.g. 18GiB.")
@click.option(
    "--wheel",
    "wheels",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A wheel, library or folder to inspect for the GPU; can be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("rocmend-report.html"),
    show_default=True,
    help="Where the HTML report goes.",
)
@output_options("md", "sarif")
def command(
    machine_dir: Path | None,
    target: str | None,
    workload: str | None,
    model_size: str | None,
    wheels: tuple[Path, ...],
    output: Path,
    output_format: str,
) -> None:
    """Do everything: diagnose the machine, inspect wheels, advise what to install and set, and write one HTML report.

    The report is one file that needs no network. Exit code 1 means that there is an error or a warning. Nothing on the
    machine is changed.
    """
    from rocmend.cli.check import run_check
    from rocmend.cli.views.check import check_report, check_summary
    from rocmend.core.errors import RocmendError
    from rocmend.core.files import write_atomic
    from rocmend.kb.load import load_entries
    from rocmend.report import html, markdown, sarif

    progress("rocmend check: reading the machine …")
    machine = take_snapshot(machine_dir, target=target, workload=workload, model_size=model_size)
    result = run_check(machine, load_entries(), workload=workload, wheels=wheels, progress=progress)
    report = check_report(result)
    progress_done()
    try:
        write_atomic(output, html.render(report))
    except OSError as error:
        raise RocmendError(
            str(output), f"The report can't be written: {error.strerror}.", next_step="Name another place with -o."
        ) from error
    others = {
        "sarif": lambda: sarif.render(result.diagnosis.findings, machine=result.machine),
        "md": lambda: markdown.render(report),
    }
    outcome = Outcome("check", result, FINDINGS if result.serious else CLEAN)
    finish(outcome, output_format, lambda: check_summary(result, str(output)), others=others)
