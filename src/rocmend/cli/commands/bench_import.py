"""``rocmend bench import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, json_lines, output_options
from rocmend.cli.stored import store_option
from rocmend.core.errors import UsageError
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.bench.imported import Found


@rocmend_command(
    "import",
    examples=(
        ("rocmend bench import results.jsonl", "what llama-bench printed, as json, jsonl, csv, md or sql"),
        ("rocmend bench import strix-halo.md dgx-spark.md --no-store", "two machines side by side, and keep nothing"),
        ("rocmend bench import amd-strix-halo-toolboxes/benchmark", "a folder of logs and summaries"),
    ),
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@store_option
@click.option("--no-store", is_flag=True, help="Show the results and keep none.")
@output_options("jsonl")
def command(paths: tuple[Path, ...], store_path: Path | None, no_store: bool, output_format: str) -> None:
    """Read llama.cpp results that others measured.

    Files are recognized by what they hold: llama-bench's json, jsonl, csv, Markdown and SQL, and the logs and summaries
    of the campaigns of kyuz0's toolboxes and of lhl's strix-halo-testing. Failed runs are kept with how they failed.
    Imported results are evidence of the kind `imported`, with the file's name, hash and date, and no machine; they are
    never taken for results of this machine. Files of other kinds in a folder are named, and are no fault. Exit code 1
    means that no result was found, or that a part of a file with results could not be read.
    """
    from rocmend.bench.imported import find, keep, measured_of, new_group
    from rocmend.bench.records import row_of
    from rocmend.cli.views.bench_import import document
    from rocmend.store.store import Store

    if no_store and store_path is not None:
        raise UsageError("--no-store", "it cannot be given together with --store.")
    found = find(paths)
    group, kept = new_group(), (0, 0)
    if not no_store and found.results:
        with Store.open(store_path) as store:
            kept = keep(store, found.results, group)
    rows = [row_of(measured_of(item)) for item in found.results]
    data: dict[str, Any] = {
        "group": group if kept[0] else "",
        "kept": kept[0],
        "kept_before": kept[1],
        "results": rows,
        "problems": found.problems,
        "unknown": found.unknown,
        "read": found.read,
    }
    outcome = Outcome("bench import", data, CLEAN if _clean(found) else FINDINGS)
    finish(
        outcome,
        output_format,
        lambda: document(found, kept, "" if no_store else group),
        others={"jsonl": lambda: json_lines(rows)},
    )


def _clean(found: Found) -> bool:
    return bool(found.results) and not found.problems
