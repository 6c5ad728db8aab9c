"""``rocmend share matrix``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.stored import existing_store, store_option
from rocmend.core.evidence import KINDS
from rocmend.core.suggest import unknown
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.core.evidence import Evidence


@rocmend_command(
    "matrix",
    examples=(
        ("rocmend share matrix", "what the store proves, by GPU: your own runs and imported ones"),
        ("rocmend share matrix received/*.zip --kind probe", "with archives that are not imported"),
        ("rocmend share matrix --select 'bench *' -o matrix.html", "benchmarks only, as a page"),
    ),
)
@click.argument("archives", type=click.Path(path_type=Path, dir_okay=False), metavar="[FILE.zip]...", nargs=-1)
@click.option("--kind", metavar="KIND", default=None, help=f"Only this kind: {', '.join(KINDS)}.")
@click.option("--select", metavar="GLOB", default="*", help="Only the rows whose name fits, e.g. 'probe conv*'.")
@store_option
@output_options()
def command(
    archives: tuple[Path, ...], kind: str | None, select: str, store_path: Path | None, output_format: str
) -> None:
    """Show who has proven what on which GPU.

    A row is an operation, a benchmark or a suite; a column is a gfx target. A cell says on how many machines it passed,
    by their newest records, and what came out elsewhere. Machines of the same model, processor and GPUs count as one.
    """
    from rocmend.cli.views.shared import matrix_document
    from rocmend.store.proven import proven

    if kind is not None and kind not in KINDS:
        raise unknown("--kind", "kind of evidence", kind, list(KINDS))
    found = proven(_records(archives, kind, store_path))
    subjects = {name: row for name, row in found.subjects.items() if fnmatch.fnmatchcase(name, select)}
    found = msgspec.structs.replace(found, subjects=subjects)
    finish(Outcome("share matrix", found), output_format, lambda: matrix_document(found))


def _records(archives: tuple[Path, ...], kind: str | None, store_path: Path | None) -> Iterator[tuple[Evidence, str]]:
    from rocmend.store.exchange import SHARED, read_archive
    from rocmend.store.proven import hardware_of

    store = existing_store(store_path)
    machines: dict[str, str] = {}

    def machine_of(evidence: Evidence, place: str) -> str:
        if evidence.machine and store is not None and evidence.machine not in machines:
            machines[evidence.machine] = hardware_of(store.machine(evidence.machine))
        return machines.get(evidence.machine, place)

    # a record counts once, whichever archives it is in; this store's own ones are of this machine
    seen = {one.id for one in store.summaries() if not one.group.startswith(SHARED)} if store is not None else set()
    for row in store.query(kind=kind) if store is not None else ():
        shared = row.evidence.detail.get("shared")
        if not isinstance(shared, dict):
            yield row.evidence, machine_of(row.evidence, "")
        elif shared.get("id") not in seen:
            seen.add(str(shared.get("id")))
            yield row.evidence, machine_of(row.evidence, str(shared.get("archive", "")))
    for archive in archives:
        received = read_archive(archive)
        sent = {name: hardware_of(machine) for name, machine in received.machines.items()}
        for record in received.records:
            if record.id not in seen and kind in {None, record.evidence.kind}:
                seen.add(record.id)
                yield record.evidence, sent.get(record.evidence.machine, received.sha256)
