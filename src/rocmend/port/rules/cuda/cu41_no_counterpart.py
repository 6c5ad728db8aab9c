"""A CUDA API name without a ROCm counterpart.

What it does:
  Finds names of the CUDA runtime, the driver API and the CUDA libraries that no ROCm header has, each at its first use.

Why it matters:
  The compatibility header cannot define them: the ROCm side does not compile with them.

Use instead:
  What the remedy says for the library; else omit the call on the ROCm side, or implement it.

Fix safety:
  Calls are not rewritten. A `case` for a status that no ROCm library returns, which only returns a text, is omitted
  on the ROCm side: it cannot occur.

References:
  HIP documentation, supported CUDA APIs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.compat import defines
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.names import hip_names, no_counterpart
from rocmend.port.cuda.shims import SHIMS
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_REMEDIES = (
    (b"cudnn", "Use MIOpen: its API is similar, not identical."),
    (b"nvml", "Use AMD SMI (amd_smi/amdsmi.h)."),
    (b"cutensor", "Use hipTensor: its API is similar, not identical."),
    (b"cusparseLt", "Use hipSPARSELt: it covers part of the API."),
    (b"nvshmem", "Use rocSHMEM."),
    (b"nccl", "RCCL supports NCCL's API up to the NCCL release that it is based on."),
    (
        b"cuGreenCtx",
        "HIP has no green contexts: use streams with a CU mask (hipExtStreamCreateWithCUMask).",
    ),
    (b"cudaAccessPolicy", "HIP has no persisting L2: omit the window."),
    (b"cudaLimitPersisting", "HIP has no persisting L2: omit the limit."),
    *(
        (
            name,
            (
                "AMD's device libraries have directed rounding for addition, multiplication and fma, not for "
                "division or "
                "square root."
            ),
        )
        for name in (b"__fdiv_r", b"__fsqrt_r", b"__frcp_r", b"__ddiv_r", b"__dsqrt_r", b"__drcp_r")
    ),
    (b"__v", "HIP has no operations on the parts of a word: write it with char4, short2 or shifts and masks."),
    (b"__h", "Use operations that HIP has (hip/hip_fp16.h, hip/hip_bf16.h)."),
)
_FAMILY = re.compile(
    rb"CU_(?:DEVICE_ATTRIBUTE|MEM|STREAM|CTX|EVENT|POINTER_ATTRIBUTE|FUNC_ATTRIBUTE|LIMIT|JIT|TR|AD_FORMAT|GRAPH|LAUNCH)_"
    rb"[A-Z0-9_]+|cudaDevAttr[A-Z]\w+|cudaLimit[A-Z]\w+"
)
"""Values of CUDA's enumerations, which no project gives names of its own to: those without a HIP name have none."""
_LINE_END = re.compile(rb"[ \t]*\r?\n")
_OTHERWISE = "Omit it on the ROCm side, or implement it there."


@rule(
    "CU41",
    "CUDA name without a ROCm counterpart",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(
        b"cu",
        b"CU_",
        b"nv",
        b"nccl",
        b"__h",
        b"__bf",
        b"__f",
        b"__d",
        b"__is",
        b"__v",
        b"h2tanh",
        b"htanh",
        b"__cluster_dims__",
    ),
    sources=("measured: headers of ROCm 6.4 and HIP 7.1 against those of CUDA 12.8",),
    valid=(
        "void f() { cudaMalloc(&p, 4); }\n",
        "void cudnnAddTensor() {}\nvoid f() { cudnnAddTensor(); }\n",
        "#ifndef USE_ROCM\nvoid f() { cudnnAddTensor(); }\n#endif\n",
    ),
    invalid=(
        Case("void f() {\n  cudnnAddTensor();\n}\n", None),
        Case("__device__ __half f(__half x) { return htanh(x); }\n", None),
        Case("__device__ unsigned f(unsigned x, unsigned y) { return __vmaxu4(x, y); }\n", None),
        Case("int f() { return g(CU_DEVICE_ATTRIBUTE_OF_ANOTHER_RELEASE); }\n", None),
        Case(
            'const char *f(cufftResult r) {\n  switch (r) {\n    case CUFFT_SUCCESS:\n      return "s";\n'
            '    case CUFFT_NVRTC_FAILURE:\n      return "n";\n  }\n  return "";\n}\n',
            'const char *f(cufftResult r) {\n  switch (r) {\n    case CUFFT_SUCCESS:\n      return "s";\n'
            '#ifndef USE_ROCM\n    case CUFFT_NVRTC_FAILURE:\n      return "n";\n#endif\n  }\n  return "";\n}\n',
        ),
        Case(
            "const char *f(cufftResult r) {\n  switch (r) {\n    case CUFFT_SUCCESS:\n"
            '    case CUFFT_NVRTC_FAILURE:\n      return "n";\n  }\n  return "";\n}\n',
            None,
        ),
    ),
)
def without_counterpart(file: CudaFile) -> Iterator[Found]:
    """Yield each name once; each case of a value that cannot come is left out."""
    unknown = {name for name in file.all_names if _FAMILY.fullmatch(name)} - hip_names().keys() - SHIMS.keys()
    for name in sorted(unknown | no_counterpart().intersection(file.all_names)):
        uses = list(file.names(name))
        if not uses or defines(file, name):
            continue
        for index in uses:
            case = _case(file, index)
            if case is None:
                break
        else:
            for index in uses:
                token = file.tokens[index]
                message = f"ROCm has no counterpart of {name.decode()}: this case cannot occur"
                yield Found(token.start, token.end, message, (_left_out(file, index),), Outcome.AUTO)
            continue
        token = file.tokens[index]
        remedy = next((text for prefix, text in _REMEDIES if name.startswith(prefix)), _OTHERWISE)
        yield Found(token.start, token.end, f"ROCm has no counterpart of {name.decode()}", remedy=remedy)


def _case(file: CudaFile, index: int) -> int | None:
    """Return the token that ends ``case NAME: return "text";`` after a case that ends as well; None for all else."""
    tokens = file.tokens
    words = [one.text for one in tokens[index - 1 : index + 5]]
    if index < 2 or len(words) < 6 or words[0] != b"case" or words[2:4] != [b":", b"return"] or words[5] != b";":
        return None
    before = tokens[index - 2]
    ends = before.text == b"{" or (
        before.text == b";" and (tokens[index - 3].text == b"break" or tokens[index - 4].text == b"return")
    )
    within = {one.directive for one in tokens[index - 2 : index + 5]}
    return index + 4 if ends and tokens[index + 3].kind == Kind.STRING and within == {-1} else None


def _left_out(file: CudaFile, index: int) -> Edit:
    """Return the edit that takes a case away, whole lines where it fills them."""
    data = file.data
    start, end = file.tokens[index - 1].start, file.tokens[index + 4].end
    line = data.rfind(b"\n", 0, start) + 1
    rest = _LINE_END.match(data, end)
    if rest is not None and not data[line:start].strip():
        return Edit(line, rest.end(), b"")
    return Edit(start, end, b"")
