"""Compute capability queried at run time.

What it does:
  Finds comparisons of `major` and `minor` of the device's properties.

Why it matters:
  HIP gives AMD's own numbers: 9 for gfx9, 10 to 12 for RDNA. A test like `major >= 8` is true, but meaningless.

Use instead:
  `prop.gcnArchName`, or the property that is needed (`warpSize`, `sharedMemPerBlock`).

Fix safety:
  Nothing is rewritten. A test that only refuses old GPUs passes and is a note. One that chooses what is done, a kernel
  for Hopper on `major == 9` for instance, which gfx942 reports too, has to be ported by hand.

References:
  HIP runtime API, hipDeviceProp_t.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_COMPARISONS = frozenset((b"<", b">", b"<=", b">=", b"==", b"!="))
_CHECKS = re.compile(rb"(?:\w*_)?(?:ASSERT|CHECK|assert|REQUIRE|ENFORCE)\w*")
_REFUSES = frozenset(
    b"throw exit abort _exit assert printf fprintf cerr cout TORCH_CHECK AT_ERROR TORCH_CHECK_NOT_IMPLEMENTED "
    b"TORCH_WARN perror puts EXIT_FAILURE EXIT_WAIVED".split()
)


@rule(
    "CU47",
    "Compute capability queried at run time",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"major", b"ComputeCapabilityMajor"),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api/index.html",),
    valid=(
        'void f(cudaDeviceProp p) { printf("%d", p.major); }\n',
        "bool f(Version v) { return v.major > 2; }\n",
    ),
    invalid=(
        Case("bool f(cudaDeviceProp p) {\n  return p.major >= 8;\n}\n", None),
        Case("void f(cudaDeviceProp p) {\n  if (p.major >= 8) a<<<1, 1>>>(); else b<<<1, 1>>>();\n}\n", None),
        Case("void f(cudaDeviceProp* p) {\n  if (p->major < 7) throw 1;\n}\n", None),
        Case('void f(cudaDeviceProp p) {\n  if (p.major >= 8) { printf("fast"); a<<<1, 1>>>(); }\n}\n', None),
        Case("void f(cudaDeviceProp* p) {\n  int sm = p->major * 10 + p->minor;\n}\n", None),
    ),
)
def compute_capability(file: CudaFile) -> Iterator[Found]:
    """Yield the comparisons."""
    if not re.search(rb"[dD]eviceProp|ComputeCapabilityMajor", file.data):
        return
    for index in file.names(b"major"):
        before = file.tokens[index - 1].text if index else b""
        after = file.tokens[index + 1].text if index + 1 < len(file.tokens) else b""
        if before not in (b".", b"->") or not (after in _COMPARISONS or after == b"*"):
            continue
        token = file.tokens[index]
        message = "AMD GPUs report their own numbers: 9 for gfx9, 10 to 12 for RDNA"
        if _only_refuses(file, index):
            yield Found(token.start, token.end, message, outcome=Outcome.NOTE, severity=Severity.INFO)
        else:
            remedy = "On ROCm, choose by prop.gcnArchName or by the property that is needed."
            yield Found(token.start, token.end, f"{message}. This chooses by CUDA's", remedy=remedy)


def _only_refuses(file: CudaFile, index: int) -> bool:
    """Tell whether a test of a capability does no more than to stop on old GPUs."""
    opened = file.outline.around[index]
    while opened > 0:
        word = file.tokens[opened - 1].text if file.tokens[opened].text == b"(" else b""
        if _CHECKS.fullmatch(word):
            return True
        if word == b"if":
            return _refused(file, file.partner[opened] + 1)
        if file.tokens[opened].text == b"{":
            return False
        opened = file.outline.around[opened]
    return False


def _refused(file: CudaFile, first: int) -> bool:
    """Tell whether a statement stops the program or says something, and does nothing else."""
    if first >= len(file.tokens):
        return False
    if file.tokens[first].text == b"{":
        last = file.partner.get(first, first)
    else:
        last = next((at for at in range(first, len(file.tokens)) if file.tokens[at].text == b";"), first)
    after = file.tokens[last + 1].text if last + 1 < len(file.tokens) else b""
    words = [one.text for one in file.tokens[first : last + 1]]
    return after != b"else" and b"<<<" not in words and any(word in _REFUSES for word in words)
