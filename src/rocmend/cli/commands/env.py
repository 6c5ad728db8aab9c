"""``rocmend env``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.output import tell
from rocmend.cli.source import machine_option, take_snapshot, target_option, workload_option
from rocmend.cli.streams import write_data, write_text
from rocmend.report.envelope import Outcome, to_json
from rocmend.setup.shells import CONTAINERS, IMAGES, SHELLS

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine


@rocmend_command(
    "env",
    examples=(
        ("rocmend env --for pytorch", "what to export in bash, each line with its reason and source"),
        ("rocmend env --for llama.cpp --shell k8s", "the same for a pod"),
        ("source <(rocmend env --for pytorch)", "use it in this shell"),
        ("rocmend env --for pytorch --rocm-path ~/therock/rocm-7.0", "with an extracted ROCm tarball"),
    ),
)
@workload_option(required=True)
@click.option(
    "--shell", type=OneOf(SHELLS), default="bash", show_default=True, help="The shell or file format to write for."
)
@click.option(
    "--rocm-path",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="An extracted ROCm tarball to be used instead of the installed ROCm.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the settings as JSON.")
@machine_option
@target_option
def command(
    workload: str, shell: str, rocm_path: Path | None, machine_dir: Path | None, target: str | None, as_json: bool
) -> None:
    """Print the environment variables for a workload.

    Each line has its reason and source. What is to be set comes first; optional lines, which are worth measuring and
    not known to help, follow commented out. Nothing is changed: the text is for you to read and to source.
    """
    from rocmend.kb.load import load_entries
    from rocmend.setup.environment import environment
    from rocmend.setup.shells import write

    machine = take_snapshot(machine_dir, target=target, workload=workload)
    if rocm_path is not None:
        from rocmend.setup.tarball import with_rocm_path

        machine = with_rocm_path(machine, rocm_path, check=machine_dir is None)
    machine = _host_of(machine, shell)
    result = environment(machine, load_entries(), workload, always_unset=shell in IMAGES)
    if as_json:
        write_data(to_json(Outcome("env", result)))
        return
    gpus = [str(machine.value(f"gpu.{index}.gfx_target", "unknown GPU")) for index in machine.indices("gpu")]
    where = f"{machine.name} ({', '.join(dict.fromkeys(gpus)) or 'no AMD GPU'})"
    if machine.hypothetical_target:
        where = f"{machine.hypothetical_target} (not in {machine.name})"
    title = f"rocmend env: {workload} on {where}"
    write_text(write(result.lines, shell, title=title))
    for entry_id, missing in result.undecided.items():
        tell(f"rocmend: {entry_id} could not be judged: {', '.join(missing)} unknown")


def _host_of(machine: Machine, shell: str) -> Machine:
    """Return the machine as the settings will find it: a container for one, and not this one for a GPU elsewhere."""
    import msgspec

    from rocmend.core.records import Fact

    kind = "container" if shell in CONTAINERS else "bare" if machine.hypothetical_target else ""
    if not kind:
        return machine
    return msgspec.structs.replace(machine, facts=machine.facts | {"host.kind": Fact("host.kind", kind, "--shell")})
