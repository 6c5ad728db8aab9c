"""``rocmend mlx serve``."""

from __future__ import annotations

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.mlx import device_option, memory_options, start_program


@rocmend_command(
    "serve",
    examples=(
        ("rocmend mlx serve --model ./Qwen3-0.6B-4bit", "on the port that mlx_lm chooses by default"),
        ("rocmend mlx serve --model ./Qwen3-0.6B-4bit --port 8081", "on another port"),
        ("rocmend mlx serve --model ./Qwen3-30B-4bit --memory-limit 24GB --context 32768", "with room for long talks"),
    ),
    context_settings={"ignore_unknown_options": True},
)
@click.option("--model", required=True, metavar="FOLDER|NAME", help="A local folder, or a model name on the hub.")
@device_option
@memory_options
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[MLX_LM OPTION]...")
def command(model: str, device: str, limit: int | None, context: int | None, arguments: tuple[str, ...]) -> None:
    """Serve a language model over HTTP.

    The interface is like OpenAI's. This is mlx_lm's own program on rocmend's mlx.core; it takes all of that program's
    options. Before anything is loaded, the files of the model and the free memory are checked.
    """
    start_program("server", model, device, arguments, context=context, limit=limit)
