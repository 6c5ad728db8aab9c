"""The many ways in which a program can say one thing, and be told not to."""

from __future__ import annotations

import pytest

from rocmend.port.analyse import read
from rocmend.port.records import Issue, Outcome

AUTO, SUGGEST = Outcome.AUTO, Outcome.SUGGEST


def found(source: str, rule: str) -> list[Issue]:
    report = read("package/a.py", source.encode())
    assert not report.skipped, report.skipped
    return [issue for issue in report.issues if issue.rule == rule]


@pytest.mark.parametrize(
    ("source", "outcomes"),
    [
        ('k = {}\nk.update(mode="max-autotune")\nt.compile(f, **k)', [AUTO]),
        ('k = {}\nk.update({"mode": "max-autotune"})\nt.compile(f, **k)', [AUTO]),
        ('k = {}\nk.setdefault("mode", "max-autotune")\nt.compile(f, **k)', [AUTO]),
        ('k = {"a": 1} | {"mode": "max-autotune"}\nt.compile(f, **k)', [AUTO]),
        ('k = {}\nk |= {"mode": "max-autotune"}\nt.compile(f, **k)', [SUGGEST]),
        ('b = {"mode": "max-autotune"}\nk = {**b, "fullgraph": True}\nt.compile(f, **k)', [SUGGEST]),
        ('k = {**{"mode": "default"}, "mode": "max-autotune"}\nt.compile(f, **k)', [AUTO]),
        ('k = {**{"mode": "max-autotune"}, "mode": "default"}\nt.compile(f, **k)', []),
        ('t.compile(f, **({"mode": "max-autotune"} if x else {}))', [AUTO]),
        ('def g(f, k={"mode": "max-autotune"}):\n    return t.compile(f, **k)', [SUGGEST]),
        ('k = {"mode": "max-autotune"}\nt.compile(f, **k)\nprint(k)', [SUGGEST]),
        ('t.compile(f, mode="max-autotune" + "")', [AUTO]),
        ('t.compile(f, mode=str("max-autotune"))', [AUTO]),
        ('t.compile(f, mode="max-autotune")\ndel t', [AUTO]),
        ('if x:\n    from torch import compile as c\nelse:\n    c = y\nc(f, mode="max-autotune")', [SUGGEST]),
    ],
)
def test_ways_to_give_an_argument(source: str, outcomes: list[Outcome]) -> None:
    assert [issue.outcome for issue in found(f"import torch as t\n{source}\n", "PY02")] == outcomes


def test_graphs_that_a_project_asks_for_are_its_own_choice() -> None:
    (issue,) = found('import torch\n\nf = torch.compile(f, mode="reduce-overhead")\n', "PY01")
    assert issue.outcome is SUGGEST
    assert issue.edits


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("os.environ[X]: str = V", 1),
        ("NAME = X\nos.environ[NAME] = V", 1),
        ("os.environ.__setitem__(X, V)", 1),
        ("monkeypatch.setenv(X, V)", 1),
        ("os.environ |= {X: V}", 1),
        ("run(env={**os.environ, X: V})", 1),
        ("with patch.dict(os.environ, {X: V}):\n    pass", 1),
        ("assert env == {X: V}", 0),
        ("os.environ.get(X, V)", 0),
        ("os.environ[X] == V", 0),
    ],
)
def test_ways_to_set_a_variable(source: str, count: int) -> None:
    variable, value = '"PYTORCH_CUDA_ALLOC_CONF"', '"expandable_segments:True,max_split_size_mb:64"'
    text = source.replace("X", variable).replace("V", value)
    assert len(found(f"import os\n{text}\n", "PY11")) == count


@pytest.mark.parametrize(
    "test",
    [
        'DEVICE_TYPE == "cuda"\nif DEVICE_TYPE == "hip":\n    x = 1',
        'DEVICE_TYPE != "hip"',
        "ON_NVIDIA\nON_NVIDIA = t.cuda.is_available() and t.version.cuda is not None",
        "isinstance(t.version.cuda, str)",
        "not self.is_rocm_pytorch()",
        "not IS_HIP_EXTENSION",
        "not TEST_WITH_ROCM",
        "ROCM_HOME is None\nfrom torch.utils.cpp_extension import ROCM_HOME",
        "fast_path()\ndef fast_path():\n    return t.version.hip is None and t.cuda.is_available()",
        'driver.active.get_current_target().backend == "cuda"',
    ],
)
def test_ways_to_keep_it_for_cuda(test: str) -> None:
    test, _, more = test.partition("\n")
    source = f'import torch as t\n{more}\nif {test}:\n    t.compile(f, mode="max-autotune")\n'
    assert found(source, "PY02") == []
    assert len(found(source.replace(f"if {test}", "if other"), "PY02")) == 1


@pytest.mark.parametrize("loop", ["a = not a", "a = b and x\nb = a and x", "def a():\n    return a()\na = a()"])
def test_names_bound_to_themselves_say_nothing(loop: str) -> None:
    assert len(found(f'import torch\n{loop}\nif a:\n    torch.compile(f, mode="max-autotune")\n', "PY02")) == 1


def test_dicts_made_of_each_other_are_followed_to_an_end() -> None:
    """Every one could come from every other: following all ways would not end."""
    lines = "".join(f"a = {{**a, **b, 'x{n}': 1}}\nb = dict(b, **a)\n" for n in range(60))
    source = f'import torch\n\na = {{"mode": "max-autotune"}}\nb = {{}}\n{lines}f = torch.compile(f, **a, **b)\n'
    assert [issue.outcome for issue in found(source, "PY02")] == [SUGGEST]


@pytest.mark.parametrize(
    ("path", "condition", "rules"),
    [
        ("setup.py", "torch.version.hip is None", []),
        ("setup.py", "wanted", ["BL15"]),
        ("package/flags.py", "torch.version.hip is None", ["BL15"]),  # others may import it
    ],
)
def test_options_of_a_function_that_is_called_for_cuda_alone(path: str, condition: str, rules: list[str]) -> None:
    source = (
        "import torch\nfrom torch.utils.cpp_extension import CUDAExtension\n\nflags = []\n\n\n"
        "def targets(flags):\n    flags += ['-gencode', 'arch=compute_80,code=sm_80']\n\n\n"
        f"if {condition}:\n    targets(flags)\n"
    )
    assert [issue.rule for issue in read(path, source.encode()).issues] == rules
