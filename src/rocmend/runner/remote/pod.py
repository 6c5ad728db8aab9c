"""What a pod's and a Job's status mean for the attempt that they run.

Sources: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/,
https://kubernetes.io/docs/concepts/workloads/pods/disruptions/ (DisruptionTarget),
https://kubernetes.io/docs/concepts/containers/images/ (ImagePullBackOff)
"""

from __future__ import annotations

from typing import Any

import msgspec

from rocmend.core.visible import one_line
from rocmend.runner.executor import Exit

HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"})
"""Reasons for waiting that time does not heal."""

PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"})
"""Reasons for waiting that a registry may heal."""

_MAX_TEXT = 1000
_NEVER_RAN = frozenset({"ContainerCannotRun", "StartError", "ContainerStatusUnknown", "CreateContainerError"})
_TAKEN = frozenset({"Evicted", "NodeLost", "Preempting", "Shutdown", "Terminated", "NodeShutdown", "NodeAffinity"})


class PodView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod as the attempt sees it.

    Attributes:
        name: Its name.
        uid: Its id, which no other pod of that name has.
        node: Its node; empty where it has none yet.
        image_id: The image that its container runs, with digest.
        started: Its container runs or ran: it has a log.
        waiting: Why its container waits, e.g. ``ImagePullBackOff``.
        unschedulable: Why no node takes it.
        message: What the cluster says of it.
        exit: How its container ended.
        leaving: It is being deleted.
        node_unknown: Its node says nothing any more.
    """

    name: str
    uid: str
    node: str = ""
    image_id: str = ""
    started: bool = False
    waiting: str = ""
    unschedulable: str = ""
    message: str = ""
    exit: Exit | None = None
    leaving: bool = False
    node_unknown: bool = False


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return what the cluster says, which may be what a program in the pod wrote: short, and nothing for a terminal."""
    return one_line(str(value or "")[:_MAX_TEXT])[:_MAX_TEXT]


def _condition(status: dict[str, Any], kind: str, value: str = "True") -> dict[str, Any]:
    """Return a condition where it holds, else an empty one."""
    for condition in _list(status.get("conditions")):
        if condition.get("type") == kind and condition.get("status") == value:
            return condition
    return {}


def view_of(pod: dict[str, Any], container: str) -> PodView:
    """Return what a pod's object tells.

    Args:
        pod: The object as the API gives it.
        container: Name of the container that runs the attempt.
    """
    metadata, status = _dict(pod.get("metadata")), _dict(pod.get("status"))
    entries = _list(status.get("containerStatuses"))
    entry = next((item for item in entries if item.get("name") == container), entries[0] if entries else {})
    state = _dict(entry.get("state"))
    waiting, ended = _dict(state.get("waiting")), _dict(state.get("terminated"))
    unscheduled = _condition(status, "PodScheduled", "False")
    return PodView(
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        node=str(_dict(pod.get("spec")).get("nodeName") or ""),
        image_id=str(entry.get("imageID") or ""),
        started="running" in state or bool(ended),
        waiting=str(waiting.get("reason") or ""),
        unschedulable=_text(unscheduled.get("message") or unscheduled.get("reason")),
        message=_text(waiting.get("message") or status.get("message")),
        exit=_exit(status, ended),
        leaving=bool(metadata.get("deletionTimestamp")),
        node_unknown=status.get("phase") == "Unknown" or status.get("reason") == "NodeLost",
    )


def _exit(status: dict[str, Any], ended: dict[str, Any]) -> Exit | None:
    """Return how the container ended; None where it has not."""
    disrupted = _condition(status, "DisruptionTarget")
    reason = str(status.get("reason") or "")
    over = bool(ended) or status.get("phase") in {"Failed", "Succeeded"}
    if not over:
        return None
    if status.get("phase") != "Succeeded" and (reason in _TAKEN or disrupted):
        said = _text(status.get("message") or disrupted.get("message") or disrupted.get("reason"))
        return Exit(infra=f"the pod was evicted from its node: {reason or disrupted.get('reason')} ({said})")
    if not ended:
        return Exit(
            infra=f"the pod ended without its container's status: {_text(reason or status.get('message') or 'unknown')}"
        )
    why = str(ended.get("reason") or "")
    code, signal = _number(ended.get("exitCode")), _number(ended.get("signal"))
    if why in _NEVER_RAN:
        return Exit(
            code=code, infra=f"the container did not run: {why} ({_text(ended.get('message')) or 'no message'})"
        )
    return Exit(code=code, signal=signal or None, oom_killed=why == "OOMKilled")


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def job_failure(job: dict[str, Any]) -> str:
    """Return why a Job's controller gave it up: ``DeadlineExceeded`` …; empty where it did not."""
    status = _dict(job.get("status"))
    failed = _condition(status, "Failed") or _condition(status, "FailureTarget")
    return str(failed.get("reason") or "Failed") if failed else ""
