"""The names and signatures of ``mlx.core`` against the stubs of the installed mlx package."""

from __future__ import annotations

import inspect
import types
from pathlib import Path
from typing import Any

import pytest

from rocmend.mlx.programs import surface
from rocmend.mlx.programs.left_out import DIFFERENT, LEFT_OUT


def _stubs(tmp_path: Path, text: str) -> dict[str, surface.Stub]:
    (tmp_path / "__init__.pyi").write_text(text)
    return surface.read_stubs(tmp_path)


def _module(**names: Any) -> types.ModuleType:
    module = types.ModuleType("core")
    module.__dict__.update(names)
    return module


def _what(tmp_path: Path, stub: str, ours: Any) -> list[str]:
    return [item.what for item in surface.compare(_module(f=ours), _stubs(tmp_path, stub))]


@pytest.mark.parametrize(
    ("stub", "ours", "expected"),
    [
        ("def f(a, /, b=1, *, stream=None): ...", "a, b=1, *, stream=None", []),
        ("def f(a, /, b=1, *, stream=None): ...", "x, /, b=1, stream=None", []),
        ("def f(a): ...", "a, extra=None", []),
        ("def f(a): ...", "a, extra", ["needs extra, which MLX has not"]),
        ("def f(a): ...", "x", ["has x in the place of a"]),
        ("def f(a, b): ...", "a", ["has no parameter b"]),
        ("def f(a): ...", "a, /", ["takes a by position only"]),
        ("def f(a, b=2): ...", "a, *, b=2", ["has no parameter b"]),
        ("def f(a=1): ...", "a=2", ["has a=2, not 1"]),
        ("def f(a=1): ...", "a", ["needs a, which is optional"]),
        ("def f(a): ...", "a=0", []),
        ("def f(*args, **kwargs): ...", "*args", ["takes no **kwargs"]),
        ("def f(*args): ...", "args", ["takes no *args"]),
        ("f: int = 3", 3, []),
        ("def f(): ...", 3, ["is no function"]),
    ],
)  # fmt: skip
def test_a_signature_that_cannot_be_called_as_the_stub_is_found(
    tmp_path: Path, stub: str, ours: Any, expected: list[str]
) -> None:
    if isinstance(ours, str):
        ours = eval(f"lambda {ours}: None")  # noqa: S307  parameters, as text
    assert _what(tmp_path, stub, ours) == expected


def test_missing_names_are_found_and_a_missing_class_only_once(tmp_path: Path) -> None:
    stubs = _stubs(tmp_path, "class A:\n  def m(self): ...\n  def __len__(self): ...\nclass B:\n  def m(self): ...\n")
    (tmp_path / "fast.pyi").write_text("def g(x): ...\n")
    stubs = surface.read_stubs(tmp_path)
    core = _module(A=type("A", (), {"m": print}))
    assert [item.name for item in surface.compare(core, stubs)] == ["A.__len__", "B", "fast"]


def test_annotations_only_names_are_not_looked_for(tmp_path: Path) -> None:
    assert _stubs(tmp_path, "P = 1\nscalar: int = 0\nx: float = 1.0\n").keys() == {"x"}


@pytest.fixture(scope="module")
def core() -> Any:
    pytest.importorskip("torch")
    pytest.importorskip("mlx.utils")
    from rocmend import mlx

    mlx.activate()
    import mlx.core as mx

    return mx


@pytest.fixture(scope="module")
def differences(core: types.ModuleType) -> list[surface.Difference]:
    return surface.compare(core, surface.read_stubs(surface.stub_folder()))


@pytest.mark.cpu
def test_second_names_are_of_the_same_functions(core: Any) -> None:
    assert core.cumulative_sum is core.cumsum
    assert core.cumulative_prod is core.cumprod
    assert core.matrix_norm is core.linalg.norm
    assert core.cumulative_sum(core.array([1, 2, 3])).tolist() == [1, 3, 6]
    assert core.matrix_norm(core.array([3.0, 4.0])).item() == 5


@pytest.mark.cpu
def test_every_name_of_mlx_is_there_or_has_a_reason(differences: list[surface.Difference]) -> None:
    assert [item.name for item in differences if item.what == "missing" and item.name not in LEFT_OUT] == []


@pytest.mark.cpu
def test_every_signature_is_as_in_mlx_or_has_a_reason(differences: list[surface.Difference]) -> None:
    assert [
        f"{item.name} {item.what}" for item in differences if item.what != "missing" and item.name not in DIFFERENT
    ] == []


@pytest.mark.cpu
def test_reasons_are_of_what_is_left_out(core: types.ModuleType, differences: list[surface.Difference]) -> None:
    stubs = surface.read_stubs(surface.stub_folder())
    assert set(LEFT_OUT) | set(DIFFERENT) <= set(stubs)
    assert set(DIFFERENT) <= {item.name for item in differences if item.what != "missing"}
    missing = {item.name for item in differences if item.what == "missing"}
    for name in set(LEFT_OUT) - missing:
        assert "NotImplementedError" in inspect.getsource(surface._find(core, name)), name
