"""A name of CUDA's API that ROCm has nothing for.

What it does:
  Finds names of the CUDA runtime, the driver API and the CUDA libraries that are in no header of ROCm, each where it
  is used first.

Why it matters:
  The compatibility header cannot define them: the ROCm side does not compile with them.

Use instead:
  What the remedy says for the library; else leave the call out on the ROCm side, or write what it is needed for.

Fix safety:
  Nothing is rewritten.

References:
  HIP documentation, supported CUDA APIs.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.compat import defines
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.names import no_counterpart
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_REMEDIES = (
    (b"cudnn", "Use MIOpen: its descriptors and calls are alike, not equal."),
    (b"nvml", "Use AMD SMI (amd_smi/amdsmi.h)."),
    (b"cutensor", "Use hipTensor: its calls are alike, not equal."),
    (b"cusparseLt", "Use hipSPARSELt: it covers a part of the calls."),
    (b"nvshmem", "Use rocSHMEM."),
    (b"nccl", "RCCL has the calls of NCCL, up to the release that it is built from."),
    (
        b"cuGreenCtx",
        "HIP has no green contexts: use streams with a mask of compute units (hipExtStreamCreateWithCUMask).",
    ),
    (b"cudaAccessPolicy", "HIP has no persisting L2: leave the window out."),
    (b"cudaLimitPersisting", "HIP has no persisting L2: leave the limit out."),
    (b"__h", "Write it with the operations that HIP has (hip/hip_fp16.h, hip/hip_bf16.h)."),
)
_OTHERWISE = "Leave it out on the ROCm side, or write there what it is needed for."


@rule(
    "CU41",
    "Name of CUDA that ROCm has nothing for",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"cu", b"nv", b"nccl", b"__h", b"__bf", b"__f", b"__d", b"__is", b"h2tanh", b"htanh"),
    sources=("measured: headers of ROCm 6.4 and HIP 7.1 against those of CUDA 12.8",),
    valid=(
        "void f() { cudaMalloc(&p, 4); }\n",
        "void cudnnAddTensor() {}\nvoid f() { cudnnAddTensor(); }\n",
        "#ifndef USE_ROCM\nvoid f() { cudnnAddTensor(); }\n#endif\n",
    ),
    invalid=(
        Case("void f() {\n  cudnnAddTensor();\n}\n", None),
        Case("__device__ __half f(__half x) { return htanh(x); }\n", None),
    ),
)
def without_counterpart(file: CudaFile) -> Iterator[Found]:
    """Yield each name once."""
    for name in no_counterpart().intersection(file.all_names):
        index = next(file.names(name), None)
        if index is None or defines(file, name):
            continue
        token = file.tokens[index]
        remedy = next((text for prefix, text in _REMEDIES if name.startswith(prefix)), _OTHERWISE)
        yield Found(token.start, token.end, f"ROCm has nothing called as {name.decode()} is", remedy=remedy)
