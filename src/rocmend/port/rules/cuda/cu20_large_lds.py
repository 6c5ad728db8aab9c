"""More than 64 KiB of shared memory.

What it does:
  Sums the `__shared__` arrays of a kernel if their sizes are constant, and reads constant sizes passed to
  `cudaFuncSetAttribute` or to a launch, by variables that nothing changes too.

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
from rocmend.port.cuda.constants import constant, size_of
from rocmend.port.cuda.declarations import Declaration, declared_at
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.structure import Argument
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.variables import assigned_again

_LDS_BYTES = 65536
_REMEDY = "Use a smaller tile, or process it in parts: a workgroup has 64 KiB of LDS (160 KiB on gfx950)."
_ATTRIBUTE = b"cudaFuncAttributeMaxDynamicSharedMemorySize"


@rule(
    "CU20",
    "More than 64 KiB of LDS",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"__shared__", b"MaxDynamicSharedMemorySize", b"<<<"),
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
        Case("void f() {\n  int bytes = 2 * 48 * 1024;\n  k<<<1, 256, bytes>>>();\n}\n", None),
        Case("void f(int n) {\n  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, n);\n}\n", None),
    ),
)
def large_lds(file: CudaFile) -> Iterator[Found]:
    """Yield the kernels and the calls."""
    held: dict[int, list[tuple[Declaration, int]]] = {}
    for index in file.names(b"__shared__"):
        declared = _declared(file, index)
        function = file.function_at(file.tokens[index].start)
        if declared is None or function is None:
            continue
        size = _bytes(file, declared)
        if size:
            held.setdefault(function.start, []).append((declared, size))
    for parts in held.values():
        total = sum(size for _, size in parts)
        if total > _LDS_BYTES:
            function = file.function_at(parts[0][0].name.start)
            yield _kernel(function, total)
    yield from _asked(file)


def _kernel(function: Function | None, total: int) -> Found:
    assert function is not None  # noqa: S101  it holds the declarations
    name = function.name
    message = (
        f"{name.text.decode('utf-8', 'replace')} has {total} bytes of static LDS, and a workgroup has {_LDS_BYTES}"
    )
    return Found(name.start, name.end, message, remedy=_REMEDY)


def _declared(file: CudaFile, index: int) -> Declaration | None:
    """Return what a ``__shared__`` declares."""
    for at in range(index + 1, min(index + 12, len(file.tokens))):
        if file.tokens[at].text in (b";", b"{", b"}"):
            return None
        declared = declared_at(file.outline, at)
        if declared is not None and declared.extents:
            return declared
    return None


def _bytes(file: CudaFile, declared: Declaration) -> int | None:
    size = 8 if declared.pointers else size_of(declared.type)
    if size is None or b"extern" in declared.qualifiers:
        return None
    for extent in declared.extents:
        value = constant(file, extent, declared.name.start)
        if value is None:
            return None
        size *= value
    return size


def _asked(file: CudaFile) -> Iterator[Found]:
    for call in file.calls(b"cudaFuncSetAttribute", b"hipFuncSetAttribute"):
        if len(call.args) != 3 or _ATTRIBUTE not in file.data[call.args[1].start : call.args[1].end]:
            continue
        size = _size(file, call.args[2], call.start)
        if size is None:
            yield Found(
                call.start,
                call.end,
                "dynamic LDS of unknown size: a workgroup has 64 KiB (160 KiB on gfx950)",
                outcome=Outcome.NOTE,
                severity=Severity.WARNING,
            )
        elif size > _LDS_BYTES:
            yield Found(call.start, call.end, f"{size} bytes of dynamic LDS are requested", remedy=_REMEDY)
    for launch in file.launches():
        size = _size(file, launch.config[2], launch.start) if len(launch.config) > 2 else None
        if size is not None and size > _LDS_BYTES:
            yield Found(launch.start, launch.end, f"{size} bytes of dynamic LDS are requested", remedy=_REMEDY)


def _size(file: CudaFile, size: Argument, at: int) -> int | None:
    """Return a size in bytes, also that of a local variable that nothing changes."""
    known = constant(file, size, at)
    function = file.function_at(at)
    if known is not None or function is None or size.last - size.first != 1:
        return known
    declared = file.declaration_of(file.tokens[size.first].text, at)
    if declared is None or declared.value is None or assigned_again(file, function, declared):
        return None
    return constant(file, declared.value, declared.name.start)
