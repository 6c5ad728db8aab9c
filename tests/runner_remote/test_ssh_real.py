"""Attempts over a real SSH connection to a server of the tests' own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rocmend.core.evidence import Silence
from rocmend.core.verdict import Verdict
from rocmend.runner.executor import Handle
from rocmend.runner.remote.ssh import SshExecutor, SshHandle
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Limits, PythonCall, Ssh

from .conftest import Outcome, Server, drive, free_port

pytestmark = pytest.mark.sshd


def attempt(server: Server, *argv: str, **changes: object) -> AttemptSpec:
    return msgspec.structs.replace(AttemptSpec("try", Command(argv), where=server.where), **changes)


def run(spec: AttemptSpec, on_turn: Callable[[Handle, dict[str, bytearray]], object] | None = None) -> Outcome:
    outcome = drive(SshExecutor().start(spec), on_turn=on_turn)
    assert outcome.exit is not None
    return outcome


def with_marker(attempt_id: str) -> list[int]:
    """Return the processes whose environment says that they belong to an attempt."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"ROCMEND_ATTEMPT={attempt_id}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def await_end(attempt_id: str, seconds: float = 10) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := with_marker(attempt_id)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


AWKWARD = (
    "",
    " ",
    "two  words",
    "it's",
    '"',
    "$HOME",
    "`id`",
    "a\nb\n",
    "\\",
    "*",
    "!x",
    "-n",
    "ü\x1e\udcff",
    "#",
    "~",
)


def test_any_argument_variable_folder_and_input_arrive_as_they_are(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "it's a $folder"
    folder.mkdir()
    code = (
        "import json, os, sys; json.dump([sys.argv[1:], os.environ['WORDS'], os.getcwd(), sys.stdin.read(),"
        " 'LANG' in os.environ, os.getsid(0) == os.getpid()], sys.stdout)"
    )
    spec = attempt(
        server,
        "",
        command=Command((sys.executable, "-c", code, *AWKWARD), cwd=str(folder), stdin="one'\n$two\n\n"),
        env={"WORDS": "".join(AWKWARD), "LANG": None, "PYTHONUTF8": "1"},
    )
    outcome = run(spec)
    assert outcome.exit is not None
    assert outcome.exit.code == 0, outcome
    assert json.loads(outcome.stdout) == [
        list(AWKWARD),
        "".join(AWKWARD),
        str(folder),
        "one'\n$two\n\n",
        False,
        True,
    ]


def test_streams_are_apart_and_the_status_is_the_command_s(server: Server) -> None:
    outcome = run(attempt(server, "sh", "-c", "printf out; printf err >&2; sleep 2.3; printf 2 >&2; exit 255"))
    assert outcome.exit is not None
    assert (outcome.exit.code, outcome.exit.infra) == (255, "")
    assert (outcome.stdout, outcome.stderr) == (b"out", b"err2")


def test_a_flood_of_bytes_comes_through_whole(server: Server) -> None:
    outcome = run(attempt(server, "sh", "-c", "head -c 20000000 /dev/urandom | tee /dev/stderr"))
    assert outcome.exit is not None
    assert outcome.exit.code == 0
    assert len(outcome.stdout) == 20_000_000
    assert outcome.stdout == outcome.stderr


def test_a_crash_is_a_signal_s_status(server: Server) -> None:
    outcome = run(attempt(server, "sh", "-c", "kill -SEGV $$"))
    assert outcome.exit is not None
    assert (outcome.exit.code, outcome.exit.infra) == (128 + signal.SIGSEGV, "")


@pytest.mark.parametrize(("script", "spins"), [("while :; do :; done", True), ("sleep 60", False)])
@pytest.mark.slow
def test_silence_is_told_apart_over_there(server: Server, script: str, spins: bool) -> None:
    begin = time.monotonic()
    asked: list[float] = []

    def turn(handle: Handle, _: object) -> None:
        if not asked and time.monotonic() - begin > 4:
            asked.append(time.monotonic())
            handle.terminate()

    outcome = run(attempt(server, "sh", "-c", script), turn)
    assert outcome.exit is not None
    assert outcome.exit.code == 143
    rates = [sample.cpu_rate for sample in outcome.samples if sample and sample.cpu_rate is not None]
    states = {sample.state for sample in outcome.samples if sample}
    assert rates
    assert (max(rates) > 0.3) is spins
    assert (max(rates) < 0.05) is not spins
    assert states <= ({"R", "S"} if spins else {"S"})


@pytest.mark.slow
def test_what_ignores_term_and_what_it_leaves_behind_is_killed(server: Server) -> None:
    script = "trap '' TERM; (setsid sleep 600 & setsid sleep 601) & echo begun; while :; do sleep 1; done"
    steps: list[float] = []

    def turn(handle: Handle, kept: dict[str, bytearray]) -> None:
        if kept["stdout"] and not steps:
            steps.append(time.monotonic())
            handle.terminate()
        elif len(steps) == 1 and time.monotonic() - steps[0] > 1:
            steps.append(time.monotonic())
            handle.kill()

    handle = SshExecutor().start(attempt(server, "sh", "-c", script))
    outcome = drive(handle, on_turn=turn)
    assert len(steps) == 2
    assert outcome.exit is not None
    assert outcome.exit.code == 137
    assert with_marker(handle.attempt) == []


@pytest.mark.slow
def test_a_daemon_left_behind_does_not_outlive_its_command(server: Server) -> None:
    handle = SshExecutor().start(attempt(server, "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo done"))
    outcome = drive(handle)
    assert outcome.exit is not None
    assert outcome.exit.code == 0
    assert with_marker(handle.attempt) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (Command(("no-such-program",)), "no program 'no-such-program'"),
        (Command(("true",), cwd="/no/such/folder"), "no folder"),
    ],
)
def test_what_is_not_over_there_is_infra(server: Server, command: Command, words: str) -> None:
    outcome = run(attempt(server, "x", command=command))
    assert outcome.exit is not None
    assert words in outcome.exit.infra


