"""``rocmend emulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.quantities import SIZE
from rocmend.core.errors import DataError, UsageError
from rocmend.core.optional import need
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.emulate.device import Step

CHECKS = ("unwritten", "waits", "races", "barriers", "stores")
ORDERS = ("forward", "reverse", "shuffled")
TRACED = 2000


class _Sizes(click.ParamType):  # type: ignore[type-arg]
    """Up to three sizes: ``4`` or ``4,2,1``."""

    name = "sizes"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,  # noqa: ARG002  what click gives
    ) -> tuple[int, int, int]:
        """Return three sizes."""
        if isinstance(value, tuple):
            return value
        try:
            parts = tuple(int(one) for one in str(value).split(","))
        except ValueError:
            parts = ()
        if not 1 <= len(parts) <= 3 or min(parts) < 1:
            raise UsageError(
                param.opts[0] if param else "size", f"{value!r} is no size.", next_step="Write 4, or 4,2 or 4,2,1."
            )
        x, y, z = (*parts, 1, 1)[:3]
        return x, y, z


@rocmend_command(
    "emulate",
    examples=(
        (
            "rocmend emulate k.hsaco --grid 4 --block 256 --arg f32[1000]=random --arg f32[1000] --arg i32=1000",
            "check it",
        ),
        ("rocmend emulate k.hsaco --arg i32[64]=arange --trace", "what each instruction of a wave wrote"),
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kernel", metavar="NAME", default="", help="Which kernel, where the code object has several.")
@click.option("--grid", type=_Sizes(), metavar="X[,Y[,Z]]", default="1", show_default=True, help="Workgroups.")
@click.option(
    "--block", type=_Sizes(), metavar="X[,Y[,Z]]", default="64", show_default=True, help="Work-items of each."
)
@click.option(
    "--arg",
    "args",
    multiple=True,
    metavar="ARG",
    help="An argument, in order: f32[1024]=random, i32[16]=arange, f16[64]=0, f32[64]=FILE.npy, u8[256] (nothing in it"
    " yet), i32=5, f32=0.5, null.",
)
@click.option("--lds", metavar="SIZE", type=SIZE, default=None, help="LDS that the launch adds: 16KiB.")
@click.option("--order", type=OneOf(ORDERS), default="forward", show_default=True, help="In which order waves run.")
@click.option("--trace", is_flag=True, help=f"Show the first {TRACED:,} instructions of a wave, and what each wrote.")
@click.option(
    "--wave", metavar="N", type=click.IntRange(0), default=0, help="The wave of the first workgroup to trace."
)
@click.option("--without", multiple=True, type=OneOf(CHECKS), metavar="CHECK", help="Switch a check off: races …")
@click.option(
    "--limit",
    metavar="INSTRUCTIONS",
    type=click.IntRange(1),
    default=2_000_000_000,
    show_default=True,
    help="Instructions of waves after which it counts as endless.",
)
@click.option("--save", metavar="FILE.npz", type=click.Path(path_type=Path), default=None, help="Keep the arrays.")
@output_options()
def command(
    file: Path,
    kernel: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    args: tuple[str, ...],
    lds: int | None,
    order: str,
    trace: bool,
    wave: int,
    without: tuple[str, ...],
    limit: int,
    save: Path | None,
    output_format: str,
) -> None:
    """Execute a kernel of an AMD code object on the CPU, and check it.

    FILE is what a compiler makes for one gfx target: Triton's .hsaco, or clang's linked device code. Found are accesses
    outside of buffers, races, loads that were not waited for, values that nothing wrote, and barriers that not every
    wave reaches. It says nothing about time, caches, or faults of the hardware.
    """
    need("emulate")
    from rocmend.cli.views.emulate import run_document, run_record
    from rocmend.emulate.arguments import launch
    from rocmend.emulate.device import ALL_CHECKS
    from rocmend.emulate.faults import Check
    from rocmend.emulate.specs import argument_of

    try:
        data = file.read_bytes()
    except OSError as error:
        raise DataError(str(file), f"cannot be read: {error.strerror}.") from error
    if save is not None and not save.parent.is_dir():
        raise UsageError("--save", f"there is no folder {save.parent}.", next_step="Make it first.")
    values = [argument_of(text, number) for number, text in enumerate(args)]
    steps: list[Step] = []

    def kept(step: Step) -> None:
        if step.workgroup == (0, 0, 0) and step.wave == wave and len(steps) < TRACED:
            steps.append(step)

    empty = frozenset(number for number, text in enumerate(args) if "=" not in text)
    checks = ALL_CHECKS & ~sum(Check[one.upper()] for one in set(without))
    run = launch(
        data, kernel, grid=grid, block=block, args=values, dynamic_lds_bytes=lds or 0, order=ORDERS.index(order),
        faults="return", budget=limit, checks=checks, trace=kept if trace else None, unwritten=empty,
    )  # fmt: skip
    if save is not None:
        import numpy as np

        arrays = {f"arg{number}": value for number, value in enumerate(values) if isinstance(value, np.ndarray)}
        with save.open("wb") as out:
            np.savez(out, allow_pickle=False, **arrays)
    record = run_record(run, values, args, steps)
    outcome = Outcome("emulate", record, exit_code=1 if run.faults else 0)
    finish(outcome, output_format, lambda: run_document(record))
