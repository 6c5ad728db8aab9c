"""A kernel's share of a multiprocessor's memory is asked of the driver, once it is loaded."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import carveout

pytestmark = pytest.mark.cpu


class Driver:
    """NVIDIA's, as far as it is called."""

    def __init__(self, error: int = 0) -> None:
        self.error = error
        self.calls: list[tuple[int, ...]] = []

    def cuFuncSetCacheConfig(self, function: Any, config: int) -> int:  # noqa: N802  the driver's name
        self.calls.append((function.value, config))
        return self.error

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:  # noqa: N802
        self.calls.append((function.value, attribute, value))
        return self.error


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(carveout, "_driver", lambda: made)
    return made


def test_a_kernel_asks_for_its_share(driver: Driver) -> None:
    carveout.prefer(SimpleNamespace(function=1 << 40), 44)
    # No preference, then attribute 9, which is the carveout.
    assert driver.calls == [(1 << 40, 0), (1 << 40, 9, 44)]


def test_a_record_that_says_nothing_asks_nothing(driver: Driver) -> None:
    carveout.prefer(SimpleNamespace(function=1 << 40), 0)
    assert not driver.calls


def test_what_the_driver_refuses_is_logged(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    driver.error = 1
    with caplog.at_level(logging.WARNING):
        carveout.prefer(SimpleNamespace(function=1 << 40), 44)
    assert "errors 1 and 1" in caplog.text


def test_without_a_driver_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carveout, "_driver", lambda: None)
    carveout.prefer(SimpleNamespace(), 44)
