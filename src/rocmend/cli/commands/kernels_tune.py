"""``rocmend kernels tune``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.names import OP
from rocmend.cli.output import finish, output_options
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import Duration
from rocmend.core.errors import UsageError
from rocmend.core.optional import need
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.kernels.tuning.tune import Tuning


@rocmend_command(
    "tune",
    examples=(
        ("rocmend kernels tune rms_norm", "try configurations for a minute, keep what is faster here"),
        ("rocmend kernels tune rms_norm dtype=bfloat16 --budget 10min", "only for some problems, and longer"),
        ("rocmend kernels tune --all --budget 5min", "every op, five minutes each; run again to continue"),
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
@output_options()
def command(
    op: str | None,
    fields: tuple[str, ...],
    every: bool,
    budget: float,
    trial_limit: float,
    device: str,
    fresh: bool,
    output_format: str,
) -> None:
    """Find the fastest kernel configurations on this GPU.

    Implementations of the op are compared, too. Each configuration is checked against the reference, then timed, in a
    child process: one that hangs or crashes is dropped. The best is used from then on with the same Triton (`rocmend
    kernels explain` shows it). The next run continues where this one ended.
    """
    from rocmend.cli.views.tuning import tune_document
    from rocmend.kernels import registry
    from rocmend.kernels.problems import given
    from rocmend.kernels.tuning.tune import Tuner

    if (op is None) != every or (every and fields):
        raise UsageError("kernels tune", "name an op, or give --all without one.", next_step="rocmend kernels list")
    if not device.startswith("cuda"):
        raise UsageError("--device", f"{device!r} is no GPU: times of the interpreter say nothing.")
    ops = [registry.get(op)] if op else list(registry.ops())
    for one in ops:
        given(one, fields)  # what is wrong with them is said before anything is started
    need("kernels tune")
    found: list[Tuning] = []
    with Progress("rocmend kernels tune", ops[0].name, about_s=budget * len(ops)) as progress:
        for one in ops:
            tuner = Tuner(one.name, device, budget_s=budget, trial_s=trial_limit, fresh=fresh, tell=progress)
            found.append(tuner.run(fields))
    finish(Outcome("kernels tune", {"ops": found}), output_format, lambda: tune_document(found))
