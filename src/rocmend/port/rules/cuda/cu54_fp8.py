"""8-bit floating-point types.

What it does:
  Finds CUDA's 8-bit types (`__nv_fp8_e4m3`, `__nv_fp8x2_e5m2` …), conversions to and from them, and their
  interpretations (`__NV_E4M3`, `__NV_E5M2`).

Why it matters:
  CUDA's types are those of the Open Compute Project (OCP). gfx942 uses another format, FNUZ: its exponent bias
  differs by one, its largest e4m3 is 240 instead of 448, and it has no negative zero. gfx950, gfx12 and CUDA agree.
  The same byte is a different number in the two formats, without a warning: scales are off by a factor of two, values
  above 240 are lost. Other targets have neither in hardware.

Use instead:
  On the ROCm side, `__hip_fp8_e4m3_fnuz` and `__hip_fp8_e5m2_fnuz` for gfx942, `__hip_fp8_e4m3` and `__hip_fp8_e5m2`
  for gfx950 and gfx12, chosen where the kernel is compiled; weights that were stored as OCP are converted when they are
  loaded for gfx942 (a factor of two in their scales, 0x80 to zero).

Fix safety:
  The compatibility header gives CUDA's names HIP's OCP types, which hold the same bytes. HIP has no device code of
  these for gfx942, and says so when it compiles. Nothing else is rewritten: which format is right depends on the
  target and on where the bytes come from.

References:
  ROCm documentation, "Precision support" and "Low precision floating-point types" of HIP. OCP 8-bit floating point
  specification, revision 1.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_STARTS = (b"__nv_fp8", b"__NV_E4M3", b"__NV_E5M2")
_CONVERSION = b"__nv_cvt_"


@rule(
    "CU54",
    "8-bit floating-point type",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(*_STARTS, b"fp8"),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/reference/low_fp_types.html",
        "https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8-revision-1-0-2023-12-01-pdf-1",
    ),
    valid=(
        "// __nv_fp8_e4m3 is for later\nfloat f(float x) { return x; }\n",
        "#ifdef USE_ROCM\nusing fp8 = __hip_fp8_e4m3_fnuz;\n#else\nusing fp8 = __nv_fp8_e4m3;\n#endif\n",
    ),
    invalid=(
        Case("__device__ float f(__nv_fp8_e4m3 x) { return float(x); }\n", None),
        Case("__device__ auto f(float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }\n", None),
    ),
)
def fp8(file: CudaFile) -> Iterator[Found]:
    """Yield the first use of each name."""
    for name in sorted(file.all_names):
        if not (name.startswith(_STARTS) or (name.startswith(_CONVERSION) and b"fp8" in name)):
            continue
        for index in file.names(name):
            token = file.tokens[index]
            message = f"{name.decode()} is the OCP format, but gfx942 uses FNUZ"
            yield Found(token.start, token.end, message, remedy="Select the format per gfx target on the ROCm side.")
            break
