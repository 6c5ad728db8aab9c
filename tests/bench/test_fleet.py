"""Benchmarks on several hosts: real SSH connections to hosts that fail in every way, and a cluster that is imitated."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.conftest import Done
from tests.runner_remote.conftest import Server, server
from tests.runner_remote.fake_cluster import FakeCluster, ended, running

from rocmend import __version__
from rocmend.bench.calibration import Calibration
from rocmend.bench.calibration import evidence_of as calibration_evidence
from rocmend.bench.case import Case
from rocmend.bench.fleet.health import Checkup
from rocmend.bench.fleet.host import _figures
from rocmend.bench.fleet.messages import Ended, Health, Hello, Joiner, Message, Part, Ran, line_of, message_in, parts_of
from rocmend.bench.fleet.places import Defaults, read_hosts
from rocmend.bench.fleet.run import run_fleet
from rocmend.bench.fleet.state import Notes, State
from rocmend.bench.lock import measuring
from rocmend.bench.records import Measured, evidence_of
from rocmend.bench.run import new_group
from rocmend.bench.session import Prepared
from rocmend.bench.stats import summarize
from rocmend.core.errors import RocmendError
from rocmend.core.supervise import CommandResult, Ending
from rocmend.core.verdict import Verdict
from rocmend.runner.kernel import KernelLine, KernelLog
from rocmend.runner.spec import Kubernetes, Ssh
from rocmend.store.store import Store

from .fleet_host import archive

__all__ = ["server"]  # the fixture

HOST = Path(__file__).with_name("fleet_host.py")
SMALL = ("gemm", "--device", "cpu", "--time", "50ms", "--quick", "--dtype", "fp32", "--shape", "16x16x16")


class Lab:
    """A person's machine, from which hosts are measured, and the file that names them."""

    def __init__(self, folder: Path, where: Ssh) -> None:
        self.folder, self.where = folder, where
        self.hosts = folder / "hosts.toml"
        self.env = {name: text for name, text in os.environ.items() if not name.startswith(("ROCMEND_", "PYTHONPATH"))}
        self.env |= {"ROCMEND_HOME": str(folder / "home"), "COLUMNS": "80", "NO_COLOR": "1"}

    def name_hosts(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the file: by name what is not as it is for the first fake host."""
        texts = []
        for name, changes in hosts.items():
            where = msgspec.to_builtins(self.where) | changes.get("where", {})
            (self.folder / name.replace(" ", "-")).mkdir(exist_ok=True)
            env = {"ROCMEND_HOME": str(self.folder / name.replace(" ", "-")), "TOLD": str(self.told(name))}
            env |= changes.get("env", {})
            command = changes.get("rocmend", f"{sys.executable} -P {HOST}")
            texts.append(f"[[host]]\nname = {json.dumps(name)}\nrocmend = {json.dumps(command)}\n{_table('env', env)}")
            texts.append(_table("where", where))
        self.hosts.write_text("\n".join(texts))

    def told(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '-')}.told"

    def command(self, *words: str) -> list[str]:
        return [str(Path(sys.executable).with_name("rocmend")), "bench", *words]

    def run(self, *words: str) -> Done:
        done = subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            env=self.env,
            cwd=self.folder,
            timeout=200,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def measure(self, *words: str) -> tuple[Done, dict[str, dict[str, Any]]]:
        done = self.run(*words, "--hosts", str(self.hosts), "--json", "--no-redact")
        assert '"data": null' not in done.out, done.out
        return done, {host["host"]: host for host in json.loads(done.out)["data"]["hosts"]}


def _table(name: str, values: Mapping[str, Any]) -> str:
    made = [f"{key} = {_inline(value)}" for key, value in values.items()]
    return f"[host.{name}]\n" + "\n".join(made)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_inline(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture
def lab(server: Server, tmp_path: Path) -> Lab:
    folder = tmp_path / "lab"
    folder.mkdir()
    return Lab(folder, server.where)


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "good": ({}, "measured", ""),
    "old": ({"env": {"FAULT": "old"}}, "failed", f"pip install rocmend=={__version__}"),
    "absent": ({"rocmend": "no-such-rocmend"}, "failed", "--remote-command"),
    "down": ({"where": {"port": 1}}, "failed", "could not be reached"),
    "stranger": ({"where": {"options": {"UserKnownHostsFile": "/dev/null"}}}, "failed", "key is not known"),
    "hangs": ({"env": {"FAULT": "hangs"}}, "failed", "8 s"),
    "dies": ({"env": {"FAULT": "dies"}}, "failed", "SIGKILL"),
    "busy": ({"env": {"FAULT": "busy"}}, "skipped", "bench nn, by ann"),
    "sick": ({"env": {"FAULT": "unhealthy before"}}, "skipped", "the GPU was reset"),
    "falls ill": ({"env": {"FAULT": "unhealthy after"}}, "measured", "ring gfx timeout"),
}
"""By host: what is wrong with it, what becomes of it, and what its reason says."""


@pytest.mark.sshd
@pytest.mark.slow
def test_no_host_costs_the_others_their_results_and_a_sick_one_is_left_out_from_then_on(lab: Lab) -> None:
    lab.name_hosts({name: changes for name, (changes, _, _) in FAULTS.items()})
    words = ("gemm", "--shape", "8x8x8", "--python=~/it's $HOME/python", "--quick")
    done, hosts = lab.measure(*words, "--host-limit", "8s")
    assert done.code == 1, done.err
    for name, (_, state, reason) in FAULTS.items():
        assert (hosts[name]["state"], reason in hosts[name].get("reason", "")) == (state, True), hosts[name]
    assert [name for name, host in hosts.items() if host.get("quarantine")] == ["falls ill"]

    # the command line arrives as it was given, without what is for here; nothing of it was looked at here
    calls = [json.loads(line) for line in lab.told("good").read_text().splitlines()]
    own = calls[1].index("gemm")
    assert calls[0] == ["--version"]
    assert calls[1][own:] == ["gemm", "--shape", "8x8x8", "--python", "~/it's $HOME/python", "--quick"]

    # what came is in the store, with the machine that it is from, and is compared with what others do
    with Store.open(lab.folder / "home") as store:
        (good,) = hosts["good"]["runs"]
        (ill,) = hosts["falls ill"]["runs"]
        (row,) = store.query(group=good)
        assert store.machine(row.evidence.machine).name == "a host"
    compared = subprocess.run(
        [lab.command()[0], "compare", good, ill, "--json"], capture_output=True, env=lab.env, check=False, timeout=60
    )
    assert [one["comparison"]["difference"] for one in json.loads(compared.stdout)["data"]["changes"]] == ["faster"]
    (change,) = json.loads(compared.stdout)["data"]["changes"]
    assert ("unhealthy_a" in change, "ring gfx timeout" in change["unhealthy_b"]) == (False, True)
    report = subprocess.run(
        [lab.command()[0], "report", good, ill, "--format", "md"], capture_output=True, env=lab.env, check=False
    )
    assert b"not healthy after the run: kernel log: ring gfx timeout" in report.stdout

    # going on measures only what is not measured; the one in quarantine is left out until it is released
    lab.name_hosts({name: {} if name == "falls ill" else FAULTS[name][0] for name in ("good", "busy", "falls ill")})
    _, again = lab.measure(*words, "--resume", "last")
    assert len(lab.told("good").read_text().splitlines()) == 2
    assert again["falls ill"]["state"] == "skipped"
    assert "--release 'falls ill'" in again["falls ill"]["reason"]
    assert lab.run("hosts", "--release", "good").code == 2
    assert "ring gfx timeout" in lab.run("hosts").out
    assert "falls ill: skipped: in quarantine" in lab.run(*words, "--hosts", str(lab.hosts), "--resume", "last").err
    assert lab.run("hosts", "--release", "falls ill").code == 0
    done, again = lab.measure(*words, "--resume", json.loads(done.out)["data"]["id"])
    assert again["falls ill"]["state"] == "measured"
    assert lab.run(*words[:-1], "--hosts", str(lab.hosts), "--resume", "last").code == 2  # another benchmark


@pytest.mark.sshd
@pytest.mark.slow
def test_ctrl_c_ends_what_runs_there_and_keeps_what_is_done(lab: Lab) -> None:
    lab.name_hosts({"good": {}, "interrupted": {"env": {"FAULT": "interrupted", "SIGN": str(lab.folder)}}})
    words = [*lab.command("gemm", "--hosts", str(lab.hosts)), "--quick"]
    begun = subprocess.Popen(
        ["env", "--default-signal=INT", *words], stderr=subprocess.PIPE, text=True, env=lab.env, start_new_session=True
    )
    deadline = time.monotonic() + 40
    while not (_of_host(lab.folder) and _is_done(lab, "good")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _of_host(lab.folder)
    begun.send_signal(signal.SIGINT)
    _, said = begun.communicate(timeout=60)
    assert begun.returncode == 130
    assert "--resume fleet-" in said
    deadline = time.monotonic() + 10
    while (left := _of_host(lab.folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left
    assert _is_done(lab, "good")


def _of_host(sign: Path) -> list[int]:
    """Return the processes that a host runs, children included."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"SIGN={sign}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def _is_done(lab: Lab, name: str) -> bool:
    notes = Notes(lab.folder / "home" / "fleet")
    return any(host.host == name and host.state is State.MEASURED for fleet in notes.fleets() for host in fleet.hosts)


@pytest.mark.sshd
@pytest.mark.cpu
@pytest.mark.slow
def test_two_hosts_measure_and_their_runs_are_compared(lab: Lab) -> None:
    real = str(Path(sys.executable).with_name("rocmend"))
    hosts = {}
    for name in ("one", "two"):
        (lab.folder / f"tmp-{name}").mkdir()
        hosts[name] = {
            "rocmend": real,
            "env": {"ROCMEND_LOCKS": str(lab.folder / f"tmp-{name}"), "OMP_NUM_THREADS": "1"},
        }
    lab.name_hosts(hosts)
    done, found = lab.measure(*SMALL)
    assert done.code == 0, (done.out, done.err)
    for host in found.values():
        assert [one["when"] for one in host["health"]] == ["before", "after"]
        assert (host["state"], host["figures"], len(host["runs"])) == ("measured", 1, 1)
    groups = [group for host in found.values() for group in host["runs"]]
    with Store.open(lab.folder / "home") as store:
        for group in groups:
            origin = next(store.query(group=group)).evidence.detail["measured"]["origin"]
            assert origin["command"].startswith(f"rocmend bench {' '.join(SMALL)} --hosts ")
            assert "--hosts" not in origin["on_host"]
    compared = subprocess.run(
        [real, "compare", *groups, "--json"], capture_output=True, env=lab.env, check=False, timeout=60
    )
    assert [one["case"] for one in json.loads(compared.stdout)["data"]["changes"]] == ["gemm/float32/16x16x16/nn"]
    # a person measures on one of them: it is not disturbed, and says who
    with measuring("bench nn", folder=lab.folder / "tmp-two"):
        done, found = lab.measure(*SMALL)
    assert (done.code, found["one"]["state"], found["two"]["state"]) == (1, "measured", "skipped")
    assert "bench nn" in found["two"]["reason"]


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    yield fake
    fake.close()


def test_a_node_is_measured_by_a_pod_that_is_removed(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lightkube", reason="the extra k8s is not installed")
    config = tmp_path / "kubeconfig"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: one\n"
        f"clusters: [{{name: one, cluster: {{server: '{cluster.url}'}}}}]\n"
        "users: [{name: me, user: {token: secret}}]\ncontexts: [{name: one, context: {cluster: one, user: me}}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(config))

    def node(name: str, gpus: str, **spec: Any) -> dict[str, Any]:
        labels = {"kubernetes.io/hostname": name}
        return {"metadata": {"labels": labels}, "spec": spec, "status": {"allocatable": {"amd.com/gpu": gpus}}}

    cluster.nodes = [node("a", "2"), node("cordoned", "8", unschedulable=True), node("cpu", "0")]
    (host,) = read_hosts(("k8s:amd.com/gpu.family=NV,zone=b",), Defaults(image="registry/rocmend", gpus="all"))
    assert isinstance(host.where, Kubernetes)
    assert (host.name, host.gpus, host.where.node_selector) == ("k8s/a", "0,1", {"kubernetes.io/hostname": "a"})
    assert "labelSelector=amd.com%2Fgpu.family%3DNV%2Czone%3Db" in cluster.requests[0][1]

    def scenario() -> None:
        jobs.append(cluster.await_job())
        cluster.put_pod(jobs[0], **running())
        gpus = ("0", "1")
        messages: list[Message] = [Hello(1, __version__, gpus)]
        for gpu in gpus:
            messages += [Health("before", gpu), Ran(gpu, figures=1, expected=1)]
            messages += [*parts_of(archive(1.0 + int(gpu)), gpu), Health("after", gpu)]
        for number, message in enumerate([*messages, Ended()]):
            stamp = f"2026-01-01T00:00:01.{number:09}Z"
            cluster.say(stamp, f"{line_of(message)}\n".encode(), done=isinstance(message, Ended))
        cluster.put_pod(jobs[0], **ended(0))

    jobs: list[dict[str, Any]] = []
    thread = threading.Thread(target=scenario, daemon=True)
    thread.start()
    notes = Notes(tmp_path / "fleet")
    with Store.open(tmp_path / "evidence.sqlite") as store:
        fleet = run_fleet(("gemm", "--quick"), [host], store=store, notes=notes, limit_s=60)
        found = {group.group for group in store.groups()}
    thread.join(10)
    (run,) = fleet.hosts
    assert (run.state, run.figures, run.reason) == (State.MEASURED, 2, "")
    assert found == set(run.runs)
    assert len(found) == 2
    container = jobs[0]["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["amd.com/gpu"] == "2"
    assert container["command"][:4] == ["rocmend", "bench", "exclusive", "--messages"]
    assert container["command"][-4:] == ["--gpus", "0,1", "gemm", "--quick"]
    assert [kind for kind, _, _ in cluster.deleted] == ["jobs"]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (("ssh:a,me@b:2222", "ssh:c"), [("a", 0), ("me@b", 2222), ("c", 0)]),
        (("ssh:a", "ssh:a"), "named twice"),
        (("a",), "names no host"),
        (("ssh:-oProxyCommand=x",), "host's name"),
        (("ssh:a:99999",), "names no host"),
        (("none.toml",), "no file"),
    ],
)
def test_hosts_are_named(texts: tuple[str, ...], found: list[tuple[str, int]] | str) -> None:
    if isinstance(found, str):
        with pytest.raises(RocmendError, match=found):
            read_hosts(texts, Defaults())
        return
    hosts = read_hosts(texts, Defaults(rocmend="~/venv/bin/rocmend"))
    assert [(host.where.host, host.where.port) for host in hosts if isinstance(host.where, Ssh)] == found
    assert hosts[0].rocmend == ("venv/bin/rocmend",)  # from the login folder: nothing expands a tilde there


class _Log(KernelLog):
    def __init__(self, *classes: str) -> None:
        super().__init__(None)
        self.readable = True
        self.lines = [KernelLine((name,), f"a line of {name}") for name in classes]

    def new_lines(self) -> list[KernelLine]:
        found, self.lines = self.lines, []
        return found


def _probed(*, failed: str = "", error: str = "", ending: Ending = Ending.EXITED) -> Callable[..., CommandResult]:
    results = [{"subject": "matmul-odd:float32", "verdict": "wrong-output" if failed else "pass", "reason": failed}]
    said: dict[str, Any] = {"data": {"results": results}, "exit_code": int(bool(failed))}
    if error:
        said = {"data": None, "exit_code": 2, "errors": [{"message": error}]}
    return lambda argv, _env: CommandResult(tuple(argv), ending, 0, stdout=json.dumps(said))


@pytest.mark.parametrize(
    ("log", "run", "problem"),
    [
        (("page_fault",), _probed(), ""),
        (("ring_timeout", "reset_begin"), _probed(), "The driver begins to reset the GPU"),
        ((), _probed(failed="error 0.5 of the sum"), "error 0.5 of the sum"),
        ((), _probed(error="torch sees no GPUs here, cuda:3 was asked for."), "sees no GPUs"),
        ((), _probed(error="torch cannot be imported: no module."), ""),
        ((), _probed(ending=Ending.TIMEOUT), "did not end"),
    ],
)
def test_a_machine_is_healthy_or_not(
    tmp_path: Path, log: tuple[str, ...], run: Callable[..., CommandResult], problem: str
) -> None:
    checkup = Checkup(("gemm",), log=_Log(*log), drm=tmp_path, run=run)
    found = checkup.check("after")
    assert (problem in " ".join(found.problems)) if problem else not found.problems
    assert not checkup.check("after").problems or not log  # a line of the log counts once


def test_uncorrected_memory_errors_since_the_last_check_are_a_problem(tmp_path: Path) -> None:
    counter = tmp_path / "card0" / "device" / "ras" / "umc_err_count"
    counter.parent.mkdir(parents=True)
    counter.write_text("ue: 3\nce: 9\n")
    checkup = Checkup(("gemm",), log=_Log(), drm=tmp_path, run=_probed())
    assert not checkup.check("before").problems
    counter.write_text("ue: 5\nce: 99\n")
    assert checkup.check("after").problems == ("memory: 2 uncorrected errors since the last check",)


def test_what_was_found_before_a_run_that_was_ended_is_no_figure(tmp_path: Path) -> None:
    path = tmp_path / "evidence.sqlite"
    case = Case("llama/m/pp512", "llama", {}, "tok/s", 512)
    with Store.open(path) as store:
        group = new_group("llama")
        calibration = Calibration(
            "rocm",
            "ubatch",
            case.id,
            "pp512",
            "tok/s",
            {"ubatch": 512},
            "512",
            "512 stays",
            (),
            started_at="2026-01-31",
        )
        store.add(calibration_evidence(calibration, group, "llama", {}))
        found = Measured(
            case, Verdict.PASS, "", Prepared(Verdict.PASS), ((1.0,),), summarize([(1.0,)]), "2026-01-31", 1.0
        )
        store.add(evidence_of(found, group))
    assert _figures(path, "llama") == 1


def test_an_archive_comes_whole_or_not_at_all() -> None:
    data = os.urandom(70_000)
    read = [message_in(f"[12:00] {line_of(part)}") for part in parts_of(data, "0")]
    parts = [part for part in read if isinstance(part, Part)]
    assert len(parts) == 3
    joiner = Joiner()
    assert [joiner.add(part) for part in (parts[2], parts[0], parts[0], parts[1])] == [None, None, None, data]
    damaged = msgspec.structs.replace(parts[1], data="AAAA")
    joiner = Joiner()
    assert [joiner.add(part) for part in (parts[0], damaged, parts[2])] == [None] * 3
    assert message_in("rocmend-fleet: {") is None
