"""Arithmetic on driver-API device addresses.

## What it does

Finds arithmetic on variables of the type `CUdeviceptr`.

## Why it matters

`CUdeviceptr` is an integer, and HIP's `hipDeviceptr_t` a `void *`: C++ has no arithmetic on it, and the ROCm side
does not compile.

## Use instead

The address as a `char *`: offsets are bytes, as they are with CUDA's integers.

## Fix safety

Safe for sums and differences: they are made of the same bytes. Assignments like `address += size`, and remainders and
bits of an address, have to be ported by hand.

## References

- CUDA driver API, data types; HIP runtime API, hipDeviceptr_t
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_TYPE = b"CUdeviceptr"
_BEFORE = frozenset((b"(", b",", b"=", b"return", b"?", b":", b"{", b";", b"}", b"<", b">", b"<=", b">=", b"==", b"!="))
_CHANGING = frozenset((b"+=", b"-=", b"++", b"--", b"%", b"&", b"|", b"^", b">>", b"<<", b"*", b"/", b"&=", b"|="))


@rule(
    "CU58",
    "Arithmetic on a device address",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(_TYPE,),
    sources=(
        "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html",
        "measured: clang 21 with HIP's headers",
    ),
    valid=(
        "void f(CUdeviceptr p, size_t n) { cuMemsetD8(p, 0, n); cuMemFree(p); bool b = p == 0; }\n",
        "void f(char *p) { CUdeviceptr q = 0; g(p + 4); }\n",
        "void f(CUdeviceptr *p) { g(p + 1); g(p[0]); }\n",
    ),
    invalid=(
        Case(
            "void f(CUdeviceptr p, size_t n) {\n  g(p + n * 4, n);\n}\n",
            "void f(CUdeviceptr p, size_t n) {\n#ifdef USE_ROCM\n  g(static_cast<char *>(p) + n * 4, n);\n"
            "#else\n  g(p + n * 4, n);\n#endif\n}\n",
        ),
        Case(
            "size_t f() {\n  CUdeviceptr p, q;\n  g(&p, &q);\n  return q - p;\n}\n",
            "size_t f() {\n  CUdeviceptr p, q;\n  g(&p, &q);\n#ifdef USE_ROCM\n"
            "  return static_cast<char *>(q) - static_cast<char *>(p);\n#else\n  return q - p;\n#endif\n}\n",
        ),
        Case("void f(CUdeviceptr p) {\n  p += 16;\n}\n", None),
        Case("bool f(CUdeviceptr p) { return p % 256 == 0; }\n", None),
        Case("void f(CUdeviceptr p, int n) { g(n + p); }\n", None),
    ),
)
def device_addresses(file: CudaFile) -> Iterator[Found]:
    """Yield the uses."""
    if file.path.endswith(".c"):
        return  # C's compilers compute with void * in bytes
    tokens = file.tokens
    names = {
        one.name.text
        for name in file.all_names
        for one in file.declarations_of(name)
        if one.type == _TYPE and not one.pointers and not one.extents
    }
    for index in file.names(*sorted(names)):
        if not 0 < index < len(tokens) - 1:
            continue
        declared = file.declaration_of(tokens[index].text, tokens[index].start)
        if declared is None or declared.type != _TYPE or declared.pointers or declared.extents:
            continue
        before, after = tokens[index - 1].text, tokens[index + 1].text
        token = tokens[index]
        left = after in (b"+", b"-") and before in _BEFORE
        right = before == b"-" and tokens[index - 2].text in names and tokens[index - 3].text in _BEFORE
        if left or right:
            text = b"static_cast<char *>(" + token.text + b")"
            message = "HIP's device addresses are void *, which C++ cannot add to"
            yield Found(token.start, token.end, message, (Edit(token.start, token.end, text),))
        elif (after in _CHANGING and before != b"sizeof") or before in (b"+", b"-", b"++", b"--"):
            yield Found(
                token.start,
                token.end,
                "HIP's device addresses are void *, which C++ cannot compute with",
                outcome=Outcome.MANUAL,
                remedy="Use a char * or uintptr_t on the ROCm side.",
            )
