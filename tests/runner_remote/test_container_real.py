"""Attempts in real containers of a busybox image."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rocmend.core.evidence import Silence
from rocmend.core.verdict import Verdict
from rocmend.runner.executor import Handle, NotStartedError
from rocmend.runner.remote.container import ContainerExecutor, ContainerHandle
from rocmend.runner.remote.engine import Engine
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Container, Limits, Mount, PythonCall

from .conftest import Outcome, drive

pytestmark = pytest.mark.container


def attempt(box: Container, *argv: str, **changes: object) -> AttemptSpec:
    return msgspec.structs.replace(AttemptSpec("try", Command(argv), where=box), **changes)


def run(spec: AttemptSpec, on_turn: Callable[[Handle, dict[str, bytearray]], object] | None = None) -> Outcome:
    handle = ContainerExecutor().start(spec)
    outcome = drive(handle, on_turn=on_turn)
    assert isinstance(handle, ContainerHandle)
    assert handle.engine.state(handle.name) is None, "the container was left behind"
    return outcome


def test_output_is_kept_apart_and_the_status_is_the_command_s(box: Container) -> None:
    outcome = run(attempt(box, "sh", "-c", "echo out; echo err >&2; exit 3"))
    assert outcome.exit is not None
    assert (outcome.exit.code, outcome.exit.infra, outcome.exit.oom_killed) == (3, "", False)
    assert (outcome.stdout, outcome.stderr) == (b"out\n", b"err\n")


def test_environment_folder_input_and_mounts(box: Container, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("from the host")
    spec = attempt(
        box,
        "sh",
        "-c",
        'echo "[$WORDS] [$FROM_IMAGE]"; pwd -P; cat; cat /data/note; touch /data/no || echo read-only',
        env={"WORDS": "two\nlines 'and \"quotes", "FROM_IMAGE": None},
        where=msgspec.structs.replace(box, mounts=(Mount(str(tmp_path), "/data", read_only=True),)),
        command=Command(
            (
                "sh",
                "-c",
                'echo "[$WORDS] [$FROM_IMAGE]"; cat - /data/note; touch /data/no 2>/dev/null || echo " ro"',
            ),
            cwd="/tmp",
            stdin="given ",
        ),
    )
    outcome = run(spec)
    assert outcome.stdout.decode() == "[two\nlines 'and \"quotes] []\ngiven from the host ro\n"


LOOK = """
cat /proc/self/status /proc/mounts /proc/net/dev
cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null
echo x 2>/dev/null >/tmp/x && echo "tmp writable"; touch /etc/x 2>&1; echo "home $HOME"
"""


def test_a_run_has_nothing_that_it_did_not_ask_for(box: Container) -> None:
    where = msgspec.structs.replace(box, pids=123, shm_bytes=10 << 20, tmp_bytes=12 << 20)
    outcome = run(attempt(where, "sh", "-c", LOOK))
    seen = outcome.stdout.decode()
    for word in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert f"{word}:\t0000000000000000\n" in seen
    assert "NoNewPrivs:\t1\n" in seen
    assert "Seccomp:\t2\n" in seen, "the default profile"
    assert "touch: /etc/x: Read-only file system" in seen
    assert "tmp writable\n" in seen
    assert "home /tmp\n" in seen
    mounts = {line.split()[1]: line for line in seen.splitlines() if line.startswith(("shm ", "tmpfs "))}
    assert "size=10240k" in mounts["/dev/shm"]
    assert "size=12288k" in mounts["/tmp"]
    assert "noexec" not in mounts["/tmp"]
    assert [line.split()[0] for line in seen.splitlines() if "eth" in line or line.strip().startswith("lo:")] == ["lo:"]
    limited = "\n123\n" in seen
    assert limited is not any("processes is not limited" in note for note in outcome.notes), outcome.notes


def test_what_an_experiment_asks_for_is_given(box: Container) -> None:
    where = msgspec.structs.replace(box, options=("ptrace", "writable-root"))
    seen = run(attempt(where, "sh", "-c", "cat /proc/self/status; touch /etc/x && echo written")).stdout.decode()
    assert f"CapEff:\t{1 << 19:016x}\n" in seen, "SYS_PTRACE and nothing else"
    assert seen.endswith("written\n")


def test_a_failure_for_the_read_only_root_says_so(box: Container) -> None:
    outcome = run(attempt(box, "sh", "-c", "touch /etc/x"))
    assert any("writable-root" in note for note in outcome.notes)


def test_a_secret_stands_on_no_command_line_while_it_runs(box: Container) -> None:
    secret = "hf_notARealTokenButAsLongAsOne42"  # noqa: S105  made up
    lines: list[bytes] = []

    def turn(handle: Handle, kept: dict[str, bytearray]) -> None:
        if kept["stdout"] and not lines:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    lines.append(path.read_bytes())
            handle.terminate()

    spec = attempt(box, "sh", "-c", 'echo "$HF_TOKEN"; sleep 20', env={"HF_TOKEN": secret})
    outcome = run(spec, turn)
    assert outcome.stdout.decode().strip() == secret
    assert any(b"--env\0HF_TOKEN\0" in line for line in lines), "podman ran"
    assert not any(secret.encode() in line for line in lines)


def test_a_crash_is_a_signal_s_status(box: Container) -> None:
    outcome = run(attempt(box, "sh", "-c", "kill -SEGV $$"))
    assert outcome.exit is not None
    assert (outcome.exit.code, outcome.exit.infra) == (128 + signal.SIGSEGV, "")


def test_memory_limit_is_told_from_a_kill(box: Container) -> None:
    eat = ("sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done")
    outcome = run(attempt(box, *eat, limits=Limits(memory_bytes=48 << 20)))
    assert outcome.exit is not None
    assert outcome.exit.oom_killed
    assert not outcome.exit.infra
    killed = run(attempt(box, "sh", "-c", "kill -KILL $$", limits=Limits(memory_bytes=48 << 20)))
    assert killed.exit is not None
    if os.access("/dev/kmsg", os.R_OK):
        assert not killed.exit.oom_killed, "KILL by the command itself is not the kernel's lack of memory"


@pytest.mark.parametrize(("script", "spins"), [("while :; do :; done", True), ("sleep 60", False)])
def test_a_silent_container_spins_or_waits_and_ends_on_term(box: Container, script: str, spins: bool) -> None:
    began: list[float] = []

    def turn(handle: Handle, kept: dict[str, bytearray]) -> None:
        if kept["stdout"] and not began:
            began.append(time.monotonic())
        elif began and time.monotonic() - began[0] > 2.5:
            handle.terminate()
            began[0] = math.inf

    outcome = run(attempt(box, "sh", "-c", f"echo begun; {script}"), turn)
    assert outcome.exit is not None
    assert outcome.exit.code == 143
    rates = [sample.cpu_rate for sample in outcome.samples if sample and sample.cpu_rate is not None]
    assert rates
    assert (max(rates) > 0.15) is spins, "a spinning one has its part of a busy machine"
    assert (max(rates) < 0.05) is not spins


def test_a_container_that_ignores_term_is_killed(box: Container) -> None:
    steps: list[float] = []
    begin = time.monotonic()

    def turn(handle: Handle, kept: dict[str, bytearray]) -> None:
        if kept["stdout"] and not steps:
            steps.append(time.monotonic())
            handle.terminate()
        elif len(steps) == 1 and time.monotonic() - steps[0] > 1.5:
            steps.append(time.monotonic())
            handle.kill()

    outcome = run(attempt(box, "sh", "-c", "trap '' TERM; echo begun; while :; do sleep 1; done"), turn)
    assert len(steps) == 2, "TERM alone ended it"
    assert outcome.exit is not None
    assert outcome.exit.code == 137
    assert not outcome.exit.oom_killed
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("init", [True, False])
@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("no-such-program",), 127, "no program 'no-such-program'"),
        (("/etc",), 126, "cannot be executed"),
    ],
)
def test_a_program_that_cannot_run_is_not_its_failure(
    box: Container, argv: tuple[str, ...], code: int, words: str, init: bool
) -> None:
    plain = msgspec.structs.replace(box, init=init)
    outcome = run(attempt(plain, *argv))
    assert outcome.exit is not None
    assert outcome.exit.code == code
    assert words in outcome.exit.infra


@pytest.mark.parametrize("code", [125, 126, 127])
def test_the_same_status_from_a_command_is_the_command_s(box: Container, code: int) -> None:
    outcome = run(attempt(box, "sh", "-c", f"exit {code}"))
    assert outcome.exit is not None
    assert (outcome.exit.code, outcome.exit.infra) == (code, "")


def test_arguments_that_the_runtime_refuses_are_infra(box: Container) -> None:
    outcome = run(attempt(msgspec.structs.replace(box, devices=("/dev/no-such-gpu",)), "true"))
    assert outcome.exit is not None
    assert outcome.exit.code in {125, 126}
    assert "no-such-gpu" in outcome.exit.infra


def test_a_missing_image_says_what_to_do(box: Container) -> None:
    where = msgspec.structs.replace(box, image="localhost/rocmend-nowhere")
    with pytest.raises(NotStartedError, match="pulling is off") as caught:
        ContainerExecutor().resolve(attempt(where, "true"))
    assert "podman pull" in caught.value.next_step


def test_a_resolved_image_is_pinned_and_runs(box: Container) -> None:
    spec = ContainerExecutor().resolve(attempt(box, "true"))
    assert isinstance(spec.where, Container)
    name, _, digest = spec.where.image.partition("@")
    assert name == "rocmend-test"
    assert digest.startswith("sha256:")
    assert len(digest) == 71
    assert ContainerExecutor().resolve(spec) == spec
    handle = ContainerExecutor().start(spec)
    drive(handle)
    assert handle.describe()["image_digest"] == digest


def test_a_flood_comes_through_whole(box: Container) -> None:
    handle = ContainerExecutor().start(attempt(box, "sh", "-c", "yes 0123456789abcde | head -c 64000000"))
    outcome = drive(handle)
    assert outcome.exit is not None
    assert outcome.exit.code == 0
    assert len(outcome.stdout) == 64_000_000


def test_what_a_killed_rocmend_leaves_is_removed_by_the_next_run(box: Container) -> None:
    program = (
        "import sys, time, msgspec\n"
        "from rocmend.runner.remote.container import ContainerExecutor\n"
        "from rocmend.runner.spec import AttemptSpec\n"
        "handle = ContainerExecutor().start(msgspec.json.decode(sys.argv[1], type=AttemptSpec))\n"
        "print(handle.name, flush=True)\n"
        "time.sleep(600)\n"
    )
    encoded = msgspec.json.encode(attempt(box, "sleep", "600")).decode()
    with subprocess.Popen([sys.executable, "-c", program, encoded], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        name = parent.stdout.readline().strip()
        engine = Engine(box)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not ((state := engine.state(name)) and state.running):
            time.sleep(0.1)
        assert state is not None
        assert state.running
        assert engine.remove_orphans() == (), "one whose owner lives is left alone"
        parent.kill()
    outcome = run(attempt(box, "true"))
    assert engine.state(name) is None
    assert any("removed 1 container" in note for note in outcome.notes)


def test_a_container_closed_while_it_runs_is_removed(box: Container) -> None:
    handle = ContainerExecutor().start(attempt(box, "sleep", "600"))
    name = handle.name
    handle.close()
    assert Engine(box).state(name) is None


def test_a_python_call_needs_an_interpreter_in_the_image(box: Container) -> None:
    spec = AttemptSpec("call", PythonCall("json:dumps", {"obj": 1}), where=box)
    outcome = run(spec)
    assert outcome.exit is not None
    assert "no program 'python3'" in outcome.exit.infra


@pytest.mark.parametrize(
    ("script", "verdict", "silence"),
    [
        ("echo done", Verdict.PASS, None),
        ("echo begun; exit 9", Verdict.CRASH, None),
        ("echo begun; x=0123456789abcdef; while :; do x=$x$x; done", Verdict.OOM, None),
        ("echo begun; sleep 60", Verdict.HANG, Silence.BLOCKED),
        ("trap '' TERM; echo begun; while :; do :; done", Verdict.HANG, Silence.SPINNING),
    ],
)
def test_verdicts_in_containers(box: Container, script: str, verdict: Verdict, silence: Silence | None) -> None:
    limits = Limits(silence_s=3, grace_s=1, memory_bytes=48 << 20)
    result = run_attempt(attempt(box, "sh", "-c", script, limits=limits))
    assert (result.verdict, result.silence) == (verdict, silence), result
    assert not result.quarantine
    assert result.place["image_digest"].startswith("sha256:")


def test_an_image_without_the_program_is_the_verdict_infra(box: Container) -> None:
    result = run_attempt(attempt(box, "no-such-program"))
    assert result.verdict is Verdict.INFRA
    assert "no program" in result.reason
