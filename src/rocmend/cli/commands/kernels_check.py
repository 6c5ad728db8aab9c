"""``rocmend kernels check``."""

from __future__ import annotations

import contextlib
import datetime as dt
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.gpu_names import GpuNames
from rocmend.cli.names import OP
from rocmend.cli.output import OutputFile, finish, output_options, tell
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import Duration
from rocmend.cli.stored import store_option
from rocmend.core.documents import read_json
from rocmend.core.errors import DataError, RocmendError, UsageError
from rocmend.core.optional import need
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.kernels.rungs import Run
    from rocmend.kernels.suite.supervise import CaseOutcome, OpRun
    from rocmend.store.store import Store

SIZES = ("tiny", "small", "large")


@rocmend_command(
    "check",
    examples=(
        ("rocmend kernels check", "every op on this machine's GPU, or in Triton's interpreter without one"),
        ("rocmend kernels check rms_norm --device cpu", "one op, in the interpreter"),
        (
            "rocmend kernels check attention --jobs 8",
            "one op, its cases split over eight processes",
        ),
        ("rocmend kernels check --sizes tiny,small,large", "shapes beyond 2^31 elements too, where memory allows"),
        (
            "rocmend kernels check --device cuda --record runs.json",
            "also write the records to a file, to submit to rocmend",
        ),
        (
            "rocmend kernels check --emulate gfx1151,gfx942 --cases 1",
            "a case of each op, as machine code of GPUs that are not there",
        ),
    ),
)
@click.argument("ops", nargs=-1, metavar="[OP]...", type=OP)
@click.option("--device", metavar="DEVICE", default="auto", show_default=True, help="auto, cpu, cuda, or e.g. cuda:1.")
@click.option(
    "--sizes", metavar="SIZES", default="", help="tiny, small, large; all on a GPU by default, else the first two."
)
@click.option(
    "--case-limit", type=Duration(1), metavar="TIME", default="3min", show_default=True, help="For each case."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes for an op's tiny and small cases.",
)
@click.option(
    "--emulate",
    metavar="GPUS",
    type=GpuNames(),
    help="Compile for these GPUs (gfx1151, 'RX 7900 XTX' …) and execute the machine code on the CPU.",
)
@click.option(
    "--cases", type=click.IntRange(1), metavar="N", help="With --emulate: at most N cases of an op, unlike each other."
)
@click.option(
    "--time-limit", type=Duration(1), metavar="TIME", help="With --emulate: begin no further case after this time."
)
@click.option(
    "--record", type=click.Path(path_type=Path, dir_okay=False), default=None, help="Add the records to a file."
)
@store_option
@click.option("--no-store", is_flag=True, help="Do not keep the results.")
@output_options("jsonl")
def command(
    ops: tuple[str, ...],
    device: str,
    sizes: str,
    case_limit: float,
    jobs: int,
    emulate: str | None,
    cases: int | None,
    time_limit: float | None,
    record: Path | None,
    store_path: Path | None,
    no_store: bool,
    output_format: str,
) -> None:
    """Check kernels on this machine.

    Each is compared with a float64 reference, and the results are kept as evidence. Each op's suite runs in a child
    process, which isolates hangs and crashes. Outputs are filled with NaN before a kernel writes them, and a second
    run must agree bit by bit. If kernels are not compiled yet, most of the time is compilation; use --jobs to run it
    in parallel. Exit code 1 means that a check failed.

    With --emulate no GPU is needed: what the kernels are compiled to for a GPU is executed instruction by instruction
    on the CPU, and accesses outside of buffers, races between waves, missing waits and values that nothing wrote are
    findings, too. The second run has its waves in reverse order. One case of every op comes first, then the next; what
    was done by then is printed when it is interrupted.
    """
    from rocmend.cli.output import json_lines
    from rocmend.cli.views.kernels import check_document, check_rows
    from rocmend.kernels import registry, rungs
    from rocmend.kernels.suite.supervise import check_op, evidence_of
    from rocmend.store.store import Store

    if no_store and store_path:
        raise UsageError("--no-store", "it cannot be combined with --store.")
    names = [registry.get(name).name for name in ops] or [op.name for op in registry.ops()]
    if emulate is None and (cases is not None or time_limit is not None):
        raise UsageError("--cases" if cases is not None else "--time-limit", "it belongs to --emulate GPUS.")
    if emulate is not None and device != "auto":
        raise UsageError("--emulate", "it cannot be combined with --device: the CPU executes the code.")
    where = "cpu" if emulate is not None else _device(device)
    file = OutputFile(record, "file of records") if record is not None else None
    chosen = _sizes(sizes, where)
    need("kernels check")
    if emulate is not None:
        need("emulate")
    group = f"kernels-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    runs: list[OpRun] = []
    interrupted = False
    with contextlib.ExitStack() as stack:
        store = None if no_store else stack.enter_context(Store.open(store_path))
        progress = stack.enter_context(Progress("rocmend kernels check"))
        if emulate is not None:
            limits = (cases, case_limit, time_limit, jobs)
            runs, interrupted = _emulated(names, emulate, chosen, limits, progress)
            for run in runs:
                _keep(store, run, group)
        for name in names if emulate is None else ():
            progress(name, len(runs), len(names))
            runs.append(check_op(name, where, chosen, case_s=case_limit, jobs=jobs))
            _keep(store, runs[-1], group)
    found = rungs.from_evidence(evidence_of(run, group) for run in runs)
    unwritten = _write(file, found) if file is not None else None
    outcome = Outcome(
        "kernels check",
        {"group": group, "runs": runs},
        CLEAN if all(run.verdict.value in {"pass", "skipped"} for run in runs) else FINDINGS,
    )
    try:
        finish(
            outcome,
            output_format,
            lambda: check_document(runs, None if no_store else group),
            others={"jsonl": lambda: json_lines(check_rows(runs))},
            unwritten=unwritten,
        )
    finally:
        if interrupted:
            raise KeyboardInterrupt


