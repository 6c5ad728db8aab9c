"""Python sources as rules read them: places, names, values, sides."""

from __future__ import annotations

import ast
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError
from rocmend.port.python.file import PythonFile
from rocmend.port.python.flags import Side


def parsed(source: str | bytes) -> PythonFile:
    return PythonFile("a.py", source if isinstance(source, bytes) else source.encode())


def called(source: str) -> list[str | None]:
    """The dotted names of what a source calls, in order of their place."""
    file = parsed(source)
    return [
        file.qualified(call.func) for call in sorted(file.of(ast.Call), key=lambda one: (one.lineno, one.col_offset))
    ]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import torch\ntorch.compile(f)", "torch.compile"),
        ("import torch as t\nt.compile(f)", "torch.compile"),
        ("from torch import compile\ncompile(f)", "torch.compile"),
        ("from torch import compile as c\nc(f)", "torch.compile"),
        ("import torch.cuda.amp\ntorch.cuda.amp.autocast()", "torch.cuda.amp.autocast"),
        ("import torch.cuda.amp as amp\namp.autocast()", "torch.cuda.amp.autocast"),
        ("import torch\nc = torch.compile\nc(f)", "torch.compile"),
        ("import torch\nc = t = torch\nt.compile(f)", "torch.compile"),
        ("def g():\n    import torch\n    torch.compile(f)", "torch.compile"),
        ("def g():\n    torch.compile(f)\nimport torch", "torch.compile"),
        ("import torch\nclass A:\n    torch = 1\n    def g(self):\n        torch.compile(f)", "torch.compile"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\ntorch.compile(f)", "torch.compile"),
        ("def g():\n    global torch\n    import torch\ntorch.compile(f)", "torch.compile"),
        ("import torch\ngetattr(torch, 'compile')(f)", "torch.compile"),
        ("from . import torch\ntorch.compile(f)", ".torch.compile"),
        ("from ..a import b\nb()", "..a.b"),
        ("compile(f)", "builtins.compile"),
        ("if (t := __import__('torch')):\n    t.compile(f)", None),
        ("import torch\ndef g(torch):\n    torch.compile(f)", None),
        ("import torch\ntorch = fake()\ntorch.compile(f)", None),
        ("import torch\nfor torch in x:\n    torch.compile(f)", None),
        ("import torch\nwith x as torch:\n    torch.compile(f)", None),
        ("import torch\n[torch.compile(f) for torch in x]", None),
        ("import torch\nlambda torch: torch.compile(f)", None),
        ("import torch\nclass A:\n    torch = 1\n    torch.compile(f)", None),
        ("import torch\ndef g():\n    torch.compile(f)\n    torch = 1", None),
        ("try:\n    import torch\nexcept ImportError:\n    import fake as torch\ntorch.compile(f)", None),
        ("import torch\nmatch x:\n    case torch:\n        torch.compile(f)", None),
        ("import torch\ntry:\n    pass\nexcept E as torch:\n    torch.compile(f)", None),
        ("import torch\ntorch += 1\ntorch.compile(f)", None),
        ("import torch\ndel torch\ntorch.compile(f)", "torch.compile"),
        ("from torch import compile\ndel compile\ncompile(f)", None),
        ("from torch import *\ncompile(f)", "torch.compile"),
        ("from os import *\nfrom torch import *\ncompile(f)", None),
        ("from os import *\ncompile(f)", "builtins.compile"),
        ("from os import *\nputenv(a, b)", "os.putenv"),
        ("import torch\na, torch = x\ntorch.compile(f)", None),
        ("a = a\na()", None),
    ],
)
def test_what_a_name_stands_for(source: str, name: str | None) -> None:
    assert name in called(source)
    if name is None:
        assert "torch.compile" not in called(source)


def test_the_first_iterable_of_a_comprehension_is_outside() -> None:
    file = parsed("import torch\n[1 for torch in torch.x for y in torch.y]\n")
    found = {node.attr: file.qualified(node) for node in file.of(ast.Attribute)}
    assert found == {"x": "torch.x", "y": None}


def test_nonlocal_names_bind_outside() -> None:
    file = parsed("def a():\n    import torch\n    def b():\n        nonlocal torch\n        torch = 1\n    torch.x\n")
    assert file.qualified(file.of(ast.Attribute)[0]) is None


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("f('a')", ({"a"}, True)),
        ("x = 'a'\nf(x)", ({"a"}, True)),
        ("x = 'a'\nx = 'b'\nf(x)", ({"a", "b"}, True)),
        ("f('a' if c else 'b')", ({"a", "b"}, True)),
        ("import torch\nf('a' if torch.version.hip else 'b')", ({"a"}, True)),
        ("import torch\nf('a' if torch.version.hip is None else 'b')", ({"b"}, True)),
        ("import torch\nROCM = torch.version.hip is not None\nf('a' if not ROCM else 'b')", ({"b"}, True)),
        ("import torch\nx = 'a'\nif torch.version.cuda:\n    x = 'b'\nf(x)", ({"a"}, True)),
        ("def g(x='a'):\n    f(x)", ({"a"}, False)),
        ("f(c.get('k', 'a'))", ({"a"}, False)),
        ("f(c or 'a')", ({"a"}, False)),
        ("x = 'a'\nx = g()\nf(x)", ({"a"}, False)),
        ("f(x)", (set(), False)),
        ("x = x\nf(x)", (set(), False)),
    ],
)
def test_what_a_value_can_be(source: str, values: tuple[set[object], bool]) -> None:
    file = parsed(source)
    call = next(one for one in file.of(ast.Call) if isinstance(one.func, ast.Name) and one.func.id == "f")
    assert file.values(call.args[0]) == values


