from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.core.errors import UsageError
from rocmend.machine.collect import open_machine, snapshot
from rocmend.machine.facts import Machine
from rocmend.machine.hypothetical import with_target

EXAMPLES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "machines"


@pytest.fixture(scope="module")
def bare() -> Machine:
    return snapshot(open_machine(EXAMPLES / "no-amd-gpu"), name="bare")


def test_the_target_stands_in_for_a_gpu_and_the_rest_of_it_is_a_gap(bare: Machine) -> None:
    machine = with_target(bare, "gfx1151")
    assert machine.value("gpu.0.gfx_target") == "gfx1151"
    assert machine.value("gpu.0.generic_class") == "gfx11-generic"
    assert machine.value("gpus.count") == 1
    gap = machine.gap("gpu.0.vram_total_bytes")
    assert gap is not None
    assert "there is no gfx1151 here" in gap.reason
    assert machine.value("kernel.release") == bare.value("kernel.release")


def test_a_machine_that_has_the_target_stays_as_it_is() -> None:
    machine = snapshot(open_machine(EXAMPLES / "strix-halo"), name="strix-halo")
    assert with_target(machine, "GFX1151") is machine


def test_another_target_replaces_the_gpu_and_all_that_was_derived_from_it() -> None:
    machine = snapshot(open_machine(EXAMPLES / "mi300x"), name="mi300x")
    other = with_target(machine, "gfx1030")
    assert other.indices("gpu") == [0]
    assert other.value("gpu.0.generic_class") == "gfx10-3-generic"
    assert other.value("gpu.0.compute_units") is None


def test_an_unknown_target_is_refused(bare: Machine) -> None:
    with pytest.raises(UsageError, match="gfx9999"):
        with_target(bare, "gfx9999")
