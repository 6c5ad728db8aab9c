"""Code compiled by nvcc only.

What it does:
  Defines `__NVCC__` on the ROCm side around conditionals that test for it, where HIP's compiler
  reads the source.

Why it matters:
  `#ifdef __NVCC__` hides device code from host compilers. HIP's compiler defines `__HIPCC__` instead: kernels,
  and the `__host__ __device__` of shared headers, silently vanish. (The compatibility header defines `__CUDACC__`.)

Use instead:
  `#if defined(__NVCC__) || defined(__HIPCC__)`.

Fix safety:
  Safe: HIP's headers only test for it to select the platform, which is already set.

References:
  HIP porting guide, identifying the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.conditions import Group
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Token
from rocmend.port.cuda.treated import treats_rocm
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_DEFINE = b"#ifdef __HIPCC__\n#define __NVCC__ 1\n#endif\n"
_UNDEFINE = b"#undef __NVCC__\n"
_NAME = b"__NVCC__"


@rule(
    "CU51",
    "Code compiled by nvcc only",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(_NAME,),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html", "measured: clang 21"),
    valid=(
        "#if defined(__NVCC__) || defined(__HIPCC__)\nint x;\n#endif\n",
        "#if defined(__NVCC__) && !defined(USE_ROCM)\nint x;\n#else\nint y;\n#endif\n",
        "#ifdef USE_ROCM\nint y;\n#else\n#ifdef __NVCC__\nint x;\n#endif\n#endif\n",
    ),
    invalid=(
        Case(
            "#ifdef __NVCC__\nint x;\n#endif\nint y;\n",
            "#ifdef USE_ROCM\n#ifdef __HIPCC__\n#define __NVCC__ 1\n#endif\n#endif\n#ifdef __NVCC__\nint x;\n#endif\n"
            "#ifdef USE_ROCM\n#undef __NVCC__\n#endif\nint y;\n",
        ),
        Case(
            "#ifdef __NVCC__\nint x;\n#endif\n#ifdef __NVCC__\nint y;\n#endif\n",
            "#ifdef USE_ROCM\n#ifdef __HIPCC__\n#define __NVCC__ 1\n#endif\n#endif\n#ifdef __NVCC__\nint x;\n#endif\n"
            "#ifdef __NVCC__\nint y;\n#endif\n#ifdef USE_ROCM\n#undef __NVCC__\n#endif\n",
        ),
    ),
)
def nvcc(file: CudaFile) -> Iterator[Found]:
    """Yield the outermost conditionals; those with nothing between them are one."""
    if _NAME in file.macros:
        return
    asked: list[tuple[int, int, Token]] = []
    for index in file.names(_NAME, shared=False):
        token = file.tokens[index]
        group = _asks(file, token)
        if group is None or (asked and group.start < asked[-1][1]):
            continue
        if asked and group.start == asked[-1][1]:
            asked[-1] = (asked[-1][0], group.end, asked[-1][2])
        else:
            asked.append((group.start, group.end, token))
    for start, end, token in asked:
        edits = (Edit(start, start, _DEFINE), Edit(end, end, _UNDEFINE))
        yield Found(token.start, token.end, "HIP's compiler does not define __NVCC__", edits)


def _asks(file: CudaFile, token: Token) -> Group | None:
    """Return the conditional that asks for the name alone; None where ROCm is thought of, or it stands in none."""
    branch = file.branch_of(token)
    if branch is None:
        return None
    group = file.groups[branch.group]
    if group.last < 0 or not file.shared(group.start) or treats_rocm(file, branch.group):
        return None
    return group
