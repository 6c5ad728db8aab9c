"""``rocmend mlx run``."""

from __future__ import annotations

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.mlx import check_device, check_environment, device_option, hand_over
from rocmend.core.optional import need


@rocmend_command(
    "run",
    examples=(
        ("rocmend mlx run train.py --epochs 3", "a script that imports mlx.core"),
        ("rocmend mlx run -m mlx_lm lora --help", "a module"),
    ),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@device_option
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[-m MODULE|SCRIPT] [ARGUMENT]...")
def command(device: str, program: tuple[str, ...]) -> None:
    """Run a Python program with rocmend's mlx.core.

    It replaces MLX's own, like `python -m rocmend.mlx`, also in Python processes that the program starts.
    """
    check_environment()
    need("mlx run")
    check_device(device)
    hand_over(device, program)
