"""A compile mode in a configuration.

## What it does

Finds `"reduce-overhead"` and `"max-autotune"` as the value of what is called a compile mode: fields of dataclasses and
of pydantic's models, defaults of parameters and of command-line options, keyword arguments, entries of dicts.

## Why it matters

The mode reaches `torch.compile` in another file or in a library (Transformers' `torch_compile_mode`, Accelerate's
`TorchDynamoPlugin`), where no rule can see it: both modes capture graphs, which is slow on ROCm and was reported to be
wrong in training.

## Use instead

`"default"`, or `"max-autotune-no-cudagraphs"`, on ROCm. Where the project calls `torch.compile` itself, the gate at
that call (PY03) serves all configurations at once.

## Fix safety

A suggestion: it is recognised by name only, and a configuration may be stored, compared, or read by others.

## References

- <https://github.com/pytorch/pytorch/issues/187715>
- `torch._inductor.list_mode_options` of torch 2.13
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import expression_gate
from rocmend.port.python.modes import known_modes
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_INSTEAD = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}
_ABOUT = re.compile(r"compil|dynamo|inductor", re.IGNORECASE)
_MODE = re.compile(r"(?:\w*(?:compil|dynamo|inductor)\w*_?mode|mode_?\w*compil\w*)", re.IGNORECASE)
_FIELDS = {"dataclasses.field", "pydantic.Field", "pydantic.fields.Field", "attrs.field", "attr.ib", "attr.field"}


@rule(
    "PY42",
    "compile mode in a configuration",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"reduce-overhead", b"max-autotune"),
    sources=("https://github.com/pytorch/pytorch/issues/187715", "torch._inductor.list_mode_options, torch 2.13"),
    valid=(
        'class Config:\n    mode: str = "reduce-overhead"\n',
        'class Config:\n    compile_mode: str = "default"\n',
        (
            'import torch\n\ncompile_mode = "reduce-overhead"\nif torch.version.hip:\n    compile_mode = "default"\n'
            "f = torch.compile(f, mode=compile_mode)\n"
        ),
        'if compile_mode == "reduce-overhead":\n    run()\n',
    ),
    invalid=(
        Case(
            "from dataclasses import dataclass, field\n\n\n@dataclass\nclass Config:\n"
            '    torch_compile_mode: str = "max-autotune"\n    compile_mode: str = field(default="reduce-overhead")\n',
            "from dataclasses import dataclass, field\n\nfrom package._rocm import is_rocm\n\n\n@dataclass\n"
            'class Config:\n    torch_compile_mode: str = "max-autotune-no-cudagraphs" if is_rocm else "max-autotune"\n'
            '    compile_mode: str = field(default="default" if is_rocm else "reduce-overhead")\n',
        ),
        Case(
            "import argparse\n\np = argparse.ArgumentParser()\n"
            'p.add_argument("--compile-mode", default="reduce-overhead")\n',
            "import argparse\n\nfrom package._rocm import is_rocm\n\np = argparse.ArgumentParser()\n"
            'p.add_argument("--compile-mode", default="default" if is_rocm else "reduce-overhead")\n',
        ),
        Case(
            'from accelerate.utils import TorchDynamoPlugin\n\nplugin = TorchDynamoPlugin(mode="reduce-overhead")\n'
            'SETTINGS = {"compile": {"mode": "reduce-overhead"}}\n',
            "from accelerate.utils import TorchDynamoPlugin\n\nfrom package._rocm import is_rocm\n\n"
            'plugin = TorchDynamoPlugin(mode="default" if is_rocm else "reduce-overhead")\n'
            'SETTINGS = {"compile": {"mode": "default" if is_rocm else "reduce-overhead"}}\n',
        ),
        Case(
            'def build(model, *, compile_mode="reduce-overhead"):\n    return wrap(model, compile_mode)\n',
            "from package._rocm import is_rocm\n\n\n"
            'def build(model, *, compile_mode="default" if is_rocm else "reduce-overhead"):\n'
            "    return wrap(model, compile_mode)\n",
        ),
    ),
)
def mode_in_settings(file: PythonFile) -> Iterable[Found]:
    """Find values that are one of the modes, under a name that says compile mode."""
    elsewhere = {node for mode in _INSTEAD for node, _ in known_modes(file, mode)}
    for value in file.on_rocm(dict.fromkeys(_given(file))):
        if not (isinstance(value, ast.Constant) and value.value in _INSTEAD) or value in elsewhere:
            continue
        yield gated(
            file,
            value,
            expression_gate(file, value, f'"{_INSTEAD[str(value.value)]}"'),
            message=f'"{value.value}" in a configuration: torch.compile captures graphs with it',
            remedy=f'Configure "{_INSTEAD[str(value.value)]}" on ROCm.',
        )


def _given(file: PythonFile) -> Iterator[ast.expr]:
    nodes: list[ast.Assign | ast.AnnAssign] = [*file.of(ast.Assign), *file.of(ast.AnnAssign)]
    for node in nodes:
        for target in [node.target] if isinstance(node, ast.AnnAssign) else node.targets:
            if node.value is not None and _MODE.fullmatch(_name(target)) and not _is_local(file, target):
                yield from _default(file, node.value)
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = [
        *file.of(ast.FunctionDef),
        *file.of(ast.AsyncFunctionDef),
    ]
    for function in functions:
        for name, bindings in file.scope(function.body[0]).bindings.items():
            if _MODE.fullmatch(name):
                yield from (one.default for one in bindings if one.default is not None)
    for call in file.of(ast.Call):
        yield from _by_call(call)
    for entries in file.of(ast.Dict):
        yield from _by_key(entries)


def _by_call(call: ast.Call) -> Iterator[ast.expr]:
    option = next((_text(one) for one in call.args[:2] if _text(one).startswith("--")), "")
    named = _MODE.fullmatch(option.lstrip("-").replace("-", "_")) is not None
    about = _ABOUT.search(_name(call.func)) is not None and _name(call.func) != "compile"
    for keyword in call.keywords:
        name = keyword.arg or ""
        if _MODE.fullmatch(name) or (name == "default" and named) or (name == "mode" and about):
            yield keyword.value


def _by_key(entries: ast.Dict) -> Iterator[ast.expr]:
    for key, value in zip(entries.keys, entries.values, strict=True):
        if _MODE.fullmatch(_text(key)):
            yield value
        elif isinstance(value, ast.Dict) and _ABOUT.search(_text(key)):
            yield from (one for name, one in zip(value.keys, value.values, strict=True) if _text(name) == "mode")


def _default(file: PythonFile, value: ast.expr) -> Iterator[ast.expr]:
    """Yield a field's default: the value itself, or what a call that describes the field is given."""
    if isinstance(value, ast.Call) and file.qualified(value.func) in _FIELDS:
        yield from value.args[:1]
        yield from (keyword.value for keyword in value.keywords if keyword.arg == "default")
    else:
        yield value


def _is_local(file: PythonFile, target: ast.expr) -> bool:
    """Whether a name is one that ``torch.compile`` is called with in the same file, or a function's own."""
    return isinstance(target, ast.Name) and (file.scope(target).of_function or _is_read(file, target.id))


def _is_read(file: PythonFile, name: str) -> bool:
    return any(
        isinstance(value, ast.Name) and value.id == name
        for call in file.calls("torch.compile")
        for value in (found.value for found in file.arguments(call, "mode"))
    )


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
