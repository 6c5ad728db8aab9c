"""A model configured to use flash-attn.

## What it does

Finds `attn_implementation="flash_attention_2"` (and 3), or the older
`use_flash_attention_2=True`, in calls and configurations of Transformers; in tests, which
check such settings without a GPU, only where a model is loaded.

## Why it matters

Transformers raises an error if flash-attn is not installed, and flash-attn for ROCm is a separate build for some gfx
targets.

## Use instead

`"sdpa"` on ROCm: PyTorch's attention, which uses a fused kernel if available.

## Fix safety

A suggestion: batches packed without padding need flash-attn's varlen interface.

## References

- <https://huggingface.co/docs/transformers/main/en/attention_interface>
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import expression_gate
from rocmend.port.python.imported import of_tests
from rocmend.port.python.modes import leaves
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_NAMES = {"attn_implementation", "_attn_implementation"}
_BAD = {"flash_attention_2", "flash_attention_3", True}


@rule(
    "PY32",
    "model configured to use flash-attn",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"flash_attention_2", b"flash_attention_3"),
    sources=("https://huggingface.co/docs/transformers/main/en/attention_interface",),
    valid=(
        'm = Model.from_pretrained("x", attn_implementation="sdpa")\n',
        'if config._attn_implementation == "flash_attention_2":\n    run()\n',
    ),
    invalid=(
        Case(
            'm = Model.from_pretrained("x", attn_implementation="flash_attention_2")\n',
            "from package._rocm import is_rocm\n\n"
            'm = Model.from_pretrained("x", attn_implementation="sdpa" if is_rocm else "flash_attention_2")\n',
        ),
        Case(
            'm = M.from_pretrained("x", use_flash_attention_2=True)\n'
            'o = {"attn_implementation": "flash_attention_2" if fast else "sdpa"}\n',
            "from package._rocm import is_rocm\n\n"
            'm = M.from_pretrained("x", use_flash_attention_2=False if is_rocm else True)\n'
            'o = {"attn_implementation": ("sdpa" if is_rocm else "flash_attention_2") if fast else "sdpa"}\n',
        ),
        Case(
            "import a\n\na.config._attn_implementation = 'flash_attention_2'\n",
            "import a\n\nfrom package._rocm import is_rocm\n\n"
            "a.config._attn_implementation = \"sdpa\" if is_rocm else 'flash_attention_2'\n",
        ),
    ),
)
def attn_implementation(file: PythonFile) -> Iterable[Found]:
    """Find arguments, entries and attributes."""
    for value in dict.fromkeys(leaf for given in _given(file) for leaf in leaves(file, given)):
        known, complete = file.values(value)
        if complete and known and known <= _BAD and file.side(value) is not Side.CUDA:
            yield gated(
                file,
                value,
                expression_gate(file, value, "False" if True in known else '"sdpa"'),
                message="Transformers raises an error if flash-attn is not installed, and its wheels are for CUDA",
                remedy='Use "sdpa" on ROCm.',
            )


def _given(file: PythonFile) -> Iterator[ast.expr]:
    for call in file.of(ast.Call):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if not of_tests(file.path) or name.startswith("from_"):
            yield from (keyword.value for keyword in call.keywords if keyword.arg in _NAMES)
        if name.startswith("from_"):
            yield from (keyword.value for keyword in call.keywords if keyword.arg == "use_flash_attention_2")
    if of_tests(file.path):
        return
    for assign in file.of(ast.Assign):
        if any(isinstance(target, ast.Attribute) and target.attr in _NAMES for target in assign.targets):
            yield assign.value
    for entries in file.of(ast.Dict):
        for key, value in zip(entries.keys, entries.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in _NAMES:
                yield value
