"""Which machine a command speaks about."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rocmend.cli.base import OneOf
from rocmend.cli.gpu_names import GpuName, product_named
from rocmend.cli.names import MACHINE
from rocmend.cli.output import tell
from rocmend.cli.progress import Progress
from rocmend.cli.redaction import note_capture
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.suggest import did_you_mean
from rocmend.kb.vocabulary import RUN_AS, WORKLOADS

if TYPE_CHECKING:
    from rocmend.core.units import ModelSize
    from rocmend.machine.facts import Machine
    from rocmend.machine.root import ChosenPython

F = TypeVar("F", bound=Callable[..., Any])


def machine_option(function: F) -> F:
    """Add ``--machine DIR``; passes ``machine_dir``."""
    return click.option(
        "--machine",
        "machine_dir",
        type=MACHINE,
        default=None,
        callback=lambda _context, _option, value: None if value is None else machine_directory(value),
        metavar="DIR",
        help="Read a captured machine (see `rocmend machine capture`) instead of this one: its folder, or the name of "
        "one that `rocmend demo` lists. A folder of that name comes first.",
    )(function)


def machine_directory(given: Path) -> Path:
    """Return the folder of a captured machine: the one named, or the example of that name where there is none.

    Raises:
        UsageError: Neither is there.
    """
    from rocmend.core.examples import example_machines

    if given.exists() or given.is_symlink():
        return _capture_in(given)
    examples = example_machines()
    name = str(given)
    if name.casefold() in examples:
        return examples[name.casefold()]
    if gfx := _gpu_called(name):
        raise UsageError(
            name,
            "There is no such folder, and no example machine of that name: it is a GPU.",
            next_step=f"Ask about a GPU with --target: --target {gfx}.",
        )
    raise UsageError(
        name,
        "There is no such folder, and no example machine of that name.",
        why=did_you_mean(name, examples),
        next_step="`rocmend demo` lists the example machines, `rocmend machine capture DIR` captures this one.",
    )


def _capture_in(given: Path) -> Path:
    """Return the folder itself; of the folder that an archive of ``rocmend share`` unpacks to, the capture in it.

    Raises:
        UsageError: It is an archive.
    """
    if given.is_file() and given.suffix.lower() in {".zip", ".gz", ".tgz", ".tar", ".xz"}:
        raise UsageError(
            str(given),
            "is an archive, and a machine is a folder.",
            next_step=f"Unpack it (`unzip {given.name}`) and name the folder `capture` in it.",
        )
    inner = given / "capture"
    return inner if (inner / "machine.json").is_file() and not (given / "machine.json").exists() else given


def _gpu_called(name: str) -> str:
    """Return the gfx target of the GPU that a name stands for; "" where it stands for none, or for several."""
    from rocmend.core.gfx import resolve

    try:
        return resolve(name).gfx
    except RocmendError:
        return ""


def target_option(function: F) -> F:
    """Add ``--target GPU``; passes ``target``."""
    return click.option(
        "--target",
        type=GpuName(),
        metavar="GPU",
        default=None,
        help="Answer for this GPU, whatever is in the machine: gfx1151, 'RX 7900 XTX', strix-halo …",
    )(function)


def targets_option(function: F) -> F:
    """Add ``--target GPU``, which can be repeated; passes ``targets``."""
    return click.option(
        "--target",
        "targets",
        type=GpuName(),
        metavar="GPU",
        multiple=True,
        help="A GPU: gfx1151, 'RX 7900 XTX', strix-halo … Repeatable.",
    )(function)


def workload_option(*, required: bool = False) -> Callable[[F], F]:
    """Add ``--for WORKLOAD``; passes ``workload``."""
    # click takes an explicit default, even None, for a value, and then no longer asks for a required option
    default: dict[str, Any] = {} if required else {"default": None}
    return click.option(
        "--for",
        "workload",
        type=OneOf(WORKLOADS, RUN_AS),
        required=required,
        help="What you want to run.",
        **default,
    )


def python_option(function: F) -> F:
    """Add ``--python PATH``; passes ``python``."""
    return click.option(
        "--python",
        metavar="PATH",
        default=None,
        callback=lambda _context, _option, value: None if value is None else chosen_python(value),
        help="The Python environment to look at: its interpreter or folder. Otherwise the activated one; else, of "
        "python3 on PATH, .venv in this folder and rocmend's own, the first that has PyTorch. Not with --machine: a "
        "captured machine has the environment that was captured.",
    )(function)


def chosen_python(given: str) -> ChosenPython:
    """Return the environment that ``--python`` names.

    Raises:
        UsageError: There is no such interpreter or environment.
    """
    import os
    import shutil

    from rocmend.machine.root import ChosenPython

    if not given.strip():
        raise UsageError("--python", "the path is empty.", next_step="Give that of an interpreter or environment.")
    path = os.path.abspath(os.path.expanduser(given))  # noqa: PTH100, PTH111  a venv's interpreter is a link: it stays
    if os.path.isdir(path):  # noqa: PTH112
        if any(os.access(f"{path}/bin/{name}", os.X_OK) for name in ("python3", "python")):
            return ChosenPython("", path, "--python")
    elif found := shutil.which(path if "/" in given else given):
        return ChosenPython(os.path.abspath(found), "", "--python")  # noqa: PTH100
    raise UsageError(
        "--python",
        f"{given!r} is no Python interpreter, and no folder of an environment.",
        next_step="Give the path of one, such as ~/venv/bin/python or ~/venv.",
    )


def exclusive(machine_dir: Path | None, python: ChosenPython | None) -> None:
    """Refuse ``--python`` beside ``--machine``.

    Raises:
        UsageError: Both were given.
    """
    if python is not None and machine_dir is not None:
        raise UsageError(
            "--python",
            "it names an environment of this machine, and a captured machine has the one that was captured.",
            next_step="Leave out --python or --machine.",
        )


def asked_with(machine_dir: Path | None, target: str | None) -> str:
    """Return the options that name the same machine in another command."""
    from rocmend.core.examples import example_machines

    named = next((name for name, path in example_machines().items() if path == machine_dir), machine_dir)
    given = (("--machine", named), ("--target", target))
    return " ".join(f"{option} {shlex.quote(str(value))}" for option, value in given if value)


def take_snapshot(
    machine_dir: Path | None,
    *,
    target: str | None = None,
    workload: str | None = None,
    model_size: ModelSize | None = None,
    python: ChosenPython | None = None,
) -> Machine:
    """Return the facts of the machine asked for.

    Args:
        machine_dir: A captured machine, or None for this one.
        target: Answer for this gfx target.
        workload: What is to run.
        model_size: Size of the model to run.
        python: The Python environment that was asked for.

    Raises:
        UsageError: No capture, no such target, not a size; an environment of this machine for a captured one.
    """
    from rocmend.machine.collect import default_name, open_machine, snapshot

    asked = {"workload": workload, "model_bytes": model_size.size_bytes if model_size else None}
    exclusive(machine_dir, python)
    note_capture(machine_dir)
    with _reading(machine_dir):
        machine = snapshot(open_machine(machine_dir, python), name=default_name(machine_dir), asked=asked)
    if model_size is not None:
        machine = _with_source(machine, model_size)
        if "parameters" in model_size.text:
            tell(f"rocmend: --model-size: {model_size.text}")
    if target is None:
        return machine
    from rocmend.machine.hypothetical import with_target

    return with_target(machine, target, product_named(target))


def _reading(machine_dir: Path | None) -> AbstractContextManager[object]:
    """Say on a terminal that this machine is read, which takes seconds where ROCm's tools are slow."""
    if machine_dir is not None or Progress.shown or not sys.stderr.isatty():
        return nullcontext()
    context = click.get_current_context(silent=True)
    return Progress(context.command_path if context else "rocmend", "reading this machine", quick=True)


def _with_source(machine: Machine, model_size: ModelSize) -> Machine:
    """Say in the fact what was assumed of the size, so that it stands in every report."""
    import msgspec

    fact = msgspec.structs.replace(machine.facts["ask.model_bytes"], source=f"--model-size: {model_size.text}")
    return msgspec.structs.replace(machine, facts={**machine.facts, fact.key: fact})
