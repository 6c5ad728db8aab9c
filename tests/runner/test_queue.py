from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from rocmend.core.errors import UsageError
from rocmend.runner import queue as queue_module
from rocmend.runner.journal import read_results
from rocmend.runner.queue import finished, run_queue
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Limits

from .conftest import load_benchmark


def echo(name: str, text: str = "") -> tuple[str, AttemptSpec]:
    return name, AttemptSpec(name, Command(("echo", text or name)))


def test_finished_attempts_are_not_run_again(tmp_path: Path) -> None:
    results: list[AttemptResult] = []
    report = run_queue([echo("a"), echo("b")], tmp_path, on_result=results.append)
    assert (report.ran, report.resumed, report.verdicts) == (2, 0, {"pass": 2})
    report = run_queue([echo("a"), echo("b"), echo("c")], tmp_path, on_result=results.append)
    assert (report.ran, report.resumed) == (1, 2)
    assert [result.attempt_id for result in results] == ["a", "b", "c"]
    assert finished(tmp_path) == results


def test_an_attempt_that_has_changed_is_run_again(tmp_path: Path) -> None:
    run_queue([echo("a", "one")], tmp_path)
    report = run_queue([echo("a", "two")], tmp_path)
    assert report.ran == 1
    assert [result.output.head for result in finished(tmp_path)] == ["one\n", "two\n"]


def test_several_at_a_time(tmp_path: Path) -> None:
    attempts = [(str(index), AttemptSpec("sleep", Command(("sleep", "0.5")))) for index in range(4)]
    begin = time.monotonic()
    report = run_queue(attempts, tmp_path, jobs=4)
    assert report.ran == 4
    assert time.monotonic() - begin < 1.9


def test_an_id_comes_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="twice"):
        run_queue([echo("a"), echo("a")], tmp_path)
    with pytest.raises(UsageError, match="jobs"):
        run_queue([], tmp_path, jobs=0)


def test_nothing_is_started_after_a_quarantine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    def run(spec: AttemptSpec, **options: object) -> AttemptResult:
        result = run_attempt(spec, **options)  # type: ignore[arg-type]
        return msgspec.structs.replace(result, quarantine="the GPU was reset") if spec.name == "b" else result

    monkeypatch.setattr(queue_module, "run_attempt", run)
    report = run_queue([echo("a"), echo("b"), echo("c"), echo("d")], tmp_path)
    assert (report.ran, report.left, report.quarantine) == (2, 2, "the GPU was reset")


def test_stop_leaves_the_rest(tmp_path: Path) -> None:
    done: list[AttemptResult] = []
    report = run_queue([echo("a"), echo("b"), echo("c")], tmp_path, on_result=done.append, stop=lambda: len(done) >= 1)
    assert (report.ran, report.left) == (1, 2)


def test_what_was_stopped_is_run_again(tmp_path: Path) -> None:
    attempts = [(str(index), AttemptSpec("sleep", Command(("sleep", "1")))) for index in range(2)]
    begin = time.monotonic()
    run_queue(attempts, tmp_path, jobs=2, stop=lambda: time.monotonic() > begin + 0.4)
    assert finished(tmp_path) == []
    report = run_queue(attempts, tmp_path, jobs=2)
    assert (report.ran, report.resumed, report.verdicts) == (2, 0, {"pass": 2})


def test_an_interrupt_of_several_ends_them_all(tmp_path: Path) -> None:
    source = """
        import signal, sys
        from pathlib import Path
        from rocmend.runner.queue import run_queue
        from rocmend.runner.spec import AttemptSpec, Command, Limits
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
        attempts = [(f"t{i}", AttemptSpec("x", Command(("sleep", "60")), limits=Limits(grace_s=0.2))) for i in range(9)]
        run_queue(attempts, Path(sys.argv[1]), jobs=2, on_event=lambda name, event: print(event.kind, flush=True))
    """
    command = [sys.executable, "-c", textwrap.dedent(source), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        while parent.stdout.readline() != "sample\n":
            pass
        parent.send_signal(signal.SIGINT)
        _, errors = parent.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert parent.returncode != 0
    assert finished(tmp_path) == []


def test_an_interrupt_leaves_no_child_that_takes_its_time(tmp_path: Path) -> None:
    """The first attempt's child does not heed TERM, and its grace period is the longer one."""
    source = """
        import signal, sys
        from pathlib import Path
        from rocmend.runner.queue import run_queue
        from rocmend.runner.spec import AttemptSpec, Command, Limits
        signal.signal(signal.SIGINT, signal.default_int_handler)
        deaf = Command(("sh", "-c", "trap '' TERM; echo $$ > $0; while :; do sleep 0.1; done", sys.argv[1] + "/pid"))
        attempts = [
            ("deaf", AttemptSpec("deaf", deaf, limits=Limits(grace_s=2))),
            ("quick", AttemptSpec("quick", Command(("sleep", "60")), limits=Limits(grace_s=0.2))),
        ]
        heard = lambda name, event: print(name, event.kind, flush=True)
        run_queue(attempts, Path(sys.argv[1]), jobs=2, on_event=heard)
    """
    command = [sys.executable, "-c", textwrap.dedent(source), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        unseen = {"deaf sample\n", "quick sample\n"}
        while unseen:
            unseen.discard(parent.stdout.readline())
        parent.send_signal(signal.SIGINT)
        parent.communicate(timeout=30)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_an_interrupt_before_all_have_started_ends_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = [(f"t{i}", AttemptSpec("x", Command(("sleep", "60")), limits=Limits(grace_s=0.2))) for i in range(2)]
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if thread.name.startswith("attempt"):
            if started:
                raise KeyboardInterrupt
            started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_queue(attempts, tmp_path, jobs=2)
    assert not started[0].is_alive()
    assert time.monotonic() - begin < 30
    assert finished(tmp_path) == []


SCRIPT = """
    import sys
    from pathlib import Path
    from rocmend.runner.queue import run_queue
    from rocmend.runner.spec import AttemptSpec, Command
    attempts = [(f"t{i}", AttemptSpec(f"t{i}", Command(("sh", "-c", f"sleep 0.02; echo {i}")))) for i in range(40)]
    run_queue(attempts, Path(sys.argv[1]), jobs=2, on_result=lambda result: print(result.attempt_id, flush=True))
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_loses_nothing_that_finished(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path)]
    told: list[str] = []
    for count in (3, 5, 1, 7):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
            assert parent.stdout is not None
            told += [parent.stdout.readline().strip() for _ in range(count)]
            time.sleep(0.013 * count)
            os.kill(parent.pid, signal.SIGKILL)
            told += parent.stdout.read().split()
        done = [result.attempt_id for result in read_results(tmp_path / queue_module.JOURNAL_NAME)]
        assert set(told) <= set(done)
        assert len(set(done)) == len(done)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    done = [result.attempt_id for result in finished(tmp_path)]
    assert sorted(done) == sorted(f"t{index}" for index in range(40))
    assert {result.output.head for result in finished(tmp_path)} == {f"{index}\n" for index in range(40)}


@pytest.mark.slow
@pytest.mark.large
def test_a_thousand_short_trials_in_bounded_memory() -> None:
    assert load_benchmark("supervision").queue(1000, 2) == 0
