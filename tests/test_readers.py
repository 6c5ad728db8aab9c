"""Every reader of what others wrote: text that is not UTF-8, and nesting without end, is an error in a sentence."""

from __future__ import annotations

import ast
import hashlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError, RocmendError

SOURCE = Path(__file__).parents[1] / "src" / "rocmend"
NOT_UTF8 = b'{"a": "\xff"}'
HOSTILE = [NOT_UTF8, b"[" * 100_000, b'{"a":' * 100_000]
Reader = Callable[[Path, bytes], object]


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def manifest(folder: Path, data: bytes) -> None:
    from rocmend.port.state import MANIFEST, STATE, Generation

    written(folder, f"{STATE}/0001/{MANIFEST}", data)
    with Beneath(folder) as tree:
        Generation(tree, "0001")


def capture(folder: Path, data: bytes) -> None:
    from rocmend.machine.layout import load_json

    written(folder, "machine.json", data)
    load_json(folder, "machine.json", dict[str, Any])


def lab_state(folder: Path, data: bytes) -> None:
    from rocmend.lab.state import Bench

    written(folder, "state.json", b'{"quarantine": ' + data + b"}")
    Bench(folder).state()


def record(_: Path, data: bytes) -> None:
    from rocmend.store.encoding import decode_evidence

    decode_evidence(data.decode(errors="surrogateescape"), "id")


def machine(_: Path, data: bytes) -> None:
    from rocmend.store.encoding import decode_machine

    decode_machine(zstandard.compress(data), "hash")


def baseline(folder: Path, data: bytes) -> None:
    from rocmend.port.baseline import read_baseline

    read_baseline(written(folder, "baseline.json", data))


def golden(folder: Path, data: bytes) -> None:
    from rocmend.port.verify.golden import read

    written(folder, "a.json", data)
    with Beneath(folder) as tree:
        read(tree, "a.json")


def case(folder: Path, data: bytes) -> None:
    from rocmend.port.verify import cases

    written(folder, f"{cases.FOLDER}/a/case.json", data)
    with Beneath(folder) as tree:
        cases.read_all(tree)


def model(folder: Path, data: bytes) -> None:
    from rocmend.cli.mlx import weights_bytes

    written(folder, "config.json", b"{}")
    written(folder, "model.safetensors", struct.pack("<Q", len(data)) + data)
    weights_bytes(folder)


def model_index(folder: Path, data: bytes) -> None:
    from rocmend.cli.mlx import weights_bytes

    written(folder, "config.json", b"{}")
    written(folder, "model.safetensors", struct.pack("<Q", 2) + b"{}")
    written(folder, "model.safetensors.index.json", data)
    weights_bytes(folder)


def entry(folder: Path, data: bytes) -> None:
    from rocmend.kb.load import load_entries

    written(folder, "topic/an-entry.md", b"+++\na = " + data + b"\n+++\n")
    knowledge = load_entries(folder, builtin=False)
    assert not knowledge.entries
    raise DataError("problems", str(knowledge.problems[0]))


def table(folder: Path, data: bytes) -> None:
    from rocmend.kernels.compiled.table import read_table

    read_table(written(folder, "table.json", data))


def numbers(folder: Path, data: bytes) -> None:
    from rocmend.lab.oracle import read_numbers

    with pytest.raises(ValueError, match="does not contain a list of numbers") as caught:
        read_numbers(written(folder, "numbers.json", b"[" + data))
    raise DataError("numbers", str(caught.value))


def smi(_: Path, data: bytes) -> None:
    from rocmend.machine.parse.smi import decode

    decode(data.decode(errors="surrogateescape").replace("\udcff", "\x01"), "rocm-smi")


REFUSED: list[Reader] = [
    manifest, capture, lab_state, record, machine, baseline, golden, case, model, model_index, entry, table, numbers,
    smi,
]  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE, ids=["not UTF-8", "lists", "objects"])
@pytest.mark.parametrize("reader", REFUSED, ids=lambda one: one.__name__)
def test_a_document_that_is_none_is_refused_with_a_sentence(reader: Reader, data: bytes, tmp_path: Path) -> None:
    with pytest.raises(RocmendError) as caught:
        reader(tmp_path, data)
    assert 10 < len(caught.value.message) < 2000


