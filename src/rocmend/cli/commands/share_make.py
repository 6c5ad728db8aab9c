"""``rocmend share make``, which ``rocmend share`` stands for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import OutputFile, file_option, leave, must_end, tell
from rocmend.cli.progress import Progress
from rocmend.cli.source import machine_option, python_option, workload_option
from rocmend.cli.stored import existing_store, store_option
from rocmend.cli.streams import write_data
from rocmend.core.errors import RocmendError, UsageError
from rocmend.report.envelope import CLEAN, Outcome, error_outcome, to_json

if TYPE_CHECKING:
    from rocmend.cli.share import Benchmarked, Probed, Shared
    from rocmend.machine.root import ChosenPython
    from rocmend.store.records import StoredEvidence
    from rocmend.store.store import Store


@rocmend_command(
    "make",
    examples=(
        ("rocmend share", "a text to paste into an issue"),
        ("rocmend share -o issue.md --archive rocmend-share.zip", "the text as a file, and all that it rests on"),
        (
            "rocmend share --archive proof.zip --run bench-gemm-20260131-120000-1a2b",
            "with one run, not the newest ones",
        ),
        ("rocmend share --machine my-machine", "from a captured machine"),
    ),
)
@machine_option
@python_option
@workload_option()
@file_option("Write the text to this file instead of standard output.")
@click.option(
    "--archive",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE.zip",
    help="Write an archive: the text, the HTML report, the diagnosis as JSON, a capture of the machine, the evidence.",
)
@click.option(
    "--run",
    "groups",
    metavar="RUN",
    multiple=True,
    help="Put the evidence of this run, its id or a beginning of it, into the archive, in place of the newest of each "
    "kind. Repeatable.",
)
@store_option
@click.option("--json", "as_json", is_flag=True, help="The text, and what was written and replaced, as data.")
def command(
    machine_dir: Path | None,
    python: ChosenPython | None,
    workload: str | None,
    output: Path | None,
    archive: Path | None,
    groups: tuple[str, ...],
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Write up this machine for an issue, redacted.

    The text is Markdown and fits into an issue: the machine at a glance, versions, findings with their ids, the failing
    operations of the newest probe run in the store of evidence, the newest benchmarks, the device of each, and the
    commands that reproduce it. The archive holds
    the newest runs of probes, benchmarks, kernel suites and experiments too, with their logs: others read it with
    `rocmend share show`, and keep it with `rocmend share import`. Names, addresses, serial numbers and secrets are
    always replaced. Nothing is sent anywhere. The exit code does not tell what was found.
    """
    from rocmend.cli.share import chosen_records, newest_benchmarks, newest_probes, packed_evidence, python_of, share

    if output is not None:
        must_end(output, (".md", ".markdown", ".txt"), "The text is Markdown; the archive has the HTML report.")
    if archive is not None:
        must_end(archive, (".zip",), "The archive is a ZIP file.", option="--archive")
    text_file = OutputFile(output, "text") if output is not None else None
    archive_file = OutputFile(archive, "archive") if archive is not None else None
    if groups and (archive is None or machine_dir is not None):
        raise UsageError("--run", "it puts a run of this machine into an archive.", next_step="Add --archive FILE.zip.")
    store: Store | None = None
    probed: Probed | None = None
    benchmarks: list[Benchmarked] = []
    chosen: list[StoredEvidence] = []
    if machine_dir is None:  # what the store has was run on this machine
        try:
            store = existing_store(store_path)
            probed = newest_probes(store) if store is not None else None
            if store is not None and probed is not None and python is None:
                python = python_of(store, probed)
            benchmarks = newest_benchmarks(store) if store is not None else []
            chosen = chosen_records(store, groups) if archive is not None else []
        except UsageError:
            raise
        except RocmendError as error:
            tell(f"rocmend: no evidence is included: {error}")
    packed = archive is not None
    with Progress("rocmend share", "reading the machine", quick=True, ticks=False) as progress:
        result = share(
            machine_dir,
            python=python,
            workload=workload,
            probed=probed,
            benchmarks=benchmarks,
            archive=packed,
            evidence=lambda redactor: packed_evidence(store, chosen, redactor),
            progress=progress,
        )
    data = {
        "text": result.text,
        "output": output,
        "archive": archive,
        "evidence": len(chosen),
        "replaced": result.redactor.replaced,
    }
    _hand_over(result, [(text_file, result.text), (archive_file, result.archive)], data if as_json else None)


def _hand_over(
    result: Shared, files: Sequence[tuple[OutputFile | None, str | bytes | None]], data: dict[str, Any] | None
) -> None:
    """Write the files, print the text where it is in none of them, or the data, and leave."""
    named = [(file, made) for file, made in files if file is not None and made is not None]
    failed = {file.path: error for file, made in named if (error := file.tried(made)) is not None}
    error = next(iter(failed.values()), None)
    if data is not None:
        outcome = Outcome("share make", data) if error is None else error_outcome("share make", error, data)
        write_data(to_json(outcome, redactor=result.redactor))
    elif failed or not named:
        write_data(result.text)
    for file, _ in named:
        if file.path not in failed:
            tell(f"rocmend: wrote {file.path}")
    tell(f"rocmend: {result.statement}")
    tell("rocmend: nothing was sent anywhere: read it, then paste or attach it where you ask for help.")
    leave(CLEAN, error)
