"""An HTTP server that speaks as much of the Kubernetes API as a Job needs, and can be told to misbehave.

It keeps a history of changes for watches, forgets it (410), cuts streams in the middle, refuses and repeats.
"""

from __future__ import annotations

import contextlib
import copy
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]


def status(code: int, reason: str, message: str = "") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


class FakeCluster:
    """The state of the cluster, and what is to go wrong.

    Attributes:
        faults: For each kind of request what its next answers are: a code, or ``drop``.
        watch_cuts: After how many events each next watch is cut in the middle of a line; None lets it be.
        log_cuts: After how many bytes each next log is cut; None lets it be.
        gone_in_stream: A version that is too old is told inside the stream, not by the status.
        requests: What was asked: kind and path.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.version = 100
        self.floor = 0
        self.nodes: list[Json] = []
        self.jobs: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.history: list[tuple[int, str, Json]] = []
        self.log: list[tuple[str, bytes]] = []
        self.log_done = False
        self.faults: dict[str, list[int | str]] = {}
        self.watch_cuts: list[int | None] = []
        self.log_cuts: list[int | None] = []
        self.gone_in_stream = True
        self.requests: list[tuple[str, str]] = []
        self.deleted: list[tuple[str, str, Json]] = []
        self.on_delete: Callable[[FakeCluster, str, str], None] | None = None
        handler = type("Bound", (Handler,), {"cluster": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    # what tests do to it

    def await_job(self, seconds: float = 10) -> Json:
        with self.changed:
            assert self.changed.wait_for(lambda: self.jobs, seconds), "no Job was made"
            return next(iter(self.jobs.values()))

    def await_request(self, kind: str, count: int, seconds: float = 10) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: sum(k == kind for k, _ in self.requests) >= count, seconds), kind

    def put_pod(self, job: Json, *, name: str = "pod-1", **pod_status: Any) -> None:
        """Make a pod of a Job, or change its status."""
        with self.changed:
            kind = "MODIFIED" if name in self.pods else "ADDED"
            spec = copy.deepcopy(job["spec"]["template"]["spec"])
            if pod_status.pop("scheduled", True):
                spec["nodeName"] = "node-a"
            metadata = {"name": name, "uid": f"uid-{name}", "labels": job["spec"]["template"]["metadata"]["labels"]}
            if pod_status.pop("leaving", False):
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.pods[name] = {"metadata": metadata, "spec": spec, "status": pod_status}
            self._changed(kind, self.pods[name])

    def drop_pod(self, name: str = "pod-1") -> None:
        with self.changed:
            self._changed("DELETED", self.pods.pop(name))

    def _changed(self, kind: str, pod: Json) -> None:
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, kind, copy.deepcopy(pod)))
        self.changed.notify_all()

    def forget(self) -> None:
        """Forget the history: watches from before are answered by 410."""
        with self.changed:
            self.version += 5
            self.floor = self.version
            self.history.clear()
            self.changed.notify_all()

    def fail_job(self, reason: str) -> None:
        with self.changed:
            for job in self.jobs.values():
                job["status"] = {"conditions": [{"type": "Failed", "status": "True", "reason": reason}]}
            self.changed.notify_all()

    def say(self, stamp: str, text: bytes, *, done: bool = False) -> None:
        with self.changed:
            self.log.append((stamp, text))
            self.log_done = self.log_done or done
            self.changed.notify_all()

    def end_log(self) -> None:
        with self.changed:
            self.log_done = True
            self.changed.notify_all()


def running(**more: Any) -> Json:
    return {"phase": "Running", "containerStatuses": [{"name": "attempt", "state": {"running": {}}, **more}]}


def ended(code: int, reason: str = "", phase: str = "", **more: Any) -> Json:
    reason = reason or ("Completed" if code == 0 else "Error")
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return {
        "phase": phase or ("Succeeded" if code == 0 else "Failed"),
        "containerStatuses": [{"name": "attempt", "state": state, "imageID": "registry/image@sha256:abc"}],
        **more,
    }


def waiting(reason: str, message: str = "") -> Json:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "attempt", "state": state}]}


class Handler(BaseHTTPRequestHandler):
    """Answers requests."""

    cluster: FakeCluster
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        return

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def answer(self, code: int, value: Json) -> None:
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def misbehave(self, kind: str) -> bool:
        """Note the request; answer it wrongly where that is its turn."""
        cluster = self.cluster
        with cluster.changed:
            cluster.requests.append((kind, self.path))
            cluster.changed.notify_all()
            queue = cluster.faults.get(kind) or []
            fault = queue.pop(0) if queue else None
        if fault is None:
            return False
        if fault == "drop":
            self.close_connection = True
            self.connection.close()
        else:
            self.answer(int(fault), status(int(fault), "Injected", "told to"))
        return True

    def read_body(self) -> Json:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        value: Json = json.loads(data) if data else {}
        return value

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def cut(self) -> None:
        """End the connection with no end of the stream."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(2)

    def do_POST(self) -> None:
        job = self.read_body()
        cluster, name = self.cluster, job["metadata"]["name"]
        if cluster.faults.get("create", [])[:1] == ["lose-answer"]:
            cluster.faults["create"].pop(0)
            with cluster.changed:
                cluster.jobs[name] = job
                cluster.changed.notify_all()
            return self.cut()
        if self.misbehave("create"):
            return None
        with cluster.changed:
            taken = name in cluster.jobs
            if not taken:
                cluster.jobs[name] = job
                cluster.changed.notify_all()
        return self.answer(409, status(409, "AlreadyExists", f"{name} exists")) if taken else self.answer(201, job)

    def do_DELETE(self) -> None:
        options = self.read_body()
        if self.misbehave("delete"):
            return None
        kind, name = self.path.split("/")[-2:]
        cluster = self.cluster
        with cluster.changed:
            known = cluster.jobs if kind == "jobs" else cluster.pods
            found = known.get(name)
            cluster.deleted.append((kind, name, options))
            if kind == "jobs":
                cluster.jobs.pop(name, None)
            cluster.changed.notify_all()
        if found is None:
            return self.answer(404, status(404, "NotFound"))
        if cluster.on_delete:
            cluster.on_delete(cluster, kind, name)
        return self.answer(200, {"kind": "Status", "status": "Success"})

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        cluster = self.cluster
        if parts.path.endswith("/log"):
            return self.send_log(query)
        if parts.path.endswith("/pods"):
            return self.watch(query) if query.get("watch") == "true" else self.list_pods(query)
        for kind, items in (("nodes", cluster.nodes), ("jobs", list(cluster.jobs.values()))):
            if parts.path.endswith(f"/{kind}"):
                return None if self.misbehave(kind) else self.answer(200, {"items": items})
        if self.misbehave("job"):
            return None
        job = cluster.jobs.get(parts.path.rpartition("/")[2])
        return self.answer(200, job) if job else self.answer(404, status(404, "NotFound"))

    def chosen(self, pod: Json, query: dict[str, str]) -> bool:
        key, _, value = query.get("labelSelector", "").partition("=")
        labels: dict[str, str] = pod["metadata"]["labels"]
        return labels.get(key) == value

    def list_pods(self, query: dict[str, str]) -> None:
        if self.misbehave("list"):
            return
        with self.cluster.changed:
            items = [copy.deepcopy(pod) for pod in self.cluster.pods.values() if self.chosen(pod, query)]
            version = str(self.cluster.version)
        self.answer(200, {"metadata": {"resourceVersion": version}, "items": items})

    def watch(self, query: dict[str, str]) -> None:
        if self.misbehave("watch"):
            return None
        cluster, seen = self.cluster, int(query["resourceVersion"])
        gone = status(410, "Expired", "too old resource version")
        if seen < cluster.floor and not cluster.gone_in_stream:
            return self.answer(410, gone)
        cut_after = cluster.watch_cuts.pop(0) if cluster.watch_cuts else None
        deadline = time.monotonic() + int(query["timeoutSeconds"])
        self.begin_stream()
        sent = 0
        while time.monotonic() < deadline:
            with cluster.changed:
                if cluster.version <= seen and cut_after != sent:
                    cluster.changed.wait(0.1)
                events = [event for event in cluster.history if event[0] > seen]
                too_old = seen < cluster.floor
            if too_old:
                self.chunk(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
                break
            for version, kind, pod in events:
                line = json.dumps({"type": kind, "object": pod}).encode() + b"\n"
                if cut_after is not None and sent >= cut_after:
                    self.chunk(line[: len(line) // 2])
                    return self.cut()
                if self.chosen(pod, query):
                    self.chunk(line)
                    sent += 1
                seen = version
            if cut_after is not None and sent >= cut_after:
                return self.cut()
        self.wfile.write(b"0\r\n\r\n")
        return None

    def send_log(self, query: dict[str, str]) -> None:
        if self.misbehave("log"):
            return None
        cluster = self.cluster
        cut_after = cluster.log_cuts.pop(0) if cluster.log_cuts else None
        follow = query.get("follow") == "true"
        since = query.get("sinceTime", "").rstrip("Z")
        self.begin_stream()
        at = sent = 0
        while True:
            with cluster.changed:
                if len(cluster.log) <= at and not cluster.log_done:
                    cluster.changed.wait(0.1)
                lines, done = cluster.log[at:], cluster.log_done
            at += len(lines)
            data = b"".join(f"{stamp} ".encode() + text for stamp, text in lines if stamp[:19] >= since)
            if cut_after is not None and sent + len(data) >= cut_after:
                if cut_after > sent:
                    self.chunk(data[: cut_after - sent])
                return self.cut()
            if data:
                self.chunk(data)
                sent += len(data)
            if not follow or (done and at == len(cluster.log)):
                break
        self.wfile.write(b"0\r\n\r\n")
        return None
