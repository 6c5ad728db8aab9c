"""`nvidia-smi`, called as a program.

## What it does

Finds `nvidia-smi` as the program of a call of `subprocess`, `os.system`, `os.popen` or `shutil.which`.

## Why it matters

There is no such program on a machine with AMD GPUs.

## Use instead

`amd-smi`, which has other options and output, or `torch.cuda`, which works on both.

## Fix safety

A suggestion where it is called without options and its output is not read. Options and output have to be ported by
hand. A call that may fail (`try`), and looking up the program, are a note. Where they decide whether there is a GPU,
PY44 reports them.

## References

- <https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.python.calls import Call
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated, told
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import expression_gate
from rocmend.port.python.imported import attempted
from rocmend.port.python.toolkit import decides
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_CALLS = tuple(
    [
        f"subprocess.{name}"
        for name in ("run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput")
    ]
    + ["os.system", "os.popen", "os.execvp", "os.execvpe", "os.execlp", "shutil.which"]
    + ["asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"]
)
_PROGRAM = re.compile(r"(?:^|[\s;|&(/])nvidia-smi(?:\.exe)?(?=$|[\s;|&)])")


@rule(
    "PY16",
    "nvidia-smi called",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"nvidia-smi",),
    sources=("https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html",),
    valid=('print("see nvidia-smi")\n', "import subprocess\n\nsubprocess.run(['make'])\n"),
    invalid=(
        Case(
            'import subprocess\n\nsubprocess.run("nvidia-smi", check=True)\n',
            "import subprocess\n\nfrom package._rocm import is_rocm\n\n"
            'subprocess.run("amd-smi" if is_rocm else "nvidia-smi", check=True)\n',
        ),
        Case(
            'import subprocess\n\nsubprocess.check_output(["nvidia-smi", "--query-gpu=memory.used", "--format=csv"])\n',
            None,
        ),
        Case(
            'import subprocess\n\nQUERY = f"nvidia-smi -i {gpu} --query-gpu=name"\n'
            "subprocess.run(args=QUERY.split(), check=True)\n",
            None,
        ),
        Case(
            'import subprocess\n\ntry:\n    subprocess.run(["nvidia-smi"], check=True)\nexcept OSError:\n    pass\n',
            None,
        ),
        Case('import shutil\n\nprogram = shutil.which("nvidia-smi")\n', None),
        Case(
            "import subprocess\n\ntry:\n    subprocess.check_output(['nvidia-smi', 'topo'])\n"
            "except subprocess.CalledProcessError:\n    pass\n",
            None,
        ),
        Case('import subprocess\n\nsubprocess.run(["bash", "-c", "nvidia-smi | head"])\n', None),
    ),
)
def nvidia_smi(file: PythonFile) -> Iterable[Found]:
    """Find calls that start the program."""
    for call in file.calls(*_CALLS):
        command = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "args"), None)
        if command is None or file.side(call.node) is Side.CUDA:
            continue
        program = command
        options = 0
        if isinstance(command, ast.List | ast.Tuple) and command.elts:
            program, options = command.elts[0], len(command.elts) - 1
        if call.name.endswith(("_exec", "execvp", "execvpe", "execlp")):
            options = len(call.args) - 1
        known, complete = file.values(program)
        if not any(_PROGRAM.search(text) for text in [*map(str, known), *_said(file, command)]):
            continue
        if decides(file, call.node):  # PY44
            continue
        if attempted(file, call.node) or call.name == "shutil.which":
            yield told(
                file,
                call.node,
                "nvidia-smi is optional here: on ROCm the fallback is used",
                outcome=Outcome.NOTE,
                severity=Severity.INFO,
            )
            continue
        kept = isinstance(file.statement(call.node), ast.Assign)
        bare = not kept and complete and known == {"nvidia-smi"} and not options and _is_not_read(file, call)
        yield gated(
            file,
            call.node,
            expression_gate(file, program, '"amd-smi"') if bare else (),
            message="nvidia-smi does not exist for AMD GPUs",
            remedy="Use torch.cuda, or call amd-smi on ROCm and parse its output (--json).",
        )


def _is_not_read(file: PythonFile, call: Call) -> bool:
    """Whether what the program prints goes nowhere."""
    return isinstance(file.parent(call.node), ast.Expr)


def _said(file: PythonFile, node: ast.expr, depth: int = 0) -> Iterator[str]:
    """Yield the texts that a command is made of."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _said(file, part, depth)
        case ast.BinOp(left=left, right=right):
            yield from _said(file, left, depth)
            yield from _said(file, right, depth)
        case ast.Call(func=ast.Attribute(value=value, attr="split" | "format" | "strip")):
            yield from _said(file, value, depth)
        case ast.Call(func=func, args=[first, *_]) if file.qualified(func) == "shlex.split":
            yield from _said(file, first, depth)
        case ast.Name(id=name) if depth < 3 and (found := file.scope(node).lookup(name)):
            for binding in found[1]:
                if binding.value is not None and file.side(binding.node) is not Side.CUDA:
                    yield from _said(file, binding.value, depth + 1)
        case _:
            pass
