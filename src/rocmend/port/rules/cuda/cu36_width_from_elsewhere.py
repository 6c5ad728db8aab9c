"""A warp size defined in another file.

## What it does

Finds functions that use a constant for a warp's size (`WARP_SIZE`, `kWarpSize`, `THREADS_PER_WARP`) which the file
does not define, or only as a default, and adds a `static_assert` that it is 32.

## Why it matters

Cross-lane operations use 32 lanes after the port. Where the constant comes from a header that was ported by
hand with another width (`#ifdef USE_ROCM`, `#define WARP_SIZE 64`), the two disagree, and the result is wrong on gfx9
with no warning.

## Use instead

No change if the project's warps have 32 lanes: the assertion holds. If it fails, make both widths the same; CU07
reports the header.

## Fix safety

Safe: it changes no value. A build that it stops would have given wrong results on wavefronts of 64 lanes.

## References

- HIP porting guide, warp size
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.template_names import template_parameter
from rocmend.port.wave.tokens import text_at
from rocmend.port.wave.widths import names_a_width

_LIBRARIES = frozenset((b"warpSize", b"C10_WARP_SIZE"))


def _asserting(head: str, body: str) -> Case:
    """Return the case of a function that begins with the assertion on the ROCm side."""
    indent, name = body[: len(body) - len(body.lstrip())], body.split()[3].rstrip(";")
    told = f'{indent}static_assert({name} == 32, "warps have 32 lanes in ported code");\n'
    return Case(head + body, f"{head}#ifdef USE_ROCM\n{told}#endif\n{body}")


@rule(
    "CU36",
    "Warp size from another file",
    Language.CUDA,
    severity=Severity.WARNING,
    outcome=Outcome.AUTO,
    triggers=(b"WARP", b"arpS", b"arp_s", b"arp_S", b"arpW", b"arp_w", b"arpT", b"arp_t", b"er_warp", b"erWarp"),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",),
    valid=(
        "template <int N>\n__device__ int f() {\n  using T = Traits<N>;\n  return threadIdx.x % T::kWarpSize;\n}\n",
        "#define WARP_SIZE 32\n__device__ int f() {\n  return threadIdx.x % WARP_SIZE;\n}\n",
        "template <int WARP_SIZE>\n__device__ int f() {\n  return threadIdx.x % WARP_SIZE;\n}\n",
        "int f(const P& p) {\n  return p.warp_size;\n}\n",
    ),
    invalid=(
        _asserting(
            "template <typename Traits>\n__device__ int f() {\n", "  return threadIdx.x % Traits::kWarpSize;\n}\n"
        ),
        _asserting(
            "#ifndef WARP_SIZE\n#define WARP_SIZE 32\n#endif\n__device__ int f() {\n",
            "  return threadIdx.x % WARP_SIZE;\n}\n",
        ),
        _asserting('#include "common.cuh"\n__device__ int f(int v)\n{\n', "\treturn v / THREADS_PER_WARP;\n}\n"),
        gated(
            "__device__ int f() { return threadIdx.x % WARP_SIZE; }",
            '__device__ int f() { static_assert(WARP_SIZE == 32, "warps have 32 lanes in ported code"); '
            "return threadIdx.x % WARP_SIZE; }",
            '#include "common.cuh"\n',
        ),
    ),
)
def width_from_elsewhere(file: CudaFile) -> Iterator[Found]:
    """Yield the functions, each with the first use in it."""
    if b"sycl::" in file.data:
        return  # another language's kernels, whose sub-groups are no warps of CUDA
    done: set[tuple[int, bytes]] = set()
    for name in [name for name in file.all_names if names_a_width(name) and name not in _LIBRARIES]:
        own = name in file.macros and not _may_be_given(file, name)
        if own or file.declarations_of(name) or _of_a_template(file, name):
            continue
        for index in file.names(name):
            token = file.tokens[index]
            function = file.function_at(token.start)
            if function is None or token.directive >= 0 or not _plain_use(file, index):
                continue
            first = _whole_name(file, index, function.start)
            if first < 0 or not function.start < token.start < function.end:
                continue
            whole = b"".join(one.text for one in file.tokens[first : index + 1])
            if (function.start, whole) in done or _asserted(file, whole, token.start):
                continue
            done.add((function.start, whole))
            at = function.start + 1
            text = b'static_assert(%s == 32, "warps have 32 lanes in ported code");' % whole
            line = _EMPTY.match(file.data, at)
            if line is not None:  # a line of its own
                at, text = line.end(), line["indent"] + text + line["end"]
            else:
                text = b" " + text
            what = f"{name.decode()} comes from another file, and cross-lane operations here use 32 lanes"
            yield Found(token.start, token.end, what, (Edit(at, at, text),))


_EMPTY = re.compile(rb"[ \t]*(?P<end>\r?\n)(?=(?P<indent>[ \t]*))")
"""The rest of a line that a bracket ends, and the blanks that the next one begins with."""


def _plain_use(file: CudaFile, index: int) -> bool:
    """Tell whether a name is used for what it is: no member of an object, no call, no assignment to it."""
    before = file.tokens[index - 1].text if index else b""
    after = file.tokens[index + 1].text if index + 1 < len(file.tokens) else b""
    return before not in (b".", b"->") and after not in (b"(", b"=", b"::", b"<")


def _whole_name(file: CudaFile, index: int, since: int) -> int:
    """Return the index of the first token of ``name``, ``space::name`` or ``Traits::name``; -1 for more than names.

    A type that the function names itself is not known at the function's head.
    """
    while text_at(file, index - 1) == b"::":
        if file.tokens[index - 2].kind != Kind.NAME:
            return -1
        index -= 2
    known = text_at(file, index)
    for at in file.names(known, shared=False):
        if since <= file.tokens[at].start < file.tokens[index].start and (
            text_at(file, at + 1) in (b"=", b";") or text_at(file, at - 1) in (b"struct", b"class")
        ):
            return -1
    return -1 if known in (b"std", b"cuda", b"c10", b"at") else index


def _may_be_given(file: CudaFile, name: bytes) -> bool:
    """Tell whether the file defines a macro only where nobody has before: the build or another file may."""
    for macro in file.macros[name]:
        branch = file.branch_at(macro.name.start)
        if branch is None:
            return False
        directive = file.directives[branch.directive]
        words = [token.text for token in file.tokens[directive.first + 1 : directive.last]]
        if words not in ([b"ifndef", name], [b"if", b"!", b"defined", b"(", name, b")"]):
            return False
    return True


def _of_a_template(file: CudaFile, name: bytes) -> bool:
    return any(template_parameter(file, index) for index in file.names(name, shared=False))


def _asserted(file: CudaFile, name: bytes, offset: int) -> bool:
    """Tell whether the function around an offset begins with the assertion, on the ROCm side."""
    floor = max((one.end for one in file.functions if one.end <= offset), default=0)
    for index in file.names(b"static_assert", shared=False):
        if not floor <= file.tokens[index].start < offset:
            continue
        closed = file.partner.get(index + 1, index + 1)
        if b"".join(one.text for one in file.tokens[index + 2 : closed]).startswith(name + b"=="):
            return True
    return False
