"""Cooperative groups that HIP lacks, or that are wavefront-wide.

## What it does

Rewrites `cg::reduce`, `coalesced_threads()`, `binary_partition`, `labeled_partition`, and the votes and matches of
groups (`ballot`, `any`, `all`, `match_any`, `match_all`) to helpers; reports what HIP's cooperative groups do not have
(scans, `invoke_one`, `memcpy_async`, clusters) and tiles that are not known to have at most 32 threads.

## Why it matters

HIP's `coalesced_threads()` holds the active lanes of a wavefront: up to 64 on gfx9, where an array of 32, a count of
threads for each warp or a mask of 32 bits is wrong. Its ballots have 64 bits, so that what is shifted out of 32 stays.
Its tiles of up to 32 threads shuffle right on every wavefront; their votes named lanes that a wavefront of 32 does not
have in HIP 6. HIP has no `cooperative_groups/reduce.h`, and none of the headers for scans and copies: what
is used of those is reported, and the includes are not needed on ROCm.

## Use instead

`warp32_groups::reduce(tile, value, warp32_groups::plus<int>())`, `warp32_groups::coalesced_threads()` and so on, from
`warp32_groups.h`.

## Fix safety

Safe: the helpers' groups are those of the caller's own 32 lanes and their masks have 32 bits, as in CUDA; members of
the project's own types keep their meaning. Every thread of a group gets the value of `reduce`; sums of floating-point
numbers are combined in an order of their own, as CUDA leaves it open.

## References

- CUDA C++ programming guide, cooperative groups
- HIP, cooperative groups
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.constants import constant
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import Argument, arguments, call_at, template_end
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.sites import wave
from rocmend.port.wave.template_names import template_parameter
from rocmend.port.wave.tokens import text_at

_OPERATORS = (b"plus", b"less", b"greater", b"bit_and", b"bit_or", b"bit_xor")
_LACKING = (
    b"inclusive_scan exclusive_scan inclusive_scan_update exclusive_scan_update invoke_one invoke_one_broadcast "
    b"memcpy_async wait wait_prior reduce_update_async reduce_store_async cluster_group this_cluster"
).split()
_GROUPS = (b"coalesced_threads", b"binary_partition")
_ADDED = (b"labeled_partition",)
_MEMBERS = (b"ballot", b"match_any", b"match_all", b"any", b"all")
_KNOWN = frozenset(
    b"cooperative_groups coalesced_threads coalesced_group tiled_partition thread_block_tile this_thread_block".split()
)
_OWN_NAMES = (b"any", b"all")
"""Names that types which are no groups have too."""
_NEEDS = ("warp32_groups", "warp32")
_REDUCE = b"<cooperative_groups/reduce.h>"
_HEADERS = (_REDUCE, b"<cooperative_groups/scan.h>", b"<cooperative_groups/memcpy_async.h>")


@rule(
    "CU14",
    "Cooperative groups that HIP lacks",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"cooperative_groups", b"coalesced_threads", b"cg::"),
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
        "float f(const V& v) {\n  return cg::reduce(v, cg::plus<float>());\n}\n",
        "namespace cg = cooperative_groups;\nbool f(const Tensor& t) {\n  return t.all(1) || t.any();\n}\n",
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
        gated(
            ("#include <cooperative_groups/scan.h>"),
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
        gated(
            "  auto g = cooperative_groups::coalesced_threads();\n  return g.ballot(v) >> (threadIdx.x % 32);",
            "  auto g = warp32_groups::coalesced_threads();\n"
            "  return warp32_groups::ballot(g, v) >> (threadIdx.x % 32);",
            "#include <cooperative_groups.h>\n__device__ int f(int v) {\n",
            "}\n",
        ),
        gated(
            "  coalesced_group g = coalesced_threads();",
            "  coalesced_group g = warp32_groups::coalesced_threads();",
            "using namespace cooperative_groups;\n__device__ int f(int v) {\n",
            "  return g.size();\n}\n",
        ),
        gated(
            "  return reduce(tile, v, plus<int>());",
            "  return warp32_groups::reduce(tile, v, warp32_groups::plus<int>());",
            (
                "#ifdef USE_ROCM\n#include <hip/hip_cooperative_groups.h>\n#else\n"
                "#include <cooperative_groups/reduce.h>\n#endif\n"
                "using namespace cooperative_groups;\n__device__ int f(thread_block_tile<32> tile, int v) {\n"
            ),
            "}\n",
        ),
        gated(
            "  return __ffs(tile.match_any(v)) + tile.any(v);",
            "  return __ffs(warp32_groups::match_any(tile, v)) + warp32_groups::any(tile, v);",
            "namespace cg = cooperative_groups;\n__device__ int f(cg::thread_block_tile<16> tile, int v) {\n",
            "}\n",
        ),
        Case(
            (
                "namespace cg = cooperative_groups;\nconstexpr int kSize = 64;\n__device__ int f(int v) {\n"
                "  return cg::tiled_partition<kSize>(cg::this_thread_block()).shfl(v, 0);\n}\n"
            ),
            None,
        ),
        gated(
            "  auto g = labeled_partition(tiled_partition<32>(this_thread_block()), v);",
            "  auto g = warp32_groups::labeled_partition(tiled_partition<32>(this_thread_block()), v);",
            "using namespace cooperative_groups;\n__device__ int f(int v) {\n",
            "  return g.size();\n}\n",
        ),
        Case(
            (
                "namespace cg = cooperative_groups;\n__device__ int f(cg::coalesced_group lanes) {\n"
                "  auto g = cg::tiled_partition(lanes, 4);\n  return g.size();\n}\n"
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
        if header in _HEADERS and file.shared(directive.start):
            token = file.tokens[directive.first + 2]
            edit = Edit(token.start, token.end, b"<hip/hip_cooperative_groups.h>")
            needs = _NEEDS if header == _REDUCE else ()  # what else the others declare is reported where it is used
            yield Found(token.start, token.end, f"HIP has no {header.decode().strip('<>')}", (edit,), needs=needs)
    for index in file.names(b"reduce", *_OPERATORS, *_GROUPS, *_ADDED):
        first = _qualified(file, index, names)
        if first >= 0:
            token = file.tokens[index]
            edit = Edit(file.tokens[first].start, token.end, b"warp32_groups::" + token.text)
            what = (
                f"HIP's {token.text.decode()} spans the wavefront (64 lanes on gfx9)"
                if token.text in _GROUPS
                else f"HIP's cooperative groups have no {token.text.decode()}"
            )
            yield Found(edit.start, edit.end, what, (edit,), needs=_NEEDS)
    for index in file.names(*_LACKING):
        if _qualified(file, index, names) >= 0:
            token = file.tokens[index]
            what = f"HIP's cooperative groups have no {token.text.decode()}"
            yield _manual(token.start, token.end, what, "Implement it with shfl and size, or with shared memory (LDS).")
    yield from _tiles(file)
    yield from _votes(file)


def _manual(start: int, end: int, message: str, remedy: str) -> Found:
    return Found(start, end, message, outcome=Outcome.MANUAL, remedy=remedy)


def _namespaces(file: CudaFile) -> set[bytes]:
    """Return the names by which the file reaches the namespace; the empty one where it has opened it."""
    names = {b"cooperative_groups"}
    of_others = any(file.tokens[index - 1].text == b"namespace" for index in file.names(b"cg", shared=False))
    if not of_others and not _KNOWN.isdisjoint(file.all_names):
        names.add(b"cg")  # as everybody calls it, in a header
    for index in file.names(b"namespace", shared=False):
        words = [token.text for token in file.tokens[index + 1 : index + 4]]
        if len(words) == 3 and words[1:] == [b"=", b"cooperative_groups"]:
            names.add(words[0])
        elif words[:1] == [b"cooperative_groups"] and text_at(file, index - 1) == b"using":
            names.add(b"")
    return names


def _qualified(file: CudaFile, index: int, names: set[bytes]) -> int:
    """Return the index of the namespace's name before a name, or of the name where it needs none; -1 for others."""
    before = text_at(file, index - 1)
    if before == b"::":
        return index - 2 if text_at(file, index - 2) in names - {b""} else -1
    token = file.tokens[index]
    bare = (
        (token.text in _BARE or _of_reduce(file, token.text))
        and before not in (b".", b"->", b"struct", b"class")
        and b"" in names
    )
    called = text_at(file, index + 1) in (b"(", b"<")
    own = any(one.name.text == token.text for one in file.functions) or token.text in file.macros
    return index if bare and called and not own and file.declaration_of(token.text, token.start) is None else -1


