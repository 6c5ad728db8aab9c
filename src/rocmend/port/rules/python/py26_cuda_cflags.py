"""nvcc flags for JIT-built extensions.

## What it does

Finds flags that only nvcc knows in the `extra_cuda_cflags` of `torch.utils.cpp_extension.load` and `load_inline`.

## Why it matters

On ROCm the flags go to hipcc, which rejects unknown flags: the extension is not built.

## Use instead

The same list without them. hipcc needs no flag for `constexpr` functions and lambdas in device code.

## Fix safety

Safe for flags about architectures, diagnostics, registers and language extensions. Flags that change arithmetic,
streams or linking, and elements that are not known, make it a suggestion.

## References

- <https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html>
- <https://rocm.docs.amd.com/projects/HIP/en/latest/understand/compilers.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import expression_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_CALLS = ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline")
_DROPPED = re.compile(
    r"-{1,2}(?:gencode|generate-code|arch|gpu-architecture|code|gpu-code|Xptxas|ptxas-options|Xcudafe|Xfatbin|Xnvlink"
    r"|expt-relaxed-constexpr|expt-extended-lambda|extended-lambda|lineinfo|generate-line-info|maxrregcount|threads"
    r"|resource-usage|res-usage|source-in-ptx|keep|keep-dir|diag-suppress|diag_suppress|use_fast_math|ccbin"
    r"|compiler-bindir|cudart|extra-device-vectorization)(?:[=\s].*)?|-Xptxas.*|-gencode.*|-arch=.*|-ccbin.*"
)
_MATTERS = re.compile(
    r"-{1,2}(?:rdc|relocatable-device-code|dc|dlto|ftz|prec-div|prec-sqrt|fmad|default-stream|Xcompiler|compiler-options)(?:[=\s].*)?"
)
_TAKES_NEXT = re.compile(
    r"-{1,2}(?:gencode|generate-code|arch|gpu-architecture|code|gpu-code|Xptxas|ptxas-options|Xcudafe|Xfatbin|Xnvlink"
    r"|maxrregcount|threads|keep-dir|diag-suppress|diag_suppress|ccbin|compiler-bindir|cudart|Xcompiler|compiler-options)"
)


@rule(
    "PY26",
    "nvcc-only flags",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"extra_cuda_cflags",),
    sources=("https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html",),
    valid=(
        (
            "from torch.utils.cpp_extension import load\n\n"
            "m = load('m', ['m.cu'], extra_cuda_cflags=['-O3', '-std=c++17'])\n"
        ),
        "from mine import load\n\nm = load('m', ['m.cu'], extra_cuda_cflags=['--use_fast_math'])\n",
    ),
    invalid=(
        Case(
            "from torch.utils.cpp_extension import load\n\nm = load('m', ['m.cu'],\n"
            "         extra_cuda_cflags=['-O3', '-gencode', "
            "'arch=compute_80,code=sm_80', '--expt-relaxed-constexpr'])\n",
            "from torch.utils.cpp_extension import load\n\nfrom package._rocm import is_rocm\n\n"
            "m = load('m', ['m.cu'],\n"
            "         extra_cuda_cflags=['-O3'] if is_rocm else "
            "['-O3', '-gencode', 'arch=compute_80,code=sm_80', '--expt-relaxed-constexpr'])\n",
        ),
        Case(
            "import torch.utils.cpp_extension as ext\n\nFLAGS = ['-lineinfo', extra]\n"
            "m = ext.load_inline('m', src, extra_cuda_cflags=FLAGS)\n",
            "import torch.utils.cpp_extension as ext\n\nfrom package._rocm import is_rocm\n\n"
            "FLAGS = [extra] if is_rocm else ['-lineinfo', extra]\n"
            "m = ext.load_inline('m', src, extra_cuda_cflags=FLAGS)\n",
        ),
        Case(
            "from torch.utils.cpp_extension import load\n\nm = load('m', s, extra_cuda_cflags=['-lineinfo'] + more)\n",
            "from torch.utils.cpp_extension import load\n\nfrom package._rocm import is_rocm\n\n"
            "m = load('m', s, extra_cuda_cflags=([] if is_rocm else ['-lineinfo']) + more)\n",
        ),
    ),
)
def cuda_cflags(file: PythonFile) -> Iterable[Found]:
    """Find lists of flags with some that hipcc refuses."""
    for call in file.on_rocm_calls(*_CALLS):
        for argument in file.arguments(call, "extra_cuda_cflags"):
            for flags in file.on_rocm(_literals(file, argument.value)):
                kept, dropped, sure = _sorted(file, flags)
                if not dropped:
                    continue
                one_line = all("\n" not in text for text in kept)
                yield gated(
                    file,
                    flags,
                    expression_gate(file, flags, f"[{', '.join(kept)}]") if one_line else (),
                    message=f"hipcc does not know {', '.join(dropped)}",
                    remedy="Omit nvcc flags on ROCm.",
                    outcome=None if sure and not argument.shared else Outcome.SUGGEST,
                )


def _literals(file: PythonFile, node: ast.expr) -> Iterator[ast.List]:
    """Yield the lists of flags that an argument is made of."""
    if isinstance(node, ast.List):
        yield node
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _literals(file, node.left)
        yield from _literals(file, node.right)
    elif isinstance(node, ast.IfExp):
        yield from _literals(file, node.body)
        yield from _literals(file, node.orelse)
    elif isinstance(node, ast.Name):
        found = file.scope(node).lookup(node.id)
        if found and len(found[1]) == 1 and isinstance(found[1][0].value, ast.List):
            yield found[1][0].value


def _sorted(file: PythonFile, flags: ast.List) -> tuple[list[str], list[str], bool]:
    """Return the source of the flags that are kept, those that are dropped, and whether that is surely right."""
    kept: list[str] = []
    dropped: list[str] = []
    sure = True
    skip = False
    for item in flags.elts:
        text = item.value if isinstance(item, ast.Constant) and isinstance(item.value, str) else None
        if skip:
            sure &= text is not None
            skip = False
        elif text is None:
            kept.append(file.source(item))
            sure = False
        elif _MATTERS.fullmatch(text):
            dropped.append(text)
            sure = False
            skip = _TAKES_NEXT.fullmatch(text) is not None
        elif _DROPPED.fullmatch(text):
            dropped.append(text)
            skip = _TAKES_NEXT.fullmatch(text) is not None
        else:
            kept.append(file.source(item))
    return kept, dropped, sure
