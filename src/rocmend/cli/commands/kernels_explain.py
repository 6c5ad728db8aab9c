"""``rocmend kernels explain``."""

from __future__ import annotations

import shlex
from importlib import util
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.gpu_names import OTHER_MAKERS, GpuName
from rocmend.cli.names import OP
from rocmend.cli.output import finish, output_options
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.kernels.target import Target


@rocmend_command(
    "explain",
    examples=(
        ("rocmend kernels explain rms_norm dtype=float16 rows=512 columns=4096", "on this machine's device"),
        (
            "rocmend kernels explain rms_norm dtype=float16 rows=1 columns=4096 --target gfx1151",
            "for another GPU; --product 8060S adds the least time that its published peaks allow",
        ),
    ),
)
@click.argument("op", type=OP)
@click.argument("fields", nargs=-1, metavar="[FIELD=VALUE]...")
@click.option(
    "--target",
    type=GpuName(others=OTHER_MAKERS),
    metavar="GPU",
    default=None,
    help="gfx1151, 'RX 7900 XTX', sm90, cpu … Otherwise this machine's device.",
)
@click.option("--product", metavar="NAME", default=None, help="For the least time: a product of the target.")
@output_options()
def command(op: str, fields: tuple[str, ...], target: str | None, product: str | None, output_format: str) -> None:
    """Explain which implementation an op uses, and why.

    It also shows why the others are not used, the tuning records that apply and their origin, and the minimum cost of
    the problem. With --target it needs neither torch nor a GPU.
    """
    from rocmend.cli.views.kernels import explain_document
    from rocmend.kernels import registry
    from rocmend.kernels.explain import explain
    from rocmend.kernels.problems import parse
    from rocmend.kernels.target import by_name

    found = registry.get(op)
    where_for = _example_target(target)
    problem = parse(found, fields, options=f" --target {where_for}" if where_for else "")
    where = by_name(target) if target else _device_target()
    result = explain(found, problem, where, here=target is None, product=product)
    finish(Outcome("kernels explain", result), output_format, lambda: explain_document(result))


def _example_target(target: str | None) -> str:
    """Return the target that an example names: the one that was given, and one where this machine's is not known."""
    if target:
        return shlex.quote(target)
    return "" if util.find_spec("torch") else "gfx1151"


def _device_target() -> Target:
    """Return the target of this machine's GPU; of its CPU where torch has none."""
    from rocmend.core.errors import UsageError
    from rocmend.kernels.executor import target_for

    try:
        import torch
    except ImportError:
        raise UsageError(
            "--target",
            "torch is not installed, so this machine's device is unknown.",
            next_step="Use --target, such as gfx1151.",
        ) from None
    return target_for(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
