"""``rocmend kernels compile``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.gpu_names import OTHER_MAKERS, GpuNames
from rocmend.cli.names import OP
from rocmend.cli.output import OutputFile, finish, output_options
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import Duration
from rocmend.core.errors import UsageError
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "compile",
    examples=(
        ("rocmend kernels compile", "every kernel for eleven gfx targets: takes a while the first time"),
        ("rocmend kernels compile rms_norm --targets gfx1151,gfx942", "one op for two targets, row by row"),
        ("rocmend kernels compile --fetch-triton 3.7.0", "a second Triton for gfx10, alongside the current one"),
        (
            "rocmend kernels compile --subset fast --diff docs/reference/kernels-compiled.json",
            "one case per kernel, compared with the stored table: for CI",
        ),
    ),
)
@click.argument("ops", nargs=-1, metavar="[OP]...", type=OP)
@click.option(
    "--op", "more_ops", multiple=True, metavar="OP", type=OP, help="An op, instead of naming it as an argument."
)
@click.option(
    "--targets",
    type=GpuNames(others=OTHER_MAKERS),
    metavar="GPUS",
    help="GPUs (gfx1151, 'RX 7900 XTX', sm90 …), with commas between. Otherwise the eleven of the table.",
)
@click.option(
    "--subset",
    type=OneOf(["all", "table", "fast"]),
    default="all",
    help="table: one case per kernel, tuning record and element width. fast: one per kernel, gfx1100 and gfx942.",
)
@click.option("--jobs", type=click.IntRange(1, 256), help="Worker processes [default: one per core].")
@click.option("--triton", "tritons", multiple=True, metavar="VERSION=PATH", help="Another Triton, for other targets.")
@click.option("--only-triton", metavar="VERSION", help="Compile with this Triton only.")
@click.option("--fetch-triton", metavar="VERSION", help="Install a Triton with pip in a separate folder, and exit.")
@click.option(
    "--triton-sha256",
    "sha256",
    multiple=True,
    metavar="HEX",
    help="With --fetch-triton: the hash of the wheel, for a version whose hash is not known.",
)
@click.option("--unpinned", is_flag=True, help="With --fetch-triton: do not check the hash.")
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the table to a file. With ops or --targets, replace their rows in it.",
)
@click.option(
    "--diff", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Fail where rows differ from a file's."
)
@click.option("--hidden", is_flag=True, help="Include tuning records overridden by more specific ones on a target.")
@click.option("--fresh", is_flag=True, help="Recompile everything.")
@click.option(
    "--time-limit", type=Duration(1), metavar="TIME", default="3min", show_default=True, help="For each kernel."
)
@click.option("--rows", is_flag=True, help="Show every row, as where an op is named.")
@output_options()
def command(
    ops: tuple[str, ...],
    more_ops: tuple[str, ...],
    targets: str | None,
    subset: Literal["all", "table", "fast"],
    jobs: int | None,
    tritons: tuple[str, ...],
    only_triton: str | None,
    fetch_triton: str | None,
    sha256: tuple[str, ...],
    unpinned: bool,
    write: Path | None,
    diff: Path | None,
    hidden: bool,
    fresh: bool,
    time_limit: float,
    rows: bool,
    output_format: str,
) -> None:
    """Compile the kernels for other GPUs.

    The resulting code is checked. Every launch of an op's representative cases is compiled for each target with its
    tuning record. Checked are: spills and scratch, LDS, matrix instructions where a dot can have them, full precision
    of fp32, and that every record is used. Exit code 1 means that something is wrong; with --diff, that rows differ
    from the file.
    """
    from rocmend.cli.views.compiled import compiled_document, fetched_document
    from rocmend.kernels import registry
    from rocmend.kernels.compiled import run
    from rocmend.kernels.compiled.fetch import fetch
    from rocmend.kernels.compiled.table import differences, merged, read_table, write_table
    from rocmend.kernels.compiled.toolchains import available
    from rocmend.kernels.target import by_name

    if fetch_triton is None and (sha256 or unpinned):
        raise UsageError("kernels compile", "--triton-sha256 and --unpinned belong to --fetch-triton VERSION.")
    if fetch_triton is not None:
        toolchain = fetch(fetch_triton, sha256=sha256, unpinned=unpinned)
        data = {"version": toolchain.version, "path": toolchain.path}
        finish(Outcome("kernels compile", data), output_format, lambda: fetched_document(toolchain))
    chosen = tuple(registry.get(name).name for name in dict.fromkeys((*ops, *more_ops)))  # before anything is recorded
    fast = subset == "fast"
    wanted = tuple(dict.fromkeys(targets.split(","))) if targets else ()
    names = tuple(by_name(name).name for name in wanted) or (run.FAST_TARGETS if fast else run.DEFAULT_TARGETS)
    if "cpu" in names:
        raise UsageError("kernels compile", "nothing is compiled for the CPU.", next_step="Use a gfx target.")
    selection = run.Selection(
        ops=chosen,
        targets=names,
        toolchains=tuple(one for one in available(tritons) if only_triton in {None, one.version}),
        subset=subset,
        hidden=hidden,
        jobs=jobs or os.cpu_count() or 1,
        time_limit_s=time_limit,
        fresh=fresh,
    )
    if write is not None:
        OutputFile(write, "table")  # what is wrong with it is said before the work
    with Progress("rocmend kernels compile", f"recording for {', '.join(names)}") as progress:
        report = run.compile_ops(selection, progress)
    if wanted and report.unserved:
        lacking = report.unserved[0]
        raise UsageError(
            "kernels compile",
            f"no installed Triton compiles for {lacking.target}: it needs triton {lacking.versions} ({lacking.why}).",
            next_step="rocmend kernels compile --fetch-triton VERSION installs another one alongside.",
        )
    if write is not None:
        partial = bool(chosen or wanted) and write.exists()
        covered = chosen or tuple(op.name for op in registry.ops())
        write_table(write, merged(read_table(write), report.rows, covered, names) if partial else report.rows)
    changes = differences(read_table(diff), report.rows, whole=not fast) if diff is not None else []
    # a row that is as it was kept has the findings that the kept table shows
    wrong = bool(changes or report.problems) if diff is not None else report.failed > 0
    outcome = Outcome("kernels compile", {"report": report, "differences": changes}, FINDINGS if wrong else CLEAN)
    finish(outcome, output_format, lambda: compiled_document(report, changes, rows=rows or bool(selection.ops)))
