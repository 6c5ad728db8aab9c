"""Inline PTX.

## What it does

Replaces `asm` statements whose instructions all have an exact counterpart with C++, and reports the others with the
reason: which instruction it is, and for matrix instructions their shape.

## Why it matters

Inline assembly is NVIDIA's. Some of it compiles for AMD GPUs up to the assembler, some (`bar.sync 0`) fails late, and
rewriting it by eye loses the corners: `shr` by more than 31, the sign mode of `prmt` (HIP's `__byte_perm` drops it),
`min` with NaN, a float beyond an integer's range.

## Use instead

The calls of `ptx.h`: `hip_ptx::lop3(a, b, c, 0x96)`. Lanes, votes and shuffles use 32 lanes (`warp32.h`).
Asynchronous copies become plain ones at the place where they are issued, so waiting for them is a no-op;
hints about caches are left out, loads past the first cache become atomic ones of the device's scope.

## Fix safety

Safe for what is rewritten: each translation was run against a model of PTX's semantics over random and edge operands.
Instructions marked `approx` get the math library's value, which is nearer; NaN stays NaN, with another payload.
Instructions that are not in the table have to be ported by hand. Performance may differ: a copy that overlapped with
arithmetic no longer does.

## References

- NVIDIA, Parallel Thread Execution ISA. LLVM, memory model for AMDGPU
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.ptx.statement import AsmStatement, statements
from rocmend.port.ptx.translate import translated
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.sites import wave
from rocmend.port.wave.tokens import text_at

_LETTERS = frozenset(("h", "r", "l", "f", "d", "n", "C", "q"))
_PTX = re.compile(r"(?:^|[;{\s])[a-z][a-z0-9]*\.[a-z_]\w*|^\s*(?:trap|brkpt|exit)\s*;")


@rule(
    "CU13",
    "Inline PTX",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"asm", b"__cvta_generic_to_"),
    sources=(
        "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html",
        "https://llvm.org/docs/AMDGPUUsage.html#memory-model",
        "measured: each translation, built with g++, against a model of the instruction",
    ),
    valid=(
        'long f() {\n  long t;\n  asm volatile("rdtsc" : "=a"(t));\n  return t;\n}\n',
        '// asm volatile("bar.sync 0;");\nint assembly;\n',
        '#ifdef USE_ROCM\nvoid f() {\n  asm volatile("s_nop 0");\n}\n#endif\n',
        '__device__ void f() {\n  asm volatile("" ::: "memory");\n}\n',
    ),
    invalid=(
        gated(
            '  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(d) : "r"(a), "r"(b), "r"(c));',
            "  hip_ptx::out(d, hip_ptx::lop3(hip_ptx::in<uint32_t>(a), hip_ptx::in<uint32_t>(b), "
            "hip_ptx::in<uint32_t>(c), 0x96u));",
            "__device__ int f(int a, int b, int c) {\n  int d;\n",
            "  return d;\n}\n",
        ),
        gated(
            '  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));',
            "  hip_ptx::out(lane, warp32_lane());",
            "__device__ unsigned f() {\n  unsigned lane;\n",
            "  return lane;\n}\n",
        ),
        gated(
            '  asm volatile("bar.sync 0;");',
            "  __syncthreads();",
            "__device__ void f() {\n",
            "}\n",
        ),
        gated(
            "  unsigned at = __cvta_generic_to_shared(p);",
            "  unsigned at = hip_ptx::shared_address(p);",
            "__device__ unsigned f(int* p) {\n",
            "  return at;\n}\n",
        ),
        gated(
            '  asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0;"\n'
            '               " @p st.global.u32 [%1], %2; }" :: "r"(on), "l"(at), "r"(v));',
            "  do {\n"
            "    uint32_t ptx_0 = hip_ptx::in<uint32_t>(on);\n"
            "    uint64_t ptx_1 = hip_ptx::in<uint64_t>(at);\n"
            "    uint32_t ptx_2 = hip_ptx::in<uint32_t>(v);\n"
            "    bool ptx_p_0 = 0;\n"
            "    ptx_p_0 = (ptx_0 != 0u);\n"
            "    if (ptx_p_0) { hip_ptx::store<uint32_t>(hip_ptx::generic<uint32_t>(ptx_1), ptx_2); }\n"
            "  } while (0);",
            "__device__ void f(int on, int* at, int v) {\n",
            "}\n",
        ),
        Case("#define PTX asm volatile\n", None),
        Case('__device__ void f() {\n  asm volatile("bar.sync 1, 64;");\n}\n', None),
        Case(
            "__device__ void f(float* d, unsigned a) {\n"
            '  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%1}, {%0};"\n'
            '      : "+f"(d[0]) : "r"(a));\n'
            "}\n",
            None,
        ),
    ),
)
def inline_ptx(file: CudaFile) -> Iterator[Found]:
    """Yield the statements, and the conversions of addresses that go with them."""
    other_width = wave(file).other_width is not None
    for statement in statements(file):
        found = translated(statement)
        lanes = any("warp32_" in line or "::shfl_" in line for line in found.lines)
        if found.lines == ("hip_ptx::compiler_barrier()",) and not statement.template.strip():
            continue  # it is for the compiler alone, and the other compiler knows it
        if found.reason and _of_the_host(file, statement):
            continue
        if found.reason or (lanes and other_width):
            reason = found.reason or "it is a cross-lane operation, and the ROCm code in this file uses another width"
            yield Found(
                statement.start,
                statement.end,
                f"inline PTX: {reason}",
                outcome=Outcome.MANUAL,
                remedy="Rewrite it in C++ or with AMD builtins, under USE_ROCM.",
            )
            continue
        edit = Edit(statement.start, statement.end, _text(file, statement, found.lines))
        yield Found(
            statement.start, statement.end, "inline PTX with a C++ equivalent", (edit,), needs=("ptx", "warp32")
        )
    for index in file.names(b"asm", b"__asm__", b"__asm"):
        if file.tokens[index].directive >= 0 and _ends_there(file, index):
            token = file.tokens[index]
            yield Found(
                token.start,
                token.end,
                "inline PTX behind a macro for asm: its statements cannot be analysed",
                outcome=Outcome.MANUAL,
                remedy="Write asm at each use instead of the macro, then port again.",
            )
    for name, text in (
        (b"__cvta_generic_to_shared", b"hip_ptx::shared_address"),
        (b"__cvta_generic_to_global", b"hip_ptx::in<size_t>"),
    ):
        for call in file.calls(name):
            edit = Edit(call.start, call.name.end, text)
            yield Found(call.start, call.end, f"HIP has no {name.decode()}", (edit,), needs=("ptx", "warp32"))


def _ends_there(file: CudaFile, index: int) -> bool:
    """Tell whether a macro ends with ``asm`` and its qualifiers: what they begin stands where it is used."""
    last = index + 1
    while text_at(file, last) in (b"volatile", b"__volatile__", b"inline", b"__inline__", b"goto"):
        last += 1
    return last >= len(file.tokens) or file.tokens[last].directive != file.tokens[index].directive


def _of_the_host(file: CudaFile, statement: AsmStatement) -> bool:
    """Tell whether assembly that is not understood is a CPU's: no instruction of PTX is without a dot and a type."""
    function = file.function_at(statement.start)
    if function is not None and function.on_device:
        return False
    letters = {operand.constraint.lstrip("=+&") for operand in statement.operands}
    return not letters <= _LETTERS or not _PTX.search(statement.template)


def _text(file: CudaFile, statement: AsmStatement, lines: tuple[str, ...]) -> bytes:
    """Return the C++ as it is put into the file: on one line in a macro, with the line's indentation elsewhere."""
    if statement.directive >= 0 or len(lines) == 1:
        return " ".join(line.strip() for line in lines).encode()
    head = file.data.rfind(b"\n", 0, statement.start) + 1
    margin = file.data[head : statement.start]
    indent = margin[: len(margin) - len(margin.lstrip(b" \t"))]
    end = b"\r\n" if file.data[:head].endswith(b"\r\n") else b"\n"
    return (end + indent).join(line.encode() for line in lines)