@pytest.mark.parametrize(
    ("source", "side"),
    [
        ("if torch.version.hip:\n    f()", Side.ROCM),
        ("if not torch.version.hip:\n    f()", Side.CUDA),
        ("if torch.version.hip is None:\n    f()", Side.CUDA),
        ("if torch.version.hip is None:\n    pass\nelse:\n    f()", Side.ROCM),
        ("if torch.version.cuda is not None and x:\n    f()", Side.CUDA),
        ("if torch.version.cuda is not None or x:\n    f()", Side.BOTH),
        ("if torch.version.hip or x:\n    pass\nelse:\n    f()", Side.CUDA),
        ("if a:\n    pass\nelif torch.version.hip:\n    pass\nelse:\n    f()", Side.CUDA),
        ("def g():\n    if torch.version.hip:\n        return 1\n    f()", Side.CUDA),
        ("def g():\n    if x:\n        return 1\n    f()", Side.BOTH),
        ("def g():\n    assert not torch.version.hip\n    f()", Side.CUDA),
        ("hasattr(torch.version, 'hip') and torch.version.hip is not None and f()", Side.ROCM),
        ("from vllm import current_platform\nif current_platform.is_rocm():\n    f()", Side.ROCM),
        ("from utils import IS_NVIDIA\nif IS_NVIDIA:\n    f()", Side.CUDA),
        ("from utils import is_hip\nif not is_hip():\n    f()", Side.CUDA),
        ("if getattr(torch.version, 'hip', None):\n    f()", Side.ROCM),
        ("x = 1 if torch.version.hip else f()", Side.CUDA),
        ("if torch.cuda.is_available():\n    f()", Side.BOTH),
        ("if x.is_cuda:\n    f()", Side.BOTH),
        ("hip = joint()\nif hip:\n    f()", Side.BOTH),
        ("while not torch.version.hip:\n    f()", Side.CUDA),
    ],
)
def test_on_which_side_code_runs(source: str, side: Side) -> None:
    file = parsed("import torch\n" + source)
    call = next(one for one in file.of(ast.Call) if isinstance(one.func, ast.Name) and one.func.id == "f")
    assert file.side(call) is side


TEXT = "# ä\nx = 'öß'; call(y)  # ü\nif x:\n\tcall('日本',\n\t\tz)\n"


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_places_hold_in_every_encoding(encoding: str, ending: str) -> None:
    text = TEXT if encoding.startswith("utf") else TEXT.replace("日本", "ÿ")
    name = "utf-8" if encoding.startswith("utf") else encoding
    data = f"# -*- coding: {name} -*-\n{text}".replace("\n", ending).encode(encoding)
    file = parsed(data)
    for call in file.of(ast.Call):
        start, end = file.span(call)
        assert data[start:end].startswith(b"call(")
        assert data[start:end].endswith(b")")
    assert {file.source(node) for node in file.of(ast.Name)} == {"x", "call", "y", "z"}
    assert file.data == data


def test_form_feeds_end_no_line() -> None:
    file = parsed("x = 1\n\x0cdef f():\n    return call(y)\n")
    assert file.source(file.of(ast.Call)[0]) == "call(y)"


@given(st.text(alphabet="ab=1'\"#\n\r\t ()é\\日", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        file = parsed(text)
    except DataError:
        return
    for node in ast.walk(file.module):
        if isinstance(node, ast.Name):
            assert file.source(node) == node.id


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"print 'x'\n", "Python 2"),
        (b"try:\n    pass\nexcept E, e:\n    pass\n", "Python 2"),
        (b"x = 0777\n", "Python 2"),
        (b"def f(:\n", "syntax error (line 1"),
        (b"x = (\n", "syntax error"),
        (b"# coding: nonsense\n", "encoding"),
        (b"x = '\xff'\n", "encoding"),
        (b"x = 1\x00\n", "null bytes"),
        (b"-" * 100_000 + b"1\n", "too deeply"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, why: str) -> None:
    with pytest.raises(DataError) as caught:
        parsed(data)
    assert why in caught.value.message


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the syntax is this interpreter's own")
def test_newer_syntax_may_be_the_reason() -> None:
    with pytest.raises(DataError) as caught:
        parsed("def f[T](x: T) -> T:\n    return x\n")
    assert "newer than the Python 3.11" in caught.value.message


def test_calls_and_their_arguments() -> None:
    file = parsed(
        "import functools, torch\n"
        "a = {'mode': 'x'}\n"
        "torch.compile(f, **a)\n"
        "functools.partial(torch.compile, mode='y')\n"
        "torch.compile(f, None, None, None, 'z')\n"
        "torch.compile(*f, mode=m)\n"
        "torch.compile(f, **dict(mode='w'))\n"
        "b = {}\nb['mode'] = 'v'\ntorch.compile(f, **b)\n"
        "c = {'mode': 'u'}\nother(c)\ntorch.compile(f, **c)\n"
        "torch.compile(f)\n"
    )
    found = [
        [(file.source(one.value), one.shared) for one in file.arguments(call, "mode", 4)]
        for call in file.calls("torch.compile")
    ]
    assert found == [
        [("'x'", False)],
        [("'y'", False)],
        [("'z'", False)],
        [("m", False)],
        [("'w'", False)],
        [("'v'", False)],
        [("'u'", True)],
        [],
    ]
