"""Warps of CUB: collectives without a number of lanes, lanes and widths.

## What it does

Replaces `cub::LaneId()`, `cub::LaneMaskLt()`, `CUB_PTX_WARP_THREADS` and similar names with 32-lane versions; passes
32 to `cub::WarpReduce`, `cub::WarpScan` and similar templates that have no thread count. Reports CUB's shuffles and
warp-striped arrangements.

## Why it matters

Their default is the hardware's warp: 64 lanes in hipCUB on gfx9. A reduction of 32 values becomes one of 64, and
storage for each 32 threads is shared by two.

## Use instead

`cub::WarpReduce<float, 32>`: hipCUB divides a wavefront of 64 lanes into two logical warps.

## Fix safety

Safe: 32 is what the default is on every NVIDIA GPU. Where the number of lanes is a name, it is looked up; one that is
not known to be at most 32 has to be ported by hand.

## References

- CUB, warp-wide collectives. hipCUB, warp-wide collectives
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.constants import constant
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.structure import arguments, template_end
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.tokens import text_at

_FIXED = {
    b"WarpReduce": 1,
    b"WarpScan": 1,
    b"WarpExchange": 2,
    b"WarpLoad": 3,
    b"WarpStore": 3,
    b"WarpMergeSort": 2,
}
"""How many template arguments come before the number of threads."""
_ROCPRIM = {b"warp_reduce": 1, b"warp_scan": 1, b"warp_exchange": 2, b"warp_load": 2, b"warp_store": 2, b"warp_sort": 1}
"""The same of rocPRIM's."""
_WIDTHS = {
    b"CUB_PTX_WARP_THREADS": b"32",
    b"CUB_WARP_THREADS": b"32",
    b"CUB_PTX_LOG_WARP_THREADS": b"5",
    b"CUB_LOG_WARP_THREADS": b"5",
}
_LANES = {
    b"LaneId": b"warp32_lane",
    b"LaneMaskLt": b"warp32_lanemask_lt",
    b"LaneMaskLe": b"warp32_lanemask_le",
    b"LaneMaskGt": b"warp32_lanemask_gt",
    b"LaneMaskGe": b"warp32_lanemask_ge",
}
_WARP_FUNCTIONS = (b"WarpId", b"WarpMask", b"ShuffleUp", b"ShuffleDown", b"ShuffleIndex", b"WarpAll", b"WarpAny")
_STRIPED = (
    b"WarpStripedToBlocked",
    b"BlockedToWarpStriped",
    b"ScatterToWarpStriped",
    b"LoadDirectWarpStriped",
    b"StoreDirectWarpStriped",
)
_DEEPEST = 4


