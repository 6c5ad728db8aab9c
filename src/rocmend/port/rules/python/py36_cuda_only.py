"""NVIDIA-only libraries.

## What it does

Finds imports of PyCUDA, CUDA Python, CUTLASS's Python, DALI, RAPIDS and the like: each library once per file, except
the project's own.

## Why it matters

None of them runs on an AMD GPU.

## Use instead

The library in the message: HIP Python for the runtime, composable_kernel or Triton for CUTLASS, rocAL or torchvision
for DALI.

## Fix safety

Not rewritten: interfaces differ.

## References

- <https://rocm.docs.amd.com/projects/hip-python/en/latest/>
- <https://rocm.docs.amd.com/projects/rocAL/en/latest/>
- <https://github.com/ROCm/composable_kernel>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.python.flags import Side
from rocmend.port.python.imported import imports_of, optional, unless_own
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_INSTEAD = {
    "pycuda": "HIP Python, or torch",
    "cuda.bindings": "HIP Python",
    "cuda.cudart": "HIP Python",
    "cuda.nvrtc": "HIP Python's hiprtc",
    "cuda.cuda": "HIP Python",
    "cuda.core": "HIP Python",
    "cutlass": "composable_kernel or Triton",
    "nvidia.dali": "rocAL, or torchvision",
    "nvidia.cudnn": "torch, whose convolutions use MIOpen",
    "cudnn": "torch, whose convolutions use MIOpen",
    "cudf": "pandas or hipDF",
    "cuml": "scikit-learn",
    "cugraph": "networkx or hipGRAPH",
    "cuvs": "faiss or hipVS",
    "deep_gemm": "torch._scaled_mm or aiter",
    "flashinfer": "aiter, or torch's attention",
    "flash_mla": "aiter",
    "deep_ep": "torch.distributed or mori",
}

_TRIGGERS = sorted({name if "." in name else f"{word} {name}" for name in _INSTEAD for word in ("import", "from")})


@rule(
    "PY36",
    "NVIDIA-only library",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"from cuda import", b"from nvidia import", *(name.encode() for name in _TRIGGERS)),
    sources=("https://rocm.docs.amd.com/projects/hip-python/en/latest/", "https://github.com/ROCm/composable_kernel"),
    valid=(
        "try:\n    import cudf\nexcept ImportError:\n    cudf = None\n",
        "from . import cutlass\n",
        "from torch.backends import cudnn\n",
    ),
    invalid=(
        Case("import pycuda.driver as drv\n", None),
        Case("from cuda.bindings import runtime\n", None),
        Case("import cutlass\nimport cutlass.cute as cute\n", None),
    ),
    once=True,
)
def cuda_only(file: PythonFile) -> Iterable[Found]:
    """Find imports that are not guarded."""
    for node, library in imports_of(file, *_INSTEAD):
        if file.side(node) is not Side.CUDA and not optional(file, node):
            yield told(
                file,
                node,
                f"{library} supports NVIDIA GPUs only",
                outcome=Outcome.MANUAL,
                remedy=f"On ROCm, use {_INSTEAD[library]}.",
            )._replace(unless=unless_own(library))
