from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocmend.core.errors import UnitError, UsageError
from rocmend.core.registry import Registry


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "unit_package_under_test"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_units_are_found_by_walking_the_package(package: Path) -> None:
    registry: Registry[str] = Registry("thing", package.name)
    sys.modules["registry_under_test"] = registry  # type: ignore[assignment]
    for name in ("b", "a"):
        (package / f"{name}.py").write_text(
            f"import sys\nsys.modules['registry_under_test'].register('{name}')('unit {name}')\n"
        )
    assert list(registry) == [("a", "unit a"), ("b", "unit b")]
    assert registry.get("a") == "unit a"
    assert registry.problems == []


def test_a_unit_that_fails_is_listed_and_the_others_still_load(package: Path) -> None:
    registry: Registry[str] = Registry("thing", package.name)
    sys.modules["registry_under_test"] = registry  # type: ignore[assignment]
    (package / "broken.py").write_text("import no_such_module_anywhere\n")
    (package / "whole.py").write_text("import sys\nsys.modules['registry_under_test'].register('w')('unit')\n")
    assert list(registry) == [("w", "unit")]
    assert [(problem.module, "no_such_module_anywhere" in problem.reason) for problem in registry.problems] == [
        (f"{package.name}.broken", True)
    ]
    with pytest.raises(UnitError, match=r"broken could not be loaded: .*no_such_module_anywhere"):
        registry.get("broken")


def test_a_duplicate_id_is_an_error(package: Path) -> None:
    registry: Registry[str] = Registry("thing", package.name)
    registry.register("x")("one")
    with pytest.raises(UnitError, match="registered twice"):
        registry.register("x")("two")


def test_an_unknown_id_names_the_known_ones(package: Path) -> None:
    registry: Registry[str] = Registry("thing", package.name)
    registry.register("x")("one")
    with pytest.raises(UsageError, match="There are: x"):
        registry.get("y")