@rule(
    "CU33",
    "Wavefront-wide CUB warp collective",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(
        b"CUB_",
        b"LaneId",
        b"LaneMask",
        b"WarpId",
        b"WarpMask",
        b"ShuffleUp",
        b"ShuffleDown",
        b"ShuffleIndex",
        b"WarpReduce",
        b"WarpScan",
        b"WarpExchange",
        b"WarpLoad",
        b"WarpStore",
        b"WarpMergeSort",
        b"WarpStriped",
        *_ROCPRIM,
    ),
    sources=(
        "https://nvidia.github.io/cccl/cub/",
        "https://rocm.docs.amd.com/projects/hipCUB/en/latest/",
    ),
    valid=(
        "using R = cub::WarpReduce<float, 32>;\n",
        "using R = cub::WarpReduce<float, 16>;\n",
        "using R = rocprim::warp_reduce<float, 32>;\nusing S = rocprim::warp_scan<float>;\n",
        "template <typename T>\nstruct WarpReduce {\n  T value;\n};\nWarpReduce<float> r;\n",
    ),
    invalid=(
        gated(
            "  int lane = cub::LaneId() + CUB_PTX_WARP_THREADS + __popc(cub::LaneMaskLt());",
            "  int lane = warp32_lane() + 32 + __popc(warp32_lanemask_lt());",
            "__device__ void f() {\n",
            "}\n",
        ),
        Case("__device__ int f(int v) {\n  return cub::ShuffleDown<32>(v, 1, 31, 0xffffffff);\n}\n", None),
        gated(
            "using Reduce = WarpReduce<float>;",
            "using Reduce = WarpReduce<float, 32>;",
            "using cub::WarpReduce;\n",
        ),
        gated(
            "using Reduce = c::WarpReduce<float>;",
            "using Reduce = c::WarpReduce<float, 32>;",
            "namespace c = at_cuda_detail::cub;\n",
        ),
        gated("using Reduce = cub::WarpReduce<float>;", "using Reduce = cub::WarpReduce<float, 32>;"),
        gated("  typedef cub::WarpScan<int> Scan;", "  typedef cub::WarpScan<int, 32> Scan;", "void f() {\n", "}\n"),
        Case("__device__ void f(int (&v)[4]) {\n  cub::LoadDirectWarpStriped(threadIdx.x, p, v);\n}\n", None),
        Case("using R = rocprim::warp_reduce<float, 64>;\n", None),
        Case("#ifdef USE_ROCM\nusing R = hipcub::WarpReduce<float, 64>;\n#endif\n", None),
        Case("template <int N>\nusing R = cub::WarpReduce<float, N>;\n", None),
    ),
)
def library_warps(file: CudaFile) -> Iterator[Found]:
    """Yield them."""
    yield from _lanes(file)
    yield from _striped(file)
    yield from _of_64_lanes(file)
    for index in file.names(*_FIXED):
        token = file.tokens[index]
        after = index + 1
        if after >= len(file.tokens) or file.tokens[after].text != b"<" or not _of_cub(file, index):
            continue
        end = template_end(file.tokens, file.partner, after)
        if end < 0:
            continue
        given = arguments(file.tokens, file.partner, after, end)
        name = token.text
        place = _FIXED[name]
        if len(given) > place:
            width = file.data[given[place].start : given[place].end]
            if not _at_most_32(file, width, index):
                yield _manual(token.start, file.tokens[end].end, f"{name.decode()} has {width.decode()} lanes")
        elif len(given) == place:
            at = given[-1].end
            yield Found(
                token.start,
                file.tokens[end].end,
                f"{name.decode()} is wavefront-wide in hipCUB: 64 lanes on gfx9",
                (Edit(at, at, b", 32"),),
            )
        else:
            yield _manual(token.start, file.tokens[end].end, f"{name.decode()} is wavefront-wide in hipCUB")


def _of_64_lanes(file: CudaFile) -> Iterator[Found]:
    """Yield the collectives of rocPRIM and hipCUB, also in code for ROCm alone, that need a wavefront of 64 lanes."""
    for index in file.names(*_ROCPRIM, *_FIXED, shared=False):
        token = file.tokens[index]
        spaces = {b"rocprim"} if token.text in _ROCPRIM else {b"hipcub"}
        after = index + 1
        if text_at(file, index - 1) != b"::" or text_at(file, index - 2) not in spaces or text_at(file, after) != b"<":
            continue
        end = template_end(file.tokens, file.partner, after)
        given = arguments(file.tokens, file.partner, after, end) if end > 0 and file.on_rocm(token.start) else []
        place = _FIXED[token.text] if token.text in _FIXED else _ROCPRIM[token.text]
        width = constant(file, given[place], token.start) if len(given) > place else None
        if width is not None and width > 32:
            name = f"{text_at(file, index - 2).decode()}::{token.text.decode()}"
            what = f"{name} has {width} lanes, and a wavefront has 32 on RDNA"
            remedy = "Use 32 lanes, or select the number per gfx target."
            yield Found(token.start, file.tokens[end].end, what, outcome=Outcome.MANUAL, remedy=remedy)


