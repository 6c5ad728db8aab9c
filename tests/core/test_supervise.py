"""Fault injection: whatever a child does, its supervisor says what it was, in time, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.core import supervise, watch
from rocmend.core.supervise import Ending, end_group, run_children, run_command

PYTHON = sys.executable


def open_descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie that waits for its (new) parent has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def wait_gone(pid: int, seconds: float = 2.0) -> bool:
    deadline = time.monotonic() + seconds
    while is_running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def children() -> set[int]:
    """Return this process's children, zombies among them."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == os.getpid():
            found.add(int(stat.parent.name))
    return found


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    before, kept = open_descriptors(), children()
    yield
    assert open_descriptors() == before
    assert children() <= kept  # no zombie, no straggler; what tests of other files keep is not this one's


@pytest.fixture(params=[True, False], ids=["pidfd", "polling"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also run where the kernel has no pidfd."""
    if not request.param:

        def refuse(_pid: int) -> int:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", refuse)


class TestCommand:
    @pytest.mark.usefixtures("both_ways")
    def test_output_and_status(self) -> None:
        result = run_command(["sh", "-c", "echo out; echo err >&2; exit 3"], time_limit_s=5)
        assert (result.ending, result.exit_code, result.stdout, result.stderr) == (Ending.EXITED, 3, "out\n", "err\n")
        assert not result.ok
        assert run_command(["true"], time_limit_s=5).ok

    def test_a_short_command_costs_little(self) -> None:
        best = min(run_command(["true"], time_limit_s=5).time_ms for _ in range(5))
        assert best < 100

    def test_standard_input_is_empty(self) -> None:
        assert run_command(["cat"], time_limit_s=5).ok

    def test_environment_is_the_given_one(self) -> None:
        result = run_command(["/usr/bin/env"], time_limit_s=5, env={"A": "b"})
        assert result.stdout == "A=b\n"

    @pytest.mark.usefixtures("both_ways")
    def test_hang_is_a_timeout(self) -> None:
        result = run_command(["sleep", "60"], time_limit_s=0.2)
        assert result.ending is Ending.TIMEOUT
        assert 150 < result.time_ms < 5000
        assert not result.unkillable

    def test_what_works_goes_on_and_what_stands_still_is_ended(self) -> None:
        busy = "import time\nend = time.monotonic() + 1.2\nwhile time.monotonic() < end: pass"
        works = run_command([PYTHON, "-c", busy], time_limit_s=60, stall_limit_s=0.4)
        assert works.ok
        child = run_command(["sh", "-c", f"{PYTHON} -c '{busy}'; true"], time_limit_s=60, stall_limit_s=0.4)
        assert child.ok, "the work is done by a child of the tool"
        endless = run_command([PYTHON, "-c", "while True: pass"], time_limit_s=1, stall_limit_s=0.4)
        assert endless.ending is Ending.TIMEOUT
        waits = run_command(["sleep", "60"], time_limit_s=60, stall_limit_s=0.4)
        assert waits.ending is Ending.TIMEOUT
        assert waits.time_ms < 10_000

    def test_child_that_ignores_term_is_killed(self) -> None:
        result = run_command(["sh", "-c", "trap '' TERM; echo here; sleep 60; sleep 60"], time_limit_s=0.2)
        assert result.ending is Ending.TIMEOUT
        assert result.stdout == "here\n"  # what it said before is kept
        assert result.time_ms < 10_000

    def test_flood_is_ended_and_cut(self) -> None:
        result = run_command(["yes"], time_limit_s=20, max_output_bytes=100_000)
        assert result.ending is Ending.FLOODED
        assert len(result.stdout) == 100_000
        assert result.time_ms < 15_000

    def test_flood_that_ignores_term(self) -> None:
        script = "trap '' TERM; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx || :; done"
        result = run_command(["bash", "-c", script], time_limit_s=20, max_output_bytes=10_000)
        assert result.ending is Ending.FLOODED
        assert result.time_ms < 15_000

    def test_flood_is_not_read_on_while_the_child_dies(self) -> None:
        read_end, write_end = os.pipe()
        child = subprocess.Popen(
            ["/bin/bash", "-c", "trap '' TERM; while :; do printf '%065536d' 1; done"],
            stdout=write_end,
            start_new_session=True,
        )
        os.close(write_end)
        with watch.Watcher() as watcher:
            watched = watch.Watched(child.pid, (read_end,), clock=watcher.clock, limit_s=20, max_bytes=100_000)
            watcher.add(watched)
            while not watched.over:
                watcher.wait()
        child.returncode = -signal.SIGKILL
        assert watched.ending is Ending.FLOODED
        assert len(watched.buffers[read_end]) < 100_000 + 2 * 65_536

    def test_flood_on_exit_is_not_missed(self) -> None:
        result = run_command(["sh", "-c", "head -c 60000 /dev/zero"], time_limit_s=5, max_output_bytes=50_000)
        assert result.ending is Ending.FLOODED

    @pytest.mark.usefixtures("both_ways")
    def test_all_output_written_just_before_exit_is_kept(self) -> None:
        for _ in range(10):
            result = run_command(["sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"], time_limit_s=5)
            assert result.ok
            assert len(result.stdout) == 300_000

    @pytest.mark.usefixtures("both_ways")
    def test_grandchild_holding_the_pipe_costs_no_time_and_is_ended(self) -> None:
        result = run_command(["sh", "-c", "sleep 60 & echo $!"], time_limit_s=30)
        assert result.ok
        assert result.time_ms < 10_000
        assert wait_gone(int(result.stdout))

    def test_grandchild_in_a_session_of_its_own_costs_no_time(self) -> None:
        result = run_command(["sh", "-c", "setsid sleep 60 & echo $!"], time_limit_s=30)
        assert result.ok
        assert result.time_ms < 10_000
        os.kill(int(result.stdout), signal.SIGKILL)  # out of our reach by its own doing; the test cleans up

    def test_timeout_ends_the_whole_group(self) -> None:
        result = run_command(["sh", "-c", "sleep 60 & echo $!; wait"], time_limit_s=0.3)
        assert result.ending is Ending.TIMEOUT
        assert wait_gone(int(result.stdout))

    def test_tool_that_closes_its_output_and_stays(self) -> None:
        result = run_command(["sh", "-c", "exec >&- 2>&-; sleep 0.3"], time_limit_s=5)
        assert result.ok
        assert result.time_ms >= 250

    def test_signal_is_named(self) -> None:
        result = run_command(["sh", "-c", "kill -SEGV $$"], time_limit_s=5)
        assert (result.ending, result.signal, result.exit_code) == (Ending.SIGNALLED, signal.SIGSEGV, None)

    def test_missing_tool(self, tmp_path: Path) -> None:
        assert run_command(["no-such-tool-anywhere"], time_limit_s=5).ending is Ending.NOT_FOUND
        assert run_command([str(tmp_path / "absent")], time_limit_s=5).ending is Ending.NOT_FOUND

    def test_path_of_the_given_environment_is_used(self, tmp_path: Path) -> None:
        tool = tmp_path / "my-tool"
        tool.write_text("#!/bin/sh\necho mine\n")
        tool.chmod(0o755)
        assert run_command(["my-tool"], time_limit_s=5, env={"PATH": str(tmp_path)}).stdout == "mine\n"
        assert run_command(["true"], time_limit_s=5, env={"PATH": str(tmp_path)}).ending is Ending.NOT_FOUND

    def test_not_executable_and_unreadable_tools(self, tmp_path: Path) -> None:
        plain = tmp_path / "plain"
        plain.write_text("#!/bin/sh\n")
        assert run_command([str(plain)], time_limit_s=5).ending is Ending.NOT_EXECUTABLE
        garbage = tmp_path / "garbage"
        garbage.write_bytes(b"\x7fELF but not really")
        garbage.chmod(0o755)
        assert run_command([str(garbage)], time_limit_s=5).ending is Ending.NOT_EXECUTABLE
        assert run_command([str(tmp_path)], time_limit_s=5).ending is Ending.NOT_EXECUTABLE

    def test_missing_interpreter_is_not_a_missing_tool(self, tmp_path: Path) -> None:
        tool = tmp_path / "tool"
        tool.write_text("#!/no/such/interpreter\n")
        tool.chmod(0o755)
        result = run_command([str(tool)], time_limit_s=5)
        assert result.ending is Ending.NOT_EXECUTABLE
        assert "interpreter" in result.stderr

    def test_fork_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_process(*_args: object, **_kwargs: object) -> None:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        monkeypatch.setattr(subprocess, "Popen", no_process)
        result = run_command(["true"], time_limit_s=5)
        assert result.ending is Ending.NOT_STARTED
        assert "temporarily unavailable" in result.stderr

    def test_no_descriptors_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real, calls = os.pipe, iter([True, False])

        def one_pipe_only() -> tuple[int, int]:
            if next(calls):
                return real()
            raise OSError(24, "Too many open files")

        monkeypatch.setattr(os, "pipe", one_pipe_only)
        assert run_command(["true"], time_limit_s=5).ending is Ending.NOT_STARTED

    def test_argument_with_nul(self) -> None:
        assert run_command(["echo", "a\0b"], time_limit_s=5).ending is Ending.NOT_STARTED

    def test_invalid_utf8_is_replaced(self) -> None:
        assert run_command(["printf", r"a\377b"], time_limit_s=5).stdout == "a\ufffdb"

    def test_interrupt_leaves_no_child(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        real = watch.Watcher.wait
        pid_file = tmp_path / "pid"
        seen: list[bool] = []

        def interrupted(self: watch.Watcher) -> list[watch.Watched]:
            over = real(self)
            if not seen and pid_file.exists() and pid_file.read_text().strip():
                seen.append(True)
                raise KeyboardInterrupt
            return over

        monkeypatch.setattr(watch.Watcher, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_command(["sh", "-c", f"echo $$ > {pid_file}; echo up; sleep 60"], time_limit_s=30)
        assert wait_gone(int(pid_file.read_text()))

    def test_child_that_cannot_be_killed_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # A child in state D does not react to KILL; here the signals are withheld instead, which looks the same to us.
        monkeypatch.setattr(watch, "signal_group", lambda _pid, _sig: None)
        monkeypatch.setattr(watch, "GRACE_S", 0.05)
        monkeypatch.setattr(watch, "ABANDON_S", 0.05)
        result = run_command(["sh", "-c", "echo $$; exec sleep 60"], time_limit_s=0.3)
        assert result.ending is Ending.TIMEOUT
        assert result.unkillable
        pid = int(result.stdout)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_end_group_ends_what_ignores_term() -> None:
    child = subprocess.Popen(
        ["/bin/sh", "-c", "trap '' TERM; echo up; sleep 60; sleep 60"], stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    status = end_group(child.pid, grace_s=0.1)
    child.stdout.close()
    assert status is not None
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == -signal.SIGKILL


def ok(payload: bytes = b"fine") -> bytes:
    return payload


def hang() -> bytes:
    time.sleep(60)
    return b""


def hang_ignoring_term() -> bytes:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return hang()


def kill_self() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def leave() -> bytes:
    os._exit(0)


def raise_error() -> bytes:
    raise ValueError("a b c")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def raise_unprintable() -> bytes:
    raise UnprintableError


def exit_zero() -> bytes:
    sys.exit(0)


def fork_and_leave_grandchild() -> bytes:
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    return str(pid).encode()


class TestChildren:
    @pytest.mark.usefixtures("both_ways")
    def test_results_in_the_order_given(self) -> None:
        names = [f"job{number}" for number in range(30)]
        results = run_children({name: (partial(ok, name.encode()), 5.0) for name in names}, max_parallel=4)
        assert list(results) == names
        assert [result.payload.decode() for result in results.values()] == names
        assert all(result.ending is Ending.EXITED and not result.error for result in results.values())

    def test_nothing_to_do(self) -> None:
        assert run_children({}) == {}

    @pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
    def test_every_fault_at_once_takes_only_itself(self, batch_size: int) -> None:
        jobs: dict[str, tuple[Callable[[], bytes], float]] = {
            "first": (ok, 5.0),
            "hang": (hang, 0.2),
            "second": (ok, 5.0),
            "stubborn": (hang_ignoring_term, 0.2),
            "third": (ok, 5.0),
            "killed": (kill_self, 5.0),
            "fourth": (ok, 5.0),
            "left": (leave, 5.0),
            "raised": (raise_error, 5.0),
            "fifth": (ok, 5.0),
            "unprintable": (raise_unprintable, 5.0),
            "exit": (exit_zero, 5.0),
            "last": (ok, 5.0),
        }
        results = run_children(jobs, batch_size=batch_size)
        for name in ("first", "second", "third", "fourth", "fifth", "last"):
            assert (results[name].ending, results[name].payload, results[name].error) == (Ending.EXITED, b"fine", "")
        assert results["hang"].ending is results["stubborn"].ending is Ending.TIMEOUT
        assert (results["killed"].ending, results["killed"].signal) == (Ending.SIGNALLED, signal.SIGKILL)
        assert "returned nothing" in results["left"].error
        assert results["raised"].error.startswith("ValueError: a b c (test_supervise.py:")
        assert results["unprintable"].ending is Ending.EXITED
        assert results["unprintable"].error
        assert "SystemExit" in results["exit"].error

    def test_each_function_of_a_batch_has_its_own_time(self) -> None:
        def nap() -> bytes:
            time.sleep(0.3)
            return b"fine"

        jobs: dict[str, tuple[Callable[[], bytes], float]] = {f"{number}": (nap, 1.0) for number in range(5)}
        jobs["hang"] = (hang, 0.4)
        results = run_children(jobs, batch_size=10)
        assert [results[f"{number}"].payload for number in range(5)] == [b"fine"] * 5  # 1.5 s in all
        assert results["hang"].ending is Ending.TIMEOUT
        assert results["hang"].time_ms < 1400  # counted from its own start

    def test_hung_children_end_side_by_side(self) -> None:
        start = time.monotonic()
        results = run_children({f"{number}": (hang_ignoring_term, 0.3) for number in range(8)})
        assert {result.ending for result in results.values()} == {Ending.TIMEOUT}
        assert time.monotonic() - start < 0.3 + 5 * watch.GRACE_S  # not 8 graces in a row

    def test_a_dying_child_does_not_delay_another(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watch, "GRACE_S", 2.0)
        results = run_children({"stubborn": (hang_ignoring_term, 0.1), "late": (hang, 0.3)})
        assert results["stubborn"].time_ms > 2000
        assert results["late"].time_ms < 1500

    def test_huge_payload_arrives_whole(self) -> None:
        payload = os.urandom(1 << 20) * 20
        assert run_children({"big": (lambda: payload, 20.0)})["big"].payload == payload

    def test_payload_over_the_limit_is_refused(self) -> None:
        results = run_children({"big": (lambda: bytes(2 << 20), 5.0), "next": (ok, 5.0)}, max_payload_bytes=1 << 20)
        assert results["big"].ending is Ending.FLOODED
        assert results["next"].payload == b"fine"

    @pytest.mark.usefixtures("both_ways")
    def test_grandchild_holding_the_pipe(self) -> None:
        result = run_children({"parent": (fork_and_leave_grandchild, 20.0)})["parent"]
        assert result.ending is Ending.EXITED
        assert result.time_ms < 10_000
        assert wait_gone(int(result.payload))

    def test_tool_run_by_a_timed_out_child_is_ended_too(self, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"
        script = f"trap '' TERM; echo $$ > {pid_file}; sleep 60; sleep 60"

        def run_tool() -> bytes:
            return run_command(["sh", "-c", script], time_limit_s=50).stdout.encode()

        assert run_children({"tool": (run_tool, 0.4)})["tool"].ending is Ending.TIMEOUT
        assert wait_gone(int(pid_file.read_text()))

    def test_child_cannot_write_to_our_output_or_read_our_input(self, capfd: pytest.CaptureFixture[str]) -> None:
        def chatty() -> bytes:
            os.write(1, b"noise")
            return os.read(0, 10)

        assert run_children({"chatty": (chatty, 5.0)})["chatty"].payload == b""
        assert capfd.readouterr().out == ""

    def test_memory_limit(self) -> None:
        result = run_children({"greedy": (lambda: bytes(4 << 30), 20.0)}, memory_bytes=2 << 30)["greedy"]
        assert "MemoryError" in result.error

    def test_no_process_to_be_had(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_process() -> int:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        monkeypatch.setattr(os, "fork", no_process)
        results = run_children({"a": (ok, 5.0), "b": (ok, 5.0)}, batch_size=2)
        assert {result.ending for result in results.values()} == {Ending.NOT_STARTED}

    def test_few_processes_to_be_had(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real, calls = os.fork, []

        def every_other() -> int:
            calls.append(1)
            if len(calls) % 2 == 0:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return real()

        monkeypatch.setattr(os, "fork", every_other)
        results = run_children({f"{number}": (ok, 5.0) for number in range(6)})
        assert all(result.payload == b"fine" for result in results.values())

    @settings(max_examples=15, deadline=None)
    @given(
        plan=st.lists(st.sampled_from([ok, raise_error, kill_self, leave, exit_zero]), max_size=8),
        batch_size=st.integers(1, 4),
        parallel=st.integers(1, 4),
    )
    def test_any_mix_gives_one_result_each(
        self, plan: list[Callable[[], bytes]], batch_size: int, parallel: int
    ) -> None:
        jobs = {f"{number}": (function, 5.0) for number, function in enumerate(plan)}
        results = run_children(jobs, batch_size=batch_size, max_parallel=parallel)
        assert list(results) == list(jobs)
        for function, result in zip(plan, results.values(), strict=True):
            assert (result.payload == b"fine") == (function is ok)


def test_the_public_names_stay() -> None:
    assert supervise.GRACE_S == watch.GRACE_S
    assert supervise.Ending is watch.Ending
