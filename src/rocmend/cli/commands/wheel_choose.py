"""``rocmend wheel choose``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.names import Name
from rocmend.cli.output import finish, output_options, tell
from rocmend.cli.source import machine_option, take_snapshot, target_option, workload_option
from rocmend.core.errors import UsageError
from rocmend.core.suggest import misspelled, unknown
from rocmend.kb.vocabulary import BRING_THEIR_OWN, RUN_AS
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.kb.load import Knowledge
    from rocmend.machine.facts import Machine

_ALIASES = {"pytorch": "torch", "llamacpp": "llama.cpp", "flash-attention": "flash-attn", "flash_attn": "flash-attn"}
"""Other names that people use for a package."""
_NAMES = {"torch": "PyTorch"}
_KNOWN = 5
"""Entries that are shown of a program."""


def _packages() -> Iterable[str]:
    from rocmend.setup.choose import CHECKS

    return CHECKS


@rocmend_command(
    "choose",
    examples=(
        ("rocmend wheel choose", "how to install PyTorch for the GPU in this machine"),
        ("rocmend wheel choose jax --target 'RX 7900 XTX'", "another package, another GPU"),
        ("rocmend wheel choose comfyui", "for a program: what it runs on"),
        ("rocmend wheel choose --all", "every way, with cautions and sources"),
    ),
)
@click.argument("package", default="torch", type=Name("package", _packages))
@click.option("--all", "everything", is_flag=True, help="Show every way, with cautions and sources.")
@machine_option
@target_option
@workload_option()
@output_options()
def command(
    package: str,
    everything: bool,
    machine_dir: Path | None,
    target: str | None,
    workload: str | None,
    output_format: str,
) -> None:
    """Print the install command for a package on this GPU.

    It says why, what to know, and how to check it afterwards. PACKAGE is torch unless named. Exit code 1 means that no
    way is known for the GPU. Nothing is installed.
    """
    from rocmend.cli.views.choices import choices_document
    from rocmend.kb.load import load_entries
    from rocmend.setup.choose import choose, gpu_targets, known_packages

    package = _ALIASES.get(package.lower(), package)
    if _is_gpu(package):
        step = f"A GPU follows an option: `rocmend wheel choose --target {shlex.quote(package)}`."
        raise UsageError("wheel choose", f"{package!r} is a GPU, not a package.", next_step=step)
    knowledge = load_entries()
    packages = known_packages(knowledge)
    program = package.casefold()
    if package not in packages and program in BRING_THEIR_OWN:
        _known_of(program, knowledge, output_format)
        return
    if package not in packages and program in RUN_AS:
        workload = workload or RUN_AS[program]
        package = "llama.cpp" if RUN_AS[program] == "llama.cpp" else "torch"
        tell(
            f"{program} runs on {_NAMES.get(package, package)}, which is what to choose for the GPU; "
            f"`rocmend kb search {program}` says what is known of {program}."
        )
    if package not in packages:
        meant = misspelled(package, (*packages, *_ALIASES, *RUN_AS))
        if meant:
            raise unknown("wheel choose", "package with an install table", package, (meant,))
        raise UsageError(
            "wheel choose",
            f"no way to install {package!r} is known.",
            why=f"There are: {', '.join(packages)}; and programs that run on them, such as comfyui.",
            next_step=f"`rocmend kb search {shlex.quote(package)}` says whether anything else is known of it.",
        )
    machine = take_snapshot(machine_dir, target=target, workload=workload)
    name, *others = [target] if target else gpu_targets(machine) or _on_the_bus(machine) or [""]
    if not name:
        raise UsageError(
            "wheel choose",
            "this machine has no AMD GPU that the driver shows.",
            next_step="Name one: --target gfx1151, --target 'RX 7900 XTX'. `rocmend targets` lists the known names.",
        )
    if others:
        tell(f"For {name}. This machine also has {', '.join(others)}: name it with --target.")
    result = choose(machine, knowledge, package, name, workload)
    outcome = Outcome("wheel choose", result, CLEAN if result.serving else FINDINGS)
    finish(outcome, output_format, lambda: choices_document(result, everything=everything), details=everything)


def _known_of(program: str, knowledge: Knowledge, output_format: str) -> None:
    """Print what is known of a program that brings its own GPU code, and leave."""
    from rocmend.cli.views.knowledge import hit_card
    from rocmend.kb.general import headline
    from rocmend.kb.search import SearchIndex
    from rocmend.report.document import Document

    hits = SearchIndex(knowledge.current()).search(program)
    entries = [hit.entry for hit in hits if program in f"{headline(hit.entry)} {hit.entry.tags}".casefold()][:_KNOWN]
    told = f"{program} brings its own GPU code: install it as its makers say. No wheel has to be chosen for it."
    data = {"program": program, "entries": [{"id": entry.id, "title": headline(entry)} for entry in entries]}
    footer = "`rocmend kb show ID` prints an entry; `rocmend doctor --for llama.cpp` checks the machine for it."
    finish(
        Outcome("wheel choose", data),
        output_format,
        lambda: Document(program, told, blocks=tuple(map(hit_card, entries)), footer=footer),
    )


def _is_gpu(package: str) -> bool:
    """Whether the name given for a package is a GPU's."""
    from rocmend.core.gfx import resolve

    if package in _packages():
        return False
    try:
        return bool(resolve(package).gfx)
    except UsageError:
        return False


def _on_the_bus(machine: Machine) -> list[str]:
    """Return the targets of the GPUs that the driver does not show, by their PCI ids; says which."""
    listed = machine.value("pci.amd_gpus")
    devices = [device for device in listed if isinstance(device, dict)] if isinstance(listed, list) else []
    known = [device for device in devices if device.get("gfx")]
    for device in known:
        what = device.get("name") or device.get("device")
        tell(f"The driver shows no GPU here; by its PCI id there is {what}, {device['gfx']}.")
    targets = [str(device["gfx"]) for device in known]
    if not targets:
        named = machine.value("rocminfo.gfx_targets")
        targets = [str(name) for name in named] if isinstance(named, list) else []
        if targets:
            tell(f"The driver shows no GPU here; rocminfo shows {', '.join(targets)}.")
    return list(dict.fromkeys(targets))
