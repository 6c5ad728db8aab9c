"""CUB features that hipCUB lacks or implements differently.

What it does:
  Finds CUB's votes, which are wavefront-wide in hipCUB, and CUB's dispatch layer.

Why it matters:
  `cub::WARP_ALL` covers 64 lanes on gfx9. Code that assumes 32 lanes is wrong, without a compiler warning. The dispatch
  layer and its policies are CUB's own.

Use instead:
  `threadIdx.x / 32` for a warp's number, `__all_sync` for a vote (both are ported); the collectives with an explicit
  width. Instead of manual dispatch, hipCUB's device-wide calls.

Fix safety:
  Nothing is rewritten. The compatibility header (CU40) handles headers and the namespace.

References:
  hipCUB documentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_LANES = {
    b"WARP_ALL": "a vote over the whole wavefront",
    b"WARP_ANY": "a vote over the whole wavefront",
    b"WARP_BALLOT": "a ballot over the whole wavefront",
    b"WARP_SYNC": "CUB's own",
    b"MatchAny": "a match over the whole wavefront",
}
_OWN = (
    b"ChainedPolicy",
    b"AgentRadixSortDownsweep",
    b"AgentReduce",
    b"AgentScan",
    b"DispatchReduce",
    b"DispatchScan",
    b"DispatchRadixSort",
)


@rule(
    "CU22",
    "CUB feature that hipCUB lacks or implements differently",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"cub",),
    sources=("https://rocm.docs.amd.com/projects/hipCUB/en/latest/", "measured: hipCUB 6.4 headers"),
    valid=(
        "using Reduce = cub::BlockReduce<float, 128>;\n",
        "int WarpId();\nint x = WarpId();\n",
    ),
    invalid=(
        Case("using namespace cub;\n__device__ int f(int v) {\n  return WARP_ALL(v, ~0u);\n}\n", None),
        Case("using P = cub::ChainedPolicy<350, A, B>;\n", None),
    ),
)
def hipcub(file: CudaFile) -> Iterator[Found]:
    """Yield each name where it is used first."""
    opened = b"using namespace cub" in file.data
    seen: set[bytes] = set()
    for index in file.names(*_LANES, *_OWN):
        token = file.tokens[index]
        qualified = index >= 2 and file.tokens[index - 1].text == b"::" and file.tokens[index - 2].text == b"cub"
        bare = opened and file.tokens[index - 1].text != b"::"
        own = any(one.name.text == token.text for one in file.functions)
        if token.text in seen or own or not (qualified or bare):
            continue
        seen.add(token.text)
        name = token.text.decode()
        if token.text in _LANES:
            message, remedy = (
                f"cub::{name} is {_LANES[token.text]}",
                "Compute the index within a logical 32-lane warp from threadIdx.",
            )
        else:
            message, remedy = f"hipCUB has no {name}", "Use hipCUB's device-wide call, or rocPRIM."
        yield Found(token.start, token.end, message, remedy=remedy)
