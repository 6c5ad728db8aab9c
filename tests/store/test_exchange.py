"""Evidence goes from one store to another through an archive, redacted, once; hostile archives are refused."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError
from rocmend.core.redact import Redactor
from rocmend.core.verdict import Verdict
from rocmend.store.exchange import FOLDER, Received, is_own, packed, read_archive, take
from rocmend.store.proven import hardware_of, proven
from rocmend.store.store import Store

Make = Callable[..., Any]
MANIFEST = {"kind": FOLDER, "rocmend_version": "0.1.0", "captured_at": "2026-01-31"}


def archive(path: Path, files: dict[str, bytes], *, folder: str = FOLDER) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in {"share.json": json.dumps(MANIFEST).encode(), **files}.items():
            made.writestr(f"{folder}/{name}", data)
    return path


@pytest.fixture
def sent(tmp_path: Path, evidence: Make, machine: Make) -> Path:
    """An archive of two records of a machine, one of them with a log."""
    with Store.open(tmp_path / "theirs.sqlite") as theirs:
        one = machine(gpu__0__gfx_target="gfx1151", host__name="annas-tower")
        log = {"output.log": b"hang in /home/anna/model.py"}
        theirs.add(evidence(verdict=Verdict.HANG, group="probe-1"), machine=one, artifacts=log)
        theirs.add(evidence(verdict=Verdict.PASS, group="probe-1", subject="other:float16"), machine=one)
        files = packed(theirs, theirs.query(), Redactor(hosts={"annas-tower"}, users={"anna"}))
    return archive(tmp_path / "sent.zip", files)


def test_evidence_arrives_redacted_marked_and_once(sent: Path, tmp_path: Path) -> None:
    received = read_archive(sent)
    assert not received.refused
    assert b"anna" not in b"".join(zipfile.ZipFile(sent).read(name) for name in zipfile.ZipFile(sent).namelist())
    with Store.open(tmp_path / "mine.sqlite") as mine:
        first, second = take(mine, received), take(mine, received)
        rows = list(mine.query())
        assert ((first.added, first.known), (second.added, second.known)) == ((2, 0), (0, 2))
        assert {row.evidence.group for row in rows} == {f"shared-{received.sha256[:8]}-probe-1"}
        assert mine.last_group("probe-") is None
        assert not any(is_own(row.evidence) for row in rows)
        (hung,) = [row.evidence for row in rows if row.evidence.verdict is Verdict.HANG]
        assert mine.artifact(hung.artifacts[0].sha256).startswith(b"hang in /home/")
        assert mine.machine(hung.machine).value("gpu.0.gfx_target") == "gfx1151"
        assert mine.verify() == []


def test_a_record_that_cannot_be_read_is_told_and_the_others_are_kept(sent: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(sent) as whole:
        lines = whole.read(f"{FOLDER}/evidence.jsonl")
    damaged = archive(tmp_path / "damaged.zip", {"evidence.jsonl": lines + b'{"id": "x", "evidence": 3}\n{"id":\n'})
    received = read_archive(damaged)
    assert len(received.records) == 2
    assert [text.partition(":")[0] for text in received.refused] == ["line 3", "line 4"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"share.json": b'{"kind": "other", "rocmend_version": "", "captured_at": ""}'}, "something else"),
        ({"share.json": b"[" * 100_000}, "is no archive"),
        ({"share.json": b" " * (2 << 20)}, "has more than"),
        ({"machines/" + "0" * 64 + ".json": b"3"}, "is no archive"),
        ({"logs/a/b.log": b" " * (4 << 20)}, "has more than"),
    ],
)
def test_hostile_archives_are_refused(files: dict[str, bytes], said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        read_archive(archive(tmp_path / "bad.zip", files))


def test_what_lies_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no archive"):
        read_archive(archive(tmp_path / "bad.zip", {}, folder=".."))


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    for number, data in enumerate((b"", b"PK\x03\x04" + b"\0" * 400, b"hello")):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(data)
        with pytest.raises(DataError, match="is no archive"):
            read_archive(path)


@given(line=st.binary(max_size=200))
def test_any_line_is_survived(line: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = archive(tmp_path_factory.mktemp("any") / "a.zip", {"evidence.jsonl": line})
    found = read_archive(path)
    assert isinstance(found, Received)
    assert len(found.records) + len(found.refused) <= max(1, len(line.splitlines()))


def test_what_is_proven_is_counted_by_machine(evidence: Make) -> None:
    def record(machine: str, verdict: Verdict, day: int, subject: str = "conv2d:float16", gfx: str = "gfx1151") -> Any:
        started = f"2026-03-0{day}T00:00:00Z"
        return evidence(kind="probe", subject=subject, verdict=verdict, gfx_target=gfx, started_at=started), machine

    def bench(subject: str, verdict: Verdict) -> Any:
        return evidence(kind="bench", subject=subject, verdict=verdict, gfx_target="gfx942"), "c"

    found = proven(
        [
            record("a", Verdict.HANG, 1),
            record("a", Verdict.PASS, 2),  # mended since
            record("b", Verdict.PASS, 1),
            record("b", Verdict.WRONG_OUTPUT, 1, "conv2d:bfloat16"),
            record("c", Verdict.PASS, 1, gfx="gfx942"),
            record("c", Verdict.SKIPPED, 1, "matmul:float16"),
            bench("gemm/fp8/1x1x1/nt @ rocblas", Verdict.UNSUPPORTED),
            bench("gemm/fp8/1x1x1/nt @ default", Verdict.PASS),
            bench("nn/vit @ compile", Verdict.UNSUPPORTED),
        ]
    )
    assert (found.targets, found.machines) == (("gfx1151", "gfx942"), 3)
    cell = found.subjects["probe conv2d"]["gfx1151"]
    assert (cell.machines, cell.verdicts) == (2, {"pass": 1, "wrong-output": 1})
    benches = {subject: row["gfx942"].verdicts for subject, row in found.subjects.items() if subject != "probe conv2d"}
    assert benches == {"bench gemm": {"pass": 1}, "bench nn": {"unsupported": 1}}


def test_yardsticks_prove_nothing_about_kernels(evidence: Make) -> None:
    def row(setting: str, verdict: Verdict, size: str = "1") -> Any:
        subject = f"kernels/rms_norm/float16/{size} @ {setting}"
        made = evidence(kind="bench", subject=subject, verdict=verdict, gfx_target="gfx1151")
        return msgspec.structs.replace(made, settings={"setting": setting}), "a"

    found = proven([row("torch", Verdict.PASS), row("rocmend", Verdict.UNSUPPORTED)])
    assert found.subjects["bench kernels"]["gfx1151"].verdicts == {"unsupported": 1}
    some = proven([row("rocmend", Verdict.PASS), row("rocmend", Verdict.UNSUPPORTED, "2")])
    assert some.subjects["bench kernels"]["gfx1151"].verdicts == {"unsupported": 1}
    assert not proven([row("torch", Verdict.PASS)]).subjects


def test_a_machine_is_its_hardware_not_its_snapshot(machine: Make) -> None:
    def made(**facts: Any) -> str:
        given = {"cpu__model": "Ryzen AI Max+ 395", "host__product": "Desktop", "gpu__0__gfx_target": "gfx1151"}
        return hardware_of(machine(**{**given, **facts}))

    assert made() == made(packages={"torch": "2.13"}, memory__available_bytes=3, kernel__release="7.0")
    assert len({made(), made(cpu__model="EPYC"), made(gpu__0__gfx_target="gfx1100"), made(host__product="X")}) == 4
    two = made(gpu__1__gfx_target="gfx1100")
    assert two != made()


def test_the_matrix_counts_a_machine_once_after_an_upgrade(
    tmp_path: Path, evidence: Make, machine: Make, rocmend: Callable[..., Any]
) -> None:
    path = tmp_path / "evidence.sqlite"
    with Store.open(path) as store:
        for version, kind in (("2.12", "conv2d"), ("2.13", "matmul")):
            one = machine(gpu__0__gfx_target="gfx1151", packages={"torch": version})
            store.add(evidence(gfx_target="gfx1151", subject=kind), machine=one)
    found = json.loads(rocmend("share", "matrix", "--store", path, "--json").out)
    assert found["data"]["machines"] == 1


def test_a_record_is_kept_once_whichever_archive_brings_it(sent: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(sent) as whole:
        files = {name.partition("/")[2]: whole.read(name) for name in whole.namelist()}
    lines = files["evidence.jsonl"].splitlines(keepends=True)
    files.pop("share.json")
    again = archive(tmp_path / "again.zip", files)
    with zipfile.ZipFile(again, "a") as changed:
        changed.writestr("note.txt", "packed again")
    part = archive(tmp_path / "part.zip", {**files, "evidence.jsonl": lines[0]})
    with Store.open(tmp_path / "mine.sqlite") as mine:
        taken = [take(mine, read_archive(path)) for path in (part, sent, again)]
        assert [(one.added, one.known) for one in taken] == [(1, 0), (1, 1), (0, 2)]
        assert len(list(mine.query())) == 2


def test_imports_at_the_same_time_keep_a_record_once(
    sent: Path, tmp_path: Path, in_child: Callable[[Callable[[], None]], int]
) -> None:
    path = tmp_path / "mine.sqlite"
    received = read_archive(sent)
    Store.open(path).close()
    with Store.open(path) as mine:
        known = mine.query

        def other() -> None:
            with Store.open(path) as theirs:
                take(theirs, received)

        def raced(**asked: Any) -> Any:  # another process imports it after this one looked what is there
            found = list(known(**asked))
            if not found:
                assert in_child(other) == 0
            return iter(found)

        mine.query = raced  # type: ignore[method-assign]
        taken = take(mine, received)
        mine.query = known  # type: ignore[method-assign]
        assert (taken.added, taken.known) == (0, 2)
        assert len(list(mine.query())) == 2
