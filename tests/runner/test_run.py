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
from rocmend.core.evidence import Silence
from rocmend.core.verdict import Verdict
from rocmend.runner.events import Event, EventKind
from rocmend.runner.executor import Executor, Handle
from rocmend.runner.journal import Journal, read_records
from rocmend.runner.local import Launch, LocalHandle, environment, request_of
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Limits, PythonCall

from .conftest import Run


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until_gone(pids: list[int], seconds: float = 5.0) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def test_events_tell_the_lines_with_their_streams_and_order(run_shell: Run) -> None:
    events: list[Event] = []
    result = run_shell("echo one; echo two >&2; sleep 0.1; echo three", on_event=events.append)
    lines = [(event.text, event.stream) for event in events if event.kind is EventKind.OUTPUT]
    assert sorted(lines[:2]) == [("one", "stdout"), ("two", "stderr")]
    assert lines[2:] == [("three", "stdout")]
    assert events[0].kind is EventKind.START
    assert events[-1].kind is EventKind.END
    assert events[-1].data["verdict"] == "pass"
    times = [event.time_ms for event in events]
    assert times == sorted(times)
    assert result.output.lines == 3
    assert result.output.head in {"one\ntwo\nthree\n", "two\none\nthree\n"}  # two pipes have no common order


def test_a_last_line_without_an_end_is_told_and_searched(run_shell: Run) -> None:
    events: list[Event] = []
    result = run_shell("printf 'hipErrorNoBinaryForGpu'", on_event=events.append)
    assert [event.text for event in events if event.kind is EventKind.OUTPUT] == ["hipErrorNoBinaryForGpu"]
    assert result.verdict is Verdict.UNSUPPORTED


