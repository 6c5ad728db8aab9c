"""``rocmend mlx warm``."""

from __future__ import annotations

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.mlx import check_environment, check_model, hand_over
from rocmend.core.errors import UsageError
from rocmend.core.optional import need


@rocmend_command(
    "warm",
    examples=(
        ("rocmend mlx warm --model ./Qwen3-0.6B-4bit", "before the model is served"),
        ("rocmend mlx warm --model ./Qwen3-0.6B-4bit --longest 512", "for short prompts only"),
    ),
)
@click.option("--model", required=True, metavar="FOLDER|NAME", help="A local folder, or a model name on the hub.")
@click.option(
    "--longest", type=click.IntRange(1), default=3000, show_default=True, help="Tokens of the longest prompt."
)
def command(model: str, longest: int) -> None:
    """Compile the kernels that a model needs, ahead of its first prompt.

    The model is run on the GPU with prompts of several lengths, and what is compiled stays in Triton's cache. Needs a
    GPU: nothing is compiled for the CPU.
    """
    check_environment()
    need("mlx warm")
    import torch

    if not torch.cuda.is_available():
        raise UsageError(
            "mlx warm",
            f"torch {torch.__version__} finds no GPU.",
            why="Nothing is compiled for the CPU.",
            next_step="`rocmend doctor` explains why there is none.",
        )
    check_model(model, "gpu")
    arguments = ["-m", "rocmend.mlx.programs.warm", "--model", model, "--longest", str(longest)]
    hand_over("gpu", arguments, from_here=False)