def _of_reduce(file: CudaFile, name: bytes) -> bool:
    """Tell whether a bare name is that of a reduction: its header is included, and no other such namespace is open."""
    if name != b"reduce" and name not in _OPERATORS:
        return False
    opened = {
        text_at(file, index + 2)
        for index in file.names(b"using", shared=False)
        if text_at(file, index + 1) == b"namespace"
    }
    included = any(header == _REDUCE for header, _ in file.includes)
    return included and not opened & {b"std", b"thrust"}


_BARE = frozenset((*_GROUPS, *_ADDED, *_LACKING)) - {b"wait"}


def _tiles(file: CudaFile) -> Iterator[Found]:
    """Yield the tiles that are not known to lie in 32 lanes."""
    for index in file.names(b"tiled_partition", b"thread_block_tile"):
        token = file.tokens[index]
        if text_at(file, index + 1) == b"<":
            end = template_end(file.tokens, file.partner, index + 1)
            given = arguments(file.tokens, file.partner, index + 1, end) if end > 0 else ()
            size = constant(file, given[0], token.start) if given else None
            known = given and given[0].last - given[0].first == 1 and _is_32(file, given[0].first)
            if not known and (size is None or size > 32):
                shown = file.data[given[0].start : given[0].end].decode("utf-8", "replace") if given else "some"
                yield _manual(
                    token.start,
                    token.end,
                    f"a tile of {shown} threads may exceed 32, the wavefront size of gfx10 to gfx12",
                    "Use tiles of at most 32 threads, and combine their results in LDS.",
                )
            continue
        call = call_at(file.tokens, file.partner, index)
        if call is None or call.declares or len(call.args) != 2:
            continue
        size = constant(file, call.args[1], call.start)
        if size is not None and size > 32:
            yield _manual(
                call.start,
                call.end,
                f"a tile of {size} threads exceeds 32, the wavefront size of gfx10 to gfx12",
                "Use tiles of at most 32 threads, and combine their results in LDS.",
            )
        elif not _of_a_block(file, call.args[0]):
            yield _manual(
                call.start,
                call.end,
                "HIP partitions a coalesced group wrongly on 64-lane wavefronts",
                "Partition the block instead, or use binary_partition.",
            )


