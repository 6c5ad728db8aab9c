"""Writing ported Python: where names are imported, what is left alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from rocmend.core.errors import UnitError
from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.gates import block_gate, expression_gate
from rocmend.port.python.identity import folds_back
from rocmend.port.python.units import source_of
from rocmend.port.python.write import ported
from rocmend.port.records import Edit, Issue, Outcome


def issue(*edits: Edit) -> Issue:
    return Issue("PY00", "a.py", 1, 1, 1, 0, 0, Severity.ERROR, Outcome.AUTO, "", edits=edits)


def gated(source: str | bytes, package_import: str = "package._rocm", *, literal: str = "'x'") -> str:
    """Gate every literal of a source that is spelled so, and prove it."""
    data = source if isinstance(source, bytes) else source.encode()
    file = PythonFile("a.py", data)
    edits = [
        edit
        for node in file.of(ast.Constant)
        if file.source(node) == literal
        for edit in expression_gate(file, node, "0")
    ]
    after = ported(data, [issue(*edits)], package_import)
    assert folds_back(data, after, package_import) is None
    return after.decode(file.encoding)


GATE = "0 if is_rocm else 'x'"


@pytest.mark.parametrize(
    ("before", "head"),
    [
        ("f('x')\n", "from package._rocm import is_rocm\n\nf("),
        ("import os\n\nf('x')\n", "import os\n\nfrom package._rocm import is_rocm\n\nf("),
        ('"""Doc."""\n\nimport os\nf(\'x\')\n', '"""Doc."""\n\nimport os\n\nfrom package._rocm import is_rocm\n\nf('),
        (
            "from __future__ import annotations\n\nimport os\n\n\ndef f(a='x'): ...\n",
            "from __future__ import annotations\n\nimport os\n\nfrom package._rocm import is_rocm\n\n\ndef f(a=",
        ),
        (
            "import os\n\nimport package.b\nfrom package.a import c\n\nf('x')\n",
            "import os\n\nimport package.b\nfrom package._rocm import is_rocm\nfrom package.a import c\n\nf(",
        ),
        (
            "from package import a\n\nf('x')\n",
            "from package import a\nfrom package._rocm import is_rocm\n\nf(",
        ),
        (
            "import os\n\nfrom . import a\n\nf('x')\n",
            "import os\n\nfrom package._rocm import is_rocm\n\nfrom . import a\n\nf(",
        ),
        ("#!/bin/sh\n# Licence.\n\nf('x')\n", "#!/bin/sh\n# Licence.\n\nfrom package._rocm import is_rocm\n\nf("),
        ("import os  # why\n", None),
        ("import os; import sys\nf('x')\n", "import os; import sys\n\nfrom package._rocm import is_rocm\n\nf("),
        ("def f(a='x'): ...\n", "from package._rocm import is_rocm\n\n\ndef f(a="),
        ("'''Doc.'''\nf('x')", "'''Doc.'''\nfrom package._rocm import is_rocm\n\nf("),
        ("@d\nclass A:\n    b = 'x'\n", "from package._rocm import is_rocm\n\n\n@d\nclass A"),
    ],
)
def test_where_the_import_stands(before: str, head: str | None) -> None:
    after = gated(before)
    if head is None:
        assert after == before
        return
    assert after.startswith(head)
    assert GATE in after


def test_relative_imports_stay_together() -> None:
    before = "import os\n\nfrom . import a\nfrom .b import c\n\nf('x')\n"
    after = gated(before, "._rocm")
    assert after == f"import os\n\nfrom . import a\nfrom ._rocm import is_rocm\nfrom .b import c\n\nf({GATE})\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = 'x'\n", f"y = {GATE}\n"),
        ("y = f('x', 1)\n", f"y = f({GATE}, 1)\n"),
        ("y = 'x' + z\n", f"y = ({GATE}) + z\n"),
        ("y = ('x')\n", f"y = ({GATE})\n"),
        ("y = {'x': 'x'}\n", f"y = {{({GATE}): {GATE}}}\n"),
        ("y = ['x', *z]\n", f"y = [{GATE}, *z]\n"),
        ("y = 'x', 1\n", f"y = ({GATE}), 1\n"),
        ("y = not 'x'\n", f"y = not ({GATE})\n"),
        ("y = 'x' if a else b\n", f"y = ({GATE}) if a else b\n"),
        ("y = a['x']\n", f"y = a[({GATE})]\n"),
        ("y = f'{z}' 'x'\n", "y = f'{z}' 'x'\n"),
        ("def f(a='x'):\n    return 'x'\n", f"def f(a={GATE}):\n    return {GATE}\n"),
        ("@d('x')\ndef f(): ...\n", f"@d({GATE})\ndef f(): ...\n"),
        ("y = 'x'.join(z)\n", f"y = ({GATE}).join(z)\n"),
        ("# 'x'\ny = \"'x'\"\n", "# 'x'\ny = \"'x'\"\n"),
    ],
)
def test_parentheses_where_they_are_needed(before: str, after: str) -> None:
    made = gated("import os\n" + before)
    head = "import os\n\nfrom package._rocm import is_rocm\n\n" if after != before else "import os\n"
    if before.startswith("@"):
        assert made.endswith(after)
    else:
        assert made == head + after


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encoding_and_line_ends_stay(encoding: str, ending: str) -> None:
    name = "utf-8" if encoding.startswith("utf") else encoding
    before = f"# -*- coding: {name} -*-\nimport os\n\ny = 'é'; z = 'x'\n".replace("\n", ending).encode(encoding)
    after = gated(before)
    data = after.encode(name)
    assert data.startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")
    assert data.count(b"\n") == (0 if ending == "\r" else data.count(ending.encode()))
    assert f"z = {GATE}" in after
    assert data.count(b"\r") == (0 if ending == "\n" else data.count(ending.encode()))


def test_no_line_end_at_the_end() -> None:
    assert gated("y = 'x'") == f"from package._rocm import is_rocm\n\ny = {GATE}"


def test_a_script_gets_a_definition() -> None:
    after = gated("import torch as t\n\ny = 'x'\n", "")
    assert after == f'import torch as t\n\nis_rocm = getattr(t.version, "hip", None) is not None\n\ny = {GATE}\n'


def test_a_script_that_sets_the_environment_first_is_not_made_to_import_torch() -> None:
    after = gated("import os\n\nos.environ['A'] = 'x'\n\nimport torch\n", "")
    assert after.index("is_rocm = _torch_is_for_rocm()") < after.index("os.environ")
    assert after.count("import torch") == 1
    names: dict[str, object] = {}
    exec(compile(after.replace("\nimport torch", ""), "a.py", "exec"), names)  # noqa: S102  the point of the test
    assert names["is_rocm"] is False


def test_modules_beside_a_file_of_no_package_are_found(tmp_path: Path) -> None:
    data = b"def f():\n    import pynvml as p\n    return p.NVML_SUCCESS\n"
    file = PythonFile("conftest.py", data)
    edits = block_gate(file, file.of(ast.Import)[0], file.of(ast.Import)[0], "from _rocm_nvml import nvml as p")
    after = ported(data, [issue(*edits)], "")
    assert folds_back(data, after) is None
    (tmp_path / "_rocm_nvml.py").write_bytes(source_of("nvml"))
    (tmp_path / "conftest.py").write_bytes(after.replace(b"is_rocm = _torch_is_for_rocm()", b"is_rocm = True"))
    code = f"import runpy; print(runpy.run_path({str(tmp_path / 'conftest.py')!r})['f']())"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "0\n"


def test_a_module_of_its_own_is_imported_from_beside_a_file_of_no_package() -> None:
    for data in (
        b"import torch\ny = x.to(torch.float8_e4m3fn)\n",
        b"import os\n\nos.x = 1\nimport torch as t\ny = x.to(t.float8_e4m3fn)\n",
        b"def f(x):\n    import torch\n\n    y = x.to(torch.float8_e4m3fn)\n",
    ):
        file = PythonFile("a.py", data)
        found = [issue(*expression_gate(file, next(file.references("torch.float8_e4m3fn")), "float8_e4m3()"))]
        assert b"from package._rocm_fp8 import float8_e4m3\n" in ported(data, found, "package._rocm")
        after = ported(data, found, "")
        assert folds_back(data, after) is None
        assert b"    from _rocm_fp8 import float8_e4m3\n" in after
        assert after.index(b"is_rocm = ") < after.index(b"if is_rocm:\n    __import__") < after.index(b"y = ")


def test_it_comes_behind_a_flag_that_is_there() -> None:
    data = b"import torch\n\nIS_HIP = torch.version.hip is not None\n\ny = x.to(torch.float8_e4m3fn)\n"
    file = PythonFile("a.py", data)
    found = [issue(*expression_gate(file, next(file.references("torch.float8_e4m3fn")), "float8_e4m3()"))]
    after = ported(data, found, "")
    assert folds_back(data, after) is None
    assert b"IS_HIP = torch.version.hip is not None\nif IS_HIP:\n    __import__" in after


def test_a_flag_of_the_project_is_used() -> None:
    before = "import torch\n\nIS_HIP = torch.version.hip is not None\n\ny = 'x'\n"
    assert gated(before) == before.replace("'x'", "0 if IS_HIP else 'x'")
    after = gated("import torch\n\ny = 'x'\n", "package.flags:ON_ROCM")
    assert after == f"import torch\n\nfrom package.flags import ON_ROCM as is_rocm\n\ny = {GATE}\n"


def test_a_flag_of_the_project_is_not_used_where_torch_would_be_imported_sooner() -> None:
    """Its module imports torch; ours does not, so that variables are set before torch reads them."""
    after = gated("import os\n\ny = 'x'\nimport torch\n", ".flags:ON_ROCM")
    assert after == f"import os\n\nfrom ._rocm import is_rocm\n\ny = {GATE}\nimport torch\n"


def test_a_package_is_imported_no_sooner_than_before() -> None:
    """A search path or a variable that is set before the file's own import of the package is set for ours too."""
    after = gated("import sys\n\nsys.path.append('..')\nimport package\n\ny = 'x'\n")
    assert after == (
        "import sys\n\nsys.path.append('..')\nimport package\nfrom package._rocm import is_rocm\n\n" + f"y = {GATE}\n"
    )
    for late in ("y = 'x'\nimport package\n", "y = 'x'\nif y:\n    from package import a\n"):
        after = gated(f"import os\n\n{late}")
        assert "package._rocm" not in after
        assert "is_rocm = _torch_is_for_rocm()\n" in after


