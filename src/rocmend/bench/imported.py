"""Results of others: found in files and folders, laid side by side, and kept as evidence of their own kind."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.bench.case import Case, Setting
from rocmend.bench.importers.importer import Document, Entry, importer_of
from rocmend.bench.llama.build import target_in
from rocmend.bench.llama.rows import Row, test_name
from rocmend.bench.records import IMPORTED, Measured, evidence_of
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.stats import summarize
from rocmend.core.documents import MALFORMED, read_document
from rocmend.core.errors import DataError, UsageError
from rocmend.core.evidence import Evidence, identity_of

if TYPE_CHECKING:
    from rocmend.store.store import Store

MAX_FILE_BYTES = 64 << 20
MAX_FILES = 20_000
MAX_RESULTS = 200_000
_MAX_DEPTH = 6
_METADATA = ("run_metadata.txt", "campaign_manifest.json")
_MANIFEST_FACTS = ("campaign_id", "host", "image", "image_digest", "llama_build")
_DIFFERING = ("flash_attn", "n_ubatch", "n_batch", "use_mmap", "load_mode", "n_gpu_layers", "type_k", "type_v",
              "n_threads", "devices")  # fmt: skip
_SHORT = {"flash_attn": "fa", "n_ubatch": "ub", "n_batch": "b", "use_mmap": "mmap", "load_mode": "lm",
          "n_gpu_layers": "ngl", "type_k": "ctk", "type_v": "ctv", "n_threads": "t", "devices": "dev"}  # fmt: skip


class Imported(msgspec.Struct, frozen=True, omit_defaults=True):
    """A result with where it is from.

    Attributes:
        entry: The result.
        column: What its column is called, unlike those of other results of the same test.
        file: Name of the file.
        sha256: Hash of the file.
        importer: Which importer read it.
        folder: Name of the file's folder.
    """

    entry: Entry
    column: str
    file: str
    sha256: str
    importer: str
    folder: str = ""

    @property
    def test(self) -> str:
        """The test; ``run`` where it failed before there was one."""
        return self.entry.row.test if self.entry.row else "run"


class Problem(msgspec.Struct, frozen=True):
    """What could not be read.

    Attributes:
        file: Name of the file.
        text: Why, with the line.
    """

    file: str
    text: str


class Found(msgspec.Struct, frozen=True):
    """What files hold.

    Attributes:
        results: The results, in the order of the files.
        problems: What could not be read.
        unknown: Files that no importer knows.
        read: Files that results were read from.
    """

    results: tuple[Imported, ...]
    problems: tuple[Problem, ...]
    unknown: tuple[str, ...]
    read: tuple[str, ...]


def find(paths: Sequence[Path]) -> Found:
    """Read all that is known in files and folders.

    Args:
        paths: Files, and folders that are gone through.

    Raises:
        UsageError: One is not there.
    """
    results: list[Imported] = []
    problems: list[Problem] = []
    unknown: list[str] = []
    read: list[str] = []
    folders: dict[Path, _Metadata] = {}
    for path in _files(paths, problems):
        if path.name in _METADATA:
            continue
        try:
            data = read_document(path, max_bytes=MAX_FILE_BYTES, follow=path in paths)
        except (DataError, OSError) as error:
            problems.append(Problem(path.name, str(error)))
            continue
        document = Document(path.name, data.decode(errors="replace"))
        importer = importer_of(document)
        if importer is None:
            unknown.append(path.name)
            continue
        entries, faults = importer.read(document)
        problems += [Problem(path.name, fault) for fault in faults]
        if not entries:
            if not faults and ".stderr." not in path.name:
                problems.append(Problem(path.name, f"is {importer.title}, and holds no result"))
            continue
        read.append(path.name)
        if path.parent not in folders:
            folders[path.parent] = _metadata(path.parent, problems)
        sha256 = hashlib.sha256(data).hexdigest()
        origin = (path.name, sha256, importer.id, path.parent.name)
        results += [Imported(folders[path.parent].add(entry), entry.label, *origin) for entry in entries]
        if len(results) >= MAX_RESULTS:
            problems.append(Problem(path.name, f"more than {MAX_RESULTS:,} results; later files were not read"))
            break
    return Found(tuple(_columns(results)), tuple(problems), tuple(unknown), tuple(read))


def _files(paths: Sequence[Path], problems: list[Problem]) -> Iterator[Path]:
    count = 0
    for path in paths:
        if not path.exists():
            raise UsageError(
                "bench import",
                f"there is no file or folder {path}.",
                next_step="Give what llama-bench printed (json, jsonl, csv, md or sql), or a folder of such files.",
            )
        for file in [path] if not path.is_dir() else _walk(path):
            count += 1
            if count > MAX_FILES:
                problems.append(Problem(path.name, f"holds more than {MAX_FILES:,} files; the rest was not read"))
                return
            yield file


def _walk(folder: Path) -> Iterator[Path]:
    base = len(folder.parts)
    for place, folders, names in os.walk(folder):
        folders.sort()
        if len(Path(place).parts) - base >= _MAX_DEPTH:
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in sorted(names) if not name.startswith("."))


class _Metadata(msgspec.Struct, frozen=True):
    """What a campaign's folder says of all of its runs, and of each model's."""

    facts: dict[str, str] = {}
    models: dict[str, dict[str, str]] = {}

    def add(self, entry: Entry) -> Entry:
        own = self.models.get(entry.model, {})
        return msgspec.structs.replace(entry, facts={**self.facts, **own, **entry.facts})


def _metadata(folder: Path, problems: list[Problem]) -> _Metadata:
    facts: dict[str, str] = {}
    models: dict[str, dict[str, str]] = {}
    for name in _METADATA:
        path = folder / name
        if not path.is_file():
            continue
        try:
            data = read_document(path, max_bytes=MAX_FILE_BYTES, follow=False)
            if name.endswith(".txt"):
                facts |= _lines(data.decode(errors="replace"))
            else:
                whole = msgspec.json.decode(data, type=dict[str, Any])
                facts |= {key: str(whole[key])[:300] for key in ("toolbox", "platform", "completed_at") if key in whole}
                models = _models(whole.get("model_provenance"))
        except (DataError, OSError, *MALFORMED) as error:
            problems.append(Problem(name, str(error)[:200]))
    return _Metadata(facts, models)


def _lines(text: str) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in text.split("\n")[:500] if ":" in line)
    return {key.strip()[:60]: value.strip()[:300] for key, value in pairs if value.strip()}


def _models(given: Any) -> dict[str, dict[str, str]]:
    if not isinstance(given, dict):
        return {}
    return {
        str(model): {key: str(own[key])[:300] for key in _MANIFEST_FACTS if key in own}
        for model, own in given.items()
        if isinstance(own, dict)
    }


def _columns(results: list[Imported]) -> list[Imported]:
    """Give results of one test that would stand in one cell columns of their own: by options, folder and file."""
    for names in (_by_options, _by_folder, _by_file):
        cells: dict[tuple[str, str, str], list[int]] = {}
        for index, item in enumerate(results):
            cells.setdefault((item.entry.model, item.test, item.column), []).append(index)
        same: dict[str, list[int]] = {}
        for index, item in enumerate(results):
            same.setdefault(item.column, []).append(index)
        for label in {results[indices[0]].column for indices in cells.values() if len(indices) > 1}:
            renamed = names([results[index] for index in same[label]])
            for index, name in zip(same[label], renamed, strict=True):
                results[index] = msgspec.structs.replace(results[index], column=name)
    return results


def _by_options(items: list[Imported]) -> list[str]:
    rows = [item.entry.row.options if item.entry.row else {} for item in items]
    varied = [key for key in _DIFFERING if len({row.get(key, "") for row in rows}) > 1]
    return [
        " ".join((item.column, *(f"{_SHORT[key]}={row[key]}" for key in varied if row.get(key))))
        for item, row in zip(items, rows, strict=True)
    ]


def _by_folder(items: list[Imported]) -> list[str]:
    several = len({item.folder for item in items}) > 1
    return [f"{item.column} {item.folder}" if several else item.column for item in items]


def _by_file(items: list[Imported]) -> list[str]:
    stems = [item.file.rpartition(".")[0] or item.file for item in items]
    several = len(set(stems)) > 1
    return [f"{item.column} {stem}" if several else item.column for item, stem in zip(items, stems, strict=True)]


def measured_of(item: Imported) -> Measured:
    """Return a result in the form of what is measured here."""
    entry, row = item.entry, item.entry.row
    prompt, generate, depth = (row.prompt, row.generate, row.depth) if row else (0, 0, 0)
    test = test_name(prompt, generate, depth) if row else "run"
    case = Case(
        f"llama/{entry.model}/{test.replace(' ', '')}",
        "llama",
        {
            "model": entry.model,
            "size_bytes": row.size_bytes if row else 0,
            "parameters": row.parameters if row else 0,
            "prompt": prompt,
            "generate": generate,
            "depth": depth,
        },
        "tok/s",
        prompt + generate,
        test,
    )
    subject = _subject(row, entry)
    detail: dict[str, Any] = {
        "imported": {
            "file": item.file,
            "sha256": item.sha256,
            "importer": item.importer,
            "line": entry.line,
            "date": row.time if row else "",
            "spread": row.spread if row else None,
            "facts": entry.facts,
        }
    }
    blocks = () if row is None else ((row.seconds or (row.tokens / row.rate,)),)
    prepared = Prepared(entry.verdict, entry.reason, subject=subject, detail=detail)
    when = _when(row.time if row else "")
    setting = Setting(item.column, options=dict(row.options) if row else {})
    summary = summarize(blocks) if blocks else None
    return Measured(case, entry.verdict, entry.reason, prepared, blocks, summary, when, 0.0, setting)


def _subject(row: Row | None, entry: Entry) -> Subject:
    if row is None:
        name = entry.facts.get("device", entry.label)
        return Subject(target_in(name) or target_in(entry.label), device_name=name)
    versions = {"llama.cpp": row.build} if row.build else {}
    return Subject(target_in(row.gpu) or target_in(entry.label), row.backends, row.gpu or entry.label, versions)


def _when(text: str) -> str:
    """Return the time that the file says; now, where it says none."""
    try:
        found = dt.datetime.fromisoformat(text) if text else dt.datetime.now(dt.UTC)
    except ValueError:
        found = dt.datetime.now(dt.UTC)
    aware = found if found.tzinfo else found.replace(tzinfo=dt.UTC)
    return aware.astimezone(dt.UTC).isoformat(timespec="milliseconds")


def evidence(item: Imported, group: str) -> Evidence:
    """Return the record that is kept of a result: of its own kind, without a machine, with its file's hash and date."""
    kept = evidence_of(measured_of(item), group)
    row = item.entry.row
    definition = {
        "kind": IMPORTED,
        "file": item.sha256,
        "subject": kept.subject,
        "line": item.entry.line,
        "row": msgspec.to_builtins(row) if row else None,
    }
    return msgspec.structs.replace(kept, kind=IMPORTED, identity=identity_of(definition))


