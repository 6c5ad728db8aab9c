"""Code compiled by nvcc only.

What it does:
  Defines `__NVCC__` or `__CUDACC__` on the ROCm side around conditionals that test for it, where HIP's compiler
  reads the source.

Why it matters:
  `#ifdef __CUDACC__` hides device code from host compilers. HIP's compiler defines `__HIPCC__` instead: kernels,
  and the `__host__ __device__` of shared headers, silently vanish.

Use instead:
  `#if defined(__CUDACC__) || defined(__HIPCC__)`.

Fix safety:
  Safe: the name is defined for these conditionals alone. A header that they include does not see it: with
  `__CUDACC__`, PyTorch's and Thrust's ask for CUDA's own. Nothing is written where PyTorch's build compiles all CUDA
  of a project: it reads `__CUDACC__` as `__HIPCC__` by itself, and a project that it builds for ROCm already decided
  what `__NVCC__` hides.

References:
  HIP porting guide, identifying the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.conditions import Group
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Token
from rocmend.port.cuda.torch_names import BUILT_BY_TORCH, SUPPORTED_BY_TORCH
from rocmend.port.cuda.treated import treats_rocm
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_NAMES = (b"__NVCC__", b"__CUDACC__")
_GIVE = '#pragma push_macro("%(name)s")\n#if defined(__HIPCC__) && !defined(%(name)s)\n#define %(name)s 1\n#endif\n'
_TAKE = '#pragma pop_macro("%(name)s")\n'
_GIVEN = re.compile(rb"#define (?:__NVCC__|__CUDACC__) 1\r?\n#endif\r?\n#endif\r?\n\Z")
_GIVEN_BYTES = 64


@rule(
    "CU51",
    "Code compiled by nvcc only",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=_NAMES,
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html", "measured: clang 21"),
    valid=(
        "#if defined(__NVCC__) || defined(__HIPCC__)\nint x;\n#endif\n",
        "#if defined(__NVCC__) && !defined(USE_ROCM)\nint x;\n#else\nint y;\n#endif\n",
        "#ifdef USE_ROCM\nint y;\n#else\n#ifdef __NVCC__\nint x;\n#endif\n#endif\n",
    ),
    invalid=(
        Case(
            "#ifdef __NVCC__\nint x;\n#endif\nint y;\n",
            f"#ifdef USE_ROCM\n{_GIVE % {'name': '__NVCC__'}}#endif\n#ifdef __NVCC__\nint x;\n#endif\n"
            f"#ifdef USE_ROCM\n{_TAKE % {'name': '__NVCC__'}}#endif\nint y;\n",
        ),
        Case(
            "#ifdef __CUDACC__\nint x;\n#endif\n#if defined(__CUDACC__)\nint y;\n#endif\n",
            f"#ifdef USE_ROCM\n{_GIVE % {'name': '__CUDACC__'}}#endif\n#ifdef __CUDACC__\nint x;\n#endif\n"
            f"#if defined(__CUDACC__)\nint y;\n#endif\n#ifdef USE_ROCM\n{_TAKE % {'name': '__CUDACC__'}}#endif\n",
        ),
        Case(
            "#ifdef __CUDACC__\nint a;\nint b;\nint c;\n#include <vector>\nint d;\nint e;\nint f;\n#endif\n",
            f"#ifdef USE_ROCM\n{_GIVE % {'name': '__CUDACC__'}}#endif\n#ifdef __CUDACC__\nint a;\nint b;\nint c;\n"
            f"#ifdef USE_ROCM\n{_TAKE % {'name': '__CUDACC__'}}#endif\n#include <vector>\n"
            f"#ifdef USE_ROCM\n{_GIVE % {'name': '__CUDACC__'}}#endif\nint d;\nint e;\nint f;\n#endif\n"
            f"#ifdef USE_ROCM\n{_TAKE % {'name': '__CUDACC__'}}#endif\n",
        ),
    ),
)
def nvcc(file: CudaFile) -> Iterator[Found]:
    """Yield the outermost conditionals; those with nothing between them are one."""
    for name in _NAMES:
        asked: list[tuple[int, int, Token]] = []
        for index in file.names(name, shared=False):
            token = file.tokens[index]
            group = _asks(file, token)
            if group is None or (asked and group.start < asked[-1][1]):
                continue
            if asked and group.start == asked[-1][1]:
                asked[-1] = (asked[-1][0], group.end, asked[-1][2])
            else:
                asked.append((group.start, group.end, token))
        for start, end, token in asked:
            if not _GIVEN.search(file.data, max(0, start - _GIVEN_BYTES), start):  # by an earlier port
                what = f"HIP's compiler does not define {name.decode()}"
                unless = (BUILT_BY_TORCH if name == b"__CUDACC__" else SUPPORTED_BY_TORCH,)
                yield Found(token.start, token.end, what, tuple(_edits(file, start, end, name)), unless=unless)


def _edits(file: CudaFile, start: int, end: int, name: bytes) -> Iterator[Edit]:
    """Yield what defines a name for some lines, but for what they include."""
    give, take = ((text % {"name": name.decode()}).encode() for text in (_GIVE, _TAKE))
    yield Edit(start, start, give)
    including: list[list[int]] = []
    for _, number in file.includes:
        one = file.directives[number]
        if start < one.start < end and file.shared(one.start):
            if including and including[-1][1] == one.start:
                including[-1][1] = one.end
            else:
                including.append([one.start, one.end])
    for first, last in including:
        yield Edit(first, first, take)
        yield Edit(last, last, give)
    yield Edit(end, end, take)


def _asks(file: CudaFile, token: Token) -> Group | None:
    """Return the conditional that asks for the name alone; None where ROCm is thought of, or it stands in none."""
    branch = file.branch_of(token)
    if branch is None:
        return None
    group = file.groups[branch.group]
    if group.last < 0 or not file.shared(group.start) or treats_rocm(file, branch.group):
        return None
    return group
