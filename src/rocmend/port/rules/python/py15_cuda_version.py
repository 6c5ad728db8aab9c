"""The CUDA version of PyTorch, parsed or required.

## What it does

Finds `torch.version.cuda` where None would raise: parsed as a version, split, converted, compared by order. Also finds
assertions, and tests before a `raise` or an exit, that fail because it is None.

## Why it matters

On ROCm it is None, and the file fails at that place, often while it is imported.

## Use instead

The flag before a comparison, so that it is False on ROCm; a version below all others where the value is used further.
The flag in a test that requires CUDA, so that a ROCm build of PyTorch passes it.

## Fix safety

A requirement is rewritten, and what comes after it is checked as code that runs on ROCm. It is only reported where the
error names ROCm, so that ROCm is refused on purpose, and where the error is in the `else` of code for CUDA. One in a
`try` is left alone.

Safe in an assertion, and in a comparison that only decides whether something is done: it tests whether CUDA is recent
enough, and the code behind it is skipped on ROCm, where it failed before. A function's local name, or a private one,
for such a comparison counts as the comparison where it has no other use.

Elsewhere a suggestion, with version 0.0 instead of None. Where there is an `else`, or a function returns the answer,
ROCm takes the branch of the oldest CUDA, which may be wrong; nor is it known what values derived from the version are
used for. Inside an f-string nothing is rewritten.

## References

- `torch.version` of a ROCm build: `cuda` is None, `hip` a version
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import asserted, condition_gate, expression_gate, guards
from rocmend.port.python.required import CUDA_VERSION, Requirement, requirement
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_PARSERS = ("parse", "Version", "LooseVersion", "StrictVersion", "parse_version", "int", "float")


@rule(
    "PY15",
    "torch.version.cuda parsed or required",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"version.cuda", b"torch.version", b"import version"),
    sources=("torch.version, torch 2.13",),
    valid=(
        "import torch\n\nv = torch.version.cuda\nif not isinstance(v, str) or not v.strip():\n    v = '0'\n",
        "import torch\n\nprint(torch.version.cuda)\n",
        "import torch\n\nif torch.version.cuda is not None and torch.version.cuda >= '12':\n    run()\n",
        "import torch\n\nif torch.version.cuda:\n    major = int(torch.version.cuda.split('.')[0])\n",
        "import torch\n\nif torch.version.cuda is None and torch.version.hip is None:\n    raise OSError('no GPU')\n",
        "import torch\n\nif not (torch.version.cuda or torch.version.hip):\n    raise OSError('no GPU')\n",
        "import torch\n\nassert torch.version.cuda or torch.version.hip\n",
        "import torch\n\nif torch.version.hip or not torch.version.cuda:\n    raise OSError('CUDA alone')\n",
        "import torch\n\ntry:\n    assert torch.version.cuda\n    import a\nexcept AssertionError:\n    a = None\n",
    ),
    invalid=(
        Case(
            "import torch\nfrom packaging.version import Version\n\n"
            'if Version(torch.version.cuda) >= Version("12.1"):\n    run()\n',
            "import torch\nfrom packaging.version import Version\n\nfrom package._rocm import is_rocm\n\n"
            'if not is_rocm and Version(torch.version.cuda) >= Version("12.1"):\n    run()\n',
        ),
        Case(
            "import torch\n\n\ndef new(Version):\n    if Version(torch.version.cuda) < Version('12'):\n"
            "        return False\n    return True\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n\ndef new(Version):\n"
            "    if Version(\"0.0\" if is_rocm else torch.version.cuda) < Version('12'):\n"
            "        return False\n    return True\n",
        ),
        Case(
            'import torch\n\nmajor = int(torch.version.cuda.split(".")[0])\n',
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            'major = int(("0.0" if is_rocm else torch.version.cuda).split(".")[0])\n',
        ),
        Case(
            "import torch\n\nassert float(torch.version.cuda) >= 11.6, torch.version.cuda\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "assert is_rocm or float(torch.version.cuda) >= 11.6, torch.version.cuda\n",
        ),
        Case(
            "import torch\n\n\ndef flags(Version):\n    new = Version(torch.version.cuda) >= Version('12')\n"
            "    made = []\n    if new:\n        made.append('-DNEW')\n    return made\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n\ndef flags(Version):\n"
            "    new = not is_rocm and Version(torch.version.cuda) >= Version('12')\n"
            "    made = []\n    if new:\n        made.append('-DNEW')\n    return made\n",
        ),
        Case(
            "import torch\n\nname = 'cu' + torch.version.cuda\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "name = 'cu' + (\"0.0\" if is_rocm else torch.version.cuda)\n",
        ),
        Case(
            "import torch\n\nif torch.version.cuda is None:\n    raise RuntimeError('needs CUDA')\n"
            "if float(torch.version.cuda) >= 11.8:\n    run()\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "if not is_rocm and torch.version.cuda is None:\n    raise RuntimeError('needs CUDA')\n"
            "if not is_rocm and float(torch.version.cuda) >= 11.8:\n    run()\n",
        ),
        Case(
            "import torch\n\nassert torch.version.cuda, 'needs CUDA'\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\nassert is_rocm or torch.version.cuda, 'needs CUDA'\n",
        ),
        Case(
            "import sys\n\nimport torch\n\nif not torch.version.cuda:\n    sys.exit('needs CUDA')\n",
            "import sys\n\nimport torch\n\nfrom package._rocm import is_rocm\n\n"
            "if not is_rocm and not torch.version.cuda:\n    sys.exit('needs CUDA')\n",
        ),
        Case(
            "import torch\n\nif torch.version.cuda is None or float(torch.version.cuda) < 11.8:\n"
            "    raise OSError('CUDA 11.8')\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "if not is_rocm and (torch.version.cuda is None or float(torch.version.cuda) < 11.8):\n"
            "    raise OSError('CUDA 11.8')\n",
        ),
        Case(
            "import torch\n\nif not (torch.cuda.is_available() and torch.version.cuda):\n    raise OSError('no GPU')\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "if not (torch.cuda.is_available() and (is_rocm or torch.version.cuda)):\n    raise OSError('no GPU')\n",
        ),
        Case("import torch\n\nif torch.version.cuda:\n    run()\nelse:\n    raise OSError('no CUDA')\n", None),
        Case("import torch\n\nif not torch.version.cuda:\n    raise OSError('no ROCm support')\n", None),
        Case("import torch\n\nname = f\"cu{torch.version.cuda.replace('.', '')}\"\n", None),
    ),
)
def cuda_version(file: PythonFile) -> Iterable[Found]:
    """Find uses that None would make fail."""
    tests: list[ast.If | ast.Assert] = [*file.of(ast.If), *file.of(ast.Assert)]
    for test in file.on_rocm(tests):
        if found := requirement(file, test):
            yield _required(file, test, found)
    for node in file.references(CUDA_VERSION, aliases=True):
        if file.side(node) is Side.CUDA or not _fails(file, node):
            continue
        compared = _comparison(file, node)
        outcome: Outcome | None = Outcome.SUGGEST
        if compared is not None and (guards(file, compared) or _only_guards(file, compared)):
            edits, outcome = condition_gate(file, compared, rocm=False), None
        elif compared is not None and asserted(file, compared):
            edits, outcome = condition_gate(file, compared, rocm=True), None
        else:
            edits = expression_gate(file, node, '"0.0"')
        yield _found(file, node, edits, outcome)
    for text in file.on_rocm(file.of(ast.JoinedStr)):
        if any(
            isinstance(node, ast.Attribute | ast.Subscript) and file.qualified(node.value) == CUDA_VERSION
            for node in ast.walk(text)
        ):
            yield _found(file, text, (), None)


def _required(file: PythonFile, node: ast.If | ast.Assert, found: Requirement) -> Found:
    """Return a requirement of CUDA, with the flag in its test; before all of it where all of it is about CUDA."""
    test = node.test
    edits: tuple[Edit, ...] = ()
    remedy = "Let a ROCm build of PyTorch pass (torch.version.hip)."
    if found.otherwise:
        remedy = "Add a branch for ROCm (torch.version.hip), or let it take the branch for CUDA if that runs there."
    elif found.refuses:
        remedy = "ROCm is refused on purpose: port what is behind it, then let a ROCm build of PyTorch pass."
    elif isinstance(test, ast.BoolOp) and [one.node for one in found.operands] == test.values:
        edits = condition_gate(file, test, rocm=isinstance(node, ast.Assert))
    else:
        parts = [condition_gate(file, one.node, rocm=not one.failing) for one in found.operands]
        edits = tuple(edit for part in parts for edit in part) if all(parts) else ()
    message = "torch.version.cuda is None on ROCm, and this requires it"
    return gated(file, found.operands[0].node, edits, message=message, remedy=remedy)


def _found(file: PythonFile, node: ast.expr, edits: tuple[Edit, ...], outcome: Outcome | None) -> Found:
    return gated(
        file,
        node,
        edits,
        message="torch.version.cuda is None on ROCm, and this fails there",
        remedy="Read the CUDA version on CUDA only.",
        outcome=outcome,
    )


def _fails(file: PythonFile, node: ast.expr) -> bool:
    parent = file.parent(node)
    if isinstance(parent, ast.Attribute | ast.Subscript):
        return True
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Add)
    if isinstance(parent, ast.Call) and node in parent.args:
        name = parent.func.attr if isinstance(parent.func, ast.Attribute) else getattr(parent.func, "id", "")
        known = file.qualified(parent.func) or ""
        return name in _PARSERS or known.startswith("re.") or known.rpartition(".")[2] in _PARSERS
    if isinstance(parent, ast.Compare):
        return any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in parent.ops)
    return False


def _comparison(file: PythonFile, node: ast.expr) -> ast.Compare | None:
    """Return the comparison by order that a value goes into, through calls and attributes alone."""
    child: ast.AST = node
    while (parent := file.parent(child)) is not None:
        if isinstance(parent, ast.Compare):
            ordered = all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in parent.ops)
            return parent if ordered else None
        if not isinstance(parent, ast.Call | ast.Attribute | ast.Subscript):
            return None
        child = parent
    return None


def _only_guards(file: PythonFile, node: ast.expr) -> bool:
    """Whether a value gets a private name, once, that does nothing in the file but decide whether something is done."""
    parent = file.parent(node)
    if not (isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name)):
        return False
    name = parent.targets[0].id
    scope, bindings = file.scope(parent.targets[0]).lookup(name) or (None, [])
    if scope is None or len(bindings) != 1 or not (scope.of_function or name.startswith("_")):
        return False
    uses = [use for use in ast.walk(file.module) if isinstance(use, ast.Name) and use.id == name]
    loads = [use for use in uses if isinstance(use.ctx, ast.Load)]
    return bool(loads) and all(file.parent(use) is not None and guards(file, use) for use in loads)
