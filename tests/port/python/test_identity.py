"""The proof that a ported file is the original on CUDA: it holds for right ports, and wrong ones do not pass."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.port.python.identity import folds_back

HEAD = "from package._rocm import is_rocm\n"

RIGHT = {
    "nothing": ("a = 1\n", "a = 1\n"),
    "formatting": ("a = f(1,2)\n", "a = f(1, 2)  # why\n"),
    "expression": ("a = 1\n", HEAD + "a = 2 if is_rocm else 1\n"),
    "negated": ("a = 1\n", HEAD + "a = 1 if not is_rocm else 2\n"),
    "and": ("if a:\n    b()\n", HEAD + "if not is_rocm and a:\n    b()\n"),
    "or": ("if a:\n    b()\n", HEAD + "if is_rocm or a:\n    b()\n"),
    "with a condition": ("a = m\n", HEAD + "a = 2 if is_rocm and m in (1, 2) else m\n"),
    "statement": ("a = 1\n", HEAD + "if is_rocm:\n    a = 2\nelse:\n    a = 1\n"),
    "only on CUDA": ("a = 1\nb = 2\n", HEAD + "if not is_rocm:\n    a = 1\n    b = 2\n"),
    "only on ROCm": ("a = 1\n", HEAD + "if is_rocm:\n    b()\na = 1\n"),
    "elif": (
        "if a:\n    b()\nelse:\n    c()\n",
        HEAD + "if is_rocm:\n    d()\nelif a:\n    b()\nelse:\n    c()\n",
    ),
    "nested": (
        "def f():\n    return 1\n",
        HEAD + "def f():\n    if is_rocm:\n        return 2\n    else:\n        return 3 if is_rocm else 1\n",
    ),
    "unpacked": (
        "f(1, a=2)\ng([1])\n",
        HEAD + "f(1, *([2] if is_rocm else []), a=2, **({'b': 1} if is_rocm else {}))\n"
        "g([1, *([2] if is_rocm else [])])\n",
    ),
    "decorator": ("@d(1)\ndef f(): ...\n", HEAD + "@d(2 if is_rocm else 1)\ndef f(): ...\n"),
    "alias": ("a = 1\n", "from package._rocm import is_rocm as r\na = 2 if r else 1\n"),
    "relative": ("a = 1\n", "from ..x._rocm import is_rocm\na = 2 if is_rocm else 1\n"),
    "own flag": (
        "import torch\nR = torch.version.hip is not None\na = 1\n",
        "import torch\nR = torch.version.hip is not None\na = 2 if R else 1\n",
    ),
    "own gates stay": (
        "import torch\nR = torch.version.hip is not None\nif R:\n    a = 1\nelse:\n    a = b\n",
        "import torch\nR = torch.version.hip is not None\nif R:\n    a = 1\nelse:\n    a = 3 if R else b\n",
    ),
    "definition": (
        "import torch\na = 1\n",
        'import torch\nis_rocm = getattr(torch.version, "hip", None) is not None\na = 2 if is_rocm else 1\n',
    ),
    "other module": (
        "a = 1\n",
        HEAD + "from package._rocm_fp8 import float8_e4m3\na = float8_e4m3() if is_rocm else 1\n",
    ),
    "a name that is local anyway": (
        "def f():\n    a = 1\n    return a\n",
        HEAD + "def f():\n    if is_rocm:\n        a = 2\n    else:\n        a = 1\n    return a\n",
    ),
    "a new name that nothing reads": (
        "def f():\n    return 1\n",
        HEAD + "def f():\n    if is_rocm:\n        import b\n        return b.c()\n    return 1\n",
    ),
}

WRONG = {
    "changed": ("a = 1\n", "a = 2\n"),
    "added": ("a = 1\n", "a = 1\nb = 2\n"),
    "missing": ("a = 1\nb = 2\n", "a = 1\n"),
    "order": ("a()\nb()\n", "b()\na()\n"),
    "type": ("a = 1\n", "a = True\n"),
    "float": ("a = 1\n", "a = 1.0\n"),
    "bytes": ("a = 'b'\n", "a = b'b'\n"),
    "negative zero": ("a = 0.0\n", "a = -0.0\n"),
    "the wrong branch": ("a = 1\n", HEAD + "a = 1 if is_rocm else 2\n"),
    "the wrong way round": ("a = 1\n", HEAD + "if is_rocm:\n    a = 1\nelse:\n    a = 2\n"),
    "not a gate": ("a = 1\n", "a = 2 if is_rocm else 1\n"),
    "another flag": ("a = 1\n", "from package.utils import is_rocm\na = 2 if is_rocm else 1\n"),
    "another name of the module": ("a = 1\n", "from package._rocm import is_hip\na = 2 if is_hip else 1\n"),
    "a flag that is not proven": (
        "import os\nR = os.environ\na = 1\n",
        "import os\nR = os.environ\na = 2 if R else 1\n",
    ),
    "bound again": ("a = 1\n", HEAD + "is_rocm = True\na = 2 if is_rocm else 1\n"),
    "bound in a function": ("def f(x):\n    return 1\n", HEAD + "def f(is_rocm):\n    return 2 if is_rocm else 1\n"),
    "bound by a loop": ("[1 for x in y]\n", HEAD + "[2 if is_rocm else 1 for is_rocm in y]\n"),
    "bound by a walrus in an f-string": (
        "a = f'{b}'\nc = 1\n",
        HEAD + "a = f'{(is_rocm := b)}'\nc = 2 if is_rocm else 1\n",
    ),
    "bound by an import of everything": (
        "from b import *\na = 1\n",
        HEAD + "from b import *\na = 2 if is_rocm else 1\n",
    ),
    "bound by an exception": (
        "try:\n    a()\nexcept E:\n    pass\nb = 1\n",
        HEAD + "try:\n    a()\nexcept E as is_rocm:\n    pass\nb = 2 if is_rocm else 1\n",
    ),
    "the name has another use": ("print(is_rocm)\na = 1\n", HEAD + "print(is_rocm)\na = 2 if is_rocm else 1\n"),
    "used before it is bound": ("a = 1\n", "a = 2 if is_rocm else 1\n" + HEAD),
    "bound under a condition": ("a = 1\n", "if b:\n    " + HEAD + "a = 2 if is_rocm else 1\n"),
    "a value that and gives": ("a = b\n", HEAD + "a = b and not is_rocm\n"),
    "a value that or gives": ("a = b\n", HEAD + "a = b or is_rocm\n"),
    "evaluated before the flag": ("if a:\n    b()\n", HEAD + "if c() and not is_rocm and a:\n    b()\n"),
    "local to the function": (
        "import a\ndef f():\n    return a.b\n",
        HEAD + "import a\ndef f():\n    if is_rocm:\n        a = None\n    return a.b\n",
    ),
    "local by an import": (
        "import a\ndef f():\n    return a.b\n",
        HEAD + "import a\ndef f():\n    if is_rocm:\n        import a\n    return a.b\n",
    ),
    "local by a walrus": (
        "a = 1\ndef f():\n    return a\n",
        HEAD + "a = 1\ndef f():\n    b = (a := 2) if is_rocm else 1\n    return a\n",
    ),
    "a generator": ("def f():\n    return 1\n", HEAD + "def f():\n    if is_rocm:\n        yield 2\n    return 1\n"),
    "global": ("def f():\n    a = 1\n", HEAD + "def f():\n    if is_rocm:\n        global a\n    a = 1\n"),
    "in a Triton kernel": (
        "import triton\n@triton.jit\ndef f(x):\n    return 1\n",
        HEAD + "import triton\n@triton.jit\ndef f(x):\n    return 2 if is_rocm else 1\n",
    ),
    "in a scripted function": (
        "import torch\ndef f(x):\n    return 1\nf = torch.jit.script(f)\n",
        HEAD + "import torch\ndef f(x):\n    return 2 if is_rocm else 1\nf = torch.jit.script(f)\n",
    ),
    "the docstring": ('"""Doc."""\na = 1\n', HEAD + '"""Doc."""\na = 1\n'),
    "a docstring of a function": (
        'def f():\n    """Doc."""\n    return 1\n',
        HEAD + 'def f():\n    if is_rocm:\n        a()\n    """Doc."""\n    return 1\n',
    ),
    "a docstring in a gate": (
        'def f():\n    """Doc."""\n',
        HEAD + 'def f():\n    if is_rocm:\n        a()\n    else:\n        """Doc."""\n',
    ),
    "before the future": (
        "from __future__ import annotations\na = 1\n",
        HEAD + "from __future__ import annotations\na = 2 if is_rocm else 1\n",
    ),
    "a definition that says something else": (
        "import torch\na = 1\n",
        'import torch\nis_rocm = getattr(torch.version, "cuda", None) is not None\na = 2 if is_rocm else 1\n',
    ),
    "a definition before torch": (
        "a = 1\nimport torch\n",
        'is_rocm = getattr(torch.version, "hip", None) is not None\na = 2 if is_rocm else 1\nimport torch\n',
    ),
    "a definition that imports torch": (
        "a = 1\n",
        'import torch\nis_rocm = getattr(torch.version, "hip", None) is not None\na = 2 if is_rocm else 1\n',
    ),
    "a function that was changed": (
        "a = 1\n",
        "def _torch_is_for_rocm():\n    return True\n\n\nis_rocm = _torch_is_for_rocm()\na = 2 if is_rocm else 1\n",
    ),
    "own gates changed": (
        "import torch\nR = torch.version.hip is not None\nif R:\n    a = 1\n",
        "import torch\nR = torch.version.hip is not None\nif R:\n    a = 2\n",
    ),
    "own flag changed": (
        "import torch\nR = torch.version.hip is not None\n",
        "import torch\nR = torch.version.hip is None\n",
    ),
    "an unpacked argument that is not empty": ("f(1)\n", HEAD + "f(1, *([2] if is_rocm else [3]))\n"),
    "an unpacked argument of no gate": ("f(1)\n", HEAD + "f(1, *(a if is_rocm else b))\n"),
    "a keyword's name": ("f(a=1)\n", "f(b=1)\n"),
    "a default": ("def f(a=1): ...\n", "def f(a=2): ...\n"),
    "an operator": ("a = b + c\n", "a = b - c\n"),
    "syntax": ("a = 1\n", HEAD + "if is_rocm:\na = 1\n"),
    "return outside of a function": ("a = 1\n", HEAD + "if is_rocm:\n    return\na = 1\n"),
    "encoding": ("# coding: latin-1\na = 'x'\n", "# coding: utf-8\na = 'x'\n"),
    "an extra entry": ("a = {'b': 1}\n", HEAD + "a = {'b': 1, **({'c': 2} if is_rocm else {'d': 3})}\n"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_port_is_proven(name: str) -> None:
    before, after = RIGHT[name]
    assert folds_back(before.encode(), after.encode()) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_port_is_not(name: str) -> None:
    before, after = WRONG[name]
    reason = folds_back(before.encode(), after.encode())
    assert reason, "a wrong port was taken for the original"
    assert "\n" not in reason


def test_the_reason_names_the_line() -> None:
    assert folds_back(b"a = 1\nb = 2\n", b"a = 1\n\nb = 3\n") == "line 3: its value: 2 has become 3"


# Random edits: what the proof lets pass must do the same when it is executed with the flag False.

TRACED = "t({})"
LEAF = st.integers(0, 5).map(TRACED.format)
EXPRESSION = st.recursive(
    st.one_of(LEAF, st.sampled_from(["a", "b", "1", "0"])),
    lambda inner: st.one_of(
        st.tuples(inner, inner, inner).map("({0[0]} if {0[1]} else {0[2]})".format),
        st.tuples(inner, inner).map("({0[0]} and {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} or {0[1]})".format),
        inner.map("(not {})".format),
        st.tuples(inner, inner).map("t({0[0]}, {0[1]})".format),
    ),
    max_leaves=4,
)


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@st.composite
def block(draw: st.DrawFn, depth: int = 2) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["call", "assign", "if", "else", "return", "def"] if depth else ["call", "assign"]))
        if kind == "call":
            lines.append(draw(EXPRESSION))
        elif kind == "assign":
            lines.append(f"{draw(st.sampled_from('ab'))} = {draw(EXPRESSION)}")
        elif kind in {"if", "else"}:
            lines += [f"if {draw(EXPRESSION)}:", *indented(draw(block(depth - 1)))]
            lines += ["else:", *indented(draw(block(depth - 1)))] if kind == "else" else []
        elif kind == "return":
            lines.append(f"if {draw(EXPRESSION)}: return {draw(EXPRESSION)}")
        else:
            lines += ["def g():", *indented(draw(block(depth - 1))), "g()"]
    return lines


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, str]:  # noqa: C901  as many kinds of edits as there are
    """A program, and the same with edits of which some are gates and some are not."""
    before = ["def main(a=1):", "    b = 2", *indented(draw(block())), "main()"]
    after = list(before)
    for _ in range(draw(st.integers(1, 4))):
        if len(after) < 5:
            break
        at = draw(st.integers(2, len(after) - 2))
        line = after[at]
        space = line[: len(line) - len(line.lstrip())]
        text = line.strip()
        other = draw(
            st.sampled_from(["t(9)", "a = t(8)", "c = 1", "return 7", "b = 0", "pass", "yield", "is_rocm = 1"])
        )
        simple = not text.endswith(":") and "return" not in text
        choice = draw(st.integers(0, 9))
        if choice == 0:
            after[at] = space + other
        elif choice == 1:
            after[at:at] = [f"{space}if is_rocm:", f"{space}    {other}"] if not text.startswith("else") else []
        elif choice == 2 and simple:
            after[at : at + 1] = [f"{space}if is_rocm:", f"{space}    {other}", f"{space}else:", f"{space}    {text}"]
        elif choice == 3 and simple:
            after[at : at + 1] = [f"{space}if not is_rocm:", f"{space}    {text}"]
        elif choice == 4 and simple:
            after[at : at + 1] = [f"{space}if is_rocm:", f"{space}    {text}", f"{space}else:", f"{space}    {other}"]
        elif choice == 5 and "t(" in text:
            after[at] = line.replace("t(", "(t if not is_rocm else u)(", 1)
        elif choice == 6 and "1" in text:
            after[at] = line.replace("1", draw(st.sampled_from(["(0 if is_rocm else 1)", "(1 if is_rocm else 0)"])), 1)
        elif choice == 7 and text.startswith("if "):
            gate = draw(st.sampled_from(["is_rocm or ", "not is_rocm and ", "is_rocm and ", "not is_rocm or "]))
            after[at] = f"{space}if {gate}{text[3:]}"
        elif choice == 8:
            del after[at]
        elif choice == 9 and simple and "=" in text:
            after[at] = line.replace("= ", "= t(9) if is_rocm else ", 1)
    head = draw(st.sampled_from([HEAD, HEAD, HEAD, HEAD, "", "is_rocm = True\n"]))
    return "\n".join(before) + "\n", head + "\n".join(after) + "\n"


def trace(source: str) -> tuple[list[Any], str]:
    """What a program calls, and how it ends, with the flag False."""
    calls: list[Any] = []

    def t(*arguments: Any) -> int:
        calls.append(arguments)
        if len(calls) > 200:
            raise OverflowError
        return len(calls) % 3

    package, flag = ModuleType("package"), ModuleType("package._rocm")
    flag.is_rocm = False  # type: ignore[attr-defined]
    saved = {name: sys.modules.get(name) for name in ("package", "package._rocm")}
    sys.modules.update({"package": package, "package._rocm": flag})
    try:
        exec(compile(source, "program", "exec"), {"t": t, "u": None})  # noqa: S102  programs made above
    except Exception as error:  # noqa: BLE001  any way to end is a way to differ
        return calls, type(error).__name__
    finally:
        for name, module in saved.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module
    return calls, ""


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(edited())
def test_what_passes_does_the_same(pair: tuple[str, str]) -> None:
    before, after = pair
    if folds_back(before.encode(), after.encode()) is None:
        assert trace(after) == trace(before), f"{before}\n----\n{after}"


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(block(), st.data())
def test_right_ports_pass(lines: list[str], data: st.DataObject) -> None:
    """Whatever is gated the way the writer does it is proven."""
    before = ["def main(a=1):", "    b = 2", *indented(lines), "main()"]
    after: list[str] = []
    for line in before:
        text, space = line.strip(), line[: len(line) - len(line.lstrip())]
        if text.startswith(("a = ", "b = ")) and data.draw(st.booleans()):
            after.append(f"{space}{text[:4]}t(9) if is_rocm else {text[4:]}")
        elif text.startswith("t(") and data.draw(st.booleans()):
            after += [f"{space}if is_rocm:", f"{space}    pass", f"{space}else:", f"{space}    {text}"]
        else:
            after.append(line)
    assert folds_back("\n".join(before).encode(), (HEAD + "\n".join(after)).encode()) is None
