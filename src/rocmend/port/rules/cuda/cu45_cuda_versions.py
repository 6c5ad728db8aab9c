"""Code selected by the CUDA version.

What it does:
  Finds conditionals on `CUDART_VERSION`, `CUDA_VERSION` and nvcc's version, which ROCm does not define.

Why it matters:
  An undefined macro counts as 0: ROCm compiles the code for the oldest CUDA, if there is any.

Use instead:
  A ROCm branch, or the condition with `|| defined(USE_ROCM)` where HIP has what the newer branch uses.
  A conditional in which a name of ROCm already decides is not reported.

Fix safety:
  A question for a release up to CUDA 9 alone is answered on the ROCm side as every CUDA in use answers it, where
  nothing that it decides has to be ported itself. Nothing else is rewritten: HIP_VERSION has another numbering and
  must not replace it.

References:
  HIP porting guide, identifying the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.conditions import Group
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.treated import treats_rocm
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.intrinsics import INTRINSICS

_VERSIONS = (b"CUDART_VERSION", b"CUDA_VERSION", b"__CUDACC_VER_MAJOR__", b"__CUDACC_VER_MINOR__", b"__CUDACC_VER__")

_RELEASES = (b"CUDART_VERSION", b"CUDA_VERSION")
_COMPARED = (b">=", b">", b"<", b"<=")
_NEEDS_A_PORT = INTRINSICS.keys() | frozenset(
    b"__device__ __global__ __shared__ threadIdx blockIdx warpSize asm __asm__ cooperative_groups cg cub nvcuda "
    b"texture tex1Dfetch tex1D tex2D tex3D __nanosleep C10_WARP_SIZE WARP_SHFL WARP_SHFL_DOWN WARP_SHFL_UP "
    b"WARP_SHFL_XOR WARP_BALLOT WARP_ACTIVE_MASK WARP_SYNC".split()
)
_OLD = 9000
"""CUDA 9.0, of 2017: no GPU that is sold needs an older one."""
_GIVEN = re.compile(rb"#define CUD(?:ART|A)_VERSION 9000\r?\n#endif\r?\n\Z")


@rule(
    "CU45",
    "Code selected by the CUDA version",
    Language.CUDA,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=_VERSIONS,
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",),
    valid=(
        "#if defined(USE_ROCM) || CUDART_VERSION >= 11000\nint x;\n#endif\n",
        "#ifdef USE_ROCM\nint x;\n#elif CUDA_VERSION >= 12000\nint y;\n#endif\n",
        "#if CUDA_VERSION >= 11000 && !defined(USE_ROCM)\nint x;\n#endif\n",
        "#if CUDA_VERSION >= 12000\nint x;\n#elif defined(USE_ROCM)\nint y;\n#endif\n",
        "#if HIP_VERSION >= 50000000 || CUDA_VERSION >= 11000\nint x;\n#endif\n",
        "#if defined(TORCH_HIP_VERSION) || CUDART_VERSION >= 11000\nint x;\n#endif\n",
    ),
    invalid=(
        Case("#if CUDART_VERSION >= 11000\nint x;\n#endif\n", None),
        Case(
            "#if CUDART_VERSION >= 9000\n#define HERE() __activemask()\n#else\n#define HERE() __ballot(1)\n#endif\n",
            None,
        ),
        Case(
            "#if CUDART_VERSION >= 2020\nint x;\n#else\nint y;\n#endif\n",
            "#ifdef USE_ROCM\n#define CUDART_VERSION 9000\n#endif\n#if CUDART_VERSION >= 2020\nint x;\n#else\nint y;\n"
            "#endif\n#ifdef USE_ROCM\n#undef CUDART_VERSION\n#endif\n",
        ),
        Case("#if CUDART_VERSION >= 2020\n#if CUDART_VERSION >= 11000\nint x;\n#endif\n#endif\n", None),
        Case("#if CUDART_VERSION >= 2020 && CUDART_VERSION / 1000 > 2\nint x;\n#endif\n", None),
        Case("#if CUDA_VERSION >= 12000\nint x;\n#else\nint y;\n#endif\n", None),
        Case("#if (defined(USE_CUDA) || defined(USE_ROCM)) && CUDA_VERSION >= 12000\nint x;\n#endif\n", None),
    ),
)
def cuda_versions(file: CudaFile) -> Iterator[Found]:
    """Yield the groups."""
    seen: set[int] = set()
    for index in file.names(*_VERSIONS, shared=False):
        token = file.tokens[index]
        branch = file.branch_of(token)
        if branch is None or branch.group in seen:
            continue
        seen.add(branch.group)
        members = file.members(branch.group)
        group = file.groups[branch.group]
        if not file.shared(group.start) or treats_rocm(file, branch.group):
            continue
        names = _of_old_releases(file, group)
        if names and _GIVEN.search(file.data, max(0, group.start - 120), group.start):
            continue  # by an earlier port
        if names:
            given = b"".join(b"#define %b %d\n" % (name, _OLD) for name in names)
            gone = b"".join(b"#undef %b\n" % name for name in names)
            edits = (Edit(group.start, group.start, given), Edit(group.end, group.end, gone))
            message = "every CUDA release in use is newer than the version tested, and HIP has these features"
            yield Found(token.start, token.end, message, edits, Outcome.AUTO)
            continue
        compiled = next((one for one in members if one.chosen is not False), None)
        if compiled is not None and compiled.chosen is True and compiled.end > compiled.start:
            yield Found(
                token.start,
                token.end,
                f"ROCm compiles the code for the oldest CUDA: the branch {file.condition_of(compiled)}",
                outcome=Outcome.NOTE,
            )
        else:
            yield Found(
                token.start,
                token.end,
                f"{token.text.decode()} is not defined on ROCm, so none of this is compiled",
                remedy="Add `|| defined(USE_ROCM)` if HIP has what is used, or add a ROCm branch.",
            )


def _of_old_releases(file: CudaFile, group: Group) -> list[bytes]:
    """Return the names that a group asks for, where it asks for nothing but releases up to CUDA 9; else none."""
    tokens = file.tokens
    found: set[bytes] = set()
    if any(
        name.startswith(b"<") and group.start <= file.directives[at].start < group.end for name, at in file.includes
    ):
        return []  # a library may ask for it too
    inside = range(file.token_at(group.start), file.token_at(group.end))
    function = file.function_at(group.start)
    if (function is not None and function.on_device) or any(tokens[index].text in _NEEDS_A_PORT for index in inside):
        return []  # other rules rewrite what ROCm compiles as it stands, which is the branch for the oldest CUDA
    for index in file.names(*_VERSIONS, shared=False):
        token = tokens[index]
        if not group.start <= token.start < group.end:
            continue
        number = tokens[index + 2].text.rstrip(b"uUlL") if index + 2 < len(tokens) else b""
        compared = token.directive >= 0 and number.isdigit() and tokens[index + 1].text in _COMPARED
        conditional = token.directive >= 0 and file.directives[token.directive].name in (b"if", b"elif")
        whole = compared and tokens[index - 1].text in (b"if", b"elif", b"(", b"&&", b"||", b"!")
        if token.text not in _RELEASES or not (whole and conditional) or int(number) > _OLD:
            return []
        found.add(token.text)
    return sorted(found) if file.data[group.end - 1 : group.end] == b"\n" else []
