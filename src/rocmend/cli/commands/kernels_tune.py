"""``rocmend kernels tune``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.gpu_names import GpuName
from rocmend.cli.measuring import measure_alone
from rocmend.cli.names import OP
from rocmend.cli.output import finish, output_options
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import Duration
from rocmend.core.errors import UsageError
from rocmend.core.optional import need
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.kernels.op import Op
    from rocmend.kernels.tuning.tune import Tuning


@rocmend_command(
    "tune",
    examples=(
        ("rocmend kernels tune rms_norm", "try configurations for a minute, keep what is faster here"),
        ("rocmend kernels tune rms_norm dtype=bfloat16 --budget 10min", "only for some problems, and longer"),
        ("rocmend kernels tune --all --budget 5min", "every op, five minutes each; run again to continue"),
        (
            "rocmend kernels tune softmax --model --target gfx1151",
            "compile the candidates for another GPU and estimate their times; needs no GPU",
        ),
        ("rocmend kernels tune --export tuning.toml", "write the records measured here to a file, to give to others"),
    ),
)
@click.argument("op", required=False, type=OP)
@click.argument("fields", nargs=-1, metavar="[FIELD=VALUE]...")
@click.option("--all", "every", is_flag=True, help="Every op.")
@click.option(
    "--budget", type=Duration(), metavar="TIME", default="60s", show_default=True, help="For each op: 90s, 10min, 2h."
)
@click.option(
    "--trial-limit", type=Duration(1), metavar="TIME", default="60s", show_default=True, help="For each trial."
)
@click.option("--device", metavar="DEVICE", default="cuda", show_default=True, help="The GPU: cuda, or e.g. cuda:1.")
@click.option("--fresh", is_flag=True, help="Repeat earlier trials.")
@click.option("--model", is_flag=True, help="Estimate times with the cost model instead of measuring them.")
@click.option("--target", type=GpuName(), metavar="GPU", default=None, help="With --model: gfx1151, 'RX 7900 XTX' …")
@click.option("--product", metavar="NAME", default=None, help="With --model: a product of the target; else its widest.")
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Write records to a file: with --model those proposed, without OP those measured here so far.",
)
@output_options()
def command(
    op: str | None,
    fields: tuple[str, ...],
    every: bool,
    budget: float,
    trial_limit: float,
    device: str,
    fresh: bool,
    model: bool,
    target: str | None,
    product: str | None,
    export: Path | None,
    output_format: str,
) -> None:
    """Find the fastest kernel configurations on this GPU.

    Implementations of the op are compared, too. Each configuration is checked against the reference, then timed, in a
    child process: one that hangs or crashes is dropped. On AMD GPUs a cost model decides which are tried first. The
    best is used from then on with the same Triton (`rocmend kernels explain` shows it). The next run continues where
    this one ended. A tuning and a benchmark do not run at the same time on a GPU: the second one waits.

    With --model nothing is run: candidates are compiled for --target, and the model estimates their times.
    """
    from rocmend.kernels import registry
    from rocmend.kernels.problems import given

    if model != (target is not None):
        raise UsageError("kernels tune", "--model and --target belong together.", next_step="Give both, or neither.")
    if product and not model:
        raise UsageError("--product", "needs --model.")
    if op is None and not every and export is not None and not model:
        _export_measured(export, output_format)
        return
    if (op is None) != every or (every and fields):
        raise UsageError("kernels tune", "name an op, or give --all without one.", next_step="rocmend kernels list")
    if not device.startswith("cuda"):
        raise UsageError("--device", f"{device!r} is no GPU: times of the interpreter say nothing.")
    ops = [registry.get(op)] if op else list(registry.ops())
    for one in ops:
        given(one, fields)  # what is wrong with them is said before anything is started
    need("kernels tune")
    if target is not None:
        _propose(ops, target, fields, product, budget, export, output_format)
    else:
        _tune(ops, fields, device, budget, trial_limit, export, output_format, fresh=fresh)


def _tune(
    ops: list[Op],
    fields: tuple[str, ...],
    device: str,
    budget: float,
    trial_limit: float,
    export: Path | None,
    output_format: str,
    *,
    fresh: bool,
) -> None:
    from rocmend.cli.output import OutputFile
    from rocmend.cli.views.tuning import tune_document
    from rocmend.kernels.tuning import export as exporting
    from rocmend.kernels.tuning.tune import Tuner

    file = OutputFile(export, "file of tuning records") if export is not None else None
    found: list[Tuning] = []
    with ExitStack() as stack:
        progress = stack.enter_context(Progress("rocmend kernels tune", ops[0].name))
        measure_alone("kernels tune", device, progress, stack)
        progress.expect(budget * len(ops))
        for one in ops:
            tuner = Tuner(one.name, device, budget_s=budget, trial_s=trial_limit, fresh=fresh, tell=progress)
            found.append(tuner.run(fields))
    unwritten = file.tried(exporting.toml(exporting.measured())) if file is not None else None
    outcome = Outcome("kernels tune", {"ops": found})
    finish(outcome, output_format, lambda: tune_document(found), unwritten=unwritten)


def _propose(
    ops: list[Op],
    target: str,
    fields: tuple[str, ...],
    product: str | None,
    budget: float,
    export: Path | None,
    output_format: str,
) -> None:
    from rocmend.cli.output import OutputFile
    from rocmend.cli.views.tuning import proposals_document
    from rocmend.kernels.model.hardware import hardware
    from rocmend.kernels.tuning import export as exporting
    from rocmend.kernels.tuning.propose import propose

    hardware(target, product)
    file = OutputFile(export, "file of tuning records") if export is not None else None
    with Progress("rocmend kernels tune", ops[0].name, about_s=budget * len(ops)) as progress:
        found = [propose(one.name, target, fields, product=product, budget_s=budget, tell=progress) for one in ops]
    rows = exporting.proposed(found)
    unwritten = file.tried(exporting.toml(rows)) if file is not None and rows else None
    finish(
        Outcome("kernels tune", {"ops": found}),
        output_format,
        lambda: proposals_document(found, exporting.toml(rows), "" if unwritten is not None else str(export or "")),
        unwritten=unwritten,
    )


def _export_measured(export: Path, output_format: str) -> None:
    from rocmend.cli.output import OutputFile
    from rocmend.core.units import count_text
    from rocmend.kernels.tuning import export as exporting
    from rocmend.report.document import Document, Tone

    rows = exporting.measured()
    if not rows:
        raise UsageError(
            "--export",
            "no records were measured on this machine.",
            next_step="rocmend kernels tune OP measures some.",
        )
    OutputFile(export, "file of tuning records").write(exporting.toml(rows))
    summary = f"{count_text(len(rows), 'record')} written to {export}."
    finish(
        Outcome("kernels tune", {"exported": len(rows), "file": str(export)}),
        output_format,
        lambda: Document("Tuning records", summary, Tone.GOOD, ()),
    )
