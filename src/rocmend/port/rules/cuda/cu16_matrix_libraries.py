"""Matrix instructions and libraries for them: WMMA, CUTLASS, CuTe.

What it does:
  Finds `nvcuda::wmma`, and the headers and namespaces of CUTLASS and CuTe.

Why it matters:
  Matrix fragments have other shapes and element layouts on AMD GPUs (MFMA on gfx9, WMMA on gfx11 and gfx12), which
  depend on the wavefront size. There is no textual replacement.

Use instead:
  rocWMMA for the matrix instructions (its interface is close to `nvcuda::wmma`; do not read elements of fragments by
  hand), composable_kernel or hipBLASLt instead of CUTLASS.

Fix safety:
  Nothing is rewritten.

References:
  rocWMMA documentation. composable_kernel documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.names import headers
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_HEADERS = ("mma.h", "crt/mma.h")
_FOLDERS = ("cutlass/", "cute/")
_SPACES = {
    b"wmma": "rocWMMA (rocwmma/rocwmma.hpp): a similar API; fragment sizes differ per GPU.",
    b"nvcuda": "rocWMMA (rocwmma/rocwmma.hpp): a similar API; fragment sizes differ per GPU.",
    b"cutlass": "Use composable_kernel or hipBLASLt.",
    b"cute": "Use composable_kernel, or rocWMMA for the matrix instructions alone.",
}


@rule(
    "CU16",
    "NVIDIA matrix instructions, or a library for them",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"mma.h", b"wmma", b"cutlass", b"cute", b"nvcuda"),
    sources=(
        "https://rocm.docs.amd.com/projects/rocWMMA/en/latest/",
        "https://rocm.docs.amd.com/projects/composable_kernel/en/latest/",
    ),
    valid=(
        "#ifdef USE_ROCM\n#include <rocwmma/rocwmma.hpp>\n#else\n#include <mma.h>\n#endif\n",
        "int wmma = 0;\nint cute = wmma + 1;\n",
    ),
    invalid=(
        Case("#include <mma.h>\n", None),
        Case('#include "cutlass/gemm/device/gemm.h"\n', None),
        Case("using namespace nvcuda;\n", None),
        Case("__global__ void k() {\n  nvcuda::wmma::load_matrix_sync(a, p, 16);\n}\n", None),
        Case("auto layout = cute::make_layout(4);\n", None),
    ),
)
def matrix_libraries(file: CudaFile) -> Iterator[Found]:
    """Yield the headers, and each namespace where it is used first."""
    for included, number in file.includes:
        name = included.decode("utf-8", "replace").strip('<>"')
        directive = file.directives[number]
        if file.shared(directive.start) and (name in _HEADERS or name.startswith(_FOLDERS)):
            known = headers()
            advice = (
                known[name].advice if name in known else known.get(name.partition("/")[0] + "/", known["mma.h"]).advice
            )
            header = file.tokens[directive.first + 2]
            yield Found(header.start, header.end, f"ROCm has no {name}", remedy=advice)
    seen: set[bytes] = set()
    for index in file.names(*_SPACES):
        token = file.tokens[index]
        after = file.tokens[index + 1].text if index + 1 < len(file.tokens) else b""
        before = file.tokens[index - 1].text if index else b""
        if token.text in seen or not (after == b"::" or before == b"namespace") or before == b"::":
            continue
        if before == b"namespace" and after in (b"{", b"="):
            continue
        seen.add(token.text)
        name = token.text.decode()
        yield Found(token.start, token.end, f"{name}:: is NVIDIA's", remedy=_SPACES[token.text])
