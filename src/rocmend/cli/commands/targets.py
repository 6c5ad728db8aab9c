"""``rocmend targets``."""

from __future__ import annotations

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.gpu_names import GpuName
from rocmend.cli.output import finish, output_options
from rocmend.core.errors import UsageError
from rocmend.report.envelope import Outcome


class _Target(GpuName):
    """A GPU; ``show`` and ``list``, which other commands have, are none."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the gfx target.

        Raises:
            UsageError: No such GPU, or several.
        """
        if value in {"show", "list"}:
            raise UsageError(
                "targets",
                f"{value!r} is no GPU.",
                next_step="The GPU follows at once, `rocmend targets gfx1010`; `rocmend targets` lists all.",
            )
        return super().convert(value, param, ctx)


@rocmend_command(
    "targets",
    examples=(
        ("rocmend targets", "the table of all targets"),
        ("rocmend targets gfx1151", "one target with its products, peaks and sources"),
        ("rocmend targets 'steam deck' --json", "by a product's name, as data"),
    ),
)
@click.argument("name", metavar="[GPU]", required=False, type=_Target())
@output_options(private=False)
def command(name: str | None, output_format: str) -> None:
    """List the AMD gfx targets, or show one in detail.

    GPU is a target (gfx1151) or a name that people use: 'RX 7900 XTX', strix-halo, 780M, 'steam deck'.
    """
    from rocmend.cli.views.targets import target_document, targets_document
    from rocmend.core.gfx import lookup, products, targets

    if name is None:
        table = targets()
        finish(Outcome("targets", table), output_format, lambda: targets_document(table))
    else:
        target = lookup(name)
        own = products(target.name)
        outcome = Outcome("targets", {"target": target, "products": own})
        finish(outcome, output_format, lambda: target_document(target, own))
