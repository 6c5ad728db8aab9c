"""Conflicting caching-allocator settings on ROCm.

## What it does

Finds allocator settings that have both `max_split_size_mb` and `expandable_segments:True`, as an environment variable
in a call, or in a command that the program starts.

## Why it matters

Together they let the reserved memory grow far beyond what is used, and a live tensor was read back as zeros on
gfx1201.

## Use instead

The settings without `max_split_size_mb` on ROCm.

## Fix safety

Safe: the variable holds the same settings otherwise, and none of them changes what is computed.

## References

- <https://github.com/pytorch/pytorch/issues/123548>
- <https://github.com/ROCm/ROCm/issues/6603>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.python.environment import settings
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import expression_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_CALLS = (
    "torch.cuda.memory._set_allocator_settings",
    "torch._C._cuda_cudaCachingAllocator_set_allocator_settings",
    "torch._C._accelerator_setAllocatorSettings",
)

_HOLE = "\0"
_COMMAND = re.compile(rf"\b(?:{'|'.join(_VARIABLES)})=\S*expandable_segments:[Tt]rue")


@rule(
    "PY11",
    "max_split_size_mb beside expandable_segments",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"max_split_size_mb",),
    sources=("https://github.com/pytorch/pytorch/issues/123548", "https://github.com/ROCm/ROCm/issues/6603"),
    valid=(
        'import os\n\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"\n',
        'import os\n\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128,expandable_segments:False"\n',
        '"""PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:1,expandable_segments:True"""\n',
    ),
    invalid=(
        Case(
            'import os\n\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True, max_split_size_mb:64"\n',
            'import os\n\nfrom package._rocm import is_rocm\n\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = '
            '"expandable_segments:True" if is_rocm else "expandable_segments:True, max_split_size_mb:64"\n',
        ),
        Case(
            "env = {'PYTORCH_CUDA_ALLOC_CONF': 'max_split_size_mb:64,expandable_segments:True'}\n",
            "from package._rocm import is_rocm\n\nenv = {'PYTORCH_CUDA_ALLOC_CONF': "
            "\"expandable_segments:True\" if is_rocm else 'max_split_size_mb:64,expandable_segments:True'}\n",
        ),
        Case(
            "import os\n\nos.environ.setdefault('PYTORCH_CUDA_ALLOC_CONF',\n"
            "                      f'expandable_segments:True,max_split_size_mb:{size}')\n",
            "import os\n\nfrom package._rocm import is_rocm\n\nos.environ.setdefault('PYTORCH_CUDA_ALLOC_CONF',\n"
            '                      "expandable_segments:True" if is_rocm else '
            "f'expandable_segments:True,max_split_size_mb:{size}')\n",
        ),
        Case(
            "import os\n\nos.environ['PYTORCH_CUDA_ALLOC_CONF'] = "
            "'expandable_segments:True,max_split_size_mb:%d,garbage_collection_threshold:%f' % (size, part)\n",
            None,
        ),
        Case(
            "import os\n\nos.system('PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:64 train')\n",
            None,
        ),
    ),
)
def allocator_settings(file: PythonFile) -> Iterable[Found]:
    """Find settings that hold both."""
    values = [setting.value for setting in settings(file, *_VARIABLES)]
    values += [call.args[0] for call in file.calls(*_CALLS) if call.args]
    for value in file.on_rocm(values):
        text = _text(file, value)
        parts = [part.strip() for part in text.split(",")]
        left = [part for part in parts if part and not part.startswith("max_split_size_mb")]
        if len(left) == len(parts) or "expandable_segments:true" not in text.replace(" ", "").lower():
            continue
        rewritten = '"' + ",".join(left) + '"'
        short = isinstance(value, ast.Constant | ast.JoinedStr) or len(ast.unparse(value)) <= 80
        known = _HOLE not in rewritten and rewritten.isprintable() and rewritten.count('"') == 2
        yield gated(
            file,
            value,
            expression_gate(file, value, rewritten) if short and known and "\\" not in rewritten else (),
            message="max_split_size_mb together with expandable_segments: memory grows, and data was lost on gfx1201",
            remedy="Omit max_split_size_mb on ROCm.",
        )
    for command in file.on_rocm(_commands(file)):
        yield gated(
            file,
            command,
            (),
            message="max_split_size_mb together with expandable_segments: memory grows, and data was lost on gfx1201",
            remedy="Omit max_split_size_mb from the command on ROCm.",
        )


def _commands(file: PythonFile) -> Iterator[ast.Constant]:
    """Yield texts that set a variable for a program: ``VARIABLE=… program``, in a call that starts one."""
    for text in file.of(ast.Constant):
        if not (isinstance(text.value, str) and _COMMAND.search(text.value) and "max_split_size_mb" in text.value):
            continue
        child: ast.AST = text
        while isinstance(parent := file.parent(child), ast.List | ast.Tuple | ast.BinOp | ast.keyword):
            child = parent
        if isinstance(parent, ast.Call) and (file.qualified(parent.func) or "").startswith(("subprocess.", "os.")):
            yield text


def _text(file: PythonFile, value: ast.expr) -> str:
    """Return what a setting is, with a mark where something is put in that is not known; empty where it has none."""
    known, complete = file.values(value)
    text = next(iter(known)) if complete and len(known) == 1 else None
    if isinstance(text, str):
        return text
    match value:
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else _HOLE for part in parts)
        case ast.BinOp(left=ast.Constant(value=str(pattern)), op=ast.Mod()):
            return re.sub(r"%[-+#0 ]*\d*[a-z]", _HOLE, pattern)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(pattern)), attr="format")):
            return re.sub(r"\{[^{}]*\}", _HOLE, pattern)
        case _:
            return ""
