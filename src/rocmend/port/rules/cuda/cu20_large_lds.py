"""More than 64 KiB of shared memory.

What it does:
  Sums the `__shared__` arrays, structures and unions of a kernel and of the functions that it calls if their sizes are
  constant, also by the template arguments of a launch and by members of structures (`Cfg::kSmem`), and reads constant
  sizes passed to `cudaFuncSetAttribute` or to a launch, by variables that nothing changes too. Static and dynamic LDS
  of a launch count together.

Why it matters:
  A workgroup has 64 KiB of LDS on every AMD GPU but gfx950 (160 KiB). A kernel with more static LDS does not compile;
  one that requests more dynamic LDS fails at launch.

Use instead:
  Smaller tiles, or half of the tile at a time; registers and shuffles for data that one wave needs.

Fix safety:
  Nothing is rewritten.

References:
  AMD RDNA 3 and CDNA 3 instruction set architecture, local data share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.structure import Argument
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.lds import Lds
from rocmend.port.wave.sizes import Known, bound, template_arguments, template_parameters, value

_LDS_BYTES = 65536
_REMEDY = "Use a smaller tile, or process it in parts: a workgroup has 64 KiB of LDS (160 KiB on gfx950)."
_ATTRIBUTE = b"cudaFuncAttributeMaxDynamicSharedMemorySize"


@rule(
    "CU20",
    "More than 64 KiB of LDS",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"__shared__", b"MaxDynamicSharedMemorySize", b"<<<", b"dynamicSmemBytes", b"cudaLaunch"),
    sources=("https://llvm.org/docs/AMDGPUUsage.html", "measured: clang 21, `local memory limit exceeded`"),
    valid=(
        "__global__ void k() {\n  __shared__ float tile[64][256];\n}\n",
        "__global__ void k() {\n  extern __shared__ float tile[];\n}\n",
        "template <int N>\n__global__ void k() {\n  __shared__ float tile[N][1024];\n}\n",
        "void f() { cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 32 * 1024); }\n",
    ),
    once=True,
    invalid=(
        Case("#define N 128\n__global__ void k() {\n  __shared__ float a[N][N];\n  __shared__ int b[1];\n}\n", None),
        Case("void f() { cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 * 1024); }\n", None),
        Case(
            "void f() {\n  size_t bytes = 96 * 1024;\n"
            "  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);\n}\n",
            None,
        ),
        Case("__global__ void k() {\n  __shared__ float a[64 * 128], b[64 * 129];\n}\n", None),
        Case(
            "template <int N>\n__global__ void k() {\n  __shared__ int a[N];\n}\nvoid f() { k<16385><<<1, 64>>>(); }\n",
            None,
        ),
        Case("void f() {\n  cudaLaunchConfig_t c;\n  c.dynamicSmemBytes = 96 * 1024;\n}\n", None),
        Case("void f() {\n  int bytes = 2 * 48 * 1024;\n  k<<<1, 256, bytes>>>();\n}\n", None),
        Case("void f(int n) {\n  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, n);\n}\n", None),
    ),
)
def large_lds(file: CudaFile) -> Iterator[Found]:
    """Yield the kernels, their launches and the calls."""
    lds = Lds(file)
    large: set[int] = set()
    for function in file.functions:
        own = lds.own_bytes(function, {})
        total = own + (lds.called_bytes(function) if b"__global__" in function.qualifiers else 0)
        if total > _LDS_BYTES and (own > _LDS_BYTES or not _called_alone(lds, function)):
            large.add(function.start)
            shown = function.name.text.decode("utf-8", "replace")
            holds = f"{shown} has" if total == own else f"{shown} and the functions that it calls have"
            message = f"{holds} {total} bytes of static LDS, and a workgroup has {_LDS_BYTES}"
            yield Found(function.name.start, function.name.end, message, remedy=_REMEDY)
    for asked in _asked(file):
        kernel, known = _kernel(file, lds, asked.kernel)
        static = 0
        if kernel is not None and kernel.start not in large:
            static = lds.own_bytes(kernel, known) + lds.called_bytes(kernel)
        dynamic = value(file, asked.dynamic, asked.start) if asked.dynamic is not None else 0
        if dynamic is None and asked.attribute:
            yield Found(
                asked.start,
                asked.end,
                "dynamic LDS of unknown size: a workgroup has 64 KiB (160 KiB on gfx950)",
                outcome=Outcome.NOTE,
                severity=Severity.WARNING,
            )
        message = _message(kernel, known, static, dynamic or 0)
        if message:
            yield Found(asked.start, asked.end, message, remedy=_REMEDY)


def _called_alone(lds: Lds, function: Function) -> bool:
    """Tell whether one of the functions that a kernel calls has too much LDS by itself, and is reported."""
    return any(lds.own_bytes(one, {}) > _LDS_BYTES for one in lds.called(function))


def _message(function: Function | None, known: Known, static: int, dynamic: int) -> str:
    if function is not None and static > _LDS_BYTES:
        shown = function.name.text.decode("utf-8", "replace")
        return f"{shown} has {static} bytes of static LDS" + (" with these template arguments" if known else "")
    if dynamic > _LDS_BYTES:
        return f"{dynamic} bytes of dynamic LDS are requested"
    if static + dynamic > _LDS_BYTES:
        return (
            f"{static} bytes of static LDS and {dynamic} of dynamic LDS are more than the {_LDS_BYTES} of a workgroup"
        )
    return ""


class _Asked(NamedTuple):
    """A launch, or a call that asks for LDS: of a kernel, where one is named, and of so many bytes."""

    start: int
    end: int
    kernel: Argument | None
    dynamic: Argument | None
    attribute: bool = False


def _kernel(file: CudaFile, lds: Lds, given: Argument | None) -> tuple[Function | None, dict[bytes, int | Argument]]:
    """Return the kernel that an argument names, also ``(void*)k<3>``, and what its template's parameters are."""
    for at in range(given.first, given.last) if given is not None else ():
        function = lds.kernel(file.tokens[at].text)
        if function is not None and b"__global__" in function.qualifiers:
            parameters = template_parameters(file, file.token_at(function.head))
            return function, bound(file, parameters, template_arguments(file, at))
    return None, {}


def _asked(file: CudaFile) -> Iterator[_Asked]:
    """Yield what asks for LDS: launches by chevrons and by calls, attributes and configurations."""
    for call in file.calls(b"cudaFuncSetAttribute", b"hipFuncSetAttribute"):
        if len(call.args) == 3 and _ATTRIBUTE in file.data[call.args[1].start : call.args[1].end]:
            yield _Asked(call.start, call.end, call.args[0], call.args[2], attribute=True)
    for launch in file.launches():
        yield _Asked(launch.start, launch.end, launch.kernel, launch.config[2] if len(launch.config) > 2 else None)
    for call in file.calls(b"cudaLaunchKernel", b"cudaLaunchCooperativeKernel"):
        if len(call.args) > 4:
            yield _Asked(call.start, call.end, call.args[0], call.args[4])
    for index in file.names(b"dynamicSmemBytes"):
        if index + 2 < len(file.tokens) and file.tokens[index + 1].text == b"=":
            last = index + 2
            while last < len(file.tokens) and file.tokens[last].text not in (b";", b",", b"}"):
                last += 1
            token = file.tokens[index]
            given = Argument(file.tokens[index + 2].start, file.tokens[last - 1].end, index + 2, last)
            yield _Asked(token.start, token.end, None, given)