def test_environment_is_added_to_and_taken_from(run_shell: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNNER_TEST_GONE", "1")
    result = run_shell(
        'echo "$RUNNER_TEST_NEW-${RUNNER_TEST_GONE-unset}"', env={"RUNNER_TEST_NEW": "x", "RUNNER_TEST_GONE": None}
    )
    assert result.output.head == "x-unset\n"


def test_standard_input_and_folder(tmp_path: Path) -> None:
    spec = AttemptSpec("cat", Command(("sh", "-c", "cat; pwd"), cwd=str(tmp_path), stdin="given\n"))
    assert run_attempt(spec).output.head == f"given\n{tmp_path}\n"


def test_missing_folder_is_infra(tmp_path: Path) -> None:
    result = run_attempt(AttemptSpec("x", Command(("echo",), cwd=str(tmp_path / "no"))))
    assert result.verdict is Verdict.INFRA
    assert "working folder" in result.reason


def test_a_file_that_cannot_be_run_is_infra(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    result = run_attempt(AttemptSpec("x", Command((str(script),))))
    assert result.verdict is Verdict.INFRA
    assert "interpreter" in result.reason


def test_unknown_phase_set_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(UsageError, match="unknown phase set"):
        run_attempt(AttemptSpec("x", Command(("touch", str(mark))), phases="nonesuch"))


def test_phases_make_the_timeline_and_name_the_silence(run_python: Run, tmp_path: Path) -> None:
    phases = tmp_path / "mine.toml"
    phases.write_text(
        '[set]\ntitle = "mine"\n[[phases]]\nname = "load"\nwords = ["loading"]\n'
        '[[phases]]\nname = "train"\nwords = ["step "]\npattern = "step \\\\d+"\nsilence_s = 0.7\n'
    )
    result = run_python(
        "print('loading')\nprint('step x')\nprint('step 1')\nimport time\ntime.sleep(60)", phases=str(phases)
    )
    assert [span.name for span in result.timeline] == ["start", "load", "train"]
    assert result.timeline[2].mark == "step 1"
    assert result.reason.startswith("silent after phase train for 1 s: blocked")
    assert result.time_ms < 1500 + 3000


@pytest.mark.slow
def test_slow_first_run_is_told_and_not_ended() -> None:
    events: list[Event] = []
    spec = AttemptSpec(
        "compile",
        PythonCall("slow_module:compile_it", path=(str(Path(__file__).parent / "targets"),)),
        limits=Limits(total_s=30, silence_s=0.8, grace_s=0.3),
    )
    result = run_attempt(spec, on_event=events.append)
    assert result.verdict is Verdict.PASS, result.reason
    assert result.python_result == "compiled"
    assert [span.slow for span in result.timeline if span.name == "compile"] == [True]
    told = [event.text for event in events if event.kind is EventKind.SLOW_PROGRESS]
    assert told
    assert "torch.compile" in told[0]


@pytest.mark.slow
def test_slow_first_run_is_ended_where_allowance_is_refused() -> None:
    spec = AttemptSpec(
        "compile",
        PythonCall("slow_module:compile_it", path=(str(Path(__file__).parent / "targets"),)),
        limits=Limits(total_s=30, silence_s=0.8, grace_s=0.3),
        allow_slow_first_run=False,
    )
    result = run_attempt(spec)
    assert (result.verdict, result.last_phase) == (Verdict.HANG, "compile")


def test_idle_in_a_slow_phase_is_a_hang() -> None:
    spec = AttemptSpec(
        "compile",
        PythonCall("slow_module:idle", path=(str(Path(__file__).parent / "targets"),)),
        limits=Limits(total_s=30, silence_s=0.8, grace_s=0.3),
    )
    result = run_attempt(spec)
    assert (result.verdict, result.silence, result.last_phase) == (Verdict.HANG, Silence.BLOCKED, "compile")
    stacks = {stack.kind: stack.text for stack in result.stacks}
    assert "in idle" in stacks["python"]


def test_python_results_errors_and_missing_functions() -> None:
    path = (str(Path(__file__).parent / "targets"),)

    def call(function: str, **arguments: object) -> tuple[Verdict, str]:
        result = run_attempt(AttemptSpec("call", PythonCall(function, dict(arguments), path=path)))
        return result.verdict, result.reason

    assert call("slow_module:nonesuch")[0] is Verdict.INFRA
    assert call("no_such_module:f")[0] is Verdict.INFRA
    assert call("slow_module:raise_error", text="HIP out of memory. Tried to allocate")[0] is Verdict.OOM
    assert (
        call("slow_module:raise_error", text="HIP error: no kernel image is available for execution")[0]
        is Verdict.UNSUPPORTED
    )
    assert call("slow_module:raise_error", text="something else") == (Verdict.CRASH, "RuntimeError: something else")
    assert call("slow_module:leave", status=0)[0] is Verdict.CRASH
    assert call("slow_module:leave", status=5) == (Verdict.CRASH, "exit status 5 in phase start")
    assert call("slow_module:return_object")[0] is Verdict.CRASH


def test_stop_ends_it() -> None:
    begin = time.monotonic()
    result = run_attempt(
        AttemptSpec("x", Command(("sleep", "60")), limits=Limits(grace_s=0.3)),
        stop=lambda: time.monotonic() > begin + 0.5,
    )
    assert result.verdict is Verdict.SKIPPED
    assert result.time_ms < 5000


def test_total_limit_of_a_silent_run_is_a_hang() -> None:
    result = run_attempt(AttemptSpec("x", Command(("sleep", "60")), limits=Limits(total_s=1, grace_s=0.2)))
    assert result.verdict is Verdict.HANG
    assert "of the limit of 1 s in all" in result.reason


def test_what_it_leaves_behind_is_ended(run_shell: Run) -> None:
    result = run_shell("(setsid sleep 600 & echo $!) ; sleep 600 & echo $!; (trap '' TERM; exec sleep 600) & echo $!")
    pids = [int(text) for text in result.output.head.split()]
    assert len(pids) == 3
    assert result.verdict is Verdict.PASS
    assert wait_until_gone(pids) == []
    assert result.notes == ("3 processes that it left behind had to be killed",)


def test_forking_without_end_is_ended(run_python: Run) -> None:
    source = """
        import os, time
        print("begin")
        for _ in range(5):
            os.fork()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if os.fork() == 0:
                time.sleep(0.05)
                os._exit(0)
            os.wait()
    """
    result = run_python(textwrap.dedent(source), limits=Limits(total_s=30, silence_s=1.0, grace_s=0.2))
    assert result.verdict is Verdict.HANG
    assert not result.quarantine


def test_interrupt_ends_the_child_and_is_no_result(tmp_path: Path) -> None:
    pids: list[int] = []

    def interrupt(event: Event) -> None:
        if event.kind is EventKind.OUTPUT:
            pids.append(int(event.text))
            raise KeyboardInterrupt

    with Journal(tmp_path / "journal.jsonl") as journal:
        with pytest.raises(KeyboardInterrupt):
            run_attempt(
                AttemptSpec("x", Command(("sh", "-c", "echo $$; sleep 600"))), on_event=interrupt, journal=journal
            )
        assert journal.completed_ids() == {}
        assert any("interrupted" in record.event.text for record in read_records(journal.path))
    assert wait_until_gone(pids) == []


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_supervisor_leaves_nothing_behind(sig: signal.Signals) -> None:
    source = """
        from rocmend.runner.run import run_attempt
        from rocmend.runner.spec import AttemptSpec, Command
        run_attempt(
            AttemptSpec("x", Command(("sh", "-c", "echo $$; (setsid sleep 600 & echo $!); sleep 600 & echo $!; wait"))),
            on_event=lambda event: print(event.text, flush=True) if event.stream else None,
        )
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(source)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in range(3)]
        assert all(alive(pid) for pid in pids)
        parent.send_signal(sig)
    assert wait_until_gone(pids) == []


def test_attempts_in_threads_do_not_disturb_each_other() -> None:
    results: dict[int, str] = {}

    def run(index: int) -> None:
        results[index] = run_attempt(AttemptSpec("x", Command(("echo", str(index))))).output.head

    threads = [threading.Thread(target=run, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {index: f"{index}\n" for index in range(6)}


def test_no_descriptor_is_left_open(run_shell: Run) -> None:
    run_shell("echo")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  counting only
    for _ in range(3):
        run_shell("echo")
        run_attempt(AttemptSpec("x", Command(("no-such-program",))))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208  as above


def test_a_flood_costs_bounded_disk(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    source = "import os\nb=b'x'*1023+b'\\n'\nfor i in range(20000): os.write(1, b)\nos.write(1, b'last line\\n')"
    spec = AttemptSpec("flood", Command((sys.executable, "-c", source)), limits=Limits(max_output_bytes=1 << 20))
    result = run_attempt(spec, log=log)
    assert result.verdict is Verdict.PASS
    assert result.output.bytes == 20000 * 1024 + 10
    assert result.output.lines == 20001
    assert result.output.tail.endswith("last line\n")
    assert result.output.dropped_bytes >= result.output.bytes - (1 << 20)
    assert log.stat().st_size < (1 << 20) * 1.1


@pytest.mark.slow
@pytest.mark.large
def test_a_flood_of_a_gigabyte_costs_bounded_memory(tmp_path: Path) -> None:
    source = (
        "import os\nb = (b'y' * 127 + b'\\n') * 512\n"
        "for i in range(16384): os.write(1, b)\nos.write(2, b'x failed (exit 1)\\n')"
    )
    script = f"""
        import resource
        from pathlib import Path
        from rocmend.runner.run import run_attempt
        from rocmend.runner.spec import AttemptSpec, Command
        spec = AttemptSpec("flood", Command(({sys.executable!r}, "-c", {source!r})))
        result = run_attempt(spec, log=Path({str(tmp_path / "o.log")!r}))
        print(result.verdict.value, result.output.bytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    verdict, count, peak_kib = done.stdout.split()
    assert (verdict, int(count)) == ("crash", (1 << 30) + 18)
    assert int(peak_kib) < 150 << 10
    assert (tmp_path / "o.log").stat().st_size < 40 << 20


def test_messages_may_come_inline_where_there_is_no_channel() -> None:
    class InlineExecutor(Executor):
        def start(self, spec: AttemptSpec) -> Handle:
            assert isinstance(spec.command, PythonCall)
            request = request_of(spec.command).decode()
            argv = (sys.executable, "-u", "-m", "rocmend.runner.child", request)
            return LocalHandle(Launch(argv, environment({})))

    path = (str(Path(__file__).parent / "targets"),)
    spec = AttemptSpec("inline", PythonCall("slow_module:long_text", {"size": 300_000}, path=path))
    result = run_attempt(spec, executor=InlineExecutor())
    assert result.verdict is Verdict.PASS, result.reason
    assert result.python_result == "x" * 300_000
    assert [span.name for span in result.timeline] == ["start", "write"]
