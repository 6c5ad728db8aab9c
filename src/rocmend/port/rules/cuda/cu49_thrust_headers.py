"""A Thrust algorithm without its header.

What it does:
  Includes the header of an algorithm on the ROCm side where a source that includes other headers of Thrust uses it
  without.

Why it matters:
  Thrust headers include other headers. rocThrust's include different ones, so a header that came along may be missing.

Use instead:
  The header that the documentation names for the algorithm.

Fix safety:
  Safe: an extra include changes nothing else.

References:
  rocThrust documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_OWN_HEADERS = (
    b"adjacent_difference complex copy count device_ptr device_vector equal fill for_each gather generate host_vector "
    b"inner_product merge mismatch partition reduce remove replace reverse scatter sequence sort swap transform "
    b"transform_reduce tuple uninitialized_copy uninitialized_fill unique shuffle pair binary_search find"
).split()
_HEADERS: dict[bytes, bytes] = {
    **{name: name for name in _OWN_HEADERS},
    b"all_of": b"logical",
    b"any_of": b"logical",
    b"none_of": b"logical",
    b"copy_if": b"copy",
    b"count_if": b"count",
    b"exclusive_scan": b"scan",
    b"inclusive_scan": b"scan",
    b"exclusive_scan_by_key": b"scan",
    b"inclusive_scan_by_key": b"scan",
    b"find_if": b"find",
    b"lower_bound": b"binary_search",
    b"upper_bound": b"binary_search",
    b"max_element": b"extrema",
    b"min_element": b"extrema",
    b"minmax_element": b"extrema",
    b"reduce_by_key": b"reduce",
    b"remove_if": b"remove",
    b"replace_if": b"replace",
    b"sort_by_key": b"sort",
    b"stable_sort": b"sort",
    b"stable_sort_by_key": b"sort",
    b"stable_partition": b"partition",
    b"unique_by_key": b"unique",
    b"unique_copy": b"unique",
    b"transform_inclusive_scan": b"transform_scan",
    b"transform_exclusive_scan": b"transform_scan",
    b"device_pointer_cast": b"device_ptr",
    b"device": b"execution_policy",
    b"host": b"execution_policy",
    b"seq": b"execution_policy",
    b"plus": b"functional",
    b"maximum": b"functional",
    b"minimum": b"functional",
    b"greater": b"functional",
    b"less": b"functional",
    b"multiplies": b"functional",
}


@rule(
    "CU49",
    "Thrust algorithm without its header",
    Language.CUDA,
    severity=Severity.WARNING,
    outcome=Outcome.AUTO,
    triggers=(b"thrust::",),
    sources=("https://rocm.docs.amd.com/projects/rocThrust/en/latest/", "measured: rocThrust 6.4, HeCBench"),
    valid=(
        "#include <thrust/sort.h>\nvoid f() { thrust::sort(a, b); }\n",
        "void f() { thrust::sort(a, b); }\n",
    ),
    invalid=(
        Case(
            "#include <thrust/scan.h>\nvoid f() { thrust::sort(a, b); }\n",
            "#include <thrust/scan.h>\n#ifdef USE_ROCM\n#include <thrust/sort.h>\n#endif\n"
            "void f() { thrust::sort(a, b); }\n",
        ),
    ),
)
def thrust_headers(file: CudaFile) -> Iterator[Found]:
    """Yield each algorithm whose header is missing, where it is used first."""
    places = [(name, file.directives[number]) for name, number in file.includes if name.startswith(b"<thrust/")]
    shared = [directive for _, directive in places if file.branch_at(directive.start) is None]
    if not shared:
        return
    at = shared[-1].end
    there = {name for name, _ in places}
    missing: dict[bytes, int] = {}
    for index in file.names(b"thrust"):
        if index + 2 >= len(file.tokens) or file.tokens[index + 1].text != b"::":
            continue
        header = _HEADERS.get(file.tokens[index + 2].text)
        if header is not None and b"<thrust/" + header + b".h>" not in there:
            missing.setdefault(header, index)
    if not missing:
        return
    text = b"".join(b"#include <thrust/" + header + b".h>\n" for header in sorted(missing))
    first = min(missing.values())
    start, end = file.tokens[first].start, file.tokens[first + 2].end
    names = ", ".join(f"thrust/{header.decode()}.h" for header in sorted(missing))
    yield Found(start, end, f"used without {names}", (Edit(at, at, text),))
