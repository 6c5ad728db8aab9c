"""``rocmend kb matrix``."""

from __future__ import annotations

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.gpu_names import GpuName
from rocmend.cli.output import finish, output_options
from rocmend.report.envelope import Outcome


@rocmend_command(
    "matrix",
    examples=(
        ("rocmend kb matrix release", "ROCm releases by gfx target"),
        ("rocmend kb matrix library --target gfx1151", "libraries for one target"),
        ("rocmend kb matrix pytorch-source --format md", "PyTorch sources by target, as Markdown"),
    ),
)
@click.argument("name", type=OneOf(["release", "library", "pytorch-source"]))
@click.option(
    "--target",
    "targets",
    type=GpuName(),
    multiple=True,
    metavar="GPU",
    help="Only this GPU's column: gfx1151, 'RX 7900 XTX' …; can be repeated.",
)
@output_options(private=False)
def command(name: str, targets: tuple[str, ...], output_format: str) -> None:
    """Print a compatibility table made from the entries.

    The JSON output has the source of each cell.
    """
    from rocmend.cli.views.knowledge import matrix_document
    from rocmend.core.gfx import lookup
    from rocmend.kb.load import load_entries
    from rocmend.kb.matrix import build_matrix

    wanted = tuple(lookup(target).name for target in targets)
    matrix = build_matrix(load_entries(), name)
    finish(Outcome("kb matrix", matrix), output_format, lambda: matrix_document(matrix, wanted))
