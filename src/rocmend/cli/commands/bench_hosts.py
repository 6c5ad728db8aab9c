"""``rocmend bench hosts``."""

from __future__ import annotations

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options, tell
from rocmend.report.envelope import Outcome


@rocmend_command(
    "hosts",
    examples=(
        ("rocmend bench gemm --quick --hosts ssh:strix,me@spark", "measure on two machines, and compare"),
        ("rocmend bench memory --hosts k8s:amd.com/gpu.family=NV --image IMAGE", "on each such node of a cluster"),
        ("rocmend bench hosts", "list what was run, and the hosts in quarantine with the reason"),
        ("rocmend bench hosts --release strix", "let a host be measured again"),
    ),
)
@click.option("--release", metavar="HOST", default=None, help="Take a host out of quarantine.")
@output_options()
def command(release: str | None, output_format: str) -> None:
    """List the hosts that `--hosts` measured, and those in quarantine.

    `rocmend bench BENCHMARK … --hosts HOSTS` runs the same command line on other machines, at the same time, each of
    them alone, and keeps what they measured in the store here. HOSTS is ssh:HOST[,HOST…] (as `ssh HOST` reaches it,
    without prompts), k8s or k8s:LABEL=VALUE (a pod on each node with a GPU), or the path of a TOML file. rocmend must
    be installed there. A host whose health check fails after its run is in quarantine from then on: it is not measured
    until it is released. The page "Measure several machines" of the documentation explains all of it.
    """
    from rocmend.bench.fleet.state import Notes
    from rocmend.cli.redaction import note_hosts
    from rocmend.cli.views.fleet import hosts_document

    notes = Notes()
    if release is not None:
        found = notes.release(release)
        tell(f"rocmend: {found.host} is out of quarantine; it was there since {found.since}: {found.reason}")
    quarantined, fleets = list(notes.quarantined().values()), list(notes.fleets())
    names = [one.host for one in quarantined] + [host.host for fleet in fleets for host in fleet.hosts]
    note_hosts(name.rpartition("@")[2] for name in names)
    data = {"quarantined": quarantined, "fleets": fleets}
    finish(Outcome("bench hosts", data), output_format, lambda: hosts_document(quarantined, fleets))
