"""What follows from the hardware's facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.machine.derive.cwsr import control_stack_bytes, required_bytes
from rocmend.machine.facts import FactSink

Derive = Callable[..., FactSink]


def values(sink: FactSink) -> dict[str, Any]:
    return {key: fact.value for key, fact in sink.facts.items()}


# -- the save area -----------------------------------------------------------------------------------------------------


def test_strix_halo_needs_what_fixed_drivers_expose() -> None:
    assert required_bytes(110501, 40) == 19185664
    assert control_stack_bytes(110501, 40) == 16384


def test_the_smaller_size_is_that_of_targets_with_fewer_registers() -> None:
    assert required_bytes(110500, 40) == 13942784


@pytest.mark.parametrize(
    ("version", "units", "expected"),
    [
        (100100, 36, 36 * 0x55000 + 0x4000),  # RX 5600 XT: 1152 waves x 12 + 48 bytes, four pages
        (100300, 80, 80 * 0x55000 + 0x7000),  # RX 6900 XT: gfx10 caps the control stack
        (110000, 96, 96 * 0x75000 + 0xA000),  # RX 7900 XTX: ten pages, no cap
        (120001, 64, 64 * 0x75000 + 0x7000),
    ],
)
def test_other_targets(version: int, units: int, expected: int) -> None:
    assert required_bytes(version, units) == expected


def test_gfx9_takes_the_drivers_control_stack() -> None:
    assert required_bytes(90402, 38) is None
    assert required_bytes(90402, 38, control_stack=12288) == 38 * 0x95000 + 12288
    assert required_bytes(90500, 32, control_stack=12288) is None  # its LDS is not 64 KiB
    assert required_bytes(90500, 32, control_stack=12288, lds_bytes=163840) == 32 * (0x85000 + 163840) + 12288


def test_targets_beyond_the_table_are_not_guessed() -> None:
    assert required_bytes(130000, 40) is None
    assert required_bytes(70000, 8) is None
    assert required_bytes(110501, 0) is None


STRIX = {"gpu.0.gfx_target_version": 110501, "gpu.0.compute_units": 40, "gpu.0.num_xcc": 1}


@pytest.mark.parametrize(("size", "enough"), [(19185664, True), (13942784, False), (None, None), (19185663, False)])
def test_sufficiency(size: int | None, enough: bool | None, derive: Derive) -> None:
    facts = values(derive("cwsr", STRIX | {"gpu.0.cwsr_size_bytes": size}))
    assert facts == {"gpu.0.cwsr_required_bytes": 19185664, "gpu.0.cwsr_sufficient": enough}


def test_units_are_divided_among_the_dies(derive: Derive) -> None:
    facts = {
        "gpu.0.gfx_target_version": 90402,
        "gpu.0.compute_units": 304,
        "gpu.0.num_xcc": 8,
        "gpu.0.ctl_stack_size_bytes": 12288,
        "gpu.0.cwsr_size_bytes": 38 * 0x95000 + 12288,
    }
    assert values(derive("cwsr", facts))["gpu.0.cwsr_sufficient"] is True


def test_a_missing_count_is_a_gap_with_its_reason(derive: Derive) -> None:
    sink = derive("cwsr", {"gpu.0.gfx_target_version": 110501}, {"gpu.0.*": "permission denied"})
    assert sink.facts == {}
    assert "permission denied" in sink.gaps["gpu.0.cwsr_required_bytes"].reason
    assert "gpu.0.cwsr_sufficient" in sink.gaps


@given(st.integers(80001, 120501), st.integers(1, 400))
def test_the_area_is_whole_pages_and_grows_with_the_units(version: int, units: int) -> None:
    size = required_bytes(version, units, lds_bytes=0x10000, control_stack=8192)
    more = required_bytes(version, units + 1, lds_bytes=0x10000, control_stack=8192)
    assert size is not None
    assert more is not None
    assert size % 4096 == 0
    assert more > size


# -- GPUs --------------------------------------------------------------------------------------------------------------


def test_gpus_are_counted(derive: Derive) -> None:
    cards = [{"slot": "0000:03:00.0", "driver": "amdgpu"}, {"slot": "0000:07:00.0", "driver": "vfio-pci"}]
    facts = {"gpu.0.gfx_target": "gfx1100", "gpu.1.gfx_target": "gfx1100", "pci.amd_gpus": cards}
    assert values(derive("gpus", facts)) == {
        "gpus.count": 2,
        "gpus.targets": ["gfx1100"],
        "gpus.undriven": ["0000:07:00.0"],
        "gpus.amd_present": True,
    }


def test_none_is_not_unknown(derive: Derive) -> None:
    none = values(derive("gpus", {"kfd.present": False, "pci.amd_gpus": []}))
    assert (none["gpus.count"], none["gpus.amd_present"]) == (0, False)
    hidden = derive("gpus", {"kfd.present": True}, {"gpu.*": "permission denied"})
    assert hidden.facts == {}
    assert hidden.gaps["gpus.count"].reason == "permission denied"


def test_an_undriven_card_is_present(derive: Derive) -> None:
    facts = values(derive("gpus", {"kfd.present": False, "pci.amd_gpus": [{"slot": "0000:c3:00.0", "driver": None}]}))
    assert facts["gpus.undriven"] == ["0000:c3:00.0"]
    assert facts["gpus.amd_present"] is True
    assert facts["gpus.count"] == 0


def test_wsl_shows_no_gpu_on_pci(derive: Derive) -> None:
    facts = {"kfd.present": False, "pci.amd_gpus": [], "host.kind": "wsl2"}
    assert "gpus.amd_present" in derive("gpus", facts).gaps
    seen = values(derive("gpus", facts | {"rocminfo.gfx_targets": ["gfx1100"]}))
    assert seen["gpus.amd_present"] is True


def test_generic_classes(derive: Derive) -> None:
    found = values(derive("generic_class", {"gpu.0.gfx_target": "gfx1151", "gpu.1.gfx_target": "gfx9999"}))
    assert found["gpu.0.generic_class"] == "gfx11-generic"
    assert found["gpu.1.generic_class"] is None


def test_peaks_of_a_radeon_8060s(derive: Derive) -> None:
    facts = {
        "gpu.0.gfx_target": "gfx1151",
        "gpu.0.compute_units": 40,
        "gpu.0.max_clock_mhz": 2900,
        "gpu.0.pci_device_id": "0x1586",
        "gpu.0.pci_revision": "0xc1",
        "gpu.0.name": "Radeon 8060S Graphics",
    }
    found = values(derive("peaks", facts))
    assert found["gpu.0.peak_fp16_tflops"] == pytest.approx(59.39, abs=0.01)
    assert found["gpu.0.bandwidth_gb_s"] == pytest.approx(256, abs=1)
    assert "8060S" in found["gpu.0.product"]


def test_the_fp16_peak_is_that_of_the_product_whatever_the_card_is_set_to(derive: Derive) -> None:
    facts = {
        "gpu.0.gfx_target": "gfx1010",
        "gpu.0.compute_units": 36,
        "gpu.0.max_clock_mhz": 1780,  # AMD's boost clock is 1560
        "gpu.0.pci_device_id": "0x731f",
        "gpu.0.pci_revision": "0xca",
        "gpu.0.name": "AMD Radeon RX 5600 XT",
    }
    found = values(derive("peaks", facts))
    assert found["gpu.0.peak_fp16_tflops"] == pytest.approx(14.38, abs=0.01)
    assert found["gpu.0.peaks_tflops"]["fp16"] == pytest.approx(16.4, abs=0.01)


CARD = {
    "name": "gfx1100",
    "gfx": "gfx1100",
    "marketing_name": "AMD Radeon RX 7900 XTX",
    "compute_units": 96,
    "wavefront_size": 32,
    "chip_id": 0x744C,
    "pools": [
        {"flags": "COARSE GRAINED", "size_bytes": 24 << 30},
        {"flags": "EXTENDED FINE GRAINED", "size_bytes": 24 << 30},
    ],
}


def test_wsl_has_the_gpus_that_rocminfo_names(derive: Derive) -> None:
    agents = {"host.kind": "wsl2", "rocminfo.agents": [{"name": "A processor", "gfx": ""}, CARD]}
    found = values(derive("wsl_gpus", agents))
    assert found["gpu.0.gfx_target"] == "gfx1100"
    assert found["gpu.0.vram_total_bytes"] == 24 << 30
    assert found["gpu.0.is_apu"] is False
    assert "gpu.1.gfx_target" not in found
    strange = [{"gfx": "gfx9999", "pools": 3}, 7]
    assert values(derive("wsl_gpus", {**agents, "rocminfo.agents": strange})) == {"gpu.0.gfx_target": "gfx9999"}


@pytest.mark.parametrize("change", [{"host.kind": "bare"}, {"gpu.0.gfx_target": "gfx1201"}, {"rocminfo.agents": None}])
def test_elsewhere_the_driver_says_which_gpus_there_are(derive: Derive, change: dict[str, Any]) -> None:
    assert values(derive("wsl_gpus", {"host.kind": "wsl2", "rocminfo.agents": [CARD], **change})) == {}


def test_no_clock_no_peak(derive: Derive) -> None:
    sink = derive("peaks", {"gpu.0.gfx_target": "gfx1151", "gpu.0.compute_units": 40})
    assert "gpu.0.peak_fp16_tflops" in sink.gaps
    unknown = values(
        derive("peaks", {"gpu.0.gfx_target": "gfx9999", "gpu.0.compute_units": 4, "gpu.0.max_clock_mhz": 1000})
    )
    assert unknown["gpu.0.peak_fp16_tflops"] is None
    assert unknown["gpu.0.product"] is None


# -- memory ------------------------------------------------------------------------------------------------------------

GIB = 1 << 30
APU = {
    "gpu.0.is_apu": True,
    "gpu.0.vram_total_bytes": GIB // 2,
    "gpu.0.gtt_total_bytes": 60 * GIB,
    "memory.total_bytes": 120 * GIB,
    "ttm.limit_bytes": 60 * GIB,
}


def test_an_apus_memory(derive: Derive) -> None:
    found = values(derive("memory", APU))
    assert found["gpu.0.memory_ceiling_bytes"] == 60 * GIB + GIB // 2
    assert found["gpu.0.hip_memory_bytes"] == 60 * GIB
    assert found["gpu.0.gtt_fraction"] == 0.5
    assert found["gpu.0.carve_out_fraction"] == 0.004
    assert found["ttm.suggested_pages_limit"] == pytest.approx(108 * GIB // 4096, abs=1)


def test_ttm_caps_the_gtt(derive: Derive) -> None:
    found = values(derive("memory", APU | {"ttm.limit_bytes": 15 * GIB}))
    assert found["gpu.0.memory_ceiling_bytes"] == 15 * GIB + GIB // 2


def test_a_large_carve_out_is_what_hip_gets(derive: Derive) -> None:
    carved = {"gpu.0.vram_total_bytes": 96 * GIB, "gpu.0.gtt_total_bytes": 15 * GIB, "memory.total_bytes": 31 * GIB}
    found = values(derive("memory", APU | carved | {"ttm.limit_bytes": 15 * GIB}))
    assert found["gpu.0.hip_memory_bytes"] == 96 * GIB
    assert found["gpu.0.carve_out_fraction"] == pytest.approx(0.756)


def test_a_card_has_its_vram(derive: Derive) -> None:
    facts = {"gpu.0.is_apu": False, "gpu.0.vram_total_bytes": 24 * GIB, "memory.total_bytes": 64 * GIB}
    found = values(derive("memory", facts))
    assert found["gpu.0.memory_ceiling_bytes"] == found["gpu.0.hip_memory_bytes"] == 24 * GIB
    assert found["gpu.0.carve_out_fraction"] is None
    assert found["ttm.suggested_pages_limit"] is None


def test_an_unknown_kind_of_gpu_is_a_gap(derive: Derive) -> None:
    sink = derive("memory", APU | {"gpu.0.is_apu": None})
    assert "gpu.0.memory_ceiling_bytes" in sink.gaps


@pytest.mark.parametrize(
    ("size", "fits", "larger"),
    [(None, None, None), (40 * GIB, True, True), (70 * GIB, False, True), (200 * GIB, False, False)],
)
def test_models(size: int | None, fits: bool | None, larger: bool | None, derive: Derive) -> None:
    known = values(derive("memory", APU))
    found = values(derive("model", {**APU, **known, "ask.model_bytes": size}))
    assert (found["model.fits"], found["model.fits_hip"], found["model.fits_with_larger_gtt"]) == (fits, fits, larger)


def test_a_model_fits_where_one_known_gpu_is_large_enough(derive: Derive) -> None:
    facts = {"gpu.0.is_apu": False, "gpu.1.memory_ceiling_bytes": 24 * GIB, "ask.model_bytes": 20 * GIB}
    assert derive("model", facts).facts["model.fits"].value is True
    sink = derive("model", facts | {"ask.model_bytes": 30 * GIB})
    assert "model.fits" in sink.gaps


# -- rocminfo and clocks -----------------------------------------------------------------------------------------------


def agent(node: int | None, *flags: str) -> dict[str, Any]:
    own = {"device_type": "GPU", "gfx": "gfx1030", "pools": [{"segment": "GLOBAL", "flags": flag} for flag in flags]}
    return own if node is None else own | {"node": node}


def test_fine_grained_pools(derive: Derive) -> None:
    facts = {
        "gpu.0.source_node": 1,
        "gpu.1.source_node": 2,
        "rocminfo.agents": [
            {"device_type": "CPU", "gfx": None, "pools": [{"flags": "FINE GRAINED"}]},
            agent(2, "COARSE GRAINED", "EXTENDED FINE GRAINED"),
            agent(1, "COARSE GRAINED"),
        ],
    }
    found = values(derive("fine_grained", facts))
    assert (found["gpu.0.fine_grained"], found["gpu.0.fine_grained_scope"]) == (False, "none")
    assert (found["gpu.1.fine_grained"], found["gpu.1.fine_grained_scope"]) == (True, "extended")


def test_agents_without_nodes_are_matched_by_order(derive: Derive) -> None:
    facts = {"gpu.0.source_node": 1, "rocminfo.agents": [agent(None, "KERNARG, FINE GRAINED")]}
    found = values(derive("fine_grained", facts))
    assert (found["gpu.0.fine_grained"], found["gpu.0.fine_grained_scope"]) == (True, "system")


def test_no_rocminfo_is_a_gap(derive: Derive) -> None:
    sink = derive("fine_grained", {"gpu.0.source_node": 1}, {"rocminfo.*": "rocminfo: absent"})
    assert "absent" in sink.gaps["gpu.0.fine_grained"].reason
    unlisted = derive("fine_grained", {"gpu.0.source_node": 1, "rocminfo.agents": []})
    assert "does not list" in unlisted.gaps["gpu.0.fine_grained"].reason


@pytest.mark.parametrize(
    ("busy", "clock", "idle"),
    [(100, 600, True), (100, 2800, False), (100, 1500, False), (20, 600, None), (None, 600, None)],
)
def test_idle_clocks(busy: int | None, clock: int, idle: bool | None, derive: Derive) -> None:
    facts = {"gpu.0.busy_percent": busy, "gpu.0.sclk_mhz": clock, "gpu.0.sclk_max_mhz": 2900}
    assert values(derive("idle_clocks", facts))["gpu.0.idle_clocks"] is idle