def test_the_flag_is_defined_behind_the_import_of_torch() -> None:
    after = gated("import sys\n\nsys.path.append('..')\nimport a, torch as t\n\ny = 'x'\n", "")
    flag = 'is_rocm = getattr(t.version, "hip", None) is not None\n'
    assert after == f"import sys\n\nsys.path.append('..')\nimport a, torch as t\n\n{flag}\ny = {GATE}\n"


def test_a_flag_that_is_not_proven_is_not_used() -> None:
    before = "import os\n\nIS_HIP = os.environ.get('HIP')\n\ny = 'x'\n"
    assert f"y = {GATE}" in gated(before)


def test_a_flag_bound_below_its_use_is_not_used() -> None:
    before = "import torch\n\ny = 'x'\nIS_HIP = torch.version.hip is not None\n"
    assert f"y = {GATE}" in gated(before)


def test_another_name_where_the_name_is_taken() -> None:
    assert "import is_rocm as _is_rocm\n" in gated("import os\n\n\ndef is_rocm(): ...\n\n\ny = 'x'\n")
    assert "import is_rocm as _is_rocm\n" in gated("from os import *\n\ny = 'x'\n")
    with pytest.raises(UnitError, match="other things"):
        gated("is_rocm = _is_rocm = 1\ny = 'x'\n")


