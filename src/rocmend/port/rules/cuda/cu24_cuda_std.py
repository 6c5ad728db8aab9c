"""libcu++: `cuda::std` and related headers.

What it does:
  Replaces `cuda::std::` with the standard header and `std::` for compile-time features
  (limits, type traits, integer types). The others are reported.

Why it matters:
  libcu++ is part of the CUDA toolkit; ROCm does not include it.

Use instead:
  The standard library where it is `constexpr`: HIP's compiler takes such functions in device code. libhipcxx, or
  HIP's `__hip_atomic_*` builtins with a scope, for atomics; `__syncthreads()` for barriers and pipelines.

Fix safety:
  Safe for the names that are rewritten: they are types and constants with the same meaning. Nothing is rewritten in a
  file that uses any other name of `cuda::`.

References:
  libcu++ documentation. libhipcxx: https://github.com/ROCm/libhipcxx
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_HEADERS = {
    b"<cuda/std/%s>" % name: b"<%s>" % name
    for name in (b"limits", b"type_traits", b"cstdint", b"cstddef", b"climits", b"cfloat")
}
_NAMES = frozenset(
    b"numeric_limits is_same is_same_v conditional conditional_t enable_if enable_if_t decay decay_t remove_reference "
    b"remove_reference_t remove_cv remove_cv_t remove_const remove_const_t is_integral is_integral_v is_floating_point "
    b"is_floating_point_v is_signed is_signed_v is_unsigned is_unsigned_v is_arithmetic is_arithmetic_v is_pointer "
    b"is_pointer_v integral_constant true_type false_type make_unsigned make_unsigned_t make_signed make_signed_t "
    b"underlying_type underlying_type_t is_trivially_copyable is_trivially_copyable_v int8_t int16_t int32_t int64_t "
    b"uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t uintptr_t intptr_t".split()
)
_REMEDY = "Use libhipcxx, HIP's __hip_atomic_* builtins with a scope, __syncthreads(), or the standard library."


@rule(
    "CU24",
    "libcu++",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"cuda/", b"cuda::"),
    sources=("https://nvidia.github.io/cccl/libcudacxx/", "https://github.com/ROCm/libhipcxx"),
    valid=(
        "#include <limits>\nconstexpr int m = std::numeric_limits<int>::max();\n",
        "#include <thrust/system/cuda/execution_policy.h>\nauto p = thrust::cuda::par;\n",
        "auto stream = at::cuda::getCurrentCUDAStream();\n",
        (
            "#ifdef USE_ROCM\nnamespace cuda { namespace std = ::std; }\n#else\n#include <cuda/std/utility>\n#endif\n"
            "template <typename T> T &&pass(T &&v) { return ::cuda::std::forward<T>(v); }\n"
        ),
    ),
    invalid=(
        Case(
            "#include <cuda/std/limits>\nconstexpr int m = cuda::std::numeric_limits<int>::max();\n",
            "#ifdef USE_ROCM\n#include <limits>\nconstexpr int m = std::numeric_limits<int>::max();\n"
            "#else\n#include <cuda/std/limits>\nconstexpr int m = cuda::std::numeric_limits<int>::max();\n#endif\n",
        ),
        Case("#include <cuda/atomic>\ncuda::atomic<int> a;\n", None),
        Case("#include <cuda/std/limits>\ncuda::std::array<int, 2> a;\n", None),
    ),
)
def libcudacxx(file: CudaFile) -> Iterator[Found]:
    """Yield the headers and the names."""
    every = [
        (name, number)
        for name, number in file.includes
        if name.startswith(b"<cuda/") and file.on_rocm(file.directives[number].start)
    ]
    if _has_own(file):
        return
    # What stands on the ROCm side alone counts too: an earlier port may have put it there.
    known = all(name in _NAMES for _, _, name in _uses(file)) and all(name in _HEADERS for name, _ in every)
    included = [(name, number) for name, number in every if file.shared(file.directives[number].start)]
    uses = [use for use in _uses(file) if file.shared(file.tokens[use[0]].start)]
    for name, number in included:
        header = file.tokens[file.directives[number].first + 2]
        if known:
            edits = (Edit(header.start, header.end, _HEADERS[name]),)
            yield Found(header.start, header.end, f"{name.decode()} is a header of libcu++", edits)
        else:
            message = f"ROCm has no {name.decode('utf-8', 'replace')}"
            yield Found(header.start, header.end, message, outcome=Outcome.MANUAL, remedy=_REMEDY)
    for first, last, name in uses:
        start, end = file.tokens[first].start, file.tokens[last].end
        message = f"{file.data[start:end].decode('utf-8', 'replace')} is libcu++'s"
        if known:
            yield Found(start, end, message, (Edit(start, file.tokens[last - 1].end, b"std::"),))
        elif not included or name not in _NAMES:
            yield Found(start, end, message, outcome=Outcome.MANUAL, remedy=_REMEDY)


def _has_own(file: CudaFile) -> bool:
    """Tell whether the code for ROCm alone gives the namespace a meaning: what it lacks does not compile."""
    for index in file.names(b"cuda", shared=False):
        around = [token.text for token in file.tokens[index - 1 : index + 2 : 2]]
        at = file.tokens[index].start
        if around == [b"namespace", b"{"] and file.on_rocm(at) and not file.shared(at):
            return True
    return False


def _uses(file: CudaFile) -> Iterator[tuple[int, int, bytes]]:
    """Yield the first and last token of each name of ``cuda::`` that ROCm compiles, and what is named.

    Nothing is named where it is not of ``cuda::std``.
    """
    tokens = file.tokens
    for index in file.names(b"cuda", shared=False):
        if not file.on_rocm(tokens[index].start) or index + 2 >= len(tokens) or tokens[index + 1].text != b"::":
            continue
        before = tokens[index - 1].text if index else b""
        first = index
        if before == b"::":
            if index >= 2 and tokens[index - 2].kind == "name" and tokens[index - 2].text not in (b"return", b"else"):
                continue  # thrust::cuda, at::cuda
            first = index - 1
        if tokens[index + 2].text == b"std" and index + 4 < len(tokens) and tokens[index + 3].text == b"::":
            yield first, index + 4, tokens[index + 4].text
        elif tokens[index + 2].text in _OTHERS:
            yield first, index + 2, b""


_OTHERS = frozenset(
    b"atomic atomic_ref barrier pipeline thread_scope_block thread_scope_device thread_scope_system memcpy_async "
    b"thread_scope_thread annotated_ptr counting_semaphore binary_semaphore latch device ptx proclaim_return_type "
    b"minimum maximum memory_order_relaxed memory_order_acquire memory_order_release memory_order_acq_rel std "
    b"aligned_size_t atomic_thread_fence make_pipeline pipeline_shared_state access_property".split()
)
