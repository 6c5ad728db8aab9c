"""A machine written up for somebody else: a text that fits into an issue, and an archive of what it rests on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

import msgspec

from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.cli.check import Check
    from rocmend.core.evidence import Evidence
    from rocmend.core.redact import Redactor
    from rocmend.machine.facts import Machine
    from rocmend.machine.root import ChosenPython
    from rocmend.store.records import StoredEvidence
    from rocmend.store.store import Store

MAX_TEXT_CHARS = 60_000
"""What a text may have: an issue takes 65,536."""

_MOST_ROWS = (200, 60, 20, 5)
"""Rows that a list has at most; the next number where the text would be too long."""

_MAX_CAPTURE_BYTES = 64 << 20
_NEWEST = 200
"""Records of a kind among which the newest run of this machine is looked for."""


class Probed(msgspec.Struct, frozen=True):
    """A run of probes.

    Attributes:
        group: Its id.
        count: How many operations it tried.
        failed: Those that failed.
        device: Where they ran, with the versions.
    """

    group: str
    count: int
    failed: tuple[Evidence, ...]
    device: str = ""


class Benchmarked(msgspec.Struct, frozen=True):
    """A run of a benchmark.

    Attributes:
        group: Its id.
        count: How many figures were to be measured.
        failed: How many of them there are not.
        device: Where it ran.
    """

    group: str
    count: int
    failed: int
    device: str


class Shared(msgspec.Struct, frozen=True):
    """What can be passed on.

    Attributes:
        text: Markdown of at most ``MAX_TEXT_CHARS`` characters.
        archive: A zip file; None where none was asked for.
        redactor: What replaced names and numbers.
        statement: What was replaced, in a sentence.
    """

    text: str
    archive: bytes | None
    redactor: Redactor
    statement: str


def newest_probes(store: Store) -> Probed | None:
    """Return the newest run of probes that a store has."""
    from rocmend.probe.records import KIND, QUIET

    group = store.last_group(f"{KIND}-")
    if group is None:
        return None
    records = [row.evidence for row in store.query(kind=KIND, group=group)]
    failed = tuple(record for record in records if record.verdict not in QUIET)
    versions = ", ".join(f"{name} {version}" for name, version in sorted((failed or records)[0].versions.items()))
    return Probed(group, len(records), failed, f"{_device(records)}{f' with {versions}' if versions else ''}")


def python_of(store: Store, probed: Probed) -> ChosenPython | None:
    """Return the Python environment that a run of probes used, where it is still there and known."""
    from rocmend.machine.root import ChosenPython as Chosen

    row = next(iter(store.query(group=probed.group, limit=1)), None)
    if row is None or not row.evidence.machine:
        return None
    executable = str(store.machine(row.evidence.machine).value("python.executable", "") or "")
    return Chosen(executable, "", "of the newest run of probes") if os.access(executable, os.X_OK) else None


def newest_benchmarks(store: Store) -> list[Benchmarked]:
    """Return the newest run of each benchmark that a store has."""
    from rocmend.core.verdict import Verdict

    found = []
    for suite in sorted({name.split("-")[1] for name in store.group_names("bench-")}):
        group = store.last_group(f"bench-{suite}-") or ""
        records = [row.evidence for row in store.query(kind="bench", group=group)]
        told = [record for record in records if record.verdict is not Verdict.SKIPPED]
        failed = sum(record.verdict is not Verdict.PASS for record in told)
        if records:
            found.append(Benchmarked(group, len(told), failed, _device(records)))
    return found


def _device(records: Sequence[Evidence]) -> str:
    """Return the devices that records are of, in words."""
    names: dict[str, None] = {}
    for record in records:
        name, target = str(record.detail.get("device_name", "")), record.gfx_target
        if target == "cpu":
            names[f"the CPU{f' ({name})' if name not in {'', 'cpu'} else ''}"] = None
        elif name or target:
            names[f"{name} ({target})" if name and target else name or target] = None
    return ", ".join(names) or "an unknown device"


def chosen_records(store: Store | None, groups: Sequence[str]) -> list[StoredEvidence]:
    """Return the records that go into an archive.

    Args:
        store: Where they are; None where nothing was ever kept.
        groups: Runs; none for the newest of each kind, of benchmarks for that of each suite.

    Raises:
        UsageError: There is no such run.
    """
    from rocmend.core.evidence import KINDS
    from rocmend.core.suggest import unknown
    from rocmend.store.exchange import is_own
    from rocmend.store.runs import find_run

    if store is None:
        if groups:
            raise unknown("--run", "run", groups[0], [], listed="rocmend store ls --groups")
        return []
    names = [find_run(store, name, kinds=(), subject="--run", what="run") for name in groups]
    if not names:
        for kind in KINDS:
            own = (row.evidence.group for row in store.query(kind=kind, limit=_NEWEST) if is_own(row.evidence))
            names.append(next(own, ""))
        suites = {name.split("-")[1] for name in store.group_names("bench-")}
        names += [store.last_group(f"bench-{suite}-") or "" for suite in sorted(suites)]
        names = [name for name in names if name]
    found: list[StoredEvidence] = []
    for name in dict.fromkeys(names):
        found += store.query(group=name)
    return found


def packed_evidence(store: Store | None, records: list[StoredEvidence], redactor: Redactor) -> dict[str, bytes]:
    """Return the files of an archive that hold evidence."""
    from rocmend.store.exchange import packed

    return packed(store, records, redactor) if store is not None and records else {}


def share(
    machine_dir: Path | None,
    *,
    python: ChosenPython | None = None,
    workload: str | None = None,
    probed: Probed | None = None,
    benchmarks: Sequence[Benchmarked] = (),
    archive: bool = False,
    evidence: Callable[[Redactor], dict[str, bytes]] = lambda _redactor: {},
    progress: Callable[[str], None] = lambda _text: None,
) -> Shared:
    """Write a machine up, redacted.

    Args:
        machine_dir: A captured machine; None for this one.
        python: The Python environment that was asked for.
        workload: What the machine is for.
        probed: A run of probes on it.
        benchmarks: Runs of benchmarks on it.
        archive: Make an archive too.
        evidence: Returns the archive's files that hold evidence, redacted.
        progress: Told what is being done.

    Raises:
        UsageError: No capture; one that is not redacted, for an archive.
    """
    from rocmend.cli.check import run_check
    from rocmend.cli.redaction import command_redactor
    from rocmend.cli.source import take_snapshot
    from rocmend.core.scratch import ScratchFolder
    from rocmend.kb.load import load_entries

    with ScratchFolder("share") as scratch:
        capture = machine_dir
        if archive and machine_dir is None:
            capture = scratch / "capture"
            machine = _captured(capture, python)
        else:
            machine = take_snapshot(machine_dir, python=python)
        from rocmend.doctor.diagnose import asked

        check = run_check(asked(machine, workload), load_entries(), workload=workload, progress=progress)
        redactor = command_redactor()
        text = _text(check, machine, probed, benchmarks, redactor)
        statement = (
            f"replaced: {redactor.told()}."
            if redactor.replaced
            else "looked for names, addresses, serial numbers and secrets: none found."
        )
        packed = None
        if archive and capture is not None:
            packed = _archive(text, check, machine, capture, redactor, evidence(redactor))
    return Shared(text, packed, redactor, statement)


def _captured(directory: Path, python: ChosenPython | None) -> Machine:
    from rocmend.machine.capture import capture
    from rocmend.machine.collect import THIS_MACHINE
    from rocmend.machine.live import LiveRoot

    found = capture(directory, root=LiveRoot(recording=True, python=python))
    return msgspec.structs.replace(found.machine, name=THIS_MACHINE)


def _text(
    check: Check, machine: Machine, probed: Probed | None, benchmarks: Sequence[Benchmarked], redactor: Redactor
) -> str:
    """Return the text, with shorter lists where it would be too long for an issue."""
    from rocmend.cli.views.share import share_document
    from rocmend.report import markdown
    from rocmend.report.redacted import redacted

    text = ""
    for most in _MOST_ROWS:
        made = share_document(check, machine, probed, benchmarks, most=most)
        text = markdown.render(redacted(made, redactor))
        if len(text) <= MAX_TEXT_CHARS:
            return text
    end = "\n\n(cut here: too long for an issue)\n"
    return text[: text.rfind("\n", 0, MAX_TEXT_CHARS - len(end))] + end


def _archive(
    text: str, check: Check, machine: Machine, capture: Path, redactor: Redactor, evidence: dict[str, bytes]
) -> bytes:
    from rocmend import __version__
    from rocmend.cli.views.check import check_report
    from rocmend.report import html
    from rocmend.report.envelope import Outcome, to_json
    from rocmend.report.redacted import redacted
    from rocmend.store.exchange import FOLDER, Manifest, archived

    report = html.render(redacted(check_report(check, machine), redactor))
    diagnosis = to_json(Outcome("doctor", check.diagnosis, int(check.serious)), redactor=redactor)
    parts = {"evidence.jsonl": "the evidence, for rocmend share show and import"} if evidence else {}
    parts |= {
        "share.md": "the text for an issue",
        "report.html": "the report of rocmend check",
        "diagnosis.json": "the diagnosis, as rocmend doctor --json prints it",
        "capture": "the captured machine, for rocmend doctor --machine",
    }
    manifest = Manifest(FOLDER, __version__, check.diagnosis.captured_at, parts)
    files = {
        "share.md": text.encode(),
        "report.html": report.encode(),
        "diagnosis.json": diagnosis.encode(),
        **evidence,
        **{f"capture/{name}": data for name, data in _capture_files(capture)},
    }
    return archived(manifest, files)


def _capture_files(capture: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files of a redacted capture; no link is followed.

    Raises:
        UsageError: It is not redacted, or far larger than a capture is.
    """
    from rocmend.machine import layout

    manifest: layout.Manifest | None = layout.load_json(capture, layout.MANIFEST, layout.Manifest)
    if manifest is None or not manifest.redacted:
        raise UsageError(
            str(capture),
            "this capture says that it is not redacted, so it is not put into an archive to share.",
            next_step="Capture the machine again with `rocmend machine capture`.",
        )
    left = _MAX_CAPTURE_BYTES
    known = {layout.MANIFEST, layout.TREE, layout.ENVIRON, layout.USER, layout.MEASUREMENTS}
    for above, folders, names in os.walk(capture):
        at = Path(above).relative_to(capture)
        top = not at.parts
        folders[:] = sorted(name for name in folders if name != "__pycache__" and (not top or name in _CAPTURED))
        for name in sorted(names):
            path = Path(above) / name
            status = path.lstat()
            if not S_ISREG(status.st_mode) or (top and name not in known):
                continue
            left -= status.st_size
            if left < 0:
                raise UsageError(str(capture), f"it holds more than {_MAX_CAPTURE_BYTES >> 20} MiB.")
            yield str(at / name), path.read_bytes()


_CAPTURED = frozenset({"root", "commands"})
"""Folders of a capture."""
