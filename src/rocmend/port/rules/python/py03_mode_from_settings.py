"""A compile mode that comes from a configuration or the command line.

## What it does

Finds calls of `torch.compile` whose mode is not known from the source, also where arguments are unpacked from a dict
defined elsewhere.

## Why it matters

A configuration that was written for NVIDIA asks for `"reduce-overhead"` or `"max-autotune"`, which capture graphs.

## Use instead

A gate at the call that passes all other modes through: one configuration serves both platforms.

## Fix safety

A suggestion: you may want to keep the requested mode, or change the configuration instead.

## References

- <https://github.com/pytorch/pytorch/issues/187715>
- <https://github.com/Physical-Intelligence/openpi>, where the mode is a field of a configuration
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import expression_gate
from rocmend.port.python.modes import leaves, modes
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_BAD = ("max-autotune", "reduce-overhead")


@rule(
    "PY03",
    "torch.compile mode from a configuration or the command line",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"torch.compile", b"import torch as", b"import compile", b", compile"),
    sources=("https://github.com/pytorch/pytorch/issues/187715", "https://github.com/Physical-Intelligence/openpi"),
    valid=(
        'import torch\n\nMODE = "default"\nf = torch.compile(f, mode=MODE)\n',
        "import torch\n\nf = torch.compile(f)\n",
        "import torch\n\nOPTIONS = {'fullgraph': True}\nf = torch.compile(f, **OPTIONS)\n",
    ),
    invalid=(
        Case(
            "import torch\n\n\ndef run(f, config):\n    return torch.compile(f, mode=config.mode)\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n\ndef run(f, config):\n    return torch.compile(f, "
            'mode="default" if is_rocm and config.mode in ("max-autotune", "reduce-overhead") else config.mode)\n',
        ),
        Case(
            "import torch\n\nf = torch.compile(f, mode=cfg['compile'].get('mode', 'default'))\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\nf = torch.compile(f, "
            "mode=\"default\" if is_rocm and cfg['compile'].get('mode', 'default') in "
            "(\"max-autotune\", \"reduce-overhead\") else cfg['compile'].get('mode', 'default'))\n",
        ),
        Case(
            "import torch\n\n\ndef run(f, **options):\n    return torch.compile(f, **options)\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n\ndef run(f, **options):\n"
            '    return torch.compile(f, **({**options, "mode": "default"} if is_rocm and options.get("mode") in '
            '("max-autotune", "reduce-overhead") else options))\n',
        ),
        Case("import torch\n\nf = torch.compile(f, mode=read_mode())\n", None),
    ),
)
def mode_from_settings(file: PythonFile) -> Iterable[Found]:
    """Find modes that may be one of those that capture graphs."""
    yield from _unknown(file)
    for value, _ in modes(file, unknown=False):
        for leaf in leaves(file, value):
            known, complete = file.values(leaf)
            if complete and (not known & set(_BAD) or len(known) == 1):
                continue
            shown = file.source(leaf)
            edits: tuple[Edit, ...] = ()
            if _is_pure(leaf) and "\n" not in shown:
                edits = expression_gate(file, leaf, '"default"', when=f'{shown} in ("max-autotune", "reduce-overhead")')
            yield gated(
                file,
                leaf,
                edits,
                message="the torch.compile mode is not known here and may be one that captures graphs",
                remedy='On ROCm, replace "reduce-overhead" and "max-autotune" with "default".',
            )


def _unknown(file: PythonFile) -> Iterable[Found]:
    """Find dicts that are unpacked into a call, and may hold a mode."""
    for call in file.on_rocm_calls("torch.compile"):
        if file.arguments(call, "mode"):
            continue
        for keyword in call.keywords:
            if keyword.arg is not None or not _is_pure(keyword.value) or _is_literal(file, keyword.value):
                continue
            shown = file.source(keyword.value)
            test = f'{shown}.get("mode") in ("max-autotune", "reduce-overhead")'
            edits = expression_gate(file, keyword.value, f'{{**{shown}, "mode": "default"}}', when=test)
            yield gated(
                file,
                keyword.value,
                edits if "\n" not in shown else (),
                message="the torch.compile arguments are not known here, and the mode may be one that captures graphs",
                remedy='On ROCm, replace "reduce-overhead" and "max-autotune" with "default".',
            )


def _is_literal(file: PythonFile, node: ast.expr) -> bool:
    """Whether a name is bound to dicts that are written out, and nothing else."""
    found = file.scope(node).lookup(node.id) if isinstance(node, ast.Name) else None
    return found is not None and all(
        isinstance(one.value, ast.Dict)
        or (isinstance(one.value, ast.Call) and file.qualified(one.value.func) == "builtins.dict")
        for one in found[1]
    )


def _is_pure(node: ast.expr) -> bool:
    """Whether reading an expression twice does no more than reading it once: attributes and items of a name."""
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant() | ast.Name()):
            return _is_pure(value)
        case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[ast.Constant(), *rest], keywords=[]):
            return _is_pure(value) and all(isinstance(one, ast.Constant) for one in rest)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="getenv"), args=args, keywords=[]):
            return all(isinstance(one, ast.Constant) for one in args)
        case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(), *rest], keywords=[]):
            return _is_pure(value) and all(isinstance(one, ast.Constant) for one in rest)
        case _:
            return False
