"""Compute capability queried at run time.

What it does:
  Finds comparisons of `major` and `minor` of the device's properties and attributes, also of variables, numbers and
  functions made of them (`p.major * 10 + p.minor`, `sm_version()`); `switch`, tables and names of architectures that
  they choose; and what is given to code elsewhere.

Why it matters:
  HIP gives AMD's own numbers: 9 for gfx9, 10 to 12 for RDNA. A test like `major >= 8` is true, but meaningless.

Use instead:
  `prop.gcnArchName`, or the property that is needed (`warpSize`, `sharedMemPerBlock`).

Fix safety:
  Nothing is rewritten. A test that only refuses old GPUs passes and is a note; one that refuses AMD's numbers is not.
  One that chooses what is done, a kernel for Hopper on `major == 9` for instance, which gfx942 reports too, has to be
  ported by hand. Two devices that are compared with each other are not reported, nor is what is only printed.

References:
  HIP runtime API, hipDeviceProp_t.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.capability import AMD, Capabilities, Use, prints
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.operands import callee
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.statements import Statement, statement_at, walk
from rocmend.port.wave.tokens import text_at

_CHECKS = re.compile(rb"(?:\w*_)?(?:ASSERT|CHECK|assert|REQUIRE|ENFORCE)\w*")
_ASSERTS = re.compile(rb"(?:\w+_)?TORCH_(?:CHECK|INTERNAL_ASSERT)\w*|assert")
_ENDS = frozenset(b"throw exit abort _exit EXIT_FAILURE EXIT_WAIVED AT_ERROR".split())
_GOES_ON = frozenset((b"return", b"goto", b"break", b"continue", b";"))
"""What goes on elsewhere, where a kernel may be chosen: a refusal only if nothing but a message comes before it."""
_NUMBERS = "AMD GPUs report their own numbers: 9 for gfx9, 10 to 12 for RDNA"
_TOLD = {
    "compared": "This chooses by CUDA's",
    "chooses": "This chooses by CUDA's",
    "kept": "Code elsewhere gets them here, and may choose by CUDA's",
    "named": "The architecture named here is one of NVIDIA's",
}
_REMEDY = "On ROCm, choose by prop.gcnArchName or by the property that is needed."
_ATTRIBUTE = "cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);"


@rule(
    "CU47",
    "Compute capability queried at run time",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"major", b"minor", b"ComputeCapability", b"COMPUTE_CAPABILITY"),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api/index.html",),
    valid=(
        'void f(cudaDeviceProp p) { printf("%d", p.major); }\n',
        "bool f(Version v) { return v.major > 2; }\n",
        "void f(cudaDeviceProp p) {\n  int major = p.major;\n  std::cout << major << std::endl;\n}\n",
        "bool f(cudaDeviceProp a, cudaDeviceProp b) { return a.major * 10 + a.minor > b.major * 10 + b.minor; }\n",
        "bool f(cudaDeviceProp p, Version v) { return v.major > 2; }\n",
    ),
    invalid=(
        Case("bool f(cudaDeviceProp p) {\n  return p.major >= 8;\n}\n", None),
        Case("bool f(cudaDeviceProp p) {\n  return 8 <= p.major;\n}\n", None),
        Case("void f(cudaDeviceProp p) {\n  if (p.major >= 8) a<<<1, 1>>>(); else b<<<1, 1>>>();\n}\n", None),
        Case("void f(cudaDeviceProp* p) {\n  if (p->major < 7) throw 1;\n}\n", None),
        Case('void f(cudaDeviceProp p) {\n  if (p.major >= 8) { printf("fast"); a<<<1, 1>>>(); }\n}\n', None),
        Case("void f(cudaDeviceProp* p) {\n  int sm = p->major * 10 + p->minor;\n  fast = sm >= 80;\n}\n", None),
        Case("int f(cudaDeviceProp* p) {\n  return p->major * 10 + p->minor;\n}\n", None),
        Case("void f(cudaDeviceProp p) {\n  const int cc{p.major};\n  if (cc == 9) a<<<1, 1>>>();\n}\n", None),
        Case("void f(cudaDeviceProp p) {\n  switch (p.major) { case 9: a<<<1, 1>>>(); }\n}\n", None),
        Case(f"bool f() {{\n  int major;\n  {_ATTRIBUTE}\n  return major >= 8;\n}}\n", None),
        Case("int f(cudaDeviceProp p) {\n  return kBlocks[p.major];\n}\n", None),
        Case("void f(Info* info, cudaDeviceProp p) {\n  info->cc = p.major;\n}\n", None),
        Case("void f(cudaDeviceProp p) {\n  run(p.major, p.minor);\n}\n", None),
        Case("void f(cudaDeviceProp p) {\n  if (p.major != 8) exit(1);\n}\n", None),
        Case(
            'void f(cudaDeviceProp p) {\n  option = "--gpu-architecture=compute_" + std::to_string(p.major);\n}\n', None
        ),
    ),
)
def compute_capability(file: CudaFile) -> Iterator[Found]:
    """Yield what chooses, once for each statement."""
    found = Capabilities(file)
    told: set[int] = set()
    for use in found.uses:
        statement = _statement(file, use.at)
        if statement in told:
            continue
        told.add(statement)
        token = file.tokens[use.at]
        passes = _refuses(file, found, use)
        if passes:
            yield Found(token.start, token.end, _NUMBERS, outcome=Outcome.NOTE, severity=Severity.INFO)
        elif passes is False:
            yield Found(token.start, token.end, f"{_NUMBERS}. This refuses some or all of them", remedy=_REMEDY)
        else:
            yield Found(token.start, token.end, f"{_NUMBERS}. {_TOLD[use.how]}", remedy=_REMEDY)


def _statement(file: CudaFile, at: int) -> int:
    """Return the index before the statement around a token."""
    start = file.outline.statement_start[at]
    while start > 0 and file.tokens[start].text == b"(":
        start = file.outline.statement_start[start - 1]
    return start


def _refuses(file: CudaFile, found: Capabilities, use: Use) -> bool | None:
    """Tell whether AMD GPUs pass a test that does no more than to stop on some GPUs; None where it does more."""
    if use.how != "compared":
        return None
    opened = file.outline.around[use.at]
    while opened > 0:
        word = file.tokens[opened - 1].text if file.tokens[opened].text == b"(" else b""
        if _CHECKS.fullmatch(word):
            first = opened + 1
            commas = (at for at in range(first, file.partner[opened]) if file.tokens[at].text == b",")
            inside = (at for at in commas if file.outline.around[at] == opened)
            return _all(found, use, (first, next(inside, file.partner[opened])), wanted=True)
        if word == b"if":
            closed = file.partner[opened]
            does = _branch(file, closed + 1)
            return does == "says" or (_all(found, use, (opened + 1, closed), wanted=False) if does else None)
        if file.tokens[opened].text == b"{":
            return None
        opened = file.outline.around[opened]
    return None


def _all(found: Capabilities, use: Use, condition: tuple[int, int], *, wanted: bool) -> bool | None:
    """Tell whether a condition has a value on all AMD GPUs, as far as the capability decides it; None: not known."""
    for sample in range(len(AMD)):
        value = found.value(*condition, sample)
        if value is None:
            value = found.value(*use.where, sample)
        if value is None:
            return None
        if bool(value) is not wanted:
            return False
    return True


def _branch(file: CudaFile, first: int) -> str:
    """Return what the statement after an ``if`` does: ``stops``, ``says`` (prints only), or more: nothing.

    It does more where there is an ``else``.
    """
    branch = last = statement_at(file, first)
    if branch is None or last is None or text_at(file, branch.last) == b"else":
        return ""
    while last.kind == "block" and last.parts:
        last = last.parts[-1]
    plain = [one for one in walk(branch) if one.kind == "plain"]
    if not plain or b"<<<" in _words(file, branch):
        return ""
    if last.kind == "plain" and not _ENDS.isdisjoint(_words(file, last)):
        return "stops"
    kinds = {_kind(file, one) for one in plain}
    return "" if "" in kinds else "stops" if "stops" in kinds else "says"


def _words(file: CudaFile, one: Statement) -> set[bytes]:
    return {token.text for token in file.tokens[one.first : one.last]}


def _kind(file: CudaFile, one: Statement) -> str:
    """Return whether a statement ``stops``, if only on a condition or by the number it returns, or ``says`` a text."""
    words = _words(file, one)
    if one.keyword in _GOES_ON or not _ENDS.isdisjoint(words):
        return "" if b"(" in words and one.keyword == b"return" else "stops"
    opened = next((at for at in range(one.first, one.last) if file.tokens[at].text in (b"(", b"<<")), one.first)
    name = callee(file, opened) if file.tokens[opened].text == b"(" else text_at(file, opened - 1)
    if b"<<" not in words and file.partner.get(opened, -1) + 2 != one.last:
        return ""  # more than one call
    return "stops" if _ASSERTS.fullmatch(name) else "says" if prints(file, name, opened) else ""
