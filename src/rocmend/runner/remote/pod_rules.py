"""What a Job's pod is denied and given back, as it stands in the manifest.

It meets the restricted Pod Security Standard but for ``runAsNonRoot``: most ROCm images run as root, and the kubelet
refuses to start those as anybody else. ``run_as_user`` asks for it.

Sources: https://kubernetes.io/docs/concepts/security/pod-security-standards/,
https://kubernetes.io/docs/tasks/configure-pod-container/security-context/,
https://github.com/ROCm/k8s-device-plugin (devices and their owners come with ``amd.com/gpu``; issue 39: the group)
"""

from __future__ import annotations

import json
import re
from typing import Any

from rocmend.runner.executor import NotStartedError
from rocmend.runner.remote.confine import Effect, Rule
from rocmend.runner.spec import Kubernetes

CPU, MEMORY = "8", "32Gi"
CPU_REQUEST, MEMORY_REQUEST = "1", "4Gi"
GPU = "amd.com/gpu"


def pod_fields(where: Kubernetes) -> dict[str, Any]:
    """Return what the pod is denied and given as a whole."""
    security: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if where.run_as_user:
        security |= {"runAsUser": where.run_as_user, "runAsNonRoot": True}
    if where.supplemental_groups:
        security["supplementalGroups"] = list(where.supplemental_groups)
    return {
        "automountServiceAccountToken": where.service_account_token,
        "enableServiceLinks": False,
        "securityContext": security,
    }


def container_security(where: Kubernetes) -> dict[str, Any]:
    """Return the container's security context."""
    capabilities: dict[str, Any] = {"drop": ["ALL"]}
    if where.capabilities:
        capabilities["add"] = list(where.capabilities)
    return {"allowPrivilegeEscalation": False, "capabilities": capabilities}


def resources_of(where: Kubernetes, memory_bytes: int = 0) -> dict[str, dict[str, str]]:
    """Return requests and limits. What is asked for is both; a default limit reserves less than it allows.

    Args:
        where: The place.
        memory_bytes: The attempt's own memory limit; 0 for none.
    """
    given = dict(where.resources)
    if memory_bytes:
        given.setdefault("memory", str(memory_bytes))
    return {
        "limits": {"cpu": CPU, "memory": MEMORY, **given},
        "requests": {"cpu": CPU_REQUEST, "memory": MEMORY_REQUEST, **given, **where.requests},
    }


def shm_volume(where: Kubernetes) -> dict[str, Any]:
    """Return the volume for ``/dev/shm``."""
    return {"name": "rocmend-shm", "emptyDir": {"medium": "Memory", "sizeLimit": where.shm}}


def secret_variables(where: Kubernetes) -> list[dict[str, Any]]:
    """Return the variables that come from the cluster's Secrets.

    Raises:
        NotStartedError: One is not named as ``SECRET/KEY``.
    """
    found = []
    for name, source in where.secret_env.items():
        secret, slash, key = source.partition("/")
        if not slash or not re.fullmatch(r"[a-z0-9.-]+", secret) or not re.fullmatch(r"[A-Za-z0-9._-]+", key):
            raise NotStartedError(
                "kubernetes", f"expected SECRET/KEY for the variable {name} in secret_env, got {source!r}."
            )
        found.append({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
    return found


def pod_rules(where: Kubernetes) -> tuple[Rule, ...]:
    """Return the rules for a Job's pod.

    Raises:
        NotStartedError: A setting is not possible.
    """
    pod, security, resources = pod_fields(where), container_security(where), resources_of(where)
    context = pod["securityContext"]
    shm = {"sizeLimit": where.shm}
    secret_variables(where)
    rules = [
        _rule(Effect.DENIED, "capabilities", "computing needs none", {"drop": security["capabilities"]["drop"]}),
        _rule(
            Effect.DENIED,
            "new privileges",
            "setuid programs gain no privileges",
            {"allowPrivilegeEscalation": False},
        ),
        _rule(
            Effect.DENIED,
            "system calls",
            "the runtime's default profile; a GPU's ioctls pass it",
            {"seccompProfile": context["seccompProfile"]},
        ),
        _rule(
            Effect.DENIED,
            "service links",
            "variables of other services would reveal what else runs there",
            {"enableServiceLinks": False},
        ),
        _rule(Effect.LIMITED, "processors and memory", "a pod without limits can starve its node", resources),
        _rule(Effect.LIMITED, "shared memory", "data loaders need more than 64 MiB; it is the pod's memory", shm),
    ]
    token = {"automountServiceAccountToken": where.service_account_token}
    if where.service_account_token:
        rules.append(_rule(Effect.ASKED, "the cluster's API", "requested by the experiment", token))
    else:
        rules.append(_rule(Effect.DENIED, "the cluster's API", "the run does not need the Kubernetes API", token))
    if GPU in resources["limits"]:
        reason = (
            "the plugin provides /dev/kfd and render nodes; they belong to root, other users need supplemental_groups"
        )
        rules.append(_rule(Effect.GIVEN, "device", reason, {GPU: resources["limits"][GPU]}))
    asked: dict[str, tuple[Any, str]] = {
        "runAsUser": (where.run_as_user, "not root; the kubelet rejects root images"),
        "supplementalGroups": (where.supplemental_groups, "own the GPU's nodes on the node (render, video)"),
        "capabilities.add": (where.capabilities, "requested by the experiment"),
        "serviceAccountName": (where.service_account, "requested by the experiment"),
        "volumes": (where.volumes, "requested by the experiment"),
        "secretKeyRef": (
            where.secret_env and secret_variables(where) and where.secret_env,
            "values stay in the cluster",
        ),
    }
    rules += [_rule(Effect.ASKED, name, reason, {name: value}) for name, (value, reason) in asked.items() if value]
    return tuple(rules)


def _rule(effect: Effect, what: str, reason: str, fields: dict[str, Any]) -> Rule:
    return Rule(effect, what, reason, setting=json.dumps(fields, separators=(", ", ": "), ensure_ascii=False))
