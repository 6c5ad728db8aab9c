"""``rocmend store show``."""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, no_output_file, output_options, redactor, tell
from rocmend.cli.stored import store_option
from rocmend.cli.streams import write_bytes
from rocmend.core.errors import UsageError
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.core.evidence import Artifact
    from rocmend.machine.facts import Machine
    from rocmend.store.records import StoredEvidence
    from rocmend.store.store import Store


@rocmend_command(
    "show",
    examples=(
        ("rocmend store show 20260131-1200", "the record whose id begins with this"),
        ("rocmend store show 20260131-1200 --artifact output.log", "what that run printed"),
        ("rocmend store show 20260131-1200 --facts", "the machine that it ran on, as it was at that time"),
    ),
)
@click.argument("record_id", metavar="ID")
@click.option(
    "--artifact",
    "artifact_name",
    metavar="NAME",
    help="Write this artifact to stdout; on a terminal without control characters.",
)
@click.option("--raw", is_flag=True, help="With --artifact: unchanged, on a terminal too.")
@click.option("--facts", is_flag=True, help="Show the facts of the machine that it ran on.")
@store_option
@output_options()
def command(
    record_id: str, artifact_name: str | None, raw: bool, facts: bool, store_path: Path | None, output_format: str
) -> None:
    """Show one record in detail.

    It shows the command, the result, the phases and the artifacts. ID may be any unique prefix.
    """
    from rocmend.store.store import Store

    with Store.open(store_path, create=False) as store:
        record = store.get(record_id)
        if artifact_name is not None:
            _write_artifact(store, record, artifact_name, raw=raw)
        machine = store.machine(record.evidence.machine) if record.evidence.machine else None
        repeats = Counter(other.evidence.verdict.value for other in store.repeats(record.evidence.identity))
    if facts:
        _show_facts(record.id, machine, output_format)
    from rocmend.cli.views.store import record_document

    data = {"id": record.id, "evidence": record.evidence, "repeats": dict(repeats)}
    finish(Outcome("store show", data), output_format, lambda: record_document(record, machine, repeats), details=True)


def _show_facts(record_id: str, machine: Machine | None, output_format: str) -> NoReturn:
    from rocmend.cli.views.machine import machine_document

    if machine is None:
        raise UsageError("store show", f"no machine snapshot was kept with {record_id}.")
    finish(Outcome("store show", machine), output_format, lambda: machine_document(machine))
    raise click.exceptions.Exit(0)


def _write_artifact(store: Store, record: StoredEvidence, name: str, *, raw: bool) -> None:
    no_output_file("an artifact")
    for artifact in record.evidence.artifacts:
        if artifact.name == name:
            _copy(store, artifact, raw=raw)
            sys.stdout.flush()
            raise click.exceptions.Exit(0)
    names = ", ".join(artifact.name for artifact in record.evidence.artifacts)
    raise UsageError(
        "store show",
        f"{record.id} has no artifact {name!r}.",
        next_step=f"It has {names}." if names else "It has none.",
    )


def _copy(store: Store, artifact: Artifact, *, raw: bool) -> None:
    """Write an artifact, redacted where it is text: what is binary goes as it is, and that is said."""
    redacts = redactor()
    if redacts is None and (raw or not sys.stdout.isatty()):
        store.copy_artifact(artifact.sha256, sys.stdout.buffer)
        return
    if artifact.size_bytes > _MAX_REDACTED_BYTES:
        raise UsageError(
            "store show",
            f"{artifact.name} has {artifact.size_bytes} bytes, which is too large to redact.",
            next_step="--no-redact writes it unchanged.",
        )
    held = io.BytesIO()
    store.copy_artifact(artifact.sha256, held)
    data = held.getvalue()
    if redacts is not None and b"\0" not in data:
        data = redacts.data(data)
    elif redacts is not None:
        tell(f"rocmend: {artifact.name} is not text and is not redacted.")
    write_bytes(data, raw=raw)


_MAX_REDACTED_BYTES = 64 << 20
"""A log that is larger takes minutes."""