def test_writing_twice_adds_nothing() -> None:
    once = gated("import os\n\ny = 'x'\nz = 1\n")
    twice = gated(once, literal="1")
    assert twice == once.replace("z = 1", "z = 0 if is_rocm else 1")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1\n", "if is_rocm:\n    pass\nelse:\n    a = 1\n"),
        (
            "if x:\n  a = f(\n    1,\n\n    2)  # c\n",
            "if x:\n  if is_rocm:\n    pass\n  else:\n    a = f(\n      1,\n\n      2)  # c\n",
        ),
        ("if x:\n\ta = '''\nb\n  c'''\n", "if x:\n\tif is_rocm:\n\t\tpass\n\telse:\n\t\ta = '''\nb\n  c'''\n"),
        (
            "a = f(\n    '''\n1''', [\n  2])\n",
            "if is_rocm:\n    pass\nelse:\n    a = f(\n        '''\n1''', [\n      2])\n",
        ),
        ("a = 1 + \\\n  2\n", "if is_rocm:\n    pass\nelse:\n    a = 1 + \\\n      2\n"),
        ("if x: a = 1\n", None),
        ("a = 1; b = 2\n", None),
        ("b = 2; a = 1\n", None),
    ],
)
def test_statements_are_moved_into_a_gate(before: str, after: str | None) -> None:
    data = before.encode()
    file = PythonFile("a.py", data)
    node = next(one for one in file.of(ast.Assign) if file.source(one).startswith("a ="))
    edits = block_gate(file, node, node, "pass")
    if after is None:
        assert edits == ()
        return
    made = ported(data, [issue(*edits)], "package._rocm")
    assert folds_back(data, made) is None
    assert made.decode().endswith(after)
    assert made.decode() == "from package._rocm import is_rocm\n\n" + after


@pytest.mark.parametrize(
    "source",
    [
        "import triton\n@triton.jit\ndef f(a):\n    b = 'x'\n",
        "import triton\n@triton.autotune([])\n@triton.jit\ndef f(a='x'): ...\n",
        "from numba import cuda\n@cuda.jit('void()')\ndef f(a):\n    def g():\n        b = 'x'\n",
        "import torch\nclass A:\n    def f(a):\n        return 'x'\ng = torch.jit.script(A)\n",
        "match a:\n    case 'x':\n        pass\n",
    ],
)
def test_what_another_compiler_reads_is_left_alone(source: str) -> None:
    assert gated(source) == source


def test_what_surrounds_a_compiled_function_is_not() -> None:
    before = "import triton\n\n\n@triton.autotune(['x'])\n@triton.jit\ndef f(a): ...\n"
    assert f"autotune([{GATE}])" in gated(before)


def test_elif_is_left_alone() -> None:
    file = PythonFile("a.py", b"if x:\n    pass\nelif y:\n    pass\n")
    inner = next(one for one in file.of(ast.If) if file.source(one).startswith("elif"))
    assert block_gate(file, inner, inner, None) == ()
