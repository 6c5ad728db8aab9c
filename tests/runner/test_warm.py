"""One process for several calls: no call's fault reaches the next, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.evidence import Silence
from rocmend.core.verdict import Verdict
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Limits, PythonCall
from rocmend.runner.warm import WarmExecutor

TARGETS = str(Path(__file__).parent / "targets")
LIMITS = Limits(total_s=60, silence_s=30, phase_silence={"work": 1.5}, grace_s=0.3)

Call = Callable[..., AttemptResult]


def spec(name: str, **arguments: Any) -> AttemptSpec:
    call = PythonCall(f"warm_faults:{name}", arguments, path=(TARGETS,))
    return AttemptSpec(name, call, limits=LIMITS)


@pytest.fixture
def call() -> Iterator[Call]:
    """Call a function of the targets in a process that stays for the test."""
    executor = WarmExecutor()
    yield lambda name, **arguments: run_attempt(spec(name, **arguments), executor=executor)
    executor.retire()


def gone(pid: int) -> bool:
    """Whether a process is over, within a few seconds."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_calls_share_a_process_and_each_has_its_own_output(call: Call) -> None:
    first, second, third = call("who"), call("speak", text="hello\n"), call("speak", text="bye")
    assert [result.verdict for result in (first, second, third)] == [Verdict.PASS] * 3
    assert second.place["pid"] == third.place["pid"] == first.python_result
    assert [result.place["call"] for result in (first, second, third)] == [1, 2, 3]
    assert (second.output.head, third.output.head) == ("hello\nhello\n", "byebye")
    assert [span.name for span in third.timeline] == ["start", "speak"]


@pytest.mark.parametrize(
    ("name", "verdict", "said"),
    [
        ("segfault", Verdict.CRASH, "ended by SIGSEGV"),
        ("spin", Verdict.HANG, "silent after phase work"),
        ("read", Verdict.HANG, "silent after phase work"),
        ("leave", Verdict.CRASH, "status 0 before the function returned"),
        ("eat", Verdict.OOM, "MemoryError"),
    ],
)
def test_a_fault_is_its_own_and_the_next_call_gets_a_new_process(
    call: Call, name: str, verdict: Verdict, said: str
) -> None:
    before = call("who").python_result
    fault = call(name)
    assert fault.verdict is verdict
    assert said in fault.reason
    if name in {"spin", "read"}:
        assert fault.silence is (Silence.SPINNING if name == "spin" else Silence.BLOCKED)
        assert any(f"in {name}" in stack.text for stack in fault.stacks)
    after = call("who")
    assert after.verdict is Verdict.PASS
    assert (after.python_result == before) == (name == "eat")  # that one was answered: its caller is to be in doubt
    assert gone(before) or name == "eat"


def test_what_is_written_to_the_channel_is_no_answer(call: Call) -> None:
    found = call("garbage")
    assert (found.verdict, found.python_result) == (Verdict.PASS, "its own")
    assert call("speak", text="x").python_result == "x"


def test_megabytes_of_output_are_one_calls_own(call: Call) -> None:
    flood = call("flood")
    assert flood.verdict is Verdict.PASS
    assert flood.output.bytes == flood.python_result == 200 * 50_001
    assert call("speak", text="quiet").output.head == "quietquiet"


def test_a_process_left_behind_ends_with_the_one_that_left_it(call: Call) -> None:
    before = call("who").python_result
    found = call("fork")
    assert found.verdict is Verdict.PASS
    assert "1 process that it left behind had to be killed" in found.notes
    assert gone(found.python_result)
    assert gone(before)
    assert call("who").python_result != before


def test_what_comes_late_is_not_the_next_calls(call: Call) -> None:
    call("talk_late")
    found = call("wait", seconds=0.0)
    assert [span.name for span in found.timeline] == ["start"]
    time.sleep(0.5)  # the thread speaks between two calls
    after = call("speak", text="x")
    assert [span.name for span in after.timeline] == ["start", "speak"]
    assert after.output.head == "xx"


def test_other_variables_or_limits_are_another_process() -> None:
    executor = WarmExecutor()
    first = run_attempt(spec("who"), executor=executor).python_result
    other = AttemptSpec("who", PythonCall("warm_faults:who", path=(TARGETS,)), env={"A": "1"}, limits=LIMITS)
    assert run_attempt(other, executor=executor).python_result != first
    executor.retire()
    assert gone(first)


def test_a_killed_supervisor_leaves_no_process_behind(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    source = (
        "from tests.runner.test_warm import spec\n"
        "from rocmend.runner.run import run_attempt\n"
        "from rocmend.runner.warm import WarmExecutor\n"
        f"run_attempt(spec('mark_and_wait', path={str(mark)!r}), executor=WarmExecutor())"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", source], cwd=root) as supervisor:
        while not (mark.exists() and mark.read_text()):
            assert supervisor.poll() is None
            time.sleep(0.02)
        supervisor.send_signal(signal.SIGKILL)
    assert gone(int(mark.read_text()))