def test_a_python_call_needs_nothing_of_ours_over_there(server: Server) -> None:
    spec = AttemptSpec(
        "call",
        PythonCall("os.path:join", {"a": "x"}, python="/usr/bin/env"),
        where=server.where,
    )
    assert run(spec).exit is not None
    where = msgspec.structs.replace(server.where, python=sys.executable)
    outcome = run(AttemptSpec("call", PythonCall("fractions:Fraction", {"numerator": 3}), where=where))
    assert b'rocmend {"' in outcome.stdout
    assert b"Fraction" in outcome.stderr, "what it returns is no JSON, which the child says"


class TestNoConnection:
    def infra(self, server: Server, **changes: object) -> str:
        where = msgspec.structs.replace(server.where, **changes)
        outcome = run(attempt(server, "true", where=where))
        assert outcome.exit is not None
        assert outcome.exit.code is None
        assert outcome.stdout == outcome.stderr == b""
        return outcome.exit.infra

    def test_nobody_listens(self, server: Server) -> None:
        assert "could not be reached" in self.infra(server, port=free_port())

    def test_no_such_name(self, server: Server) -> None:
        assert "name is not known" in self.infra(server, host="no-such-host.invalid")

    def test_a_key_that_is_not_accepted(self, server: Server, tmp_path: Path) -> None:
        other = tmp_path / "other"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
        assert "did not accept our key" in self.infra(server, identity_file=str(other))

    def test_a_host_that_is_not_known(self, server: Server) -> None:
        options = {**server.where.options, "UserKnownHostsFile": "/dev/null"}
        assert "key is not known" in self.infra(server, options=options)

    def test_a_host_whose_key_changed(self, server: Server, tmp_path: Path) -> None:
        known = tmp_path / "changed"
        user_key = (tmp_path / "user.pub").read_text().split()
        known.write_text(f"[127.0.0.1]:{server.where.port} {user_key[0]} {user_key[1]}\n")
        options = {**server.where.options, "UserKnownHostsFile": str(known)}
        assert "key is not known or has changed" in self.infra(server, options=options)

    def test_an_option_that_there_is_none(self, server: Server) -> None:
        assert "options are wrong" in self.infra(server, options={**server.where.options, "NoSuchOption": "1"})


