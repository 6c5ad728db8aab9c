"""`nvidia-smi`, called as a program.

## What it does

Finds `nvidia-smi` as the program of a call of `subprocess`, `os.system`, `os.popen` or `shutil.which`.

## Why it matters

There is no such program on a machine with AMD GPUs.

## Use instead

`amd-smi`, whose options and output are other ones, or `torch.cuda`, which answers on both.

## Fix safety

A suggestion where the program is looked up or called without options. Options and output have to be translated by a
person.

## References

- <https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import expression_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_CALLS = tuple(
    [
        f"subprocess.{name}"
        for name in ("run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput")
    ]
    + ["os.system", "os.popen", "shutil.which"]
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
            "import shutil\n\nfound = shutil.which('nvidia-smi')\n",
            "import shutil\n\nfrom package._rocm import is_rocm\n\n"
            "found = shutil.which(\"amd-smi\" if is_rocm else 'nvidia-smi')\n",
        ),
        Case(
            'import subprocess\n\nsubprocess.check_output(["nvidia-smi", "--query-gpu=memory.used", "--format=csv"])\n',
            None,
        ),
    ),
)
def nvidia_smi(file: PythonFile) -> Iterable[Found]:
    """Find calls that start the program."""
    for call in file.calls(*_CALLS):
        if not call.args or file.side(call.node) is Side.CUDA:
            continue
        program = call.args[0]
        alone = program
        options = 0
        if isinstance(program, ast.List | ast.Tuple) and program.elts:
            alone, options = program.elts[0], len(program.elts) - 1
        known, _ = file.values(alone)
        if not any(isinstance(value, str) and _PROGRAM.search(value) for value in known):
            continue
        bare = known == {"nvidia-smi"} and not options
        yield gated(
            file,
            call.node,
            expression_gate(file, alone, '"amd-smi"') if bare else (),
            message="there is no nvidia-smi where the GPUs are AMD's",
            remedy="Ask torch.cuda, or call amd-smi on ROCm and read its output (amd-smi has --json).",
        )
