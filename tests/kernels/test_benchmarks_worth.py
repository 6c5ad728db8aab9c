"""What kernels for NVIDIA GPUs are worth: each row of the documentation's table is one that the benchmark times."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from benchmarks.kernels import worth

from rocmend.kernels import backends, executor, select
from rocmend.kernels.executor import Recorder
from rocmend.kernels.target import by_name
from rocmend.kernels.without import switched_off

pytestmark = pytest.mark.cpu

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "hopper-kernels.md"
ROW = re.compile(r"^\| `(\w+)`(, .+?) \| `(\w+)` \| [\d.]+ \|", re.MULTILINE)
ROWS = [(op + shape, kernel) for op, shape, kernel in ROW.findall(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture(autouse=True)
def _recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    monkeypatch.setattr(worth, "DEVICE", torch.device("meta"))
    monkeypatch.setattr(worth, "CACHE_BYTES", 1)


def _chosen(shape: worth.Shape, *left_out: str) -> list[str]:
    """Record one call of a shape on an H200, and return what was selected."""
    calls = shape.make()
    recorder = Recorder(by_name("sm90", compute_units=132))
    with executor.using(recorder), switched_off(*left_out), select.observed() as found:
        calls[0]()
    return [implementation for _, _, implementation in found]


def test_the_table_has_the_kernels_that_its_shapes_take() -> None:
    shapes = {shape.name: shape for shape in worth.shapes()}
    assert len(ROWS) > 20
    assert {name: _chosen(shapes[name])[0] for name, _ in ROWS} == dict(ROWS)


def test_a_norm_before_products_is_timed_in_their_launch_and_in_its_own() -> None:
    found = {}
    for shape in worth.shapes():
        if shape.preferred:
            with select.prefer(shape.preferred):
                found[shape.name.rpartition(", ")[2]] = _chosen(shape, "nvidia")
    assert found == {"one launch": ["gemv"], "two launches": ["held", "gemv"]}
