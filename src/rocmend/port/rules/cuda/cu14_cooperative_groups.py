"""Cooperative groups that HIP lacks, or that are as wide as a wavefront.

## What it does

Rewrites `cg::reduce` over a tile or a coalesced group, with its operators, to a helper; reports what HIP's
cooperative groups do not have (scans, `invoke_one`, `memcpy_async`, `labeled_partition`, clusters, tiles of more than
32 threads) and coalesced groups that are taken for a warp of 32.

## Why it matters

HIP has no `cooperative_groups/reduce.h`. Tiles of up to 32 threads are right on every wavefront. A coalesced group
holds the active lanes of a wavefront, so that it may have 64 threads on gfx9: code that takes only its size, rank and
shuffles is right with any number, an array of 32 or a mask of 32 bits is not.

## Use instead

`warp32_groups::reduce(tile, value, warp32_groups::plus<int>())`, from `warp32_groups.h`.

## Fix safety

Safe for `reduce`: every thread of the group gets the combined value, as in CUDA; sums of floating-point numbers are
combined in an order of their own, as CUDA leaves it open.

## References

- CUDA C++ programming guide, cooperative groups
- HIP, cooperative groups
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.tokens import text_at

_OPERATORS = (b"plus", b"less", b"greater", b"bit_and", b"bit_or", b"bit_xor")
_LACKING = (
    b"inclusive_scan exclusive_scan inclusive_scan_update exclusive_scan_update invoke_one invoke_one_broadcast "
    b"memcpy_async wait wait_prior reduce_update_async reduce_store_async labeled_partition cluster_group this_cluster"
).split()
_PLAIN = frozenset((b"size", b"num_threads", b"thread_rank", b"shfl", b"sync"))
_NEEDS = ("warp32_groups", "warp32")


@rule(
    "CU14",
    "Cooperative groups that HIP lacks",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"cooperative_groups",),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/cooperative_groups.html",
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cooperative-groups",
    ),
    valid=(
        (
            "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
            "__device__ int f(int v) {\n"
            "  auto tile = cg::tiled_partition<32>(cg::this_thread_block());\n"
            "  return tile.shfl_xor(v, 1);\n}\n"
        ),
        (
            "#include <cooperative_groups.h>\n__device__ int f(int* n) {\n"
            "  auto g = cooperative_groups::coalesced_threads();\n"
            "  int at = g.thread_rank() == 0 ? atomicAdd(n, g.size()) : 0;\n"
            "  return g.shfl(at, 0) + g.thread_rank();\n}\n"
        ),
    ),
    invalid=(
        gated(
            ("  return cg::reduce(tile, v, cg::plus<int>());"),
            ("  return warp32_groups::reduce(tile, v, warp32_groups::plus<int>());"),
            "namespace cg = cooperative_groups;\n__device__ int f(cg::thread_block_tile<32> tile, int v) {\n",
            "}\n",
        ),
        gated(
            ("#include <cooperative_groups/reduce.h>"),
            "#include <hip/hip_cooperative_groups.h>",
            "#include <cooperative_groups.h>\n",
        ),
        Case(
            (
                "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\nvoid f() {\n"
                "  auto tile = cg::tiled_partition<64>(cg::this_thread_block());\n}\n"
            ),
            None,
        ),
        Case(
            (
                "#include <cooperative_groups.h>\n__device__ int f(int v) {\n"
                "  auto g = cooperative_groups::coalesced_threads();\n"
                "  return g.ballot(v) >> (threadIdx.x % 32);\n}\n"
            ),
            None,
        ),
    ),
)
def cooperative_groups(file: CudaFile) -> Iterator[Found]:
    """Yield them."""
    names = _namespaces(file)
    for header, number in file.includes:
        directive = file.directives[number]
        if header == b"<cooperative_groups/reduce.h>" and file.shared(directive.start):
            token = file.tokens[directive.first + 2]
            edit = Edit(token.start, token.end, b"<hip/hip_cooperative_groups.h>")
            yield Found(token.start, token.end, "HIP has no cooperative_groups/reduce.h", (edit,), needs=_NEEDS)
    for index in file.names(b"reduce", *_OPERATORS):
        first = _qualified(file, index, names)
        if first >= 0:
            token = file.tokens[index]
            edit = Edit(file.tokens[first].start, token.end, b"warp32_groups::" + token.text)
            what = f"HIP's cooperative groups have no {token.text.decode()}"
            yield Found(edit.start, edit.end, what, (edit,), needs=_NEEDS)
    for index in file.names(*_LACKING):
        if _qualified(file, index, names) >= 0:
            token = file.tokens[index]
            what = f"HIP's cooperative groups have no {token.text.decode()}"
            yield _manual(token.start, token.end, what, "Write it with shfl and size, or with a block's own LDS.")
    for call in file.calls(b"tiled_partition"):
        size = file.data[call.template[0].start : call.template[0].end] if call.template else b""
        if size.isdigit() and int(size) > 32:
            what = f"a tile of {size.decode()} threads is more than a wavefront where that has 32 lanes"
            yield _manual(call.start, call.end, what, "Use tiles of 32 threads and combine their results in LDS.")
    yield from _coalesced(file)


def _manual(start: int, end: int, message: str, remedy: str) -> Found:
    return Found(start, end, message, outcome=Outcome.MANUAL, remedy=remedy)


def _namespaces(file: CudaFile) -> set[bytes]:
    """Return the names by which the file reaches the namespace."""
    names = {b"cooperative_groups"}
    for index in file.names(b"namespace", shared=False):
        words = [token.text for token in file.tokens[index + 1 : index + 4]]
        if len(words) == 3 and words[1:] == [b"=", b"cooperative_groups"]:
            names.add(words[0])
    return names


def _qualified(file: CudaFile, index: int, names: set[bytes]) -> int:
    """Return the index of the namespace's name before a name; -1 where there is none."""
    if index < 2 or file.tokens[index - 1].text != b"::" or file.tokens[index - 2].text not in names:
        return -1
    return index - 2


def _coalesced(file: CudaFile) -> Iterator[Found]:
    for call in file.calls(b"coalesced_threads", b"binary_partition"):
        at = call.at - (2 if file.tokens[call.at - 1].text == b"::" else 0)
        declared = at - 2 if at >= 2 and file.tokens[at - 1].text == b"=" else -1
        used = _members(file, declared) if declared >= 0 else {b""}
        if not used <= _PLAIN:
            yield _manual(
                call.start,
                call.end,
                "a coalesced group has up to 64 threads on gfx9, and a bit for each in its ballots",
                "Take only its size, rank and shuffles, or a tile of 32 threads.",
            )


def _members(file: CudaFile, declared: int) -> set[bytes]:
    """Return what is called of a group in its function; the empty name where the group itself is passed on."""
    used = set()
    name = file.tokens[declared]
    function = file.function_at(name.start)
    end = function.end if function is not None else len(file.data)
    for index in file.names(name.text):
        if not declared < index or file.tokens[index].start >= end:
            continue
        after = text_at(file, index + 1)
        used.add(text_at(file, index + 2) if after == b"." else b"")
    return used