def _lanes(file: CudaFile) -> Iterator[Found]:
    """Yield CUB's names for lanes and widths."""
    for name, text in _WIDTHS.items():
        for index in file.names(name):
            token = file.tokens[index]
            if name in file.macros or (token.directive >= 0 and file.directives[token.directive].name != b"define"):
                continue
            after = index + 1
            called = after < len(file.tokens) and file.tokens[after].text == b"(" and after in file.partner
            end = file.tokens[file.partner[after]].end if called else token.end
            yield Found(
                token.start,
                end,
                f"{name.decode()} is per wavefront in hipCUB: 64 lanes on gfx9",
                (Edit(token.start, end, text),),
            )
    for call in file.calls(*_LANES, *_WARP_FUNCTIONS):
        if not _of_cub(file, call.at):
            continue
        if call.name.text in _LANES:
            edit = Edit(call.start, call.name.end, _LANES[call.name.text])
            what = f"cub::{call.name.text.decode()}() is per wavefront: lane indices go up to 63 on gfx9"
            yield Found(call.start, call.end, what, (edit,), needs=("warp32",))
        else:
            counts = call.name.text == b"WarpId"
            does = "counts wavefronts, which have 64 threads on gfx9," if counts else "works on a wavefront"
            what = f"{call.name.text.decode()} {does} in hipCUB"
            yield _manual(call.start, call.end, what)


def _striped(file: CudaFile) -> Iterator[Found]:
    """Yield the arrangements of values by warps: what a thread holds then depends on how many lanes those have."""
    for call in file.calls(*_STRIPED):
        yield Found(
            call.start,
            call.end,
            f"{call.name.text.decode()} arranges values per wavefront in hipCUB: threads get other values on gfx9",
            outcome=Outcome.MANUAL,
            remedy="Use the block-wide arrangement (StripedToBlocked and the like), or arrange the values by hand.",
        )


def _manual(start: int, end: int, message: str) -> Found:
    remedy = "Pass at most 32 lanes as the last template argument, or use the helpers of warp32.h."
    return Found(start, end, message, outcome=Outcome.MANUAL, remedy=remedy)


def _of_cub(file: CudaFile, index: int) -> bool:
    """Tell whether a name is CUB's: qualified, by an alias too, or used after ``using``."""
    spaces = _spaces(file)
    if index >= 2 and file.tokens[index - 1].text == b"::":
        return file.tokens[index - 2].text in spaces
    if index >= 1 and file.tokens[index - 1].text in (b".", b"->", b"struct", b"class"):
        return False
    name = file.tokens[index].text
    if any(file.tokens[at - 1].text in (b"struct", b"class") for at in file.names(name, shared=False) if at):
        return False
    for at in file.names(b"using", shared=False):
        words = [text_at(file, at + step) for step in (1, 2)]
        if words[0] == b"namespace" and words[1] in spaces:
            return True
        end = at
        while text_at(file, end) not in (b";", b"=", b"{", b""):
            end += 1
        if text_at(file, end) == b";" and text_at(file, end - 1) == name and text_at(file, end - 3) in spaces:
            return True
    return False


def _spaces(file: CudaFile) -> set[bytes]:
    """Return the names by which the file reaches CUB's namespace."""
    names = {b"cub", b"hipcub"}
    for at in file.names(b"namespace", shared=False):
        if text_at(file, at + 2) == b"=":
            end = at + 3
            while text_at(file, end + 1) == b"::":
                end += 2
            if text_at(file, end) in names:
                names.add(text_at(file, at + 1))
    return names


def _at_most_32(file: CudaFile, width: bytes, index: int, depth: int = 0) -> bool:
    """Tell whether a number of lanes is known to be at most 32."""
    number = width.strip().rstrip(b"uUlL")
    if number.isdigit():
        return int(number) <= 32
    if depth > _DEEPEST:
        return False
    for macro in file.macros.get(number, ()):
        if not _at_most_32(file, file.data[macro.start : macro.end], index, depth + 1):
            return False
    if number in file.macros:
        return True
    declared = (
        file.declaration_of(number, file.tokens[index].start) if number.decode("latin-1").isidentifier() else None
    )
    if declared is None or declared.value is None or not declared.qualifiers & {b"constexpr", b"const"}:
        return False
    return _at_most_32(file, file.data[declared.value.start : declared.value.end], index, depth + 1)
