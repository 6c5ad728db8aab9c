"""Compute capability queried at run time.

What it does:
  Finds comparisons of `major` and `minor` of the device's properties.

Why it matters:
  HIP gives AMD's own numbers: 9 for gfx9, 10 to 12 for RDNA. A test like `major >= 8` is true, but meaningless.

Use instead:
  `prop.gcnArchName`, or the property that is needed (`warpSize`, `sharedMemPerBlock`).

Fix safety:
  Nothing is rewritten; most of these tests only refuse old GPUs, and they pass.

References:
  HIP runtime API, hipDeviceProp_t.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_COMPARISONS = frozenset((b"<", b">", b"<=", b">=", b"==", b"!="))


@rule(
    "CU47",
    "Compute capability queried at run time",
    Language.CUDA,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"major", b"ComputeCapabilityMajor"),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api/index.html",),
    valid=(
        'void f(cudaDeviceProp p) { printf("%d", p.major); }\n',
        "bool f(Version v) { return v.major > 2; }\n",
    ),
    invalid=(Case("bool f(cudaDeviceProp p) {\n  return p.major >= 8;\n}\n", None),),
)
def compute_capability(file: CudaFile) -> Iterator[Found]:
    """Yield the comparisons."""
    if b"cudaDeviceProp" not in file.data and b"getDeviceProperties" not in file.data:
        return
    for index in file.names(b"major"):
        before = file.tokens[index - 1].text if index else b""
        after = file.tokens[index + 1].text if index + 1 < len(file.tokens) else b""
        if before in (b".", b"->") and after in _COMPARISONS:
            token = file.tokens[index]
            yield Found(token.start, token.end, "AMD GPUs report their own numbers: 9 for gfx9, 10 to 12 for RDNA")