def connection_of(handle: SshHandle) -> int:
    """Return the server's process that holds the connection of a handle."""
    pid = with_marker(handle.attempt)[0]
    while True:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        if name.startswith("sshd"):
            return pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_connection_lost_is_infra_and_nothing_goes_on_over_there(server: Server) -> None:
    script = "trap '' TERM; echo begun; setsid sleep 600 & while :; do sleep 1; done"
    handle = SshExecutor().start(attempt(server, "sh", "-c", script))
    cut: list[int] = []

    def turn(_: Handle, kept: dict[str, bytearray]) -> None:
        if kept["stdout"] and not cut:
            cut.append(connection_of(handle))
            os.kill(cut[0], signal.SIGKILL)

    outcome = drive(handle, on_turn=turn)
    assert cut
    assert outcome.exit is not None
    assert outcome.exit.code is None
    assert "connection to 127.0.0.1 was lost" in outcome.exit.infra
    assert "killed through a second connection" in outcome.exit.infra
    assert with_marker(handle.attempt) == []


@pytest.mark.slow
def test_a_host_that_is_gone_for_good_is_said_so(server: Server) -> None:
    handle = SshExecutor().start(attempt(server, "sh", "-c", "echo begun; sleep 600"))
    cut: list[int] = []

    def turn(_: Handle, kept: dict[str, bytearray]) -> None:
        if kept["stdout"] and not cut:
            cut.append(connection_of(handle))
            server.process.terminate()
            server.process.wait(10)
            os.kill(cut[0], signal.SIGKILL)

    outcome = drive(handle, on_turn=turn)
    assert outcome.exit is not None
    assert "could not be reached again" in outcome.exit.infra
    assert await_end(handle.attempt) == [], "the lifeline's end ends them over there too"


