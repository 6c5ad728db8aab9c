"""The few requests to a Kubernetes API server that a Job needs, over lightkube's connection.

Lightkube reads the kubeconfig, brings credentials and makes the HTTP client. The requests are made here, because its
log call cannot begin at a time and its watch hides where a stream ended.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/ (watch, resource versions, 410 Gone)
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from rocmend.core.optional import how_to_install
from rocmend.runner.executor import NotStartedError
from rocmend.runner.spec import Kubernetes

ANSWER_S = 15.0
_GONE = 410


class ApiFault(Exception):  # noqa: N818  it is what the server says, as often an answer as an error
    """The API server refused a request.

    Args:
        code: HTTP status.
        reason: Its word for it, e.g. ``AlreadyExists``.
        message: What it says.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason


class Unreachable(Exception):  # noqa: N818  a state of the connection, not a fault of the request
    """The API server did not answer, or a stream was cut."""


def connect(where: Kubernetes) -> Any:
    """Return an HTTP client for the cluster that a place names.

    Raises:
        NotStartedError: Lightkube is not installed, or no cluster is configured.
    """
    try:
        from lightkube.config.client_adapter import Client, ConnectionParams
        from lightkube.config.kubeconfig import KubeConfig
        from lightkube.core.exceptions import ConfigError
    except ImportError as error:
        raise NotStartedError(
            "kubernetes", "lightkube is not installed.", next_step=how_to_install("lightkube")
        ) from error
    try:
        config = KubeConfig.from_file(where.kubeconfig) if where.kubeconfig else KubeConfig.from_env()
        single = config.get(where.context or None)
        if single is None or single.user is None:
            raise NotStartedError("kubernetes", f"the context {where.context!r} has no user.")
        return Client(single, ConnectionParams())
    except (ConfigError, OSError, KeyError, ValueError, TypeError) as error:
        raise NotStartedError(
            "kubernetes",
            f"no cluster is configured: {error}.",
            next_step="Name a kubeconfig and a context, or set KUBECONFIG.",
        ) from error


class Cluster:
    """A cluster's API for one namespace.

    Args:
        http: HTTP client with the server's address and our credentials.
        namespace: The namespace.
    """

    def __init__(self, http: Any, namespace: str) -> None:
        self._http = http
        self._jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    @contextlib.contextmanager
    def _stream(self, path: str, params: dict[str, str], read_s: float) -> Iterator[Any]:
        """Make a request whose answer is read piece by piece."""
        import httpx2

        limits = httpx2.Timeout(ANSWER_S, read=read_s)
        try:
            with self._http.stream("GET", path, params=params, timeout=limits) as response:
                if response.status_code >= 400:
                    response.read()
                    raise _fault(response)
                yield response
        except (httpx2.HTTPError, RuntimeError) as error:  # RuntimeError: we closed the client meanwhile
            raise Unreachable(f"{type(error).__name__}: {error}") from error

    def _ask(self, method: str, path: str, params: dict[str, str] | None = None, body: Any = None) -> Any:
        import httpx2

        try:
            response = self._http.request(method, path, params=params, json=body, timeout=ANSWER_S)
        except (httpx2.HTTPError, RuntimeError) as error:  # RuntimeError: we closed the client meanwhile
            raise Unreachable(f"{type(error).__name__}: {error}") from error
        if response.status_code >= 400:
            raise _fault(response)
        try:
            return response.json()
        except ValueError as error:
            raise Unreachable(f"{path} did not return JSON") from error

    def create_job(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create a Job; return it as the server keeps it."""
        return _object(self._ask("POST", self._jobs, body=manifest))

    def job(self, name: str) -> dict[str, Any]:
        """Return a Job."""
        return _object(self._ask("GET", f"{self._jobs}/{name}"))

    def jobs(self, selector: str) -> list[dict[str, Any]]:
        """Return the Jobs with these labels."""
        return _items(self._ask("GET", self._jobs, {"labelSelector": selector}))

    def delete_job(self, name: str) -> None:
        """Delete a Job and, in the background, its pods, which get TERM and their grace period."""
        self._delete(f"{self._jobs}/{name}", {"propagationPolicy": "Background"})

    def kill_pod(self, name: str) -> None:
        """Delete a pod with no grace period."""
        self._delete(f"{self._pods}/{name}", {"gracePeriodSeconds": 0})

    def _delete(self, path: str, options: dict[str, Any]) -> None:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        try:
            self._ask("DELETE", path, body=body)
        except ApiFault as fault:
            if fault.code != 404:
                raise

    def pods(self, selector: str) -> tuple[list[dict[str, Any]], str]:
        """Return the pods with these labels, and the version from which to watch."""
        found = self._ask("GET", self._pods, {"labelSelector": selector})
        return _items(found), str(_object(_object(found).get("metadata")).get("resourceVersion", ""))

    def nodes(self, selector: str) -> list[dict[str, Any]]:
        """Return the nodes with these labels."""
        return _items(self._ask("GET", "/api/v1/nodes", {"labelSelector": selector} if selector else None))

    def watch_pods(self, selector: str, version: str, seconds: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield changes of pods (``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK``) until the server ends the stream.

        Raises:
            ApiFault: With code 410 where the version is too old: list again.
            Unreachable: The stream was cut.
        """
        params = {
            "labelSelector": selector,
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        with self._stream(self._pods, params, seconds + ANSWER_S) as response:
            for line in response.iter_lines():
                if not line.strip():
                    continue
                try:
                    event = _object(json.loads(line))
                except (ValueError, RecursionError) as error:  # the stream was cut within a line
                    raise Unreachable("a watch event is cut off") from error
                kind, value = str(event.get("type", "")), _object(event.get("object"))
                if kind == "ERROR":
                    raise ApiFault(
                        int(value.get("code") or 0), str(value.get("reason", "")), str(value.get("message", ""))
                    )
                yield kind, value

    def log(self, pod: str, container: str, *, since: str, follow: bool, silence_s: float) -> Iterator[bytes]:
        """Yield a container's log in pieces, each line with its time.

        Args:
            pod: Name of the pod.
            container: Name of the container.
            since: Time to begin at; empty for the beginning.
            follow: Go on until the container ends.
            silence_s: Seconds without output after which the stream counts as cut.
        """
        params = {"container": container, "timestamps": "true", "follow": "true" if follow else "false"}
        if since:
            params["sinceTime"] = since
        with self._stream(f"{self._pods}/{pod}/log", params, silence_s) as response:
            yield from response.iter_bytes()


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[dict[str, Any]]:
    items = _object(value).get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _fault(response: Any) -> ApiFault:
    """Return the fault that an answer tells of."""
    try:
        status = _object(response.json())
    except ValueError:
        status = {}
    text = str(status.get("message") or response.text[:300])
    return ApiFault(int(response.status_code), str(status.get("reason") or ""), text)


def is_gone(fault: ApiFault) -> bool:
    """Whether a watch has to begin with a new list."""
    return fault.code == _GONE or fault.reason in {"Gone", "Expired"}
