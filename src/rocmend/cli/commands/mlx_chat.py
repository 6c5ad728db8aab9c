"""``rocmend mlx chat``."""

from __future__ import annotations

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.mlx import device_option, memory_options, start_program


@rocmend_command(
    "chat",
    examples=(
        ("rocmend mlx chat --model ./Qwen3-0.6B-4bit", "a model of a local folder"),
        ("rocmend mlx chat --model ./Qwen3-0.6B-4bit --temp 0.7", "with an option of mlx_lm"),
    ),
    context_settings={"ignore_unknown_options": True},
)
@click.option("--model", required=True, metavar="FOLDER|NAME", help="A local folder, or a model name on the hub.")
@device_option
@memory_options
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[MLX_LM OPTION]...")
def command(model: str, device: str, limit: int | None, context: int | None, arguments: tuple[str, ...]) -> None:
    """Chat with a language model in the terminal.

    This is mlx_lm's own program on rocmend's mlx.core; it takes all of that program's options. Before anything is
    loaded, the files of the model and the free memory are checked.
    """
    start_program("chat", model, device, arguments, context=context, limit=limit)
