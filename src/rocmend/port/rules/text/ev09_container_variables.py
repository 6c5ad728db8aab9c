"""Variables of NVIDIA's container runtime.

## What it does

Finds `NVIDIA_VISIBLE_DEVICES`, `NVIDIA_DRIVER_CAPABILITIES` and `NVIDIA_REQUIRE_CUDA` in images and compose files.

## Why it matters

NVIDIA's container runtime reads them. With `NVIDIA_REQUIRE_CUDA` it refuses to start a container; nothing else reads
them.

## Use instead

The devices `/dev/kfd` and `/dev/dri`, given to the container; see DP09.

## Fix safety

A suggestion, in the file that is written beside the original.

## References

- <https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html>
- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.variables import dropped
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_NAMES = {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA", "NVIDIA_DISABLE_REQUIRE"}


@rule(
    "EV09",
    "Variable of NVIDIA's container runtime",
    Language.TEXT,
    severity=Severity.ADVICE,
    outcome=Outcome.SUGGEST,
    triggers=(b"NVIDIA_",),
    paths=paths(Kind.DOCKERFILE, Kind.COMPOSE, Kind.ENV, Kind.YAML),
    sources=("https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html",),
    valid=("FROM a\n# ENV NVIDIA_VISIBLE_DEVICES=all\nENV NVIDIA_OTHER=1\n",),
    invalid=(
        Case("FROM a\nENV NVIDIA_VISIBLE_DEVICES=all\nENV A=1\n", "FROM a\nENV A=1\n", "Dockerfile"),
        Case(
            "services:\n  a:\n    environment:\n      NVIDIA_VISIBLE_DEVICES: all\n      A: 1\n",
            "services:\n  a:\n    environment:\n      # ROCm: read by NVIDIA's container runtime only\n"
            "      # NVIDIA_VISIBLE_DEVICES: all\n      A: 1\n",
            "docker-compose.yml",
        ),
        Case("env:\n- name: NVIDIA_VISIBLE_DEVICES\n  value: all\n", None, "pod.yaml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what sets the variables."""
    for setting in file.settings:
        if setting.name in _NAMES and not setting.settled:
            yield rewrite(
                file,
                (setting.name_start, setting.end),
                f"{setting.name} is read by NVIDIA's container runtime only.",
                dropped(file, setting, "read by NVIDIA's container runtime only"),
                remedy="Omit it on ROCm, and pass /dev/kfd and /dev/dri to the container.",
                outcome=Outcome.SUGGEST,
                otherwise=Outcome.NOTE,
            )
