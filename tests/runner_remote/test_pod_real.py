"""The Job's pod template, run for real by ``podman play kube``: the nearest to a cluster that there is here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rocmend.runner.remote.manifest import job_manifest
from rocmend.runner.spec import AttemptSpec, Command, Container, Kubernetes, Limits

pytestmark = pytest.mark.container


def test_the_pod_template_runs(box: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = Kubernetes("localhost/rocmend-test:latest", image_pull_policy="Never")
    script = 'echo "$WORDS"; cat /proc/mounts | head -n 200; cat /proc/self/status; exit 7'
    spec = AttemptSpec(
        "pod", Command(("sh", "-c", script)), where=where, env={"WORDS": "as it is"}, limits=Limits(grace_s=1)
    )
    template = job_manifest(spec, where, "0123456789ab")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = {**template["metadata"], "name": "rocmend-pod"}
    pod["spec"]["hostNetwork"] = True  # the test's kernel has no bridge; a template of ours leaves it to the cluster
    manifest = tmp_path / "pod.json"  # JSON is YAML
    manifest.write_text(json.dumps(pod))
    podman = ["podman", *box.global_args]
    settings = tmp_path / "containers.conf"  # play kube has no --ulimit
    settings.write_text('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n')
    monkeypatch.setenv("CONTAINERS_CONF", str(settings))
    subprocess.run([*podman, "play", "kube", str(manifest)], check=True, capture_output=True, timeout=120)
    try:
        done = subprocess.run(
            [*podman, "wait", "rocmend-pod-attempt"], check=True, capture_output=True, text=True, timeout=60
        )
        logs = subprocess.run([*podman, "logs", "rocmend-pod-attempt"], check=True, capture_output=True, text=True)
    finally:
        subprocess.run([*podman, "play", "kube", "--down", str(manifest)], check=False, capture_output=True)
    assert done.stdout.strip() == "7"
    assert logs.stdout.startswith("as it is\n")
    assert " /dev/shm " in logs.stdout
    assert "CapEff:\t0000000000000000\n" in logs.stdout
    assert "NoNewPrivs:\t1\n" in logs.stdout
    assert "Seccomp:\t2\n" in logs.stdout
    assert "serviceaccount" not in logs.stdout
