"""Records as the store keeps them: JSON that gives back exactly what was put in."""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.core.documents import MALFORMED, decompressed
from rocmend.core.errors import DataError
from rocmend.core.evidence import Evidence
from rocmend.core.records import SCHEMA_VERSION

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

_MOMENTARY = re.compile(r"ask\..*|memory\.available_bytes|gpu\.\d+\.(vram|gtt)_used_bytes")
"""Facts about the moment or the question rather than the machine."""

_TAG = "$float"
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""JSON has no such numbers, and a wrong result is often one."""


def encode_evidence(evidence: Evidence) -> str:
    """Return a record as JSON text.

    Raises:
        DataError: It holds something that JSON cannot (an object, bytes that are not text, a time that is no number).
    """
    times = [evidence.time_ms, *(time for span in evidence.timeline for time in (span.begin_ms, span.end_ms))]
    if not all(map(math.isfinite, times)):
        raise DataError("store", f"a time of {evidence.subject!r} is not a finite number of milliseconds.")
    try:
        replaced = msgspec.structs.replace(
            evidence, detail=_without_special(evidence.detail), settings=_without_special(evidence.settings)
        )
        try:
            return msgspec.json.encode(replaced).decode()
        except UnicodeEncodeError:  # bytes of a path or an output that are no UTF-8, as Python hands them on
            plain = _without_surrogates(msgspec.to_builtins(replaced))
            return msgspec.json.encode(plain).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError("store", f"the record of {evidence.subject!r} can't be written as JSON: {error}.") from error


def decode_evidence(text: object, record_id: str) -> Evidence:
    """Read a record, from what SQLite gives: a column holds values of any type.

    Raises:
        DataError: It is damaged, or a newer rocmend wrote it.
    """
    try:
        if not isinstance(text, str):
            raise ValueError(f"expected text, got {type(text).__name__}")  # noqa: TRY004  one error for all
        evidence = msgspec.json.decode(text, type=Evidence)
    except MALFORMED as error:
        raise DataError(
            record_id,
            f"The record can't be read: {error}.",
            why="It is damaged, or a newer rocmend wrote it.",
            next_step=f"Upgrade rocmend, or remove it with `rocmend store rm {record_id}`.",
        ) from error
    if evidence.schema_version > SCHEMA_VERSION:
        raise DataError(
            record_id,
            f"The record has version {evidence.schema_version}; this rocmend knows versions up to {SCHEMA_VERSION}.",
            next_step="Upgrade rocmend.",
        )
    if f'"{_TAG}"' not in text:
        return evidence
    return msgspec.structs.replace(
        evidence, detail=_with_special(evidence.detail), settings=_with_special(evidence.settings)
    )


def _without_special(value: Any) -> Any:
    """Tag the numbers that JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {_TAG: str(float(value))}
    if isinstance(value, dict):
        return {key: _without_special(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_special(item) for item in value]
    return value


def _with_special(value: Any) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get(_TAG), str) and value[_TAG] in _SPECIAL:
            return _SPECIAL[value[_TAG]]
        return {key: _with_special(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_special(item) for item in value]
    return value


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value


def machine_hash(machine: Machine) -> str:
    """Return the content hash of a machine: SHA-256 over its facts' values as canonical JSON.

    Name, capture time, sources and raw texts do not count, nor do facts about the moment (memory in use) and about what
    was asked, so that snapshots of one unchanged machine have one hash.
    """
    values = {key: fact.value for key, fact in machine.facts.items() if not _MOMENTARY.fullmatch(key)}
    try:
        text = msgspec.json.encode(values, order="deterministic")
    except UnicodeEncodeError:
        text = msgspec.json.encode(_without_surrogates(values), order="deterministic")
    return hashlib.sha256(text).hexdigest()


def encode_machine(machine: Machine) -> bytes:
    """Return a machine as JSON, compressed with zstd."""
    import zstandard

    try:
        text = msgspec.json.encode(machine)
    except UnicodeEncodeError:
        text = msgspec.json.encode(_without_surrogates(msgspec.to_builtins(machine)))
    return zstandard.ZstdCompressor(level=9, write_checksum=True).compress(text)


MAX_MACHINE_BYTES = 256 << 20
"""A snapshot that claims to be larger than this is not ours."""


def decode_machine(data: object, content_hash: str) -> Machine:
    """Read a machine, from what SQLite gives.

    Raises:
        DataError: It is damaged, or a newer rocmend wrote it.
    """
    from rocmend.machine.facts import Machine

    try:
        if not isinstance(data, bytes):
            raise ValueError(f"expected bytes, got {type(data).__name__}")  # noqa: TRY004  one error for all
        machine = msgspec.json.decode(decompressed(data, MAX_MACHINE_BYTES), type=Machine)
    except MALFORMED as error:
        raise DataError(content_hash, f"The machine snapshot can't be read: {error}.") from error
    if machine.schema_version > SCHEMA_VERSION:
        raise DataError(
            content_hash,
            f"The machine snapshot has version {machine.schema_version}, this rocmend knows up to {SCHEMA_VERSION}.",
            next_step="Upgrade rocmend.",
        )
    return machine