def _is_32(file: CudaFile, at: int) -> bool:
    """Tell whether a size is CUDA's `warpSize`, which CU09 ports, or a template's parameter, which HIP checks."""
    name = file.tokens[at].text
    if name == b"warpSize":
        return wave(file).other_width is None
    return any(template_parameter(file, index) for index in file.names(name, shared=False))


def _of_a_block(file: CudaFile, group: Argument) -> bool:
    """Tell whether what is divided is a block."""
    words = {token.text for token in file.tokens[group.first : group.last]}
    if group.last - group.first == 1:
        token = file.tokens[group.first]
        declared = file.declaration_of(token.text, token.start)
        if declared is not None:
            words = set(declared.type.replace(b"::", b" ").split())
            if declared.value is not None:
                words |= {one.text for one in file.tokens[declared.value.first : declared.value.last]}
    return bool(words & {b"this_thread_block", b"thread_block"}) and b"coalesced_threads" not in words


def _votes(file: CudaFile) -> Iterator[Found]:
    """Yield the votes and matches of groups."""
    if _KNOWN.isdisjoint(file.all_names):
        return
    for index in file.names(*_MEMBERS):
        sign = text_at(file, index - 1)
        if sign not in (b".", b"->") or text_at(file, index + 1) != b"(" or text_at(file, index + 2) == b")":
            continue
        token, group = file.tokens[index], file.tokens[index - 2]
        function = file.function_at(token.start)
        simple = sign == b"." and group.kind == Kind.NAME and text_at(file, index - 3) not in (b".", b"->", b"::")
        if token.text in _OWN_NAMES and not (function is not None and function.on_device) and token.directive < 0:
            continue
        what = f"{token.text.decode()} of a group has one bit per lane of the wavefront in HIP"
        if not simple:
            yield _manual(token.start, token.end, what, "Give the group a variable of its own, then port again.")
            continue
        edit = Edit(group.start, file.tokens[index + 1].end, b"warp32_groups::%s(%s, " % (token.text, group.text))
        yield Found(group.start, token.end, what, (edit,), needs=_NEEDS)
