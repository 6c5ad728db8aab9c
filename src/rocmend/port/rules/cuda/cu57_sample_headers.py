"""Helper headers of NVIDIA's samples that are not in the project.

## What it does

Finds `helper_cuda.h`, `helper_functions.h`, `helper_timer.h`, `helper_string.h`, `helper_math.h` and their like where
the project has no file of that name. Where it has one, that file is ported like any other, and this rule does not
apply.

## Why it matters

The headers come with NVIDIA's samples and ask CUDA's own headers for their marks: with HIP they are not found, or
`checkCudaErrors` is not defined by them.

## Use instead

For `checkCudaErrors`, `getLastCudaError`, `findCudaDevice`, the timers (`sdkCreateTimer` …) and arguments
(`checkCmdLineFlag`, `getCmdLineArgumentInt` …) the support header `cuda_samples.h`, which has them on HIP. For all
else copy the header from https://github.com/NVIDIA/cuda-samples (`Common/`, BSD licence) into the project and port
again: `helper_math.h` and `helper_image.h` compile once they are ported.

## Fix safety

Rewritten only where the support header has every helper that the file names. It ends the program on errors, picks
devices and reads arguments as NVIDIA's does; what it prints has other words.

## References

- https://github.com/NVIDIA/cuda-samples, release 12.9
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.compat import defines
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Token
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_GIVEN_HEADERS = (b"helper_cuda.h", b"helper_functions.h", b"helper_timer.h", b"helper_string.h")
_OTHER_HEADERS = (
    *(b"helper_math.h", b"helper_image.h", b"helper_gl.h", b"helper_cuda_gl.h", b"helper_cuda_drvapi.h"),
    *(b"helper_cusolver.h", b"helper_multiprocess.h", b"nvrtc_helper.h", b"cuda_drvapi_dynlink.h", b"cutil_math.h"),
    *(b"cutil.h", b"cutil_inline.h", b"cutil_inline_runtime.h", b"shrUtils.h", b"sdkHelper.h"),
)
_GIVEN = frozenset(
    b"checkCudaErrors getLastCudaError printLastCudaError findCudaDevice gpuDeviceInit gpuGetMaxGflopsDeviceId "
    b"checkCmdLineFlag getCmdLineArgumentInt getCmdLineArgumentFloat getCmdLineArgumentString sdkCreateTimer "
    b"sdkDeleteTimer sdkStartTimer sdkStopTimer sdkResetTimer sdkGetTimerValue sdkGetAverageTimerValue".split()
)
_HELPER = re.compile(
    rb"sdk[A-Z]\w+|compareData\w*|_ConvertSMVer2\w+|checkCudaCapabilities|findIntegratedGPU|(?:find|gpu)\w+DRV"
    rb"|stringRemoveDelimiter|getFileExtension|getCmdLineArgument\w+|_cudaGetErrorEnum|__getLastCudaError|StopWatch(?:Linux|Win)"
    rb"|STR(?:N?CASECMP|CPY|LEN|NCAT|NCPY)|FOPEN|FOPEN_FAIL|FREAD|SSCANF|SPRINTF|ftoi|(?:MIN_)?EPSILON_ERROR|MAX_EPSILON"
)
_INCLUDE = b'#include "cuda_samples.h"\n'


@rule(
    "CU57",
    "a helper header of NVIDIA's samples",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"helper_", b"nvrtc_helper", b"cuda_drvapi_dynlink", b"cutil", b"shrUtils", b"sdkHelper"),
    sources=("https://github.com/NVIDIA/cuda-samples",),
    valid=(
        '#include "helpers.h"\n__global__ void k() {}\n',
        "#ifndef USE_ROCM\n#include <helper_cuda.h>\n#endif\n",
        "// #include <helper_cuda.h>\nvoid f() { checkCudaErrors(cudaMalloc(&p, 4)); }\n",
    ),
    invalid=(
        Case(
            "#include <cstdio>\n#include <helper_cuda.h>\n#include <helper_functions.h>\n"
            "int main(int c, char **v) { return findCudaDevice(c, (const char **)v); }\n",
            '#include <cstdio>\n#ifdef USE_ROCM\n#include "cuda_samples.h"\n#else\n#include <helper_cuda.h>\n'
            "#include <helper_functions.h>\n#endif\n"
            "int main(int c, char **v) { return findCudaDevice(c, (const char **)v); }\n",
        ),
        Case("#include <helper_math.h>\n__device__ float f(float3 a) { return dot(a, a); }\n", None),
        Case(
            "#include <helper_cuda.h>\n#include <helper_functions.h>\n"
            "void f() { checkCudaErrors(0); sdkLoadPGM(a, &b, &c, &d); }\n",
            None,
        ),
    ),
)
def sample_headers(file: CudaFile) -> Iterator[Found]:
    """Yield the lines that include them."""
    included = []
    for name, number in file.includes:
        header = name.strip(b'"<>').rpartition(b"/")[2]
        if header in (*_GIVEN_HEADERS, *_OTHER_HEADERS) and file.shared(file.directives[number].start):
            included.append((header, number))
    if not included:
        return
    more = sorted(
        name.decode("utf-8", "replace")
        for name in file.all_names
        if _HELPER.fullmatch(name) and name not in _GIVEN and not defines(file, name)
    )
    family = tuple(sorted({header.decode() for header, _ in included}))  # one of its own would define the same twice
    first = True
    for header, number in included:
        directive = file.directives[number]
        token: Token = file.tokens[directive.first]
        end = file.tokens[directive.first + 2].end
        what = f"{header.decode()} is part of NVIDIA's samples and not in this project"
        if header in _OTHER_HEADERS or more:
            used = f" for {', '.join(more[:4])}" if more and header in _GIVEN_HEADERS else ""
            remedy = f"Copy it from Common/ of NVIDIA's cuda-samples into the project{used}, and port again."
            yield Found(token.start, end, what, (), Outcome.MANUAL, remedy=remedy, unless=(header.decode(),))
        else:
            edit = Edit(directive.start, directive.end, _INCLUDE if first else b"")
            first = False
            yield Found(token.start, end, what, (edit,), needs=("cuda_to_hip",), unless=family)
