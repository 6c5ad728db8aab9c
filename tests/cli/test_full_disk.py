"""Where there is no room, the sentence names the file or folder that it is about."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rocmend.bench.case import Case
from rocmend.bench.records import Measured, evidence_of
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.stats import summarize
from rocmend.cli.main import _full_places
from rocmend.core.files import write_atomic
from rocmend.core.verdict import Verdict
from rocmend.runner.events import Event, EventKind
from rocmend.runner.journal import Journal
from rocmend.runner.output import OutputKeeper
from rocmend.store.store import Store


@pytest.fixture
def full(small_disk: Path) -> Path:
    """A disk with 4 KiB left."""
    free = os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(b"x" * (free.f_bavail * free.f_frsize - 4096))
    return small_disk


def test_a_capture(full: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rocmend", "machine", "capture", full / "here"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, f"No space left on device ({full / 'here'})" in done.stderr) == (2, True), done.stderr
    assert [path.name for path in full.iterdir()] == ["filler"]


def test_standard_output() -> None:
    with Path("/dev/full").open("w") as out:
        for form in ("human", "json", "md"):
            done = subprocess.run(
                [sys.executable, "-m", "rocmend", "targets", "--format", form],
                stdout=out, stderr=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
            assert (done.returncode, "No space left on device (standard output)" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("doctor", "--machine", "strix-halo"), "Diagnosis of strix-halo"),
        (("doctor", "--machine", "strix-halo", "--format", "html"), "Diagnosis of strix-halo"),
        (("doctor", "--machine", "strix-halo", "--json"), '"status": "error"'),
        (("doctor", "--machine", "strix-halo", "--plan", "sh"), "#!/"),
        (("check", "--machine", "strix-halo", "--no-store"), "Do this, in order"),
        (("share", "--machine", "strix-halo"), "6.14.0-1013-oem"),
        (("share", "--machine", "strix-halo", "--json"), '"status": "error"'),
        (("report", "--store", "kept.sqlite", "--format", "md"), "Matrix products"),
        (("compare", "bench-gemm", "last", "--store", "kept.sqlite", "--format", "jsonl"), '"comparison"'),
    ],
)
def test_a_result_whose_file_cannot_be_written_is_printed(words: tuple[str, ...], printed: str, tmp_path: Path) -> None:
    with Store.open(tmp_path / "kept.sqlite") as store:
        blocks = tuple((1.0 + 0.001 * n,) * 3 for n in range(8))
        prepared = Prepared(Verdict.PASS, subject=Subject("gfx1151", "cuda:0", "Radeon 8060S"))
        case = Case("gemm/a", "gemm", {"dtype": "float32", "m": 1, "n": 1, "k": 1, "batch": 1}, "TFLOPS", 4e12)
        one = Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), "2026-01-01", 1.0)
        store.add(evidence_of(one, "bench-gemm-20260101-000000-aaaa"))
    done = subprocess.run(
        [Path(sys.executable).with_name("rocmend"), *words, "-o", "/dev/full"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "No space left on device" in done.stderr) == (2, True), done.stderr
    assert printed in done.stdout


def test_an_audit_whose_script_cannot_be_written_is_printed(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("rocmend"), "port", "audit", tmp_path, "--script", "/dev/full", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "No space left on device" in done.stderr) == (2, True), done.stderr
    assert "numpy" in done.stdout


def test_a_report(full: Path) -> None:
    with pytest.raises(OSError, match="No space left") as error:
        write_atomic(full / "report.html", b"x" * 20_000)
    assert error.value.filename == str(full / "report.html")


def test_a_journal_and_its_log(full: Path) -> None:
    def journal() -> None:
        with Journal(full / "journal.jsonl") as journal:
            for _ in range(100):
                journal.append("1", Event(0.0, EventKind.OUTPUT, "x" * 2000))

    def log() -> None:
        keeper = OutputKeeper(1 << 20, full / "1.log")
        try:
            for number in range(10):
                keeper.add(number, "stdout", b"y" * 30_000)
        finally:
            keeper.finish()

    for write, name in ((journal, "journal.jsonl"), (log, "1.log")):
        with pytest.raises(OSError, match="No space left") as error:
            write()
        assert error.value.filename == str(full / name)
        assert (full / name).stat().st_mode & 0o777 == 0o600


def test_a_file_without_a_name_leads_to_the_full_folder(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(full))
    assert _full_places(OSError(28, "No space left on device")) == str(full)
    assert not _full_places(OSError(5, "Input/output error"))
