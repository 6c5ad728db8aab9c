"""The Job's manifest: valid, and meaning what was asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from rocmend.core.errors import UsageError
from rocmend.runner.executor import NotStartedError
from rocmend.runner.remote.confine import Effect, rules_of
from rocmend.runner.remote.manifest import job_manifest, literal
from rocmend.runner.remote.talos import talos_patch
from rocmend.runner.spec import AttemptSpec, Command, Kubernetes, Limits, PythonCall

validate = pytest.importorskip("kubernetes_validate", reason="the extra test is not installed")

VERSIONS = ("1.27", "1.31", "1.34", "1.37")

PLAIN = AttemptSpec("Load it!", Command(("llama-cli", "-m", "/models/tiny.gguf")), where=Kubernetes("image"))
FULL = AttemptSpec(
    "a name that is so long that it cannot be the whole name of a Job, which has 63 characters",
    Command(("sh", "-c", "echo $(HOME) $$"), cwd="/work"),
    where=Kubernetes(
        "registry/rocm@sha256:" + "0" * 64,
        namespace="lab",
        resources={"amd.com/gpu": "1", "cpu": "4", "memory": "16Gi"},
        node_selector={"amd.com/gpu.family": "NV", "amd.com/gpu.vram": "16G"},
        tolerations=({"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"},),
        active_deadline_s=900,
        service_account="runner",
        image_pull_policy="IfNotPresent",
        image_pull_secrets=("registry",),
        labels={"team": "lab"},
        volumes=({"name": "models", "hostPath": {"path": "/srv/models", "type": "Directory"}},),
        volume_mounts=({"name": "models", "mountPath": "/models", "readOnly": True},),
    ),
    env={"HSA_ENABLE_SDMA": "0", "PRICE": "$(5)"},
    limits=Limits(total_s=600, grace_s=7.5, memory_bytes=1 << 30),
)
ASKING = AttemptSpec(
    "asking",
    Command(("prog",)),
    where=Kubernetes(
        "image",
        resources={"amd.com/gpu": "1"},
        requests={"cpu": "500m"},
        service_account="runner",
        service_account_token=True,
        run_as_user=1000,
        supplemental_groups=(44, 109),
        capabilities=("SYS_PTRACE",),
        shm="1Gi",
        secret_env={"HF_TOKEN": "hugging-face/token"},
    ),
)
CALL = AttemptSpec("call", PythonCall("m:f", {"a": "$x"}), where=Kubernetes("image"))


def manifest(spec: AttemptSpec) -> dict[str, Any]:
    assert isinstance(spec.where, Kubernetes)
    return job_manifest(spec, spec.where, "0123456789ab", "host/boot/1/2/3")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("spec", [PLAIN, FULL, ASKING, CALL], ids=["plain", "full", "asking", "call"])
def test_manifests_pass_the_strict_schema(spec: AttemptSpec, version: str) -> None:
    validate.validate(manifest(spec), version, strict=True)


def test_the_schema_is_one_that_can_refuse() -> None:
    wrong = manifest(PLAIN)
    wrong["spec"]["template"]["spec"]["restartPolice"] = "Never"
    with pytest.raises(validate.ValidationError):
        validate.validate(wrong, VERSIONS[-1], strict=True)


def test_a_job_is_tried_once_and_ends() -> None:
    job = manifest(FULL)["spec"]
    assert (job["backoffLimit"], job["activeDeadlineSeconds"], job["ttlSecondsAfterFinished"]) == (0, 900, 3600)
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["template"]["spec"]["terminationGracePeriodSeconds"] == 8


def test_the_deadline_leaves_room_for_the_start() -> None:
    limits = Limits(total_s=100, grace_s=5)
    where = Kubernetes("image", start_s=50)
    job = manifest(msgspec.structs.replace(PLAIN, limits=limits, where=where))
    assert job["spec"]["activeDeadlineSeconds"] == 215


def test_names_and_labels_are_allowed_ones() -> None:
    job = manifest(FULL)
    name = job["metadata"]["name"]
    assert len(name) + len("-2-abcde") <= 63
    assert name.endswith("-0123456789ab")
    for labels in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
        assert labels == {
            "team": "lab",
            "app.kubernetes.io/managed-by": "rocmend",
            "rocmend.attempt": "0123456789ab",
        }
    assert job["metadata"]["annotations"]["rocmend.owner"] == "host/boot/1/2/3"


def test_the_gpu_the_node_and_the_volumes() -> None:
    pod = manifest(FULL)["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["resources"]["limits"] == {"amd.com/gpu": "1", "cpu": "4", "memory": "16Gi"}
    assert pod["nodeSelector"] == {"amd.com/gpu.family": "NV", "amd.com/gpu.vram": "16G"}
    assert [volume["name"] for volume in pod["volumes"]] == ["models", "rocmend-shm"]
    assert container["workingDir"] == "/work"


def test_memory_is_the_attempt_s_limit_where_no_other_is_given() -> None:
    spec = msgspec.structs.replace(PLAIN, limits=Limits(memory_bytes=12345))
    container = manifest(spec)["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"] == "12345"


def test_a_pod_is_denied_what_computing_does_not_need() -> None:
    pod = manifest(PLAIN)["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    container = pod["containers"][0]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert container["resources"] == {
        "limits": {"cpu": "8", "memory": "32Gi"},
        "requests": {"cpu": "1", "memory": "4Gi"},
    }
    assert pod["volumes"] == [{"name": "rocmend-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]


def test_a_pod_is_given_what_is_asked_for_and_the_plan_shows_it() -> None:
    pod = manifest(ASKING)["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is True
    security = {"runAsUser": 1000, "runAsNonRoot": True, "supplementalGroups": [44, 109]}
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}, **security}
    container = pod["containers"][0]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE"]}
    secret = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face", "key": "token"}}}
    assert container["env"] == [secret]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "4Gi", "amd.com/gpu": "1"}
    shown = {rule.what for rule in rules_of(ASKING.where) if rule.effect in {Effect.ASKED, Effect.GIVEN}}
    assert shown == {
        *("the cluster's API", "device", "runAsUser", "supplementalGroups", "capabilities.add", "secretKeyRef"),
        "serviceAccountName",
    }


def test_a_secret_s_place_that_is_none_is_refused() -> None:
    where = Kubernetes("image", secret_env={"HF_TOKEN": "hf_value"})
    with pytest.raises(NotStartedError, match="SECRET/KEY"):
        manifest(msgspec.structs.replace(PLAIN, where=where))


def test_what_the_kubelet_would_expand_is_escaped() -> None:
    container = manifest(FULL)["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["sh", "-c", "echo $$(HOME) $$$$"]
    assert container["env"][1] == {"name": "PRICE", "value": "$$(5)"}
    assert literal("plain $WORDS $") == "plain $WORDS $"
    assert literal("$$(A) $$$b") == "$$$$(A) $$$$$$b"


def test_a_call_carries_its_request_as_an_argument() -> None:
    command = manifest(CALL)["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[:3] == ["python3", "-u", "-c"]
    assert '"target":"m:f"' in command[-1]
    assert '"$x"' in command[-1]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (msgspec.structs.replace(PLAIN, env={"LANG": None}), "cannot remove LANG"),
        (msgspec.structs.replace(PLAIN, command=Command(("cat",), stdin="x")), "no standard input"),
        (msgspec.structs.replace(PLAIN, command=Command(())), "command is empty"),
        (msgspec.structs.replace(PLAIN, command=Command(("a\0b",))), "NUL"),
    ],
)
def test_what_no_job_can_do_is_refused(spec: AttemptSpec, words: str) -> None:
    with pytest.raises(NotStartedError, match=words):
        manifest(spec)


def test_a_talos_patch_is_text_with_both_ways() -> None:
    text = talos_patch(["amdgpu.cwsr_enable=0", "-console"])
    assert yaml.safe_load(text) == {"machine": {"install": {"extraKernelArgs": ["amdgpu.cwsr_enable=0", "-console"]}}}
    commented = "\n".join(line[2:] for line in text.splitlines() if line.startswith("# ")).partition("customization")
    schematic = yaml.safe_load("customization" + commented[2])
    assert schematic == {"customization": {"extraKernelArgs": ["amdgpu.cwsr_enable=0", "-console"]}}


@pytest.mark.parametrize("params", [[], [""], ["a b"], ["a\nb: c"], ['a"b'], ["a\x00"]])
def test_a_talos_patch_refuses_what_is_no_parameter(params: list[str]) -> None:
    with pytest.raises(UsageError):
        talos_patch(params)
