"""Every probe passes on the CPU in each dtype and changes nothing: half of them here, half in the file beside."""

from __future__ import annotations

import shutil
import warnings

import pytest

from rocmend.probe.registry import Probe, select

pytestmark = pytest.mark.cpu

HERE = 1
SLOW_ON_A_CPU = {"compile-backward", "compile-default", "compile-dynamic", "compile-reduce-overhead"}
PAIRS = select()[HERE::2]


@pytest.mark.parametrize(
    ("probe", "dtype"),
    [pytest.param(p, d, marks=[pytest.mark.slow] if p.id in SLOW_ON_A_CPU else []) for p, d in PAIRS],
    ids=[f"{p.id}-{d}" for p, d in PAIRS],
)
def test_it_passes(probe: Probe, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    from rocmend.probe.child import outcome
    from rocmend.probe.state import changed, snapshot

    torch.set_num_threads(1)
    before = snapshot()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = outcome(probe, dtype, torch.device("cpu"))
    absent = {"cuda", "two-devices", "triton"} & set(probe.needs)
    if shutil.which("g++") is None:
        absent |= {"compile"} & set(probe.needs)
    assert found["outcome"] == ("skipped" if absent else "pass"), found
    assert probe.alone or not changed(before)
