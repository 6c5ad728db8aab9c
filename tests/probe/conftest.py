"""What the tests of probes share."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.probe.case import Case, Context
from rocmend.probe.registry import Probe, registry

FAULTS = Path(__file__).parent / "faults"

Build = Callable[[Context], Case]
RunCase = Callable[..., dict[str, Any]]


@pytest.fixture
def run_case() -> RunCase:
    """Run a case on the CPU in this process and return its outcome."""
    torch = pytest.importorskip("torch")

    def run(build: Build, dtype: str = "float32") -> dict[str, Any]:
        from rocmend.probe.child import outcome

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return outcome(Probe("made-up", "made up", "tests", (dtype,), build), dtype, torch.device("cpu"))

    return run


@pytest.fixture
def faults() -> Iterator[dict[str, str]]:
    """Register the probes that go wrong; return the environment in which children know them too."""
    registry.load()
    known = dict(registry._units)
    spec = importlib.util.spec_from_file_location("rocmend_test_faults", FAULTS / "sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    try:
        yield {"PYTHONPATH": str(FAULTS)}
    finally:
        registry._units.clear()
        registry._units.update(known)


@pytest.fixture
def evidence() -> Callable[..., Evidence]:
    """Make a record of a probe."""

    def make(
        subject: str = "matmul:float32", verdict: Verdict = Verdict.PASS, group: str = "probe-a", **detail: Any
    ) -> Evidence:
        probe, _, dtype = subject.partition(":")
        return Evidence(
            kind="probe",
            subject=subject,
            identity=f"id-{subject}",
            verdict=verdict,
            reason="" if verdict is Verdict.PASS else "it did not work",
            started_at="2026-01-02T03:04:05+00:00",
            time_ms=1500.0,
            gfx_target="gfx1151",
            versions={"torch": "2.9.0"},
            detail={"family": "matmul", "dtype": dtype, "title": probe, **detail},
            group=group,
        )

    return make