def test_a_killed_rocmend_leaves_nothing_over_there(server: Server) -> None:
    program = (
        "import sys, time, msgspec\n"
        "from rocmend.runner.remote.ssh import SshExecutor\n"
        "from rocmend.runner.spec import AttemptSpec\n"
        "handle = SshExecutor().start(msgspec.json.decode(sys.argv[1], type=AttemptSpec))\n"
        "print(handle.attempt, flush=True)\n"
        "time.sleep(600)\n"
    )
    encoded = msgspec.json.encode(attempt(server, "sh", "-c", "trap '' TERM; while :; do sleep 1; done")).decode()
    with subprocess.Popen([sys.executable, "-c", program, encoded], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        name = parent.stdout.readline().strip()
        deadline = time.monotonic() + 10
        while not with_marker(name) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert with_marker(name)
        parent.kill()
    assert await_end(name) == []


@pytest.mark.slow
def test_a_handle_closed_while_it_runs_leaves_nothing(server: Server) -> None:
    handle = SshExecutor().start(attempt(server, "sleep", "600"))
    deadline = time.monotonic() + 10
    while not with_marker(handle.attempt) and time.monotonic() < deadline:
        time.sleep(0.1)
    handle.close()
    assert await_end(handle.attempt) == []


def test_a_login_s_greeting_is_not_the_command_s_output(server: Server) -> None:
    config = (server.folder / "sshd_config").read_text()
    banner = server.folder / "banner"
    banner.write_text("Welcome!\n")
    (server.folder / "sshd_config").write_text(config + f"Banner {banner}\n")
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    where: Ssh = msgspec.structs.replace(server.where, options={**server.where.options, "LogLevel": "INFO"})
    outcome = run(attempt(server, "sh", "-c", "echo out; echo err >&2", where=where))
    assert (outcome.stdout, outcome.stderr) == (b"out\n", b"err\n")


def test_the_user_s_configuration_reaches_neither_side(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent, a variable, a forwarded port and a local command, all of which the server would take."""
    port, mark = free_port(), tmp_path / "ran-here"
    config = (server.folder / "sshd_config").read_text()
    (server.folder / "sshd_config").write_text(config + "AcceptEnv SENT_* GIVEN\nPermitUserEnvironment no\n")
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    (tmp_path / "config").write_text(
        f"Host *\n  ForwardAgent yes\n  SendEnv SENT_*\n  SetEnv GIVEN=1\n  PermitLocalCommand yes\n"
        f"  LocalCommand touch {mark}\n  LocalForward 127.0.0.1:{port} 127.0.0.1:{server.where.port}\n"
        "  StrictHostKeyChecking no\n"
    )
    agent = subprocess.run(["ssh-agent", "-c"], check=True, capture_output=True, text=True).stdout.split()
    monkeypatch.setenv("SSH_AUTH_SOCK", agent[2].rstrip(";"))
    monkeypatch.setenv("SENT_TOO", "1")
    where = msgspec.structs.replace(server.where, config_file=str(tmp_path / "config"))
    listening: list[bool] = []

    def turn(_: Handle, kept: dict[str, bytearray]) -> None:
        if kept["stdout"] and not listening:
            with socket.socket() as probe:
                listening.append(probe.connect_ex(("127.0.0.1", port)) == 0)

    try:
        spec = attempt(server, "sh", "-c", 'echo "[$SSH_AUTH_SOCK$SENT_TOO$GIVEN]"; sleep 0.5', where=where)
        outcome = run(spec, turn)
    finally:
        os.kill(int(agent[5].rstrip(";")), signal.SIGTERM)
    assert outcome.stdout == b"[]\n"
    assert not mark.exists()
    assert listening == [False]
    assert any("host's key is not checked (StrictHostKeyChecking" in note for note in outcome.notes)


def test_a_secret_stands_on_no_command_line_of_either_side(server: Server) -> None:
    secret = "hf_notARealTokenButAsLongAsOne42"  # noqa: S105  made up
    lines: list[bytes] = []

    def turn(_: Handle, kept: dict[str, bytearray]) -> None:
        if kept["stdout"] and not lines:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    lines.append(path.read_bytes())

    outcome = run(attempt(server, "sh", "-c", 'echo "$HF_TOKEN"; sleep 1', env={"HF_TOKEN": secret}), turn)
    assert outcome.stdout.decode().strip() == secret
    assert any(b"count=" in line for line in lines), "the client ran"
    assert not any(secret.encode() in line for line in lines)


@pytest.mark.parametrize(
    ("script", "verdict", "silence"),
    [
        ("echo done", Verdict.PASS, None),
        ("echo begun; exit 9", Verdict.CRASH, None),
        ("echo begun; sleep 60", Verdict.HANG, Silence.BLOCKED),
        ("trap '' TERM; echo begun; while :; do :; done", Verdict.HANG, Silence.SPINNING),
    ],
)
@pytest.mark.slow
def test_verdicts_over_ssh(server: Server, script: str, verdict: Verdict, silence: Silence | None) -> None:
    result = run_attempt(attempt(server, "sh", "-c", script, limits=Limits(silence_s=4, grace_s=1)))
    assert (result.verdict, result.silence) == (verdict, silence), result
    assert not result.quarantine
    assert with_marker(result.place["attempt"]) == []


def test_no_host_is_the_verdict_infra(server: Server) -> None:
    result = run_attempt(attempt(server, "true", where=msgspec.structs.replace(server.where, port=free_port())))
    assert result.verdict is Verdict.INFRA
    assert "could not be reached" in result.reason


def test_a_python_call_over_ssh_returns_its_value(server: Server) -> None:
    where = msgspec.structs.replace(server.where, python=sys.executable)
    spec = AttemptSpec("call", PythonCall("os.path:join", {"a": "x"}), where=where)
    assert run_attempt(spec).verdict is Verdict.PASS
