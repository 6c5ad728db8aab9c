"""A dependent type without `typename`.

What it does:
  Finds `Traits::Type(storage).method(…)` in templates over `Traits`, where `Type` is known to be a type: the file
  declares it with `using` or `typedef`.

Why it matters:
  C++ treats a template parameter's member as a value unless `typename` marks it as a type. nvcc accepts its absence;
  clang, and so hipcc, does not.

Use instead:
  `typename Traits::Type(storage).method(…)` on the ROCm side.

Fix safety:
  Safe: it says what the declaration in the same file says.

References:
  C++17, [temp.res]. causal-conv1d's own port to ROCm makes the same change.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_TRAITS = "struct Traits {\n  using Load = cub::BlockLoad<float, 32>;\n};\n"
_KERNEL = "template <typename T>\n__global__ void k(float *p) {\n  __shared__ char s[64];\n"


@rule(
    "CU55",
    "dependent type without typename",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"template",),
    sources=(
        "https://en.cppreference.com/w/cpp/language/dependent_name",
        "https://github.com/Dao-AILab/causal-conv1d/pull/25",
    ),
    valid=(
        f"{_TRAITS}{_KERNEL}  typename T::Load(s).run(p);\n}}\n",
        f"{_TRAITS}__global__ void k(float *p) {{\n  Traits::Load(s).run(p);\n}}\n",
        f"{_KERNEL}  T::make(s).run(p);\n}}\n",
    ),
    invalid=(
        Case(
            f"{_TRAITS}{_KERNEL}  T::Load(s).run(p);\n}}\n",
            f"{_TRAITS}{_KERNEL}#ifdef USE_ROCM\n  typename T::Load(s).run(p);\n"
            "#else\n  T::Load(s).run(p);\n#endif\n}\n",
        ),
    ),
)
def missing_typename(file: CudaFile) -> Iterator[Found]:
    """Yield the types."""
    tokens = file.tokens
    parameters = _parameters(file)
    types = _declared_types(file)
    for index in file.names(*sorted(types)) if parameters and types else ():
        if index < 3 or tokens[index - 1].text != b"::" or tokens[index - 2].text not in parameters:
            continue
        if tokens[index - 3].text in {b"typename", b"::", b".", b"->"}:
            continue
        close = file.partner.get(index + 1) if _text(file, index + 1) == b"(" else None
        if close is not None and _text(file, close + 1) == b".":
            start = tokens[index - 2].start
            name = file.text(start, tokens[index].end).decode("utf-8", "replace")
            edit = Edit(start, start, b"typename ")
            yield Found(start, tokens[index].end, f"{name} is a type: clang requires typename", (edit,))


def _text(file: CudaFile, index: int) -> bytes:
    return file.tokens[index].text if 0 <= index < len(file.tokens) else b""


def _parameters(file: CudaFile) -> set[bytes]:
    """Return the names of templates' parameters that stand for types."""
    found = set()
    for word in (b"typename", b"class"):
        for index in file.names(word):
            if _text(file, index - 1) in {b"<", b","} and _text(file, index + 2) in {b",", b">", b"="}:
                found.add(_text(file, index + 1))
    return found


def _declared_types(file: CudaFile) -> set[bytes]:
    """Return names that the file declares as other names of types."""
    found = {_text(file, index + 1) for index in file.names(b"using") if _text(file, index + 2) == b"="}
    for index in file.names(b"typedef"):
        at = index
        while _text(file, at) not in {b";", b""}:
            at += 1
        if at < len(file.tokens) and file.tokens[at - 1].kind == Kind.NAME:
            found.add(file.tokens[at - 1].text)
    return found
