"""nvcc called for its version.

## What it does

Finds `subprocess` calls that run nvcc, in files that build extensions. Not where a `try` handles a missing nvcc, and
not where `CUDA_HOME` is known to be set.

## Why it matters

With a ROCm build of PyTorch, `torch.utils.cpp_extension.CUDA_HOME` is None, so `CUDA_HOME + "/bin/nvcc"` raises
TypeError; and if nvcc is installed anyway, its version is irrelevant to the build.

## Use instead

`torch.version.hip`, or nothing. Put what follows from the version, and the lists of architectures that depend on it,
into a branch that ROCm does not take.

## Fix safety

Nothing is rewritten: what depends on the version is spread over the file. A call that is made only where `CUDA_HOME`
is not None is not reported.

## References

- `torch.utils.cpp_extension`, torch 2.13
- <https://github.com/state-spaces/mamba>, whose setup.py has a branch for each
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.python.flags import Side
from rocmend.port.python.imported import attempted
from rocmend.port.python.toolkit import decides
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_RUNS = ("check_output", "run", "check_call", "Popen", "call", "getoutput", "getstatusoutput")


@rule(
    "BL02",
    "nvcc called for its version",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"nvcc",),
    sources=("torch.utils.cpp_extension, torch 2.13",),
    valid=(
        "import subprocess\n\nsubprocess.run(['hipcc', '--version'])\n",
        "import subprocess as sp\n\nif CUDA_HOME is not None:\n    sp.check_output([CUDA_HOME + '/bin/nvcc', '-V'])\n",
        "import subprocess as sp\n\ntry:\n    sp.check_output(['nvcc', '-V'])\nexcept OSError:\n    version = None\n",
        (
            "import subprocess as sp\n\n\ndef version(folder):\n    try:\n"
            "        return sp.check_output([folder + '/bin/nvcc', '-V'])\n    except Exception:\n        return None\n"
        ),
        (
            "import subprocess as sp\n\nif CUDA_HOME is None:\n    version = None\nelse:\n"
            "    version = sp.check_output([CUDA_HOME + '/bin/nvcc', '-V'])\n"
        ),
    ),
    invalid=(
        Case(
            "import subprocess\nfrom torch.utils.cpp_extension import CUDA_HOME\n\n\ndef version(folder):\n"
            "    return subprocess.check_output([folder + '/bin/nvcc', '-V'])\n\n\nprint(version(CUDA_HOME))\n",
            None,
        ),
        Case("import os\nimport subprocess as sp\n\nsp.run('nvcc --version', shell=True)\n", None),
        Case(
            "import subprocess as sp\n\n\ndef version(folder):\n    try:\n"
            "        return sp.check_output([folder + '/bin/nvcc', '-V'])\n    except OSError:\n        return None\n",
            None,
        ),
        Case(
            "import subprocess as sp\n\ntry:\n    sp.run(['nvcc', '-V'], check=True)\nexcept sp.CalledProcessError:\n"
            "    version = None\n",
            None,
        ),
    ),
)
def check(file: PythonFile) -> Iterable[Found]:
    """Find calls that run nvcc."""
    for call in file.on_rocm_calls(*(f"subprocess.{name}" for name in _RUNS), "os.popen", "os.system"):
        if not call.args or not _runs_nvcc(call.args[0]) or _only_with_cuda(file, call.node):
            continue
        if attempted(file, call.node) and not _of_folder(call.args[0]):  # what follows a failure is said there
            continue
        if _all_caught(file, call.node) or decides(file, call.node):  # PY44
            continue
        yield told(
            file,
            call.node,
            "nvcc is called, but a ROCm build of PyTorch has no CUDA_HOME.",
            outcome=Outcome.MANUAL,
            remedy="Make the call, and what depends on it, only if torch.version.hip is None.",
        )


def _runs_nvcc(command: ast.expr) -> bool:
    first = command.elts[0] if isinstance(command, ast.List | ast.Tuple) and command.elts else command
    texts = [node.value for node in ast.walk(first) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return any(text.split() and text.split()[0].rpartition("/")[2] in {"nvcc", "nvcc.exe"} for text in texts)


def _of_folder(command: ast.expr) -> bool:
    """Tell whether nvcc is looked for in a folder, which may be None: that is no program that is not there."""
    first = command.elts[0] if isinstance(command, ast.List | ast.Tuple) and command.elts else command
    return not isinstance(first, ast.Constant)


def _all_caught(file: PythonFile, node: ast.AST) -> bool:
    """Tell whether a ``try`` around a node catches all that may go wrong."""
    child = node
    while (parent := file.parent(child)) is not None and not isinstance(parent, ast.FunctionDef):
        if isinstance(parent, ast.Try) and child in parent.body:
            caught = ["Exception" if one.type is None else ast.unparse(one.type) for one in parent.handlers]
            if {"Exception", "BaseException"}.intersection(caught):
                return True
        child = parent
    return False


def _only_with_cuda(file: PythonFile, node: ast.AST) -> bool:
    """Tell whether a node is executed only where CUDA's folder is known, or on CUDA's side."""
    at: ast.AST | None = node
    while at is not None:
        above = file.parent(at)
        if isinstance(above, ast.If) and at in above.body and _asks_for_folder(above.test):
            return True
        if isinstance(above, ast.If) and at in above.orelse and _lacks_folder(above.test):
            return True
        if isinstance(above, ast.FunctionDef):
            calls = [
                call for call in file.of(ast.Call) if isinstance(call.func, ast.Name) and call.func.id == above.name
            ]
            return bool(calls) and all(
                file.side(call) is Side.CUDA or _only_with_cuda(file, call) for call in calls if call is not node
            )
        at = above
    return False


def _lacks_folder(test: ast.expr) -> bool:
    """Tell whether a test is ``CUDA_HOME is None`` or ``not CUDA_HOME``."""
    match test:
        case ast.Compare(left=name, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return _asks_for_folder(name)
        case ast.UnaryOp(op=ast.Not(), operand=name):
            return _asks_for_folder(name)
        case _:
            return False


def _asks_for_folder(test: ast.expr) -> bool:
    """Tell whether a test is ``CUDA_HOME`` or ``CUDA_HOME is not None``, alone or with others that must hold too."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in parts:
        name = part
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.IsNot):
            name = part.left
        last = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
        if last == "CUDA_HOME":
            return True
    return False
