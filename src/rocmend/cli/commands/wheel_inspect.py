"""``rocmend wheel inspect``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.gpu_names import GpuName
from rocmend.cli.output import finish, output_options
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import SIZE
from rocmend.cli.redaction import note_capture
from rocmend.cli.source import exclusive, machine_option, python_option
from rocmend.core.errors import UsageError
from rocmend.core.units import size_text
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.machine.root import ChosenPython


@rocmend_command(
    "inspect",
    examples=(
        ("rocmend wheel inspect torch", "the installed package, for the GPUs of this machine"),
        ("rocmend wheel inspect bitsandbytes.whl --target gfx1151", "a wheel, for a GPU that is elsewhere"),
        ("rocmend wheel inspect /opt/rocm/lib --target gfx1030 --files", "a folder, file by file"),
    ),
)
@click.argument("subject", metavar="FILE|PACKAGE|DIR", type=click.Path())
@click.option(
    "--target",
    "targets",
    type=GpuName(settings=True),
    multiple=True,
    metavar="GPU",
    help="A GPU to judge for: gfx1151, gfx90a:xnack-, 'RX 7900 XTX' …; can be repeated.",
)
@click.option(
    "--hip",
    default="",
    metavar="VERSION",
    help="HIP version of the PyTorch beside it, for packages with a library for each; otherwise that of this machine.",
)
@click.option("--native", is_flag=True, help="Exit with 1 unless it runs natively: with code for the GPU, no override.")
@click.option("--files", "all_files", is_flag=True, help="List every file with device code, not only the largest.")
@click.option("--shallow", is_flag=True, help="Read section tables only: faster, misses code objects hidden in data.")
@click.option(
    "--max-size",
    type=SIZE,
    default="128GiB",
    show_default=True,
    metavar="SIZE",
    help="Refuse an archive that inflates to more.",
)
@machine_option
@python_option
@output_options()
def command(
    subject: str,
    targets: tuple[str, ...],
    hip: str,
    native: bool,
    all_files: bool,
    shallow: bool,
    max_size: int,
    machine_dir: Path | None,
    python: ChosenPython | None,
    output_format: str,
) -> None:
    """Say whether a wheel or library runs on a GPU.

    Folders and installed packages work, too: those of the environment that `rocmend doctor` examines. No GPU is needed,
    and nothing is imported. Without --target the GPUs of the machine are judged. With --python the package of that
    environment is meant, not a folder.
    Exit code 1 means that one of them is not served, or that it cannot be decided because files could not be read.
    """
    import msgspec

    from rocmend.cli.views.wheel import inspection_document
    from rocmend.codeobject.inspect import inspect_path
    from rocmend.codeobject.limits import DEFAULT_LIMITS
    from rocmend.codeobject.service import Verdict, serve
    from rocmend.codeobject.versions import match_rocm

    if hip and not re.match(r"\d+\.\d+", hip):
        raise UsageError(
            "--hip",
            f"expected a version such as 7.2, got {hip!r}.",
            next_step="`torch.version.hip` of that PyTorch names it.",
        )
    exclusive(machine_dir, python)
    wanted, system_rocm = _asked(targets, machine_dir)
    limits = msgspec.structs.replace(DEFAULT_LIMITS, total_bytes=max_size, deep=not shallow)

    with Progress("rocmend wheel inspect", "reading", quick=True) as progress:

        def told(name: str, done: int, total: int) -> None:
            progress(f"{size_text(done)} of {size_text(total)} searched  {name[-50:]}")

        try:
            inspection = inspect_path(
                subject,
                limits=limits,
                progress=told,
                search_path=None if python else _folders(None),
                installed_in=(_folders(python) or ()) if python else None,
            )
        except UsageError as error:
            if machine_dir is None:
                raise
            why = "The packages of a captured machine cannot be read: --machine only says for which GPU."
            raise UsageError(error.subject, error.message, why=why, next_step=error.next_step) from error
    has_variants = any(part.variant for part in inspection.components)
    if has_variants and not hip and (not targets or machine_dir is not None or inspection.kind == "package"):
        hip = _hip_beside(machine_dir, python)
    services = [serve(inspection, target, hip=hip) for target in wanted]
    bundled = inspection.rocm_version or inspection.hip_version
    versions = match_rocm(bundled, system_rocm) if bundled and system_rocm else None
    served = {Verdict.NATIVE, Verdict.GENERIC} if native else set(Verdict) - {Verdict.NONE, Verdict.UNKNOWN}
    refused = any(service.verdict not in served for service in services)
    refused |= not services and (native or inspection.undecided)
    data = {"inspection": inspection, "services": services, "versions": versions}
    outcome = Outcome("wheel inspect", data, FINDINGS if refused else CLEAN)
    finish(outcome, output_format, lambda: inspection_document(inspection, services, versions, all_files=all_files))


def _folders(python: ChosenPython | None) -> tuple[str, ...] | None:
    """Return where the packages lie of the environment that all commands look at; None for rocmend's own."""
    import sys

    from rocmend.machine.collect import open_machine
    from rocmend.machine.software.python_env import active_environment

    environment = active_environment(open_machine(None, python))
    if environment is None or (python is None and environment.prefix == sys.prefix):
        return None  # what its .pth files add is in sys.path
    return tuple(environment.site_packages)


def _hip_beside(machine_dir: Path | None, python: ChosenPython | None) -> str:
    """Return the HIP version of the machine's PyTorch; "" where it has none."""
    from rocmend.machine.collect import default_name, open_machine, snapshot

    note_capture(machine_dir)
    machine = snapshot(open_machine(machine_dir, python), name=default_name(machine_dir), only=("torch",))
    return str(machine.value("torch.hip_version") or "")


def _asked(targets: tuple[str, ...], machine_dir: Path | None) -> tuple[list[str], str]:
    """Return the targets to judge for, and the machine's own ROCm version where it has one."""
    from rocmend.machine.collect import default_name, open_machine, snapshot

    if targets and machine_dir is None:
        return list(targets), ""
    note_capture(machine_dir)
    root = open_machine(machine_dir)
    machine = snapshot(root, name=default_name(machine_dir), only=("kfd", "rocm"))
    found = [machine.value(f"gpu.{index}.gfx_target") for index in machine.indices("gpu")]
    names = list(dict.fromkeys(name for name in found if isinstance(name, str)))
    if targets:
        names = list(targets)
    elif machine_dir is not None and not names:
        raise UsageError("wheel inspect", f"{machine_dir} has no AMD GPU.", next_step="Name one: --target gfx1151.")
    return names, str(machine.value("rocm.version") or "")
