"""More than 64 KiB of shared memory.

What it does:
  Sums the `__shared__` arrays and structures of a kernel if their sizes are constant, also by the template arguments of
  a launch, and reads constant sizes passed to `cudaFuncSetAttribute` or to a launch, by variables that nothing changes
  too.

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

from rocmend.core.records import Severity
from rocmend.port.cuda.declarations import Declaration, declared_at
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.structure import Argument, Launch
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.sizes import lds_bytes, template_names, template_values, value

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
    held: dict[int, list[Declaration]] = {}
    functions: dict[int, Function] = {}
    for index in file.names(b"__shared__", *_aliases(file)):
        function = file.function_at(file.tokens[index].start)
        if function is not None:
            held.setdefault(function.start, []).extend(_declared(file, index))
            functions[function.start] = function
    launches = list(file.launches())
    for opened, arrays in held.items():
        total = sum(lds_bytes(file, one, {}) or 0 for one in arrays)
        if total > _LDS_BYTES:
            name = functions[opened].name
            shown = name.text.decode("utf-8", "replace")
            message = f"{shown} has {total} bytes of static LDS, and a workgroup has {_LDS_BYTES}"
            yield Found(name.start, name.end, message, remedy=_REMEDY)
        else:
            yield from _with_parameters(file, functions[opened], arrays, launches)
    yield from _asked(file)


def _aliases(file: CudaFile) -> Iterator[bytes]:
    """Yield the macros that stand for ``__shared__``."""
    for name, macros in file.macros.items():
        words = [token.text for macro in macros for token in file.tokens[macro.first : macro.last]]
        if words and b"__shared__" in words and len(words) <= 3:
            yield name


def _declared(file: CudaFile, index: int) -> list[Declaration]:
    """Return what a ``__shared__`` declares, also by a macro that holds all of it."""
    after = file.tokens[index + 1].text if index + 1 < len(file.tokens) else b""
    macro = next(iter(file.macros.get(after, ())), None)
    if macro is not None and macro.parameters is None:
        places = range(macro.first, macro.last)
    else:
        end = index + 1
        while end < len(file.tokens) and file.tokens[end].text not in (b";", b"{", b"}"):
            end += 1
        places = range(index + 1, end)
    found = (declared_at(file.outline, at) for at in places)
    return [one for one in found if one is not None and not one.pointers]


def _with_parameters(
    file: CudaFile, function: Function, arrays: list[Declaration], launches: list[Launch]
) -> Iterator[Found]:
    """Yield the launches whose template arguments make a kernel's arrays too large."""
    names = template_names(file, function)
    own = (one for one in launches if file.tokens[one.kernel.first].text == function.name.text)
    for launch in own if names else ():
        given = template_values(file, launch.kernel)
        known = {name: value for name, value in zip(names, given, strict=False) if value is not None}
        total = sum(lds_bytes(file, one, known) or 0 for one in arrays)
        if total > _LDS_BYTES:
            shown = function.name.text.decode("utf-8", "replace")
            message = f"{shown} has {total} bytes of static LDS with these template arguments"
            yield Found(launch.start, launch.end, message, remedy=_REMEDY)


def _asked(file: CudaFile) -> Iterator[Found]:
    for call in file.calls(b"cudaFuncSetAttribute", b"hipFuncSetAttribute"):
        if len(call.args) != 3 or _ATTRIBUTE not in file.data[call.args[1].start : call.args[1].end]:
            continue
        size = value(file, call.args[2], call.start)
        if size is None:
            yield Found(
                call.start,
                call.end,
                "dynamic LDS of unknown size: a workgroup has 64 KiB (160 KiB on gfx950)",
                outcome=Outcome.NOTE,
                severity=Severity.WARNING,
            )
        elif size > _LDS_BYTES:
            yield Found(call.start, call.end, _requested(size), remedy=_REMEDY)
    for given, start, end in _given(file):
        size = value(file, given, start)
        if size is not None and size > _LDS_BYTES:
            yield Found(start, end, _requested(size), remedy=_REMEDY)


def _requested(size: int) -> str:
    return f"{size} bytes of dynamic LDS are requested"


def _given(file: CudaFile) -> Iterator[tuple[Argument, int, int]]:
    """Yield the sizes that launches ask for, and where they do: by chevrons, by a call, by a configuration."""
    for launch in file.launches():
        if len(launch.config) > 2:
            yield launch.config[2], launch.start, launch.end
    for call in file.calls(b"cudaLaunchKernel", b"cudaLaunchCooperativeKernel"):
        if len(call.args) > 4:
            yield call.args[4], call.start, call.end
    for index in file.names(b"dynamicSmemBytes"):
        if index + 2 < len(file.tokens) and file.tokens[index + 1].text == b"=":
            last = index + 2
            while last < len(file.tokens) and file.tokens[last].text not in (b";", b",", b"}"):
                last += 1
            token = file.tokens[index]
            yield (
                Argument(file.tokens[index + 2].start, file.tokens[last - 1].end, index + 2, last),
                token.start,
                token.end,
            )
