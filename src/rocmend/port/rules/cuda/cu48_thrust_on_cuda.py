"""Thrust's CUDA backend used by name.

What it does:
  Writes `thrust::hip` for `thrust::cuda`, and `thrust/system/hip/` for `thrust/system/cuda/`.

Why it matters:
  rocThrust's backend has another name.

Use instead:
  `thrust::device` where any backend will do.

Fix safety:
  Safe: the execution policies (`par`, `par.on(stream)`, `par_nosync`) are the same.

References:
  rocThrust documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_FOLDER = b"<thrust/system/cuda/"


@rule(
    "CU48",
    "Thrust's CUDA backend used by name",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"thrust",),
    sources=("https://rocm.docs.amd.com/projects/rocThrust/en/latest/", "measured: rocThrust 6.4 headers"),
    valid=("auto p = thrust::device;\n", "auto p = at::cuda::getCurrentCUDAStream();\nauto q = thrust::host;\n"),
    invalid=(
        Case(
            "#include <thrust/system/cuda/execution_policy.h>\nauto p = thrust::cuda::par.on(s);\n",
            "#ifdef USE_ROCM\n#include <thrust/system/hip/execution_policy.h>\nauto p = thrust::hip::par.on(s);\n"
            "#else\n#include <thrust/system/cuda/execution_policy.h>\nauto p = thrust::cuda::par.on(s);\n#endif\n",
        ),
    ),
)
def thrust_on_cuda(file: CudaFile) -> Iterator[Found]:
    """Yield the headers and the names."""
    for included, number in file.includes:
        header = file.tokens[file.directives[number].first + 2]
        if included.startswith(_FOLDER) and file.shared(header.start):
            text = b"<thrust/system/hip/" + included[len(_FOLDER) :]
            yield Found(
                header.start, header.end, "a header of Thrust's CUDA backend", (Edit(header.start, header.end, text),)
            )
    for index in file.names(b"cuda"):
        if index < 2 or file.tokens[index - 1].text != b"::":
            continue
        outer = file.tokens[index - 2].text
        inner = outer == b"system" and index >= 4 and file.tokens[index - 4].text == b"thrust"
        if outer == b"thrust" or inner:
            token = file.tokens[index]
            yield Found(token.start, token.end, "thrust::hip in rocThrust", (Edit(token.start, token.end, b"hip"),))
