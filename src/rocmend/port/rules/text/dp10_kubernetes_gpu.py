"""NVIDIA GPUs in a Kubernetes manifest.

## What it does

Finds `nvidia.com/gpu` as a resource, a toleration or a label, and NVIDIA's runtime class.

## Why it matters

No node with AMD GPUs offers the resource: the pod stays pending.

## Use instead

`amd.com/gpu`, which AMD's device plugin or GPU operator offers. Labels for node selection are `amd.com/gpu.…` as AMD's
node labeller writes them; runtime classes are not needed.

## Fix safety

Nothing is rewritten: a second manifest next to the first would be applied too. Keep one for each kind of node, or a
template with the resource's name as a value.

## References

- <https://instinct.docs.amd.com/projects/k8s-device-plugin/en/latest/>
- <https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "DP10",
    "NVIDIA GPUs in a Kubernetes manifest",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.NOTE,
    triggers=(b"nvidia.com/", b"runtimeClassName"),
    paths=paths(Kind.YAML),
    sources=("https://instinct.docs.amd.com/projects/k8s-device-plugin/en/latest/",),
    valid=("resources:\n  limits:\n    amd.com/gpu: 1\n    # nvidia.com/gpu: 1\n",),
    invalid=(
        Case("resources:\n  limits:\n    nvidia.com/gpu: 1\n", None, "pod.yaml"),
        Case("tolerations:\n- key: nvidia.com/gpu\n  operator: Exists\n", None, "deploy/pod.yaml"),
        Case("spec:\n  runtimeClassName: nvidia\n", None, "pod.yaml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what names NVIDIA's resource, labels and runtime class."""
    for entry in file.yaml:
        if entry.key.startswith("nvidia.com/"):
            place = (entry.key_start, entry.key_start + len(entry.key))
        elif entry.value.startswith("nvidia.com/") or (entry.key == "runtimeClassName" and entry.value == "nvidia"):
            place = (entry.start, entry.end)
        else:
            continue
        name = file.text[slice(*place)]
        yield note(
            place, f"{name} is provided by NVIDIA's device plugin only.", "Use amd.com/gpu on nodes with AMD GPUs."
        )
