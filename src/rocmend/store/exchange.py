"""Evidence that is passed on: written into an archive redacted, read from one that a stranger made, taken into a store.

An archive is a ZIP file with ``share.json``, ``evidence.jsonl`` (a record a line), ``machines/HASH.json`` and
``logs/ID/NAME``, all below one folder. What was taken from one is marked: its group begins with ``shared-``.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.core.documents import MALFORMED, decode_json, open_regular
from rocmend.core.errors import DataError, UsageError
from rocmend.core.evidence import Evidence
from rocmend.core.records import SCHEMA_VERSION
from rocmend.store.encoding import decode_evidence, encode_evidence, machine_hash
from rocmend.store.records import StoredEvidence

if TYPE_CHECKING:
    from rocmend.core.redact import Redactor
    from rocmend.machine.facts import Machine
    from rocmend.store.store import Store

FOLDER = "rocmend-share"
SHARED = "shared-"
"""How the group of a record begins that was taken from an archive."""

MOST_LOG_BYTES = 256 << 10
"""Of one artifact; of a longer one head and tail."""
MOST_LOGS_BYTES = 16 << 20
MOST_ARCHIVE_BYTES = 512 << 20
_MOST_RECORDS_BYTES = 128 << 20
_MOST_MANIFEST_BYTES = 1 << 20
_MOST_MACHINE_BYTES = 32 << 20
_MOST_FILES = 200_000
_LOG_ENDINGS = (".log", ".txt", ".json", ".md", ".err", ".out")
_HASH = re.compile(r"[0-9a-f]{64}")


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an archive says of itself: ``share.json``.

    Attributes:
        kind: Always ``rocmend-share``.
        rocmend_version: What wrote it.
        captured_at: When the machine was read.
        parts: What is in it: path to what it is.
        schema_version: Version of this record.
    """

    kind: str
    rocmend_version: str
    captured_at: str
    parts: dict[str, str] = {}
    schema_version: int = SCHEMA_VERSION


class Received(msgspec.Struct, frozen=True):
    """What an archive holds.

    Attributes:
        name: The file's name.
        sha256: Hash of the file.
        manifest: What it says of itself.
        records: Its evidence, the newest first.
        machines: Snapshots by hash.
        logs: Artifacts' texts by record's id and name.
        refused: Lines of evidence that can't be read, each with the reason.
    """

    name: str
    sha256: str
    manifest: Manifest
    records: tuple[StoredEvidence, ...]
    machines: dict[str, Machine]
    logs: dict[tuple[str, str], bytes]
    refused: tuple[str, ...] = ()


class Taken(msgspec.Struct, frozen=True):
    """What taking an archive into a store did.

    Attributes:
        added: Records added.
        known: Records that the store has already.
        groups: Groups of the records, as the store calls them.
        own: Records that were made in this store itself; none of them is added.
    """

    added: int
    known: int
    groups: tuple[str, ...]
    own: int = 0


def packed(store: Store, records: Iterable[StoredEvidence], redactor: Redactor) -> dict[str, bytes]:
    """Return the files of an archive that hold records, with the machines and logs that they name, redacted."""
    lines: list[bytes] = []
    files: dict[str, bytes] = {}
    renamed: dict[str, str] = {}
    left = MOST_LOGS_BYTES
    for record in records:
        evidence = record.evidence
        if evidence.machine and evidence.machine not in renamed:
            machine = _redacted_machine(store.machine(evidence.machine), redactor)
            renamed[evidence.machine] = content = machine_hash(machine)
            files[f"machines/{content}.json"] = msgspec.json.encode(machine)
        for artifact in evidence.artifacts:
            if artifact.name.endswith(_LOG_ENDINGS) and left > 0:
                data = redactor.data(_cut(store.artifact(artifact.sha256)))
                left -= len(data)
                files[f"logs/{record.id}/{artifact.name}"] = data
        plain = msgspec.json.decode(encode_evidence(evidence))
        made = redactor.json(plain)
        made |= {"identity": evidence.identity, "machine": renamed.get(evidence.machine, ""), "artifacts": []}
        lines.append(msgspec.json.encode({"id": record.id, "evidence": made}))
    files["evidence.jsonl"] = b"".join(line + b"\n" for line in lines)
    return files


def archived(manifest: Manifest, files: Mapping[str, bytes]) -> bytes:
    """Return an archive as bytes.

    Args:
        manifest: What it says of itself.
        files: What else is in it, by path.
    """
    told = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {"share.json": told, **files}.items():
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", time.gmtime()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return made.getvalue()


def _redacted_machine(machine: Machine, redactor: Redactor) -> Machine:
    from rocmend.machine.facts import Machine as Snapshot

    return msgspec.convert(redactor.json(msgspec.to_builtins(machine)), Snapshot)


def _cut(data: bytes) -> bytes:
    if len(data) <= MOST_LOG_BYTES:
        return data
    half = MOST_LOG_BYTES // 2
    return data[:half] + b"\n[... cut ...]\n" + data[-half:]


