"""Random numbers from cuRAND.

What it does:
  Notes where random numbers are drawn with cuRAND.

Why it matters:
  hipRAND has the same generators and distributions, but not always the same sequence for the same seed: results that
  depend on individual numbers differ, statistics do not.

Use instead:
  Stored random numbers, if two platforms have to be compared value by value.

Fix safety:
  Nothing is rewritten; the compatibility header has the names.

References:
  hipRAND and rocRAND documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_STARTS = (
    b"curand_init",
    b"curandCreateGenerator",
    b"curandCreateGeneratorHost",
    b"curandSetPseudoRandomGeneratorSeed",
)


@rule(
    "CU52",
    "Random numbers from cuRAND",
    Language.CUDA,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"curand",),
    sources=("https://rocm.docs.amd.com/projects/hipRAND/en/latest/",),
    valid=("#include <curand_kernel.h>\ncurandState *states;\n",),
    invalid=(Case("__global__ void k(curandState *s) {\n  curand_init(1, 2, 3, s);\n}\n", None),),
)
def random_numbers(file: CudaFile) -> Iterator[Found]:
    """Yield the first place where a generator is made."""
    call = next(file.calls(*_STARTS), None)
    if call is not None:
        message = "hipRAND may give other numbers than cuRAND for the same seed: compare statistics, not values"
        yield Found(call.start, call.end, message)
