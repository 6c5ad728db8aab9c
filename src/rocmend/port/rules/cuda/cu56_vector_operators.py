"""Operators of CUDA's vector types that a project defines, and HIP has.

## What it does

Finds operators that a project defines for `float2`, `int4` and the like and that HIP's vector types have as members
or friends: `*` and `/` of two vectors, and all assignments (`+=`, `*=` …) of a vector to a vector. `helper_math.h` of
NVIDIA's samples has them, and the many files that were made after it.

## Why it matters

CUDA's vector types have no operators, HIP's do. Where both match equally, compilation fails: `use of overloaded
operator '*' is ambiguous`. Operators that HIP has as templates (`+`, `-`, a vector with a number) do not matter: the
project's own is used.

## Use instead

HIP's own operator where it computes the same; otherwise a named function.

## Fix safety

The definition is left out on the ROCm side only where its body is seen to work component by component in the order of
its operands, as HIP's does. All others have to be ported by hand: an operator `*` that is a dot product must not
become HIP's.

## References

- HIP's amd_hip_vector_types.h, 6.4 and 7.1
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Token
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_VECTOR = re.compile(rb"(?:u?(?:char|short|int|long|longlong)|float|double)([2-4])")
_BINARY = (b"*", b"/")
_ASSIGNING = (b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"<<=", b">>=")
_MEMBERS = (b"x", b"y", b"z", b"w")
_QUALIFIERS = frozenset(
    b"inline __inline__ __forceinline__ __host__ __device__ static constexpr __noinline__ const".split()
)


class _Operator(NamedTuple):
    """An operator of two vectors: its sign, the vectors' type, its operands' names, and where its body is."""

    sign: bytes
    type: bytes
    names: tuple[bytes, bytes]
    head: int
    opened: int
    closed: int


@rule(
    "CU56",
    "an operator that HIP's vector types have",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"operator",),
    sources=(
        "https://github.com/ROCm/clr/blob/develop/hipamd/include/hip/amd_detail/amd_hip_vector_types.h",
        "measured: clang 21 with the headers of HIP 6.4",
    ),
    valid=(
        (
            "__device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }\n"
            "__device__ float3 operator*(float3 a, float b) { return make_float3(a.x * b, a.y * b, a.z * b); }\n"
            "__device__ void operator+=(float3 &a, float b) { a.x += b; a.y += b; a.z += b; }\n"
        ),
        "struct V { float x; };\n__device__ V operator*(V a, V b) { return V{a.x * b.x}; }\n",
        (
            "struct float3 { float x, y, z; };\n"
            "float3 operator*(float3 a, float3 b) { return float3{a.x * b.x, a.y * b.y, a.z * b.z}; }\n"
        ),
        (
            "#ifndef USE_ROCM\n__device__ float2 operator*(float2 a, float2 b) {\n"
            "  return make_float2(a.x * b.x, a.y * b.y);\n}\n#endif\n"
        ),
    ),
    invalid=(
        Case(
            "inline __host__ __device__ float2 operator*(float2 a, float2 b) {\n"
            "  return make_float2(a.x * b.x, a.y * b.y);\n}\nint y;\n",
            "#ifndef USE_ROCM\ninline __host__ __device__ float2 operator*(float2 a, float2 b) {\n"
            "  return make_float2(a.x * b.x, a.y * b.y);\n}\n#endif\nint y;\n",
        ),
        Case(
            "__device__ int3 &operator-=(int3& a, const int3 &b) {\n  a.x -= b.x;\n  a.y -= b.y;\n  a.z -= b.z;\n"
            "  return a;\n}\n",
            "#ifndef USE_ROCM\n__device__ int3 &operator-=(int3& a, const int3 &b) {\n  a.x -= b.x;\n  a.y -= b.y;\n"
            "  a.z -= b.z;\n  return a;\n}\n#endif\n",
        ),
        Case("__device__ float operator*(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }\n", None),
        Case(
            "__device__ float2 operator*(float2 a, float2 b) {\n"
            "  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);\n}\n",
            None,
        ),
        Case("__device__ float2 operator/(float2 a, float2 b) { return make_float2(b.x / a.x, b.y / a.y); }\n", None),
        Case("__device__ float2 operator*(float2 a, float2 b);\n", None),
    ),
)
def vector_operators(file: CudaFile) -> Iterator[Found]:
    """Yield the operators."""
    own = _own_types(file)
    for index in file.names(b"operator"):
        found = _operator(file, index)
        if found is None or found.type in own:
            continue
        start, end = file.tokens[index].start, file.tokens[index].end
        words = f"{found.type.decode()} {found.sign.decode()} {found.type.decode()}"
        if found.opened >= 0 and _by_components(file.tokens, found):
            edit = _left_out(file, found)
            yield Found(start, end, f"HIP's vector types have {words}: two equal matches are ambiguous", (edit,))
        else:
            yield Found(
                start,
                end,
                f"HIP's vector types have {words}: this one would be ambiguous, and may compute something else",
                outcome=Outcome.MANUAL,
                remedy="If it works component by component, omit it on the ROCm side; else make it a named function.",
            )


def _left_out(file: CudaFile, found: _Operator) -> Edit:
    """Return the edit that takes a definition away, whole lines where it fills them."""
    data = file.data
    start, end = file.tokens[found.head].start, file.tokens[found.closed].end
    line = data.rfind(b"\n", 0, start) + 1
    rest = re.compile(rb"[ \t]*\r?\n").match(data, end)
    if rest is not None and not data[line:start].strip():
        return Edit(line, rest.end(), b"")
    return Edit(start, end, b"")


def _own_types(file: CudaFile) -> set[bytes]:
    """Return the names of vector types that the source defines itself."""
    found = set()
    for index in file.names(b"struct", b"class", b"union"):
        if index + 1 < len(file.tokens) and _VECTOR.fullmatch(file.tokens[index + 1].text):
            found.add(file.tokens[index + 1].text)
    return found


def _operator(file: CudaFile, index: int) -> _Operator | None:
    """Return the operator of two vectors that a word ``operator`` declares; None where it is no such one."""
    tokens, partner = file.tokens, file.partner
    at = index + 1
    sign = b""
    while at < len(tokens) and tokens[at].text != b"(" and len(sign) <= len(b">>="):
        sign += tokens[at].text
        at += 1
    if sign not in (*_BINARY, *_ASSIGNING) or at not in partner or tokens[index].directive >= 0:
        return None
    closed = partner[at]
    operands = _operands(tokens, at, closed)
    if operands is None:
        return None
    type_, names = operands
    after = closed + 1
    if after >= len(tokens) or tokens[after].text not in (b"{", b";"):
        return None
    head = index
    while head > 0 and tokens[head - 1].directive < 0 and tokens[head - 1].text not in (b";", b"}", b"{", b">", b")"):
        head -= 1
    words = {one.text for one in tokens[head:index]} - _QUALIFIERS
    plain = words <= {type_, b"void", b"&"} and (head == 0 or tokens[head - 1].text not in (b">", b")"))
    body = after in partner and tokens[after].text == b"{" and plain
    return _Operator(sign, type_, names, head, after if body else -1, partner[after] if body else -1)


def _operands(tokens: Sequence[Token], opened: int, closed: int) -> tuple[bytes, tuple[bytes, bytes]] | None:
    """Return the type and the names of two operands of one vector type; None where they are something else."""
    parts: list[list[bytes]] = [[]]
    for one in tokens[opened + 1 : closed]:
        if one.text == b",":
            parts.append([])
        else:
            parts[-1].append(one.text)
    if len(parts) != 2:
        return None
    types, names = [], []
    for part in parts:
        words = [word for word in part if word not in (b"const", b"&", b"struct")]
        if not words or len(words) > 2 or not _VECTOR.fullmatch(words[0]):
            return None
        types.append(words[0])
        names.append(words[1] if len(words) > 1 else b"")
    return (types[0], (names[0], names[1])) if types[0] == types[1] else None


def _by_components(tokens: Sequence[Token], found: _Operator) -> bool:
    """Return whether a body does to each component what HIP's operator does, and nothing else."""
    body = b" ".join(one.text for one in tokens[found.opened + 1 : found.closed])
    width = int(found.type[-1:])
    one, other = found.names
    if (
        not one
        or not other
        or one == other
        or any(token.directive >= 0 for token in tokens[found.opened : found.closed])
    ):
        return False
    members = _MEMBERS[:width]
    if found.sign in _ASSIGNING:
        lines = [b"%b . %b %b %b . %b ;" % (one, member, found.sign, other, member) for member in members]
        return body in (b" ".join(lines), b" ".join([*lines, b"return %b ;" % one]))
    terms = [b"%b . %b %b %b . %b" % (one, member, found.sign, other, member) for member in members]
    given = b" , ".join(terms)
    return body in (
        b"return make_%b ( %b ) ;" % (found.type, given),
        b"return %b { %b } ;" % (found.type, given),
        b"return { %b } ;" % given,
        b" ".join(
            [
                b"%b r ;" % found.type,
                *(b"r . %b = %b ;" % pair for pair in zip(members, terms, strict=True)),
                b"return r ;",
            ]
        ),
    )
