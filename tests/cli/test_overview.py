"""The tiles and pictures of a machine."""

from __future__ import annotations

from typing import Any

from tests.doctor.conftest import build_machine

from rocmend.cli.views.diagnosis import finding_card
from rocmend.cli.views.overview import area_tiles, machine_pictures
from rocmend.core.records import Finding, Severity
from rocmend.core.units import GIB
from rocmend.doctor.areas import Area, AreaState
from rocmend.doctor.records import Diagnosis, GpuSummary
from rocmend.report.document import Bars, Ranges, Stacks, Tone, Topology


def _drawn(facts: dict[str, Any]) -> dict[type, Any]:
    return {type(block): block for block in machine_pictures(build_machine(facts))}


def test_nothing_known_nothing_drawn() -> None:
    assert machine_pictures(build_machine({"gpu.0.gfx_target": "gfx1151"})) == ()


def test_the_save_area_and_stuck_clocks_of_one_gpu() -> None:
    drawn = _drawn(
        {
            "gpu.0.cwsr_size_bytes": 13942784,
            "gpu.0.cwsr_required_bytes": 19185664,
            "gpu.0.cwsr_sufficient": False,
            "gpu.0.sclk_mhz": 600,
            "gpu.0.sclk_max_mhz": 2900,
            "gpu.0.busy_percent": 100,
            "gpu.0.idle_clocks": True,
        }
    )
    needed, present = drawn[Bars].bars
    assert (needed.value, present.value, present.tone) == (19185664, 13942784, Tone.ERROR)
    assert present.text == "13.3 MiB, too small"
    (clock,) = drawn[Ranges].ranges
    assert clock.text == "600 MHz, 100 % busy, stuck low"


def test_memory_of_an_apu_is_one_whole_and_the_model_is_set_against_it() -> None:
    drawn = _drawn(
        {
            "memory.total_bytes": 120 * GIB,
            "gpu.0.is_apu": True,
            "gpu.0.vram_total_bytes": 8 * GIB,
            "gpu.0.memory_ceiling_bytes": 70 * GIB,
            "ask.model_bytes": 75 * GIB,
            "model.fits": False,
        }
    )
    (stack,) = drawn[Stacks].stacks
    assert [part.value / GIB for part in stack.parts] == [8, 62, 58]
    (model,) = drawn[Stacks].marks
    assert (model.text, model.tone) == ("75 GiB, does not fit", Tone.ERROR)


def test_equal_gpus_share_a_bar_and_hang_on_their_nodes() -> None:
    facts: dict[str, Any] = {}
    for index in range(4):
        facts |= {
            f"gpu.{index}.numa_node": index // 2,
            f"gpu.{index}.link_width": 8 if index == 3 else 16,
            f"gpu.{index}.link_width_max": 16,
            f"gpu.{index}.link_speed": "32.0 GT/s",
            f"gpu.{index}.xgmi_links": 3,
            f"gpu.{index}.is_apu": False,
            f"gpu.{index}.vram_total_bytes": 192 * GIB,
            f"gpu.{index}.memory_ceiling_bytes": 192 * GIB,
        }
    drawn = _drawn(facts)
    assert [stack.label for stack in drawn[Stacks].stacks] == ["VRAM of GPUs 0 to 3: 192 GiB"]
    topology = drawn[Topology]
    assert [(host.label, [device.label for device in host.devices]) for host in topology.hosts] == [
        ("NUMA node 0", ["GPU 0", "GPU 1"]),
        ("NUMA node 1", ["GPU 2", "GPU 3"]),
    ]
    assert topology.hosts[1].devices[1].text == "PCIe 5.0 x8 of x16"
    assert topology.hosts[1].devices[1].tone is Tone.WARNING
    assert topology.fabric == "Each GPU has 3 XGMI links to the others."


def test_a_finding_names_its_gpu_only_where_there_are_several() -> None:
    finding = Finding("an-entry", "It hangs", Severity.ERROR, "gpu.1")
    for count, title in ((1, "It hangs"), (2, "It hangs (GPU 1)")):
        gpus = tuple(GpuSummary(index) for index in range(count))
        assert finding_card(finding, Diagnosis("m", "", None, gpus, (finding,), (), 0)).title == title


def test_an_area_that_is_well_has_no_finding_under_it() -> None:
    finding = Finding("old-name", "A parameter is deprecated", Severity.ADVICE)
    areas = [Area("Memory", state, "62 GiB", ("old-name",)) for state in (AreaState.OK, AreaState.ATTENTION)]
    well, warned = area_tiles(areas, [finding]).tiles
    assert well.note == ""
    assert warned.note == "A parameter is deprecated"