def _emulated(
    names: Sequence[str],
    gpus: str,
    sizes: tuple[str, ...],
    limits: tuple[int | None, float, float | None, int],
    progress: Progress,
) -> tuple[list[OpRun], bool]:
    """Run suites as machine code on the CPU.

    Args:
        names: Ops.
        gpus: gfx targets, with commas between.
        sizes: Of cases.
        limits: Cases of an op, seconds of a case and of all, workers.
        progress: Told of each case.

    Returns:
        What came out, and whether it was interrupted.
    """
    from rocmend.kernels.compiled.toolchains import available
    from rocmend.kernels.suite.emulate import Selection, check_emulated

    targets = tuple(dict.fromkeys(gpus.split(",")))
    most, case_s, total_s, jobs = limits
    selection = Selection(tuple(names), targets, tuple(available()), sizes, most, case_s, total_s, jobs)
    done: dict[tuple[str, str], OpRun] = {}
    interrupted = False

    def told(what: str, outcome: CaseOutcome, count: int, of: int) -> None:
        progress(f"{what}: {outcome.verdict.value}", count, of)
        if outcome.verdict.value not in {"pass", "skipped"}:
            progress.say(f"{what}: {outcome.verdict.value}, {outcome.detail.partition(chr(10))[0]}")

    try:
        check_emulated(selection, told, done)
    except KeyboardInterrupt:
        interrupted = True
    return [done[name, target] for target in targets for name in names if (name, target) in done], interrupted


def _device(asked: str) -> str:
    if asked != "auto":
        return asked
    try:
        import torch
    except ImportError:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def _sizes(asked: str, device: str) -> tuple[str, ...]:
    chosen = tuple(part for part in asked.split(",") if part) or (SIZES if device != "cpu" else SIZES[:2])
    if wrong := [one for one in chosen if one not in SIZES]:
        raise UsageError("--sizes", f"{wrong[0]!r} is not one of {', '.join(SIZES)}.")
    return chosen


def _keep(store: Store | None, run: OpRun, group: str) -> None:
    from rocmend.kernels.suite.supervise import evidence_of

    if store is None:
        return
    try:
        store.add(evidence_of(run, group))
    except RocmendError as error:
        tell(f"rocmend: the check of {run.op} is not kept: {error}")


def _write(file: OutputFile, found: Sequence[Run]) -> RocmendError | None:
    """Add records to a file of them, in place of older ones of the same op, level of proof and target.

    Returns:
        Why they are not in the file.
    """
    import msgspec

    from rocmend.kernels.rungs import Run, latest

    before = []
    path = file.path
    if path.exists():
        try:
            before = read_json(path, list[Run], max_bytes=64 << 20, what="file of records")
        except DataError as error:
            return UsageError("--record", f"{path} {error.message}")
    after = [msgspec.structs.replace(one, origin="shipped") for one in (*before, *found)]
    merged = [run for _, runs in sorted(latest(after).items()) for run in runs.values()]
    text = "[\n" + ",\n".join(msgspec.json.encode(one).decode() for one in merged) + "\n]\n"
    return file.tried(text)
