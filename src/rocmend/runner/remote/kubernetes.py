"""Attempts as Kubernetes Jobs.

One thread makes the Job and follows its pod, another carries the pod's log to a pipe. Both outlive lost connections:
the watch goes on from the version that it reached, or from a new list, and the log from the time that it reached.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from rocmend.core.stall import StallClock
from rocmend.runner.executor import Executor, Exit, Handle
from rocmend.runner.remote.cluster import ApiFault, Cluster, Unreachable, connect, is_gone
from rocmend.runner.remote.manifest import CONTAINER, MANAGED_BY, job_manifest
from rocmend.runner.remote.owner import LABEL_ATTEMPT, LABEL_OWNER, ourselves, parse_owner
from rocmend.runner.remote.owner import is_gone as owner_is_gone
from rocmend.runner.remote.pod import HOPELESS, PULLING, PodView, job_failure, view_of
from rocmend.runner.remote.podlog import PodLog
from rocmend.runner.remote.program import attempt_id
from rocmend.runner.remote.pump import pipe
from rocmend.runner.spec import AttemptSpec, Kubernetes

_CONFLICT = 409
_TURN_S = 0.05
_ASKED_S = 2.0
"""A handle is asked how it ended at least this often."""

_DEADLINE = "the Job's activeDeadlineSeconds ended it before the attempt's own limits"


class Patience(msgspec.Struct, frozen=True):
    """How long things of a cluster may take, in seconds.

    Attributes:
        watch: A watch, before it is begun anew.
        again: Pause before a request is repeated.
        unreachable: The API server may be away.
        pull: A failing pull may be repeated by the kubelet.
        word: What is known of a pod that has gone may follow.
        log: A log may be silent before its stream is begun anew.
    """

    watch: int = 60
    again: float = 1.0
    unreachable: float = 300.0
    pull: float = 90.0
    word: float = 10.0
    log: float = 300.0


class _Outage:
    """How long requests have failed, from the first failure on: the time before it may be a pause of our own."""

    def __init__(self) -> None:
        self.clock = StallClock()
        self._since: float | None = None
        self._answered = 0.0

    def lasted_s(self, answered: float) -> float:
        """Take in a failure; return the seconds since the first one.

        Args:
            answered: When the API server answered last, if it ever did.
        """
        now = self.clock.now(math.inf)
        if self._since is None or answered != self._answered:
            self._since, self._answered = now, answered
        return now - self._since


class KubernetesExecutor(Executor):
    """Runs attempts as Jobs.

    Args:
        patience: How long things may take.
    """

    def __init__(self, patience: Patience | None = None) -> None:
        self.patience = patience or Patience()

    def start(self, spec: AttemptSpec) -> KubernetesHandle:
        """Make a Job and wait until its container runs, so that the wait for a node and an image is no silence.

        What goes wrong on the way (a refusal, an image that cannot be pulled) shows in the handle's ``exit``.

        Raises:
            NotStartedError: As ``begin`` does.
        """
        handle = self.begin(spec)
        try:
            while not handle.started and handle.exit() is None:
                time.sleep(_TURN_S)
        except BaseException:  # an interrupt: leave no Job behind
            handle.close()
            raise
        return handle

    def begin(self, spec: AttemptSpec) -> KubernetesHandle:
        """Begin to make a Job, without waiting for it.

        Raises:
            NotStartedError: No cluster is configured, or the attempt wants what no Job can do.
        """
        if not isinstance(spec.where, Kubernetes):
            raise TypeError(f"a Kubernetes executor was given {type(spec.where).__name__}")
        run_id = attempt_id()
        manifest = job_manifest(spec, spec.where, run_id, ourselves().text())
        http = connect(spec.where)
        return KubernetesHandle(Cluster(http, spec.where.namespace), spec.where, manifest, run_id, self.patience)


class KubernetesHandle(Handle):
    """A Job, its pod and its log.

    Args:
        cluster: The API.
        where: Its place.
        manifest: The Job to make.
        attempt: Id of the attempt, by which the Job and its pod are found.
        patience: How long things may take.
    """

    def __init__(
        self, cluster: Cluster, where: Kubernetes, manifest: dict[str, Any], attempt: str, patience: Patience
    ) -> None:
        self.cluster = cluster
        self.where = where
        self.patience = patience
        self.job_name = str(manifest["metadata"]["name"])
        self._manifest = manifest
        self._attempt = attempt
        self._selector = f"{LABEL_ATTEMPT}={attempt}"
        self._clock = StallClock()  # of the thread that asks how it ended
        self._begun = self._clock.now()
        self._pulling_since = self._answered = 0.0
        self._pod: PodView | None = None
        self._gone = self._closing = self._asked_to_end = self._created = False
        self._exit: Exit | None = None
        self._notes: list[str] = []
        self._noted: set[str] = set()
        self._log = PodLog()
        output, self._output_write = pipe()
        self.streams = {"stdout": output}
        self._wake, self._wake_write = os.pipe()
        self._threads: list[threading.Thread] = []
        self._log_thread: threading.Thread | None = None
        self._finishing = threading.Lock()
        self._spawn(self._run)

    @property
    def started(self) -> bool:
        """The container runs or ran."""
        return self._pod is not None and self._pod.started

    def _spawn(self, function: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=function, name=self.job_name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _note(self, text: str) -> None:
        if text not in self._noted and len(self._noted) < 1000:
            self._noted.add(text)
            self._notes.append(text)

    @property
    def _over(self) -> bool:
        return self._closing or self._exit is not None

    # --- the Job and its pod ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        """In a thread: make the Job, follow its pod, and say how it ended."""
        try:
            self._insist(self._create)
            self._created = True
            with contextlib.suppress(ApiFault, Unreachable):
                self._remove_orphans()
            while not self._over:
                self._insist(self._follow)
        except ApiFault as fault:
            self._finish(Exit(infra=f"the cluster refused: {fault}"))
        except Unreachable as error:
            self._finish(Exit(infra=f"the cluster could not be reached: {error}"))

    def _insist(self, step: Callable[[], None]) -> None:
        """Do a step again while the API server is away or busy, but not for ever.

        Raises:
            Unreachable: It was away for too long.
            ApiFault: It refused.
        """
        outage = _Outage()
        while not self._over:
            try:
                step()
            except Unreachable as error:
                self._note(f"connection to the cluster lost: {error}")
                if outage.lasted_s(self._answered) > self.patience.unreachable:
                    raise
            except ApiFault as fault:
                if fault.code not in {429, 500, 502, 503, 504}:
                    raise
                self._note(f"the cluster is busy: {fault}")
                if outage.lasted_s(self._answered) > self.patience.unreachable:
                    raise
            else:
                return
            outage.clock.sleep(self.patience.again)

    def _create(self) -> None:
        """Make the Job. One that is there already is ours where it carries our id: an answer was lost."""
        for turn in range(5):
            try:
                self.cluster.create_job(self._manifest)
            except ApiFault as fault:
                if fault.code != _CONFLICT:
                    raise
                labels = self._job().get("metadata", {}).get("labels", {})
                if labels.get(LABEL_ATTEMPT) == self._attempt:
                    return
                self._note(f"there is another Job named {self.job_name}")
                base = str(self._manifest["metadata"]["name"]).rpartition("-")[0] if turn else self.job_name
                self.job_name = f"{base}-{turn + 2}"
                metadata = {**self._manifest["metadata"], "name": self.job_name}
                self._manifest = {**self._manifest, "metadata": metadata}
            else:
                return
        raise ApiFault(_CONFLICT, "AlreadyExists", f"every name tried for {self.job_name} is taken")

    def _job(self) -> dict[str, Any]:
        """Return our Job; empty where it is gone."""
        try:
            return self.cluster.job(self.job_name)
        except ApiFault as fault:
            if fault.code == 404:
                return {}
            raise

    def _remove_orphans(self) -> None:
        """Delete Jobs of a rocmend on this host that is gone."""
        here = ourselves()
        for job in self.cluster.jobs(f"{MANAGED_BY}=rocmend"):
            metadata = job.get("metadata") or {}
            owner = parse_owner(str((metadata.get("annotations") or {}).get(LABEL_OWNER, "")))
            if owner is not None and owner_is_gone(owner, here) and metadata.get("name"):
                self.cluster.delete_job(str(metadata["name"]))
                self._note(f"deleted the Job {metadata['name']} left by an ended rocmend process")

    def _follow(self) -> None:
        """List the pods, then watch them until the stream ends, is cut, or its version is too old."""
        pods, version = self.cluster.pods(self._selector)
        self._answered = time.monotonic()
        for pod in pods:
            self._see(view_of(pod, CONTAINER))
        if self._pod is not None and not any(self._pod.uid == view_of(pod, CONTAINER).uid for pod in pods):
            self._lost()
        while not self._over:
            if self._pod is None and job_failure(self._job()):
                return self._lost()
            try:
                for kind, pod in self.cluster.watch_pods(self._selector, version, self.patience.watch):
                    self._answered = time.monotonic()
                    version = str((pod.get("metadata") or {}).get("resourceVersion") or version)
                    if kind in {"ADDED", "MODIFIED"}:
                        self._see(view_of(pod, CONTAINER))
                    elif kind == "DELETED":
                        self._see(view_of(pod, CONTAINER))
                        self._lost()
                    if self._over:
                        return None
            except ApiFault as fault:
                if is_gone(fault):
                    return None  # list again
                raise
            except Unreachable as error:
                self._note(f"the watch was cut: {error}")
                time.sleep(self.patience.again)
                self.cluster.pods(self._selector)  # is there anybody? Then the watch goes on from where it was
        return None

    def _see(self, view: PodView) -> None:
        """Take in the state of a pod."""
        if self._pod is not None and view.uid != self._pod.uid:
            return self._note(f"there is a second pod, {view.name}, which is ignored")
        if self._pod is None or view.node != self._pod.node:
            self._note(f"pod {view.name} is on node {view.node}" if view.node else f"pod {view.name} waits for a node")
        self._pod = view
        if view.unschedulable and not view.node:
            self._note(f"no node accepts the pod: {view.unschedulable}")
        if view.waiting in PULLING:
            self._pulling_since = self._pulling_since or time.monotonic()
            self._note(f"{view.waiting}: {view.message}")
        elif view.waiting != "ContainerCreating":
            self._pulling_since = 0.0
        if view.waiting in HOPELESS:
            return self._finish(Exit(infra=f"the container cannot be created: {view.waiting} ({view.message})"))
        if view.node_unknown:
            return self._finish(Exit(infra=f"the node {view.node} of the pod is lost: it no longer responds"))
        if view.started and self._log_thread is None:
            self._log_thread = self._spawn(self._carry_log)
        if view.exit is not None:
            self._ended(view.exit)
        return None

    def _ended(self, end: Exit) -> None:
        """Say how the container ended, unless the Job's deadline ended it."""
        if end.code and not end.infra and not self._asked_to_end:
            failure = self._job_failure(wait=self._pod is not None and self._pod.leaving)
            if failure == "DeadlineExceeded":
                end = Exit(
                    code=end.code, infra="the Job's activeDeadlineSeconds ended it before the attempt's own limits"
                )
        self._finish(end)

    def _job_failure(self, *, wait: bool) -> str:
        """Return why the Job's controller gave up, waiting a little for its word where it must be about to come."""
        clock = StallClock()
        deadline = clock.now() + self.patience.word
        while True:
            with contextlib.suppress(ApiFault, Unreachable):
                job = self._job()
                failure = job_failure(job)
                if failure or not wait or not job:
                    return failure
            if clock.now(math.inf) > deadline or self._over:
                return ""
            clock.sleep(min(0.5, self.patience.again))

    def _lost(self) -> None:
        """The pod is gone, or none was ever made."""
        self._gone = True
        if self._asked_to_end:
            return self._finish(Exit())
        failure = self._job_failure(wait=True)
        if failure == "DeadlineExceeded":
            return self._finish(Exit(infra=_DEADLINE))
        where = f" on node {self._pod.node}" if self._pod is not None and self._pod.node else ""
        because = f" (the Job says {failure})" if failure else ""
        return self._finish(Exit(infra=f"the pod{where} was deleted by someone else, or its node was lost{because}"))

    def _finish(self, end: Exit) -> None:
        """Wait for the rest of the log, then say how it ended; the first word counts."""
        if not self._finishing.acquire(blocking=False):
            return
        if self._log_thread is not None and self._log_thread is not threading.current_thread():
            self._gone = self._gone or bool(end.infra)
            lines = -1
            while self._log_thread.is_alive() and lines != self._log.lines and not self._closing:
                lines = self._log.lines  # as long as there is more of it
                self._log_thread.join(self.patience.word)
        if self._log_thread is None or not self._log_thread.is_alive():
            self._end_output()
        self._exit = end
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b".")

    # --- the log ---------------------------------------------------------------------------------------------------

    def _carry_log(self) -> None:
        """In a thread: carry the log to the pipe until the container has ended and all of it is here."""
        pod = self._pod
        if pod is None:
            return None
        while not self._closing:
            whole = self._pod is not None and self._pod.exit is not None
            try:
                since = self._log.begin()
                for data in self.cluster.log(
                    pod.name, CONTAINER, since=since, follow=not whole, silence_s=self.patience.log
                ):
                    self._put(self._log.feed(data))
                    if self._closing:
                        return None
                if whole:
                    self._put(self._log.end())
                    return None
            except (Unreachable, ApiFault) as error:
                if self._gone or (isinstance(error, ApiFault) and error.code == 404):
                    return self._note(f"the end of the log may be missing: {error}")
                self._note(f"the log was interrupted and is resumed: {error}")
            except OSError:  # nobody reads any more
                return None
            if not (self._pod is not None and self._pod.exit is not None):
                time.sleep(min(0.2, self.patience.again))
            elif whole:
                time.sleep(self.patience.again)
        return None

    def _end_output(self) -> None:
        """Let the pipe's reader see its end."""
        if self._output_write >= 0:
            descriptor, self._output_write = self._output_write, -1
            os.close(descriptor)

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._output_write, view) :]

    # --- the handle ------------------------------------------------------------------------------------------------

    def wake(self) -> int | None:
        """Return a pipe that is written to when it is known how the Job ended."""
        return self._wake

    def exit(self) -> Exit | None:
        """Return how the Job ended, None while it runs or waits within its time."""
        if self._exit is None:
            self._check_start()
        return self._exit

    def _check_start(self) -> None:
        """Give up a pod that did not come to run in time."""
        pod, now = self._pod, self._clock.now(_ASKED_S)
        if pod is not None and pod.started:
            return
        if self._pulling_since and now - self._pulling_since > self.patience.pull and pod is not None:
            self._finish(Exit(infra=f"the image {self.where.image} cannot be pulled: {pod.waiting} ({pod.message})"))
        elif now - self._begun > self.where.start_s:
            if pod is None:
                why = "the cluster created no pod: see `kubectl describe job`"
            elif pod.unschedulable:
                why = f"no node accepts the pod: {pod.unschedulable}"
            else:
                why = f"the pod waits: {pod.waiting or 'no reason given'} {pod.message}".strip()
            self._finish(Exit(infra=f"not started within {self.where.start_s:g} s; {why}"))

    def notes(self) -> tuple[str, ...]:
        """Return what there is to say since the last call."""
        said, self._notes = tuple(self._notes), []
        return said

    def _try(self, step: Callable[[], None]) -> None:
        """Make a request, again where it fails, but not for long."""
        clock = StallClock()
        deadline = clock.now() + self.patience.word
        while True:
            try:
                return step()
            except (ApiFault, Unreachable) as error:
                self._note(f"could not end the Job: {error}")
                if clock.now(math.inf) > deadline:
                    return None
            clock.sleep(min(0.5, self.patience.again))

    def terminate(self) -> None:
        """Delete the Job: the kubelet sends TERM, and KILL when the grace period is over."""
        self._asked_to_end = True
        self._spawn(lambda: self._try(lambda: self.cluster.delete_job(self.job_name)))

    def kill(self) -> None:
        """Delete the pod with no grace period."""
        self._asked_to_end = True
        pod = self._pod
        if pod is not None:
            self._spawn(lambda: self._try(lambda: self.cluster.kill_pod(pod.name)))
        else:
            self.terminate()

    def close(self) -> None:
        """Delete the Job with its pods and let go of the connections."""
        self._closing = True
        self._try(lambda: self.cluster.delete_job(self.job_name))
        os.close(self.streams["stdout"])
        self.cluster.close()
        for thread in self._threads:
            thread.join(self.patience.word / 5)
        os.close(self._wake)
        if not any(thread.is_alive() for thread in self._threads):  # one that waits for an answer may yet write
            os.close(self._wake_write)
            self._end_output()

    def describe(self) -> dict[str, Any]:
        """Return the Job, its pod, node and image."""
        pod = self._pod
        found = {"job": self.job_name, "namespace": self.where.namespace}
        if pod is not None:
            found |= {"pod": pod.name, "node": pod.node, "image_id": pod.image_id}
        return found
