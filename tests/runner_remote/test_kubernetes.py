"""The Job executor against an HTTP server that speaks the API and misbehaves as clusters do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.core.verdict import Verdict
from rocmend.runner.executor import Exit, Handle, NotStartedError
from rocmend.runner.remote.kubernetes import KubernetesExecutor, Patience
from rocmend.runner.remote.owner import LABEL_OWNER, ourselves
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Kubernetes, Limits

from .conftest import Outcome, drive
from .fake_cluster import FakeCluster, ended, running, waiting

pytest.importorskip("lightkube", reason="the extra k8s is not installed")

QUICK = Patience(watch=20, again=0.05, unreachable=1.0, pull=0.5, word=0.6, log=20.0)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    yield fake
    fake.close()


@pytest.fixture
def spec(cluster: FakeCluster, tmp_path: Path) -> AttemptSpec:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: one\n"
        f"clusters: [{{name: one, cluster: {{server: '{cluster.url}'}}}}]\n"
        "users: [{name: me, user: {token: secret}}]\n"
        "contexts: [{name: one, context: {cluster: one, user: me}}]\n"
    )
    where = Kubernetes("registry/image", kubeconfig=str(config), start_s=20)
    return AttemptSpec("try", Command(("program", "$(HOME)")), where=where, limits=Limits(grace_s=2))


def play(
    spec: AttemptSpec,
    scenario: Callable[[], object],
    on_turn: Callable[[Handle, dict[str, bytearray]], object] | None = None,
) -> Outcome:
    handle = KubernetesExecutor(QUICK).begin(spec)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            scenario()
        except BaseException as error:  # noqa: BLE001  told to the test's own thread
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    outcome = drive(handle, limit_s=20, on_turn=on_turn)
    thread.join(10)
    assert not failures, failures
    assert outcome.exit is not None
    return outcome


def test_a_job_that_succeeds(cluster: FakeCluster, spec: AttemptSpec) -> None:
    def scenario() -> None:
        job = cluster.await_job()
        cluster.put_pod(job, scheduled=False, phase="Pending")
        cluster.put_pod(job, **waiting("ContainerCreating"))
        cluster.put_pod(job, **running())
        cluster.say("2026-01-01T00:00:01.000000001Z", b"one\n")
        cluster.say("2026-01-01T00:00:02.000000001Z", b"last", done=True)
        cluster.put_pod(job, **ended(0))

    outcome = play(spec, scenario)
    assert outcome.exit is not None
    assert (outcome.exit.code, outcome.exit.infra) == (0, "")
    assert outcome.stdout == b"one\nlast"
    assert any("node-a" in note for note in outcome.notes)
    assert [(kind, options["propagationPolicy"]) for kind, _, options in cluster.deleted] == [("jobs", "Background")]


EVICTED = {"reason": "Evicted", "message": "low on memory"}
PREEMPTED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}


@pytest.mark.parametrize(
    ("pod_status", "code", "oom", "infra"),
    [
        (ended(3), 3, False, ""),
        (ended(139), 139, False, ""),
        (ended(137, "OOMKilled"), 137, True, ""),
        (ended(128, "StartError"), 128, False, "did not run: StartError"),
        (ended(137) | EVICTED, None, False, "Evicted"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}, None, False, "low on disk"),
        (ended(143) | PREEMPTED, None, False, "PreemptionByScheduler"),
        ({"phase": "Failed"}, None, False, "without its container's status"),
        ({"phase": "Unknown", "reason": "NodeLost"}, None, False, "node-a of the pod is lost"),
        (waiting("InvalidImageName", "bad"), None, False, "InvalidImageName"),
        (waiting("CreateContainerConfigError", "no secret"), None, False, "no secret"),
        (waiting("ImagePullBackOff", "no such tag"), None, False, "cannot be pulled: ImagePullBackOff (no such tag)"),
    ],
)
def test_how_pods_end(
    cluster: FakeCluster, spec: AttemptSpec, *, pod_status: dict[str, Any], code: int | None, oom: bool, infra: str
) -> None:
    cluster.end_log()
    outcome = play(spec, lambda: cluster.put_pod(cluster.await_job(), **pod_status))
    assert outcome.exit is not None
    assert (outcome.exit.code, outcome.exit.oom_killed) == (code, oom)
    assert (infra in outcome.exit.infra) if infra else not outcome.exit.infra


def test_an_image_that_can_be_pulled_after_all(cluster: FakeCluster, spec: AttemptSpec) -> None:
    def scenario() -> None:
        job = cluster.await_job()
        cluster.put_pod(job, **waiting("ErrImagePull", "registry away"))
        time.sleep(0.2)
        cluster.put_pod(job, **waiting("ContainerCreating"))
        time.sleep(0.2)
        cluster.put_pod(job, **running())
        time.sleep(0.5)
        cluster.end_log()
        cluster.put_pod(job, **ended(0))

    assert play(spec, scenario).exit == Exit(code=0)


def test_a_pod_that_no_node_takes(cluster: FakeCluster, spec: AttemptSpec) -> None:
    where = msgspec.structs.replace(spec.where, start_s=0.6)
    no = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 Insufficient amd.com/gpu",
    }
    outcome = play(
        msgspec.structs.replace(spec, where=where),
        lambda: cluster.put_pod(cluster.await_job(), scheduled=False, phase="Pending", conditions=[no]),
    )
    assert outcome.exit is not None
    assert "Insufficient amd.com/gpu" in outcome.exit.infra
    assert any("Insufficient" in note for note in outcome.notes)


def test_a_job_whose_pod_is_never_made(spec: AttemptSpec) -> None:
    where = msgspec.structs.replace(spec.where, start_s=0.6)
    outcome = play(msgspec.structs.replace(spec, where=where), lambda: None)
    assert outcome.exit is not None
    assert "created no pod" in outcome.exit.infra


def test_the_job_s_deadline_is_not_the_program_s_failure(cluster: FakeCluster, spec: AttemptSpec) -> None:
    def scenario() -> None:
        job = cluster.await_job()
        cluster.put_pod(job, **running())
        cluster.say("2026-01-01T00:00:01Z", b"begun\n", done=True)
        cluster.put_pod(job, **ended(143), leaving=True)
        time.sleep(0.2)
        cluster.fail_job("DeadlineExceeded")

    outcome = play(spec, scenario)
    assert outcome.exit is not None
    assert "activeDeadlineSeconds" in outcome.exit.infra
    assert outcome.stdout == b"begun\n"


def test_a_pod_that_is_lost(cluster: FakeCluster, spec: AttemptSpec) -> None:
    def scenario() -> None:
        job = cluster.await_job()
        cluster.put_pod(job, **running())
        cluster.await_request("log", 1)
        cluster.drop_pod()
        cluster.end_log()

    outcome = play(spec, scenario)
    assert outcome.exit is not None
    assert "on node node-a was deleted by someone else" in outcome.exit.infra


@pytest.mark.slow
def test_a_pod_that_is_lost_while_nobody_watches(cluster: FakeCluster, spec: AttemptSpec) -> None:
    def scenario() -> None:
        job = cluster.await_job()
        cluster.put_pod(job, **running())
        cluster.await_request("log", 1)
        cluster.faults["watch"] = ["drop"] * 2
        with cluster.changed:
            cluster.pods.clear()
        cluster.forget()
        cluster.end_log()

    outcome = play(spec, scenario)
    assert outcome.exit is not None
    assert "was deleted by someone else" in outcome.exit.infra


@pytest.mark.slow
def test_waiting_for_a_node_and_an_image_is_no_silence(cluster: FakeCluster, spec: AttemptSpec) -> None:
    """The run loop begins to count when the container runs; a hang of it is still one."""

    def scenario() -> None:
        job = cluster.await_job()
        job_of.append(job)
        cluster.put_pod(job, scheduled=False, phase="Pending")
        time.sleep(1.5)
        cluster.put_pod(job, **running())
        cluster.say("2026-01-01T00:00:01Z", b"begun\n")

    def on_delete(fake: FakeCluster, kind: str, _: str) -> None:
        if kind == "jobs":
            fake.end_log()
            fake.put_pod(job_of.pop(), **ended(143), leaving=True)

    job_of: list[Any] = []
    cluster.on_delete = on_delete
    thread = threading.Thread(target=scenario, daemon=True)
    thread.start()
    hanging = msgspec.structs.replace(spec, limits=Limits(silence_s=1, grace_s=2))
    result = run_attempt(hanging, executor=KubernetesExecutor(QUICK))
    thread.join(10)
    assert result.verdict is Verdict.HANG
    assert result.place["node"] == "node-a"
    assert not result.quarantine


def test_a_refusal_is_the_verdict_infra(cluster: FakeCluster, spec: AttemptSpec) -> None:
    cluster.faults["create"] = [403]
    result = run_attempt(spec, executor=KubernetesExecutor(QUICK))
    assert result.verdict is Verdict.INFRA
    assert "403" in result.reason


class TestConnections:
    @pytest.mark.parametrize("in_stream", [True, False])
    def test_a_version_too_old_is_listed_anew(self, cluster: FakeCluster, spec: AttemptSpec, in_stream: bool) -> None:
        cluster.gone_in_stream = in_stream

        def scenario() -> None:
            job = cluster.await_job()
            cluster.put_pod(job, **running())
            cluster.await_request("watch", 1)
            with cluster.changed:
                cluster.pods["pod-1"]["status"] = ended(4)
            if not in_stream:
                cluster.watch_cuts.append(0)
            cluster.forget()
            cluster.end_log()

        outcome = play(spec, scenario)
        assert outcome.exit is not None
        assert outcome.exit.code == 4

    def test_watches_that_are_cut_go_on(self, cluster: FakeCluster, spec: AttemptSpec) -> None:
        cluster.watch_cuts = [0, 1, 0, 1, 0]

        def scenario() -> None:
            job = cluster.await_job()
            cluster.put_pod(job, **waiting("ContainerCreating"))
            time.sleep(0.3)
            cluster.put_pod(job, **running())
            time.sleep(0.3)
            cluster.end_log()
            cluster.put_pod(job, **ended(5))

        outcome = play(spec, scenario)
        assert outcome.exit is not None
        assert outcome.exit.code == 5
        assert any("cut" in note for note in outcome.notes)

    def test_faults_of_the_server_are_waited_out(self, cluster: FakeCluster, spec: AttemptSpec) -> None:
        cluster.faults = {
            "create": [503, "drop", 429],
            "list": [500, "drop"],
            "watch": ["drop", 503],
            "log": [400, "drop", 500],
            "delete": ["drop", 500],
            "job": [500],
        }

        def scenario() -> None:
            job = cluster.await_job()
            cluster.put_pod(job, **running())
            cluster.say("2026-01-01T00:00:01Z", b"here\n", done=True)
            cluster.await_request("log", 4)
            cluster.put_pod(job, **ended(6))

        outcome = play(spec, scenario)
        assert outcome.exit is not None
        assert (outcome.exit.code, outcome.exit.infra) == (6, "")
        assert outcome.stdout == b"here\n"
        assert not cluster.jobs, "the Job was left behind"

    def test_a_job_made_although_the_answer_was_lost_is_ours(self, cluster: FakeCluster, spec: AttemptSpec) -> None:
        cluster.faults["create"] = ["lose-answer"]
        cluster.end_log()
        outcome = play(spec, lambda: cluster.put_pod(cluster.await_job(), **ended(0)))
        assert outcome.exit is not None
        assert outcome.exit.code == 0
        assert [kind for kind, _ in cluster.requests].count("create") == 1, "the second one found it"

    def test_another_s_job_of_that_name_is_left_alone(
        self, cluster: FakeCluster, spec: AttemptSpec, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rocmend.runner.remote.kubernetes.attempt_id", lambda: "abc")
        cluster.jobs["rocmend-try-abc"] = {"metadata": {"name": "rocmend-try-abc", "labels": {}}}
        cluster.end_log()

        def scenario() -> None:
            with cluster.changed:
                assert cluster.changed.wait_for(lambda: len(cluster.jobs) == 2, 10)
            cluster.put_pod(cluster.jobs["rocmend-try-abc-2"], **ended(0))

        outcome = play(spec, scenario)
        assert outcome.exit is not None
        assert outcome.exit.code == 0
        assert list(cluster.jobs) == ["rocmend-try-abc"]

    def test_a_server_that_stays_away_is_infra(self, cluster: FakeCluster, spec: AttemptSpec) -> None:
        cluster.faults["create"] = ["drop"] * 1000
        outcome = play(spec, lambda: None)
        assert outcome.exit is not None
        assert "could not be reached" in outcome.exit.infra

    def test_a_refusal_is_infra(self, cluster: FakeCluster, spec: AttemptSpec) -> None:
        cluster.faults["create"] = [403]
        outcome = play(spec, lambda: None)
        assert outcome.exit is not None
        assert "the cluster refused: 403" in outcome.exit.infra


class TestLog:
    @pytest.mark.parametrize("seed", range(6))
    def test_a_log_cut_anywhere_has_each_line_once(self, cluster: FakeCluster, spec: AttemptSpec, seed: int) -> None:
        lines = [(f"2026-01-01T00:00:{i // 40:02d}.{i // 3:09d}Z", b"line %d\n" % (i // 2)) for i in range(400)]
        cluster.log_cuts = [1000 + seed * 7, 0, 3000 + seed, 5000, 900 + seed * 3]

        def scenario() -> None:
            job = cluster.await_job()
            cluster.put_pod(job, **running())
            for stamp, text in lines[:200]:
                cluster.say(stamp, text)
            cluster.await_request("log", 3)
            for stamp, text in lines[200:]:
                cluster.say(stamp, text)
            cluster.end_log()
            cluster.put_pod(job, **ended(0))

        outcome = play(spec, scenario)
        assert outcome.stdout == b"".join(text for _, text in lines)

    def test_a_log_that_is_gone_does_not_hold_up_the_end(self, cluster: FakeCluster, spec: AttemptSpec) -> None:
        cluster.faults["log"] = [404]
        outcome = play(spec, lambda: cluster.put_pod(cluster.await_job(), **ended(1)))
        assert outcome.exit is not None
        assert outcome.exit.code == 1
        assert any("may be missing" in note for note in outcome.notes)


class TestEnding:
    def test_term_deletes_the_job_and_kill_the_pod(self, cluster: FakeCluster, spec: AttemptSpec) -> None:
        def on_delete(fake: FakeCluster, kind: str, name: str) -> None:
            if kind == "pods":
                fake.end_log()
                fake.drop_pod(name)

        cluster.on_delete = on_delete
        steps: list[str] = []

        def turn(handle: Handle, kept: dict[str, bytearray]) -> None:
            if kept["stdout"] and not steps:
                steps.append("term")
                handle.terminate()
            elif steps == ["term"] and cluster.deleted:
                steps.append("kill")
                handle.kill()

        def scenario() -> None:
            job = cluster.await_job()
            cluster.put_pod(job, **running())
            cluster.say("2026-01-01T00:00:01Z", b"begun\n")

        outcome = play(spec, scenario, turn)
        assert outcome.exit is not None
        assert not outcome.exit.infra
        assert [(kind, options.get("gracePeriodSeconds")) for kind, _, options in cluster.deleted[:2]] == [
            ("jobs", None),
            ("pods", 0),
        ]

    def test_a_handle_closed_early_deletes_its_job(self, cluster: FakeCluster, spec: AttemptSpec) -> None:
        handle = KubernetesExecutor(QUICK).begin(spec)
        cluster.await_job()
        handle.close()
        assert not cluster.jobs

    def test_jobs_of_a_rocmend_that_is_gone_are_deleted(self, cluster: FakeCluster, spec: AttemptSpec) -> None:
        here = ourselves()
        dead = msgspec.structs.replace(here, began=here.began + 1)
        for name, owner in (("dead", dead.text()), ("alive", here.text()), ("elsewhere", "h/b/1/2/3")):
            cluster.jobs[name] = {"metadata": {"name": name, "labels": {}, "annotations": {LABEL_OWNER: owner}}}
        cluster.end_log()

        def scenario() -> None:
            with cluster.changed:
                assert cluster.changed.wait_for(lambda: "dead" not in cluster.jobs, 10)
                mine = next(job for name, job in cluster.jobs.items() if name.startswith("rocmend-"))
            cluster.put_pod(mine, **ended(0))

        outcome = play(spec, scenario)
        assert sorted(cluster.jobs) == ["alive", "elsewhere"]
        assert any("dead" in note for note in outcome.notes)


def test_no_kubeconfig_says_what_to_do(spec: AttemptSpec, tmp_path: Path) -> None:
    where = msgspec.structs.replace(spec.where, kubeconfig=str(tmp_path / "none"))
    with pytest.raises(NotStartedError, match="no cluster is configured"):
        KubernetesExecutor().start(msgspec.structs.replace(spec, where=where))
    where = msgspec.structs.replace(spec.where, context="other")
    with pytest.raises(NotStartedError, match="other"):
        KubernetesExecutor().start(msgspec.structs.replace(spec, where=where))