def new_group() -> str:
    """Return the id under which the results of one import are kept."""
    return f"{IMPORTED}-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def keep(store: Store, results: Iterable[Imported], group: str) -> tuple[int, int]:
    """Keep results that the store does not have.

    Returns:
        How many were kept, and how many it had.
    """
    known = {row.evidence.identity for row in store.query(kind=IMPORTED)}
    kept = there = 0
    for item in results:
        record = evidence(item, group)
        if record.identity in known:
            there += 1
            continue
        known.add(record.identity)
        store.add(record)
        kept += 1
    return kept, there


Cells = dict[tuple[str, str], Imported]


def pivot(results: Sequence[Imported]) -> dict[str, tuple[list[str], list[str], Cells]]:
    """Return for each model its tests, its columns and its results by both, prompts first and depths ascending."""
    models: dict[str, Cells] = {}
    for item in results:
        models.setdefault(item.entry.model, {}).setdefault((item.test, item.column), item)
    made = {}
    for model, cells in models.items():
        order = {test: _order(item.entry.row) for (test, _), item in cells.items()}
        columns = list(dict.fromkeys(column for _, column in cells))
        made[model] = (sorted(order, key=lambda test: order[test]), columns, cells)
    return made


def _order(row: Row | None) -> tuple[int, int, int, int]:
    return (1, 0, 0, 0) if row is None else (0, row.generate, row.prompt, row.depth)