@pytest.mark.parametrize(
    ("reader", "data"),
    [
        (manifest, b'{"style": "\xff"}'),
        (capture, b'{"\xff": 1}'),
        (record, b'{"kind": "\xff"}'),
        (machine, b'{"name": "\xff"}'),
        (baseline, b'{"issues": [{"path": "\xff"}]}'),
        (case, b'{"kernel": "\xff"}'),
        (model_index, b'{"weight_map": {"a": "\xff"}}'),
        (table, b'{"columns": ["\xff"]}'),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_field_that_is_not_utf8_is_refused_with_a_sentence(reader: Reader, data: bytes, tmp_path: Path) -> None:
    with pytest.raises(RocmendError):
        reader(tmp_path, data)


def journal(folder: Path, data: bytes) -> object:
    from rocmend.runner.journal import read_records

    return list(read_records(written(folder, "journal.jsonl", data + b"\n")))


def tuning(folder: Path, data: bytes) -> object:
    from rocmend.kernels.tuning.user import read

    rows, problem = read(written(folder, "tuning.json", data))
    assert problem
    return rows["records"] + rows["choices"]


def trials(_: Path, data: bytes) -> object:
    from rocmend.kernels.tuning.tune import _Trials, trials_path

    written(trials_path().parent, trials_path().name, data)
    return _Trials(fresh=False).known


def outcomes(folder: Path, data: bytes) -> object:
    outcome = pytest.importorskip("rocmend.fallbacks.outcomes")
    return outcome.OutcomeCache(written(folder, "torch.json", data)).find({}, "subject", "path")


def program_output(folder: Path, data: bytes) -> object:
    from rocmend.port.verify.outputs import _path, known

    written(folder, _path("a.cu"), data)
    with Beneath(folder) as tree:
        return known(tree, "a.cu", b"")


def printed(_: Path, data: bytes) -> object:
    pytest.importorskip("torch")
    from rocmend.kernels.suite.supervise import MARK, events

    return list(events(f"{MARK}{data.decode(errors='replace')}\n"))


def child(_: Path, data: bytes) -> object:
    from rocmend.port.verify.python_run import _record

    return _record(data.decode(errors="replace"))


def compiled(folder: Path, data: bytes) -> object:
    from rocmend.core.sealed import MARK, is_complete

    written(folder, MARK, data).chmod(0o600)
    return is_complete(folder)


DONE_WITHOUT: list[Reader] = [journal, tuning, trials, outcomes, program_output, printed, child, compiled]


@pytest.mark.parametrize("data", HOSTILE, ids=["not UTF-8", "lists", "objects"])
@pytest.mark.parametrize("reader", DONE_WITHOUT, ids=lambda one: one.__name__)
def test_what_can_be_done_without_is(
    reader: Reader, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert not reader(tmp_path, data)


@pytest.mark.parametrize(
    "payload", [b"\xd9\x01\xff" * 3, b"\x91" * 100_000, b"\x92\xa1\xff\x80", b"\x92\x91\x93\xa1\xff\x01\x01\x80"]
)
def test_our_own_caches_are_made_anew_where_they_are_damaged(
    payload: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rocmend.codeobject.hip.cache import Cache as Compilations
    from rocmend.core import kept
    from rocmend.kb import compiled as entries
    from rocmend.port import cache, memo
    from rocmend.port.settings import Settings

    monkeypatch.setattr(cache, "private_folder", lambda _: tmp_path)
    monkeypatch.setattr(memo, "private_folder", lambda _: tmp_path)
    monkeypatch.setattr(kept, "place_of", lambda _: tmp_path / "entries")
    name = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:32]
    packed = zstandard.compress(payload)
    written(tmp_path, f"{name}.plan", hashlib.sha256(packed).digest() + packed)
    written(tmp_path, f"{name}.bin", b"rocmend port cache 1\n" + hashlib.sha256(payload).digest() + payload)
    written(tmp_path, "entries", payload)
    assert memo.Memo(tmp_path).get(b"key") is None
    assert cache.Cache(tmp_path, Settings()).empty
    assert entries.read_compiled(()) is None
    compilations = Compilations(tmp_path)
    written(compilations.folder, f"aa/{'b' * 38}.zst", packed)
    assert compilations.find("aa" + "b" * 38) is None


def test_what_is_unpacked_is_bounded_whatever_it_says_of_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rocmend.core.documents import decompressed
    from rocmend.port import memo
    from rocmend.store import encoding

    bomb = zstandard.compress(
        bytes(8 << 20)
    )  # a frame says its size, and zstandard's own limit is for those that do not
    silent = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(8 << 20))
    for data in (bomb, silent):
        with pytest.raises(ValueError, match=r"more than 1,048,576 bytes"):
            decompressed(data, 1 << 20)
    assert len(decompressed(bomb, 8 << 20)) == 8 << 20
    monkeypatch.setattr(encoding, "MAX_MACHINE_BYTES", 1 << 20)
    with pytest.raises(DataError, match="unpacks to more than"):
        encoding.decode_machine(bomb, "hash")
    monkeypatch.setattr(memo, "_MAX_PLAIN_BYTES", 1 << 20)
    monkeypatch.setattr(memo, "private_folder", lambda _: tmp_path)
    name = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:32]
    written(tmp_path, f"{name}.plan", hashlib.sha256(bomb).digest() + bomb)
    assert not memo.Memo(tmp_path)._known


CAUGHT = {"DecodeError", "MsgspecError", "JSONDecodeError"}


def test_handlers_name_all_that_decoding_raises() -> None:
    """``msgspec.DecodeError`` is not raised for text that is no UTF-8, nor for deep nesting: use ``MALFORMED``."""
    wrong = [
        f"{path.relative_to(SOURCE)}:{caught.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        if any(name in (text := path.read_text(encoding="utf-8")) for name in CAUGHT)
        for node in ast.walk(ast.parse(text))
        for caught in _caught(node)
        if any(isinstance(part, ast.Attribute) and part.attr in CAUGHT for part in ast.walk(caught))
    ]
    assert not wrong, f"catch rocmend.core.documents.MALFORMED, or use decode_json: {', '.join(wrong)}"


def _caught(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.ExceptHandler):
        return [node.type] if node.type else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "suppress":
        return node.args
    return []


def test_a_line_without_end_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tracemalloc

    from rocmend.runner import journal as module
    from rocmend.runner.events import Event, EventKind

    monkeypatch.setattr(module, "MAX_LINE_BYTES", 1 << 20)
    path = tmp_path / "journal.jsonl"
    with module.Journal(path) as opened:
        opened.append("a", Event(0.0, EventKind.START))
    with path.open("ab") as file:
        file.truncate(file.tell() + (32 << 20))
        file.seek(0, 2)
        file.write(b"\n")
    with module.Journal(path) as opened:
        opened.append("b", Event(0.0, EventKind.START))
    tracemalloc.start()
    try:
        assert [one.attempt for one in module.read_records(path)] == ["a", "b"]
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
