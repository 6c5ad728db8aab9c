"""A program that compiles with Inductor's default settings.

## What it does

Finds programs (`if __name__ == "__main__":`) that call `torch.compile`, except tests.

## Why it matters

Images for ROCm may set `TORCHINDUCTOR_MAX_AUTOTUNE`, which makes every mode autotune at first use, for minutes.
Memory planning and graph capture, which may be enabled elsewhere, are unreliable there.

## Use instead

A call at the start of the program that turns them off on ROCm.

## Fix safety

A suggestion: a project may configure Inductor elsewhere, or autotune on purpose.

## References

- The configuration that ports to MI300X and MI350X settled on
- `torch._inductor.config`, torch 2.13
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import insertion
from rocmend.port.python.imported import of_tests
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY41",
    "program that compiles with Inductor's default settings",
    Language.PYTHON,
    severity=Severity.INFO,
    outcome=Outcome.SUGGEST,
    triggers=(b"torch.compile", b"import torch as", b"import compile", b", compile"),
    sources=("reported from ports to MI300X and MI350X", "torch._inductor.config, torch 2.13"),
    valid=(
        "import torch\n\nf = torch.compile(f)\n",
        'import re\n\nif __name__ == "__main__":\n    re.compile("x")\n',
        'import torch, unittest\n\nf = torch.compile(f)\n\nif __name__ == "__main__":\n    unittest.main()\n',
        'import torch\n\nif __name__ == "__main__":\n    settle_inductor()\n    torch.compile(f)\n',
    ),
    invalid=(
        Case(
            'import torch\n\nf = torch.compile(f)\n\nif __name__ == "__main__":\n    f()\n',
            "import torch\n\nfrom package._rocm import is_rocm\n\nf = torch.compile(f)\n\n"
            'if __name__ == "__main__":\n    if is_rocm:\n'
            "        from package._rocm_inductor import settle_inductor\n\n"
            "        settle_inductor()\n    f()\n",
        ),
    ),
)
def inductor_settings(file: PythonFile) -> Iterable[Found]:
    """Find the start of programs that compile."""
    if b"settle_inductor" in file.data or of_tests(file.path) or not any(file.on_rocm_calls("torch.compile")):
        return
    for node in file.module.body:
        if not isinstance(node, ast.If) or _runs_tests(file, node):
            continue
        if _is_main(node.test) and file.side(node.body[0]) is not Side.CUDA:
            yield gated(
                file,
                node.test,
                insertion(file, node.body[0], "from _rocm_inductor import settle_inductor\n\nsettle_inductor()"),
                message="Inductor may autotune, plan memory or capture graphs on ROCm, depending on the environment",
                remedy="Disable max_autotune, memory_planning and cudagraphs on ROCm before anything is compiled.",
                needs=("is_rocm", "inductor"),
            )


def _is_main(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]):
            return True
        case _:
            return False


def _runs_tests(file: PythonFile, node: ast.If) -> bool:
    """Whether a program does nothing but run the tests in it."""
    first = node.body[0]
    call = first.value if isinstance(first, ast.Expr) else None
    name = file.qualified(call.func) if isinstance(call, ast.Call) else None
    return len(node.body) == 1 and name is not None and name.endswith(("unittest.main", "pytest.main", "run_tests"))
