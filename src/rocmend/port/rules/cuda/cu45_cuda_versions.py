"""Code chosen by the version of CUDA.

What it does:
  Finds conditionals on `CUDART_VERSION`, `CUDA_VERSION` and nvcc's version, which ROCm does not define.

Why it matters:
  What is not defined counts as 0: ROCm compiles what the source has for the oldest CUDA, if it has anything.

Use instead:
  A branch of its own for ROCm, or the condition with `|| defined(USE_ROCM)` where HIP has what the newer branch uses.

Fix safety:
  Nothing is rewritten: HIP_VERSION counts otherwise and must not be put in its place.

References:
  HIP porting guide, identifying the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_VERSIONS = (b"CUDART_VERSION", b"CUDA_VERSION", b"__CUDACC_VER_MAJOR__", b"__CUDACC_VER_MINOR__", b"__CUDACC_VER__")


@rule(
    "CU45",
    "Code chosen by the version of CUDA",
    Language.CUDA,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=_VERSIONS,
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",),
    valid=(
        "#if defined(USE_ROCM) || CUDART_VERSION >= 11000\nint x;\n#endif\n",
        "#ifdef USE_ROCM\nint x;\n#elif CUDA_VERSION >= 12000\nint y;\n#endif\n",
    ),
    invalid=(
        Case("#if CUDART_VERSION >= 11000\nint x;\n#endif\n", None),
        Case("#if CUDA_VERSION >= 12000\nint x;\n#else\nint y;\n#endif\n", None),
    ),
)
def cuda_versions(file: CudaFile) -> Iterator[Found]:
    """Yield the groups."""
    seen: set[int] = set()
    for index in file.names(*_VERSIONS, shared=False):
        token = file.tokens[index]
        branch = next((one for one in file.branches if one.directive == token.directive >= 0), None)
        if branch is None or branch.group in seen:
            continue
        seen.add(branch.group)
        members = [one for one in file.branches if one.group == branch.group]
        group = file.groups[branch.group]
        if not file.shared(group.start) or any(one.chosen is True and one.nvidia is False for one in members):
            continue
        words = {one.text for one in file.tokens if one.directive in {member.directive for member in members}}
        if b"USE_ROCM" in words or b"__HIP_PLATFORM_AMD__" in words or b"__HIPCC__" in words:
            continue
        compiled = next((one for one in members if one.chosen is not False), None)
        if compiled is not None and compiled.chosen is True and compiled.end > compiled.start:
            yield Found(
                token.start,
                token.end,
                f"ROCm compiles what is there for the oldest CUDA: the branch {file.condition_of(compiled)}",
                outcome=Outcome.NOTE,
            )
        else:
            yield Found(
                token.start,
                token.end,
                f"{token.text.decode()} is not defined on ROCm, which compiles nothing of this",
                remedy="Add `|| defined(USE_ROCM)` where HIP has what is used, or a branch for ROCm.",
            )
