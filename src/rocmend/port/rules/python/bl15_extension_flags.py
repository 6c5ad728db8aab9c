"""nvcc options for extensions built by setup.py.

## What it does

Finds lists of nvcc-only options, and `append` of such options, in files that build extensions with
`torch.utils.cpp_extension` or setuptools.

## Why it matters

With a ROCm build of PyTorch, the `"nvcc"` entry of `extra_compile_args` goes to hipcc, which is clang: it rejects
most of them, and reads `-lineinfo` as a library.

## Use instead

clang's equivalent of each option, or nothing. PyTorch selects the GPUs: those of the machine, or `PYTORCH_ROCM_ARCH`.
`__CUDA_NO_HALF_OPERATORS__` and the like have a counterpart that PyTorch defines for HIP.

## Fix safety

Safe: each option has one meaning; options not known to be nvcc's stay. Options that change the kind of output have to
be ported by hand. Expected values in tests and comparisons are left alone.

## References

- <https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/>
- <https://clang.llvm.org/docs/ClangCommandLineReference.html>
- `torch.utils.cpp_extension`, torch 2.13
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.build.flags import nvcc_only, translated
from rocmend.port.python.callers import for_cuda
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated, told
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import block_gate, expression_gate
from rocmend.port.python.imported import of_tests
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_WIDTH = 80
_BUILDS = (b"cpp_extension", b"CUDAExtension", b"setuptools", b"distutils")
_REMEDY = "Pass hipcc's options on ROCm."
_MACROS = ("-U__CUDA_NO_HALF_", "-D__CUDA_NO_HALF_")


@rule(
    "BL15",
    "nvcc options for an extension",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(
        b"-gencode",
        b"--expt",
        b"fast_math",
        b"ptxas",
        b"lineinfo",
        b"--threads",
        b"lambda",
        b"-arch=",
        b"-Xc",
        b"_NO_HALF",
    ),
    sources=(
        "https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/",
        "https://clang.llvm.org/docs/ClangCommandLineReference.html",
        "torch.utils.cpp_extension, torch 2.13",
    ),
    valid=(
        "FLAGS = ['--use_fast_math']\n",
        "from torch.utils.cpp_extension import CUDAExtension\n\nargs = {'nvcc': ['-O3', '-std=c++17']}\n",
        "import setuptools\n\nassert args == ['-gencode', 'arch=compute_80,code=sm_80']\n",
        "import torch, setuptools\n\nif torch.version.hip is None:\n    F = ['--use_fast_math']\n",
        "import torch, setuptools\n\nif torch.version.hip:\n    F = ['-O3', '-U__CUDA_NO_HALF_OPERATORS__']\n",
    ),
    invalid=(
        Case(
            "from torch.utils.cpp_extension import CUDAExtension\n\n"
            "args = {'cxx': ['-O3'], 'nvcc': ['-O3', '--expt-relaxed-constexpr', '-lineinfo', '-gencode', ARCH]}\n",
            "from torch.utils.cpp_extension import CUDAExtension\n\nfrom package._rocm import is_rocm\n\n"
            "args = {'cxx': ['-O3'], 'nvcc': ['-O3', '-gline-tables-only'] if is_rocm else "
            "['-O3', '--expt-relaxed-constexpr', '-lineinfo', '-gencode', ARCH]}\n",
        ),
        Case(
            "from torch.utils.cpp_extension import CUDAExtension\n\n\ndef threads(args):\n"
            "    return args + ['--threads', '4']\n",
            "from torch.utils.cpp_extension import CUDAExtension\n\nfrom package._rocm import is_rocm\n\n\n"
            "def threads(args):\n    return args + ([] if is_rocm else ['--threads', '4'])\n",
        ),
        Case(
            "from torch.utils.cpp_extension import CUDAExtension\n\nflags = []\nflags.append('-gencode')\n"
            "flags.append('arch=compute_80,code=sm_80')\n",
            "from torch.utils.cpp_extension import CUDAExtension\n\nfrom package._rocm import is_rocm\n\nflags = []\n"
            "if not is_rocm:\n    flags.append('-gencode')\n    flags.append('arch=compute_80,code=sm_80')\n",
        ),
        Case(
            "from torch.utils.cpp_extension import CUDAExtension\n\nF = ['-O3', '-U__CUDA_NO_HALF_OPERATORS__']\n",
            "from torch.utils.cpp_extension import CUDAExtension\n\nfrom package._rocm import is_rocm\n\n"
            "F = ['-O3', '-U__HIP_NO_HALF_OPERATORS__'] if is_rocm else ['-O3', '-U__CUDA_NO_HALF_OPERATORS__']\n",
        ),
        Case(
            "from torch.utils.cpp_extension import CUDAExtension\n\nF = [\n    '-O3',\n    '-std=c++17',\n"
            "    '-U__CUDA_NO_HALF_OPERATORS__',  # half\n    '-U__CUDA_NO_HALF_CONVERSIONS__',\n]\n",
            "from torch.utils.cpp_extension import CUDAExtension\n\nfrom package._rocm import is_rocm\n\n"
            "F = [\n    '-O3',\n    '-std=c++17',\n"
            "    '-U__HIP_NO_HALF_OPERATORS__',\n    '-U__HIP_NO_HALF_CONVERSIONS__',\n] if is_rocm else "
            "[\n    '-O3',\n    '-std=c++17',\n"
            "    '-U__CUDA_NO_HALF_OPERATORS__',  # half\n    '-U__CUDA_NO_HALF_CONVERSIONS__',\n]\n",
        ),
        Case(
            "from torch.utils.cpp_extension import CUDAExtension\n\nargs = {'nvcc': ['-ptx', '-Xptxas', '-v']}\n",
            None,
        ),
    ),
)
def check(file: PythonFile) -> Iterable[Found]:
    """Find lists and appends of options that hipcc does not know."""
    if not any(name in file.data for name in _BUILDS) or b"extra_cuda_cflags" in file.data or of_tests(file.path):
        return
    for flags in file.of(ast.List):
        compared = isinstance(file.parent(flags), ast.Compare)
        if not compared and not for_cuda(file, flags) and any(_known(item) for item in flags.elts):
            yield from _of_list(file, flags)
    yield from _of_appends(file)


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _known(node: ast.expr) -> bool:
    text = _text(node)
    if text is None:
        return False
    return nvcc_only(text.split(" ")[0]) or text == "--threads" or text.startswith(_MACROS)


def _of_list(file: PythonFile, flags: ast.List) -> Iterator[Found]:
    """Yield what is found in one list of options."""
    words: list[str] = []
    items: list[int] = []
    for number, item in enumerate(flags.elts):
        text = _text(item)
        for word in text.split() if text is not None else ["\0"]:
            words.append(word)
            items.append(number)
    known = translated(words)
    if file.side(flags) is Side.ROCM and all(words[one.first].startswith(_MACROS) for one in known):
        return  # whoever wrote it builds for ROCm with it
    manual = [one.manual for one in known if one.manual]
    if manual:
        yield told(file, flags, manual[0], outcome=Outcome.MANUAL, remedy=_REMEDY)
        return
    gone = {at: one for one in known for at in range(one.first, one.first + one.words)}
    quote = '"' if any(file.source(item).startswith('"') for item in flags.elts) else "'"
    kept: list[str] = []
    for at, word in enumerate(words):
        number = items[at]
        one = gone.get(at)
        if one is not None:
            kept += [f"{quote}{text}{quote}" for text in one.rocm.split()] if at == one.first else []
        elif items.count(number) == 1:
            kept.append(file.source(flags.elts[number]))
        else:
            kept.append(f"{quote}{word}{quote}")
    dropped = ", ".join(dict.fromkeys(words[one.first] for one in known))
    gates: tuple[Edit, ...] = ()
    if not any("\n" in text for text in kept):
        gates = expression_gate(file, flags, _list(file, flags, kept))
    yield gated(file, flags, gates, message=f"hipcc does not know {dropped}", remedy=_REMEDY)


def _list(file: PythonFile, flags: ast.List, kept: list[str]) -> str:
    """Return a list with these items, laid out as the one that it stands for."""
    whole = f"[{', '.join(kept)}]"
    lines = file.source(flags).splitlines()
    if len(lines) == 1 or len(whole) <= _WIDTH or not flags.elts or flags.elts[0].lineno == flags.lineno:
        return whole
    item, close = " " * flags.elts[0].col_offset, lines[-1][: len(lines[-1]) - len(lines[-1].lstrip())]
    return "\n".join(["[", *(f"{item}{text}," for text in kept), f"{close}]"])


def _of_appends(file: PythonFile) -> Iterator[Found]:
    """Yield statements that append an option of nvcc, with the one that appends its value."""
    taken: set[ast.stmt] = set()
    for call in file.of(ast.Call):
        statement = file.parent(call)
        appends = isinstance(call.func, ast.Attribute) and call.func.attr == "append" and len(call.args) == 1
        if not appends or not isinstance(statement, ast.Expr) or statement in taken or for_cuda(file, call):
            continue
        if not _known(call.args[0]):
            continue
        last: ast.stmt = statement
        text = _text(call.args[0]) or ""
        if text in {"-gencode", "--generate-code", "--threads", "-Xptxas", "-Xcompiler", "-ccbin"}:
            last = _next(file, statement) or statement
            taken.add(last)
        translation = translated([text, "\0"])
        rocm = translation[0].rocm if translation and translation[0].words == 1 else ""
        source = f"{file.source(call.func)}({rocm!r})" if rocm and " " not in rocm else None
        if (rocm and source is None) or (translation and translation[0].manual):
            yield told(file, call, f"hipcc does not know {text}", outcome=Outcome.MANUAL, remedy=_REMEDY)
            continue
        yield gated(
            file,
            call,
            block_gate(file, statement, last, source),
            message=f"hipcc does not know {text}",
            remedy=_REMEDY,
        )


def _next(file: PythonFile, statement: ast.stmt) -> ast.stmt | None:
    """Return the statement after one, in its block."""
    parent = file.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            at = block.index(statement) + 1
            return block[at] if at < len(block) else None
    return None
