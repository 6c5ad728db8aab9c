"""``rocmend completion``."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.streams import write_text

SHELLS = ("bash", "zsh", "fish")


@rocmend_command(
    "completion",
    examples=(
        ("source <(rocmend completion bash)", "complete in this shell; as a line of ~/.bashrc, in every one"),
        ("rocmend completion zsh > ~/.zfunc/_rocmend", "with `fpath+=~/.zfunc` before compinit in ~/.zshrc"),
        ("rocmend completion fish > ~/.config/fish/completions/rocmend.fish", "in every new shell"),
    ),
)
@click.argument("shell", type=OneOf(SHELLS))
def command(shell: str) -> None:
    """Print the script that completes commands in a shell.

    It completes commands, options, and their values: ids of entries, GPUs, ops, probes, rules, workloads, formats.
    """
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101  click knows all three
    from rocmend.cli.main import cli

    maker = kind(cli, {}, "rocmend", "_ROCMEND_COMPLETE")
    write_text(ShellComplete.source(maker) + "\n")  # not bash's own, which starts a bash to ask for its version
