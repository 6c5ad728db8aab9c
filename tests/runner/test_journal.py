from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import UsageError
from rocmend.core.verdict import Verdict
from rocmend.runner.events import Event, EventKind
from rocmend.runner.journal import Journal, read_records
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command


def end(name: str) -> Event:
    result = AttemptResult(name, name, f"identity of {name}", Verdict.PASS, "it ended", "2026-01-01T00:00:00Z", 1.0)
    return Event(1.0, EventKind.END, data=msgspec.to_builtins(result))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    with Journal(tmp_path / "deep" / "j.jsonl") as journal:
        journal.append("a", Event(0.0, EventKind.START))
        journal.append("a", end("a"))
        journal.append("b", Event(0.0, EventKind.START))
        assert journal.completed_ids() == {"a": "identity of a"}
        assert [result.attempt_id for result in journal.finished()] == ["a"]
    assert [record.attempt for record in read_records(tmp_path / "deep" / "j.jsonl")] == ["a", "a", "b"]


def test_an_absent_journal_has_no_records(tmp_path: Path) -> None:
    assert list(read_records(tmp_path / "none.jsonl")) == []


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_torn_line_is_passed_over_and_ended(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append("a", end("a"))
        journal.append("b", end("b"))
    path.write_bytes(path.read_bytes()[:-cut])
    assert [record.attempt for record in read_records(path)] == (["a", "b"] if cut == 1 else ["a"])
    with Journal(path) as journal:
        journal.append("c", end("c"))
        assert set(journal.completed_ids()) >= {"a", "c"}


@given(st.lists(st.binary(max_size=80), max_size=8))
def test_any_file_can_be_read(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("j") / "j.jsonl"
    path.write_bytes(b"\n".join(lines))
    list(read_records(path))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    source = (
        "import sys; from pathlib import Path; from rocmend.runner.journal import Journal\n"
        "j = Journal(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", source, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(UsageError, match="another process"):
            Journal(path)
        other.kill()
    Journal(path).close()


def test_logs_of_ids_alike_are_kept_apart(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.jsonl") as journal:
        paths = {journal.log_path(name) for name in ("a/b", "a_b", "../a", "a b", "x" * 200, "x" * 201)}
        assert len(paths) == 6
        assert {path.parent for path in paths} == {tmp_path / "j.logs"}


def test_an_attempt_is_written_down(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.jsonl") as journal:
        result = run_attempt(AttemptSpec("x", Command(("echo", "hi"))), journal=journal, attempt_id="x1")
        assert list(journal.finished()) == [result]
        assert journal.completed_ids() == {"x1": result.identity}
    kinds = [record.event.kind for record in read_records(tmp_path / "j.jsonl")]
    assert kinds[0] is EventKind.START
    assert kinds[-1] is EventKind.END
    assert EventKind.OUTPUT not in kinds
    assert Path(result.output.log).read_text().endswith("o] hi\n")
