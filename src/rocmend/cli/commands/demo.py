"""``rocmend demo``."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.names import Name
from rocmend.cli.output import file_option, finish, output_options
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.examples import BENCHMARKS, EXPERIMENTS, PROJECT, example_machines
from rocmend.core.files import naming
from rocmend.core.suggest import unknown
from rocmend.report.document import Code, Document, Section, Text, Tone, table
from rocmend.report.envelope import Outcome


class _Copied(NamedTuple):
    """An example that is copied to a folder of the user's."""

    source: Path
    about: str
    commands: tuple[str, ...]


_COPIES = {
    "port": _Copied(
        PROJECT,
        "a CUDA project to port: a PyTorch extension with three kernels",
        ("rocmend port {dir}", "rocmend port {dir} --apply --suggestions", "rocmend check {dir} --target gfx1151"),
    ),
    "lab": _Copied(
        EXPERIMENTS,
        "experiments for `rocmend lab`; local-demo.toml runs on any machine",
        ("rocmend lab plan {dir}/local-demo.toml", "rocmend lab run {dir}/local-demo.toml"),
    ),
    "bench": _Copied(
        BENCHMARKS,
        "published llama.cpp results of a Strix Halo and a DGX Spark, to import",
        ("rocmend bench import {dir}/strix-halo-vulkan-amdvlk.md {dir}/dgx-spark.md --no-store",),
    ),
}

_MACHINE = "an example machine: under root/ the files that are read, under commands/ what tools printed"
_OF_A_MACHINE = ("rocmend doctor --machine {dir}", "rocmend machine show --machine {dir}")


@rocmend_command(
    "demo",
    examples=(
        ("rocmend demo", "list the examples"),
        ("rocmend demo strix-halo", "diagnose an example machine: a summary here, and an HTML report"),
        ("rocmend demo strix-halo my-machine", "copy it to the folder my-machine, to change what it says"),
        ("rocmend demo port my-copy", "copy a CUDA project to the folder my-copy, to port it"),
        ("rocmend demo lab demo-lab", "copy experiments to the folder demo-lab"),
    ),
)
@click.argument("name", default="", type=Name("example", lambda: (*example_machines(), *_COPIES)))
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@file_option("Where the HTML report of a machine goes.  [default: rocmend-report-NAME.html]")
@output_options(file=False)
def command(name: str, directory: Path | None, output: Path | None, output_format: str) -> None:
    """Try rocmend on the examples that come with it.

    No AMD GPU is needed. Without NAME it lists them. With the NAME of a machine it does what `rocmend check --machine
    NAME` does, and keeps no evidence; with DIR it copies the machine to that new folder, where every file can be
    changed. `port DIR` copies a CUDA project, `lab DIR` experiments, `bench DIR` published benchmark results.

    The machines are made up: the formats are those of Linux and ROCm, the values were not read from real hardware.
    """
    machines = example_machines()
    if output is not None and (name not in machines or directory is not None):
        raise UsageError("-o", "only the diagnosis of a machine has a report.", next_step="`rocmend demo` lists them.")
    if not name:
        _list(machines, output_format)
    elif name in _COPIES:
        _copy(name, _COPIES[name], directory, output_format)
    elif name not in machines:
        raise unknown("demo", "example", name, (*machines, *_COPIES), listed="rocmend demo")
    elif directory is not None:
        _copy(name, _Copied(machines[name], _MACHINE, _OF_A_MACHINE), directory, output_format)
    else:
        from rocmend.cli.commands.check import check

        check(machine_dir=machines[name], no_store=True, output=output, output_format=output_format)


def _list(machines: dict[str, Path], output_format: str) -> None:
    about = {name: _about(directory) for name, directory in machines.items()}
    data = {"machines": about, "copies": {name: example.about for name, example in _COPIES.items()}}
    copies = [[f"{name} DIR", example.about] for name, example in _COPIES.items()]
    blocks = (
        Section("Machines", (table(["name", "what it shows"], list(map(list, about.items()))),)),
        Section("Copied to a folder that you name", (table(["name", "what it is"], copies),)),
    )
    summary = (
        "`rocmend demo NAME` diagnoses a machine, `rocmend demo NAME DIR` copies it to change it; any command with "
        "--machine takes these names and folders."
    )
    finish(Outcome("demo", data), output_format, lambda: Document("Examples", summary, Tone.PLAIN, blocks))


def _about(machine: Path) -> str:
    """Return what a machine's README says after its title, in one line."""
    text = (machine / "README.md").read_text(encoding="utf-8")
    return " ".join(text.partition("\n")[2].split())


def _copy(name: str, example: _Copied, directory: Path | None, output_format: str) -> None:
    if directory is None:
        raise UsageError(
            "demo",
            f"`rocmend demo {name}` needs a folder to copy to.",
            next_step=f"Name a new one: `rocmend demo {name} demo-{name}`.",
        )
    if directory.exists() or directory.is_symlink():
        raise UsageError(str(directory), "is there already and is not overwritten.", next_step="Name a new folder.")
    try:
        with naming(directory):
            shutil.copytree(example.source, directory, ignore=shutil.ignore_patterns("__pycache__"))
    except (OSError, shutil.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RocmendError(
            str(directory), f"The example can't be copied: {reason}.", next_step="Name another place."
        ) from error
    commands = [line.format(dir=shlex.quote(str(directory))) for line in example.commands]
    data = {"example": name, "directory": str(directory), "commands": commands}
    blocks = (Text("Try:"), Code("\n".join(commands), "bash"))
    title, about = f"Copied to {directory}", f"{example.about[0].upper()}{example.about[1:]}."
    finish(Outcome("demo", data), output_format, lambda: Document(title, about, Tone.GOOD, blocks))
