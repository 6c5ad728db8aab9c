"""NCCL settings.

## What it does

Finds scripts, images and settings that set variables of NCCL.

## Why it matters

RCCL is NCCL for AMD GPUs and reads the same variables. It ignores those for NVLink, NVSwitch and NVIDIA's network
offloads, and values tuned on one machine (channels, thresholds, algorithms) rarely suit another.

## Use instead

No change for logging and network-interface variables. Retune the others.

## Fix safety

Nothing is rewritten.

## References

- <https://rocm.docs.amd.com/projects/rccl/en/latest/api-reference/env-variables.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note
from rocmend.port.build.kinds import paths
from rocmend.port.build.variables import KINDS
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_NVIDIA = ("NCCL_NVLS", "NCCL_NVB", "NCCL_MNNVL", "NCCL_COLLNET", "NCCL_SHARP", "NCCL_CUMEM")
_TUNED = (
    *("NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"),
    *("NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"),
)


@rule(
    "EV05",
    "NCCL is tuned",
    Language.TEXT,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"NCCL_",),
    paths=paths(*KINDS),
    sources=("https://rocm.docs.amd.com/projects/rccl/en/latest/api-reference/env-variables.html",),
    valid=("export NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0\n",),
    invalid=(
        Case("export NCCL_NVLS_ENABLE=1\n", None, "run.sh"),
        Case("FROM a\nENV NCCL_ALGO=Ring\n", None, "Dockerfile"),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield variables of NCCL that do not carry over."""
    for setting in file.settings:
        place = (setting.name_start, setting.end)
        if setting.settled:
            continue
        if setting.name.startswith(_NVIDIA):
            yield note(place, f"{setting.name} is for NVIDIA interconnects and networks; RCCL does not use it.")
        elif setting.name in _TUNED:
            message = f"RCCL reads {setting.name}, whose value was chosen for other hardware."
            yield note(place, message, "Omit it on ROCm, and measure.")
