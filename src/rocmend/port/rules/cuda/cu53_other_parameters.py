"""A call with a different signature in HIP.

What it does:
  Finds calls whose number of arguments is not the one that HIP's function of that name has.

Why it matters:
  The name is mapped, so nothing warns before the compiler: HIP and its libraries kept an older signature, or have
  their own.

Use instead:
  HIP's signature on the ROCm side; the remedy says what differs.

Fix safety:
  Nothing is rewritten: the missing arguments are not known.

References:
  Headers of HIP 6.4 and hipSPARSE 6.4, CUDA 12.8 and 13.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_CALLS = {
    b"cusparseSpSM_solve": ((11,), "hipsparseSpSM_solve takes the external buffer as its last argument."),
    b"cudaGraphExecUpdate": (
        (4,),
        "hipGraphExecUpdate has CUDA 11's signature: the error node and the result, each by pointer.",
    ),
    b"cudaMemPrefetchAsync": ((3, 4), "hipMemPrefetchAsync has CUDA 12's signature: pointer, bytes, device, stream."),
    b"cudaMemAdvise": ((4,), "hipMemAdvise has CUDA 12's signature: pointer, bytes, advice, device."),
}
"""How many arguments HIP's function takes, and what to do."""


@rule(
    "CU53",
    "Call with a different signature in HIP",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=tuple(_CALLS),
    sources=("measured: headers of HIP 6.4 and hipSPARSE 6.4",),
    valid=(
        "void f() { cudaMemPrefetchAsync(p, n, device, stream); }\n",
        "void f() { cudaGraphExecUpdate(exec, graph, &node, &result); }\n",
    ),
    invalid=(
        Case("void f() {\n  cudaGraphExecUpdate(exec, graph, &info);\n}\n", None),
        Case("void f() {\n  cusparseSpSM_solve(h, a, b, &alpha, A, B, C, type, alg, d);\n}\n", None),
    ),
)
def other_parameters(file: CudaFile) -> Iterator[Found]:
    """Yield the calls."""
    for call in file.calls(*_CALLS):
        counts, remedy = _CALLS[call.name.text]
        if len(call.args) not in counts:
            name = call.name.text.decode()
            message = f"{name} has {len(call.args)} arguments here, and {' or '.join(map(str, counts))} in HIP"
            yield Found(call.start, call.end, message, remedy=remedy)
