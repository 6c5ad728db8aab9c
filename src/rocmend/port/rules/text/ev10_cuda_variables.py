"""Variables of CUDA's runtime and libraries.

## What it does

Finds variables that CUDA's runtime and libraries read, and that have a counterpart in ROCm or none; not those that
PyTorch reads on ROCm too (`CUBLAS_WORKSPACE_CONFIG`, `CUBLASLT_WORKSPACE_SIZE`).

## Why it matters

They are passed over in silence: a run that is meant to be deterministic, or to overlap, is not.

## Use instead

What the message says of each.

## Fix safety

Nothing is rewritten: what a value means differs.

## References

- <https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html>
- <https://docs.pytorch.org/docs/stable/notes/randomness.html>
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

_KNOWN = {
    "CUDA_DEVICE_MAX_CONNECTIONS": "HIP's counterpart is GPU_MAX_HW_QUEUES; its default is 4.",
    "CUDA_MODULE_LOADING": "HIP loads code objects lazily; nothing needs to be set.",
    "CUDA_DEVICE_ORDER": "HIP numbers GPUs in driver order; nothing needs to be set.",
    "CUDA_CACHE_PATH": "HIP has no JIT compilation at start-up; Triton and Inductor have their own caches.",
    "CUDA_MPS_PIPE_DIRECTORY": "ROCm has no equivalent of NVIDIA's MPS.",
    "NVIDIA_TF32_OVERRIDE": "Only CUDA libraries read it.",
    "TORCH_CUDNN_V8_API_ENABLED": "PyTorch uses MIOpen on ROCm.",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "PyTorch queries HIP on ROCm.",
}


@rule(
    "EV10",
    "CUDA runtime or library variable",
    Language.TEXT,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=tuple(name.encode() for name in _KNOWN),
    paths=paths(*KINDS),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html",),
    valid=(
        "export GPU_MAX_HW_QUEUES=2\n# export CUDA_DEVICE_ORDER=PCI_BUS_ID\n",
        "export CUBLAS_WORKSPACE_CONFIG=:4096:8\n",
    ),
    invalid=(
        Case("export CUDA_DEVICE_MAX_CONNECTIONS=1\n", None, "run.sh"),
        Case("CUDA_DEVICE_ORDER=PCI_BUS_ID\n", None, ".env"),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what sets such a variable."""
    for setting in file.settings:
        if setting.name in _KNOWN and not setting.settled:
            yield note(
                (setting.name_start, setting.end), f"{setting.name} has no effect on ROCm. {_KNOWN[setting.name]}"
            )
