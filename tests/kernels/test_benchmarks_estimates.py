"""The page of estimates: which cases it shows, and that it says what they are."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from benchmarks.kernels.estimates import CASES, PUBLIC, TARGETS, Row, floor_of, page

from rocmend.kernels import registry
from rocmend.kernels.model.estimate import Estimate
from rocmend.kernels.op import resolve

ESTIMATE = Estimate("k", 20.0, "memory", {"memory": 17.0}, 1e6, 64, 16, 0, 0)


def test_the_cases_are_there() -> None:
    for op, names in CASES.items():
        known = {case.name for case in resolve(registry.get(op).cases)()}
        assert set(names) <= known, op


@pytest.mark.parametrize("target", TARGETS)
def test_the_floor_is_that_of_the_published_peaks(target: str) -> None:
    floor_us, size = floor_of("rms_norm", "bfloat16-40000x4096", target)
    bandwidth = {"gfx1151": 256.0, "gfx1100": 960.0, "gfx1201": 644.6, "gfx942": 5300.0}[target]
    assert size == pytest.approx(2 * 2 * 40000 * 4096, rel=0.01)
    assert floor_us == pytest.approx(size / bandwidth / 1e3, rel=0.01)


def test_the_page_says_that_nothing_was_run() -> None:
    rows = [
        Row("rope", "large", "gfx1151", (ESTIMATE,), 10.0, 1e6, ""),
        Row("rope", "large", "gfx942", (), 0.0, 0.0, "unsupported"),
    ]
    text = page(rows, "3.9.0")
    assert "estimate of a model. Nothing was run" in text
    assert "| `large` | gfx1151 | memory | 20.0 | 10.0 | 50 % | 50 | 16 |" in text
    assert "no estimate: unsupported" in text


def test_every_published_figure_has_its_source() -> None:
    assert {one.gpu.partition("(")[2].rstrip(")") for one in PUBLIC} == set(TARGETS)
    assert all(one.source.startswith("https://") for one in PUBLIC)