def read_archive(path: Path) -> Received:
    """Read an archive, which anybody may have made: nothing of it is written or run, and all of it is bounded.

    Raises:
        DataError: It is no such archive, or too large.
    """
    try:
        file = open_regular(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(
            str(path), "there is no such file.", next_step="`rocmend share --archive FILE.zip` makes an archive."
        ) from error
    with file:
        if file.seek(0, 2) > MOST_ARCHIVE_BYTES:
            raise DataError(
                str(path), f"has more than {MOST_ARCHIVE_BYTES >> 20} MiB: not an archive of rocmend share."
            )
        file.seek(0)
        digest = hashlib.sha256()
        while part := file.read(1 << 20):
            digest.update(part)
        sha256 = digest.hexdigest()
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                return _read(archive, path, sha256)
        except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise DataError(
                str(path), f"is no archive of rocmend share: {error}.", next_step="`rocmend share --archive` makes one."
            ) from error


def _read(archive: zipfile.ZipFile, path: Path, sha256: str) -> Received:
    from rocmend.machine.facts import Machine as Snapshot

    inside: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist()[:_MOST_FILES]:
        parts = PurePosixPath(info.filename).parts
        if len(parts) > 1 and parts[0] == FOLDER and ".." not in parts and not info.is_dir():
            inside["/".join(parts[1:])] = info
    if "share.json" not in inside:
        raise DataError(str(path), "is no archive of rocmend share.", next_step="`rocmend share --archive` makes one.")
    manifest = _decoded(_bounded(archive, inside["share.json"], _MOST_MANIFEST_BYTES, path), Manifest, path)
    if manifest.kind != FOLDER or manifest.schema_version > SCHEMA_VERSION:
        raise DataError(
            str(path), "was written by a newer rocmend, or is something else.", next_step="Upgrade rocmend."
        )
    machines: dict[str, Machine] = {}
    logs: dict[tuple[str, str], bytes] = {}
    left = MOST_LOGS_BYTES
    for name, info in inside.items():
        folder, _, rest = name.partition("/")
        if folder == "machines" and _HASH.fullmatch(rest.removesuffix(".json")):
            machine = _decoded(_bounded(archive, info, _MOST_MACHINE_BYTES, path), Snapshot, path)
            machines[machine_hash(machine)] = machine
        elif folder == "logs" and "/" in rest and left > 0:
            data = _bounded(archive, info, 2 * MOST_LOG_BYTES, path)
            left -= len(data)
            record, _, log = rest.partition("/")
            logs[record, log] = data
    records, refused = [], []
    lines = (
        _bounded(archive, inside["evidence.jsonl"], _MOST_RECORDS_BYTES, path) if "evidence.jsonl" in inside else b""
    )
    for number, line in enumerate(lines.splitlines(), 1):
        try:
            records.append(_record(line, machines))
        except DataError as error:
            refused.append(f"line {number}: {error.message}")
    records.sort(key=lambda record: record.id, reverse=True)
    return Received(path.name, sha256, manifest, tuple(records), machines, logs, tuple(refused))


def _record(line: bytes, machines: Mapping[str, Machine]) -> StoredEvidence:
    try:
        found = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        record_id = msgspec.json.decode(found["id"], type=str)
        text = bytes(found["evidence"]).decode()
    except (*MALFORMED, KeyError) as error:
        raise DataError("evidence.jsonl", f"it is no record: {type(error).__name__}") from error
    evidence = decode_evidence(text, record_id[:64])
    if evidence.machine not in machines:
        evidence = msgspec.structs.replace(evidence, machine="")
    return StoredEvidence(record_id, msgspec.structs.replace(evidence, artifacts=()))


def _bounded(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int, path: Path) -> bytes:
    """Read a file of an archive; the size that it says is not believed."""
    with archive.open(info) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise DataError(str(path), f"{info.filename[:200]} has more than {most >> 10} KiB.")
    return data


def _decoded(data: bytes, kind: Any, path: Path) -> Any:
    return decode_json(data, kind, subject=str(path), what="archive of rocmend share")


def take(store: Store, received: Received, *, mark: str = "", told: Mapping[str, str] | None = None) -> Taken:
    """Take the evidence of an archive into a store; what it has already, from whichever archive, or made, is left.

    Args:
        store: The store.
        received: What the archive holds.
        mark: Stands in the names of its groups; empty for the archive's hash. Archives with the same mark are of the
            same origin: what one of them brought is known when the next one brings it again.
        told: What else is to be kept of where the records are from.
    """
    origin_mark = mark
    own = set() if mark else {record.id for record in received.records if _made_in(store, record)}
    records = [record for record in received.records if record.id not in own]
    mark = mark or received.sha256[:8]
    groups = tuple(dict.fromkeys(f"{SHARED}{mark}-{record.evidence.group}" for record in records))
    known = {str(row.evidence.detail["shared"]["id"]) for group in groups for row in store.query(group=group)}
    added, there = 0, 0
    for record in reversed(records):
        if record.id in known:
            there += 1
            continue
        evidence = record.evidence
        logs = {name: data for (of, name), data in received.logs.items() if of == record.id}
        content = hashlib.sha256(f"{origin_mark}\n{record.id}\n{encode_evidence(evidence)}".encode()).hexdigest()
        origin = {
            "id": record.id,
            "content": content,
            "archive": received.sha256,
            "file": received.name,
            "group": evidence.group,
        }
        made = msgspec.structs.replace(
            evidence,
            group=f"{SHARED}{mark}-{evidence.group}",
            machine="",
            detail={**evidence.detail, "shared": {**origin, **(told or {})}},
        )
        new = store.add_once(made, content, machine=received.machines.get(evidence.machine), artifacts=logs or None)
        added, there = added + new, there + (not new)
    return Taken(added, there, groups, len(own))


def _made_in(store: Store, record: StoredEvidence) -> bool:
    """Return whether a record of an archive was made in this store: what it repeats is there, under its id."""
    rows = store.repeats(record.evidence.identity)
    return any(row.id == record.id and is_own(row.evidence) for row in rows)


def is_own(evidence: Evidence) -> bool:
    """Return whether a record was made here, and not taken from an archive or from results of others."""
    return evidence.kind != "imported" and not evidence.group.startswith(SHARED)
