"""The manifest of a Kubernetes Job that runs one attempt.

Sources: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/,
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/,
https://instinct.docs.amd.com/projects/gpu-operator/en/latest/ (``amd.com/gpu`` and the node labeller's labels)
"""

from __future__ import annotations

import math
import re
from typing import Any

from rocmend.runner.executor import NotStartedError
from rocmend.runner.remote.owner import LABEL_ATTEMPT, LABEL_OWNER
from rocmend.runner.remote.pod_rules import container_security, pod_fields, resources_of, secret_variables, shm_volume
from rocmend.runner.remote.program import program_of, slug
from rocmend.runner.spec import AttemptSpec, Kubernetes, PythonCall

CONTAINER = "attempt"
MANAGED_BY = "app.kubernetes.io/managed-by"
TTL_S = 3600
"""Seconds after its end that the cluster keeps a Job that we did not delete, because we were killed."""

_ROOM_S = 60


def job_manifest(spec: AttemptSpec, where: Kubernetes, attempt: str, owner: str = "") -> dict[str, Any]:
    """Return the Job that runs an attempt once, on one pod, and is never repeated by the cluster.

    Args:
        spec: The attempt.
        where: Its place.
        attempt: Its id, in the Job's name and labels.
        owner: Who started it, as an annotation.

    Raises:
        NotStartedError: The attempt wants what no Job can do.
    """
    labels = {**where.labels, MANAGED_BY: "rocmend", LABEL_ATTEMPT: attempt}
    deadline = where.active_deadline_s or math.ceil(spec.limits.total_s + where.start_s + spec.limits.grace_s + _ROOM_S)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"rocmend-{slug(spec.name)}-{attempt}",
            "namespace": where.namespace,
            "labels": labels,
            "annotations": {"rocmend.name": spec.name, **({LABEL_OWNER: owner} if owner else {})},
        },
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": deadline,
            "ttlSecondsAfterFinished": TTL_S,
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(spec, where)},
        },
    }


def pod_spec(spec: AttemptSpec, where: Kubernetes) -> dict[str, Any]:
    """Return the pod's specification."""
    volumes = [dict(volume) for volume in where.volumes]
    mounts = [dict(mount) for mount in where.volume_mounts]
    if not any(mount.get("mountPath") == "/dev/shm" for mount in mounts):  # noqa: S108  a container's own
        volumes.append(shm_volume(where))
        mounts.append({"name": "rocmend-shm", "mountPath": "/dev/shm"})  # noqa: S108  the default of 64 MiB is too small
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": max(1, math.ceil(spec.limits.grace_s)),
        **pod_fields(where),
        "containers": [_container(spec, where, mounts)],
        "volumes": volumes,
    }
    optional: dict[str, Any] = {
        "nodeSelector": dict(where.node_selector),
        "tolerations": [dict(toleration) for toleration in where.tolerations],
        "serviceAccountName": where.service_account,
        "imagePullSecrets": [{"name": name} for name in where.image_pull_secrets],
    }
    return {**pod, **{key: value for key, value in optional.items() if value}}


def _container(spec: AttemptSpec, where: Kubernetes, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    argv = _argv(spec)
    taken = [name for name, value in spec.env.items() if value is None]
    if taken:
        raise NotStartedError(
            "kubernetes",
            f"a Job cannot remove {', '.join(taken)} from the image.",
            next_step="Set it to an empty value, or unset it in the command with env -u.",
        )
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": where.image,
        "command": [literal(part) for part in argv],
        "env": [
            *({"name": name, "value": literal(value or "")} for name, value in spec.env.items()),
            *secret_variables(where),
        ],
        "resources": resources_of(where, spec.limits.memory_bytes),
        "volumeMounts": mounts,
        "securityContext": container_security(where),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if spec.command.cwd:
        container["workingDir"] = spec.command.cwd
    if where.image_pull_policy:
        container["imagePullPolicy"] = where.image_pull_policy
    return container


def _argv(spec: AttemptSpec) -> tuple[str, ...]:
    """Return the command line; what a call is to do stands in it, because a Job has no standard input."""
    argv, stdin = program_of(spec)
    if isinstance(spec.command, PythonCall):
        return (*argv[:-1], stdin.decode())
    if stdin:
        raise NotStartedError(
            "kubernetes", "a Job has no standard input.", next_step="Mount a file from a ConfigMap, or pass arguments."
        )
    return argv


def literal(text: str) -> str:
    """Return a text so written that the kubelet, which expands ``$(NAME)`` and ``$$``, gives it on as it is."""
    return re.sub(r"\$\$+|\$(?=\()", lambda found: found[0] * 2, text)
