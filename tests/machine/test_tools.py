"""What rocminfo, amd-smi and rocm-smi print, whole, cut, empty or hostile."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError
from rocmend.core.supervise import CommandResult, Ending
from rocmend.machine.parse.rocminfo import parse_rocminfo
from rocmend.machine.parse.smi import amd_smi_cards, decode, rocm_smi_cards
from rocmend.machine.toolstatus import tool_status

from .conftest import Collected, MachineBuilder

ROCMINFO = """\
ROCk module version 6.14.14 is loaded
=====================
HSA System Attributes
=====================
Runtime Version:         1.18
Runtime Ext Version:     1.11
XNACK enabled:           NO
==========
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD EPYC 9654 96-Core Processor
  Uuid:                    CPU-XX
  Marketing Name:          AMD EPYC 9654 96-Core Processor
  Node:                    0
  Device Type:             CPU
  Compute Unit:            192
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
      Size:                    1056563716(0x3ef9e604) KB
    Pool 2
      Segment:                 GLOBAL; FLAGS: KERNARG, FINE GRAINED
      Size:                    1056563716(0x3ef9e604) KB
  ISA Info:
*******
Agent 2
*******
  Name:                    gfx942
  Uuid:                    GPU-0123456789abcdef
  Marketing Name:          AMD Instinct MI300X
  Node:                    2
  Device Type:             GPU
  Cache Info:
    L1:                      32(0x20) KB
  Chip ID:                 29857(0x74a1)
  Compute Unit:            304
  Wavefront Size:          64(0x40)
  Memory Properties:
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    201310208(0xbffc000) KB
    Pool 2
      Segment:                 GLOBAL; FLAGS: EXTENDED FINE GRAINED
      Size:                    201310208(0xbffc000) KB
    Pool 3
      Segment:                 GROUP
      Size:                    64(0x40) KB
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-
      Machine Models:          HSA_MACHINE_MODEL_LARGE
      Fast f16:                TRUE
      Workgroup Max Size per Dimension:
        x                        1024(0x400)
    ISA 2
      Name:                    amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-
*** Done ***
"""


class TestRocminfo:
    def test_whole_output(self) -> None:
        info = parse_rocminfo(ROCMINFO)
        assert (info.runtime_version, info.module_version, info.xnack_enabled) == ("1.18", "6.14.14", False)
        assert info.module_loaded
        assert info.complete
        cpu, gpu = info.agents
        assert (cpu.device_type, cpu.gfx, cpu.node, cpu.compute_units) == ("CPU", "", 0, 192)
        assert [pool.flags for pool in cpu.pools] == ["FINE GRAINED", "KERNARG, FINE GRAINED"]
        assert (gpu.gfx, gpu.node, gpu.wavefront_size, gpu.chip_id) == ("gfx942", 2, 64, 0x74A1)
        assert gpu.isa == ["gfx942:sramecc+:xnack-", "gfx9-4-generic:sramecc+:xnack-"]
        assert gpu.xnack is False
        assert gpu.marketing_name == "AMD Instinct MI300X"
        assert [(pool.segment, pool.flags) for pool in gpu.pools] == [
            ("GLOBAL", "COARSE GRAINED"),
            ("GLOBAL", "EXTENDED FINE GRAINED"),
            ("GROUP", ""),
        ]
        assert gpu.pools[0].size_bytes == 201310208 * 1024

    def test_kernels_own_module_and_none(self) -> None:
        assert parse_rocminfo("ROCk module is loaded\n").module_version == ""
        assert parse_rocminfo("ROCk module is loaded\n").module_loaded is True
        assert parse_rocminfo("ROCk module is NOT loaded, possibly no GPU devices\n").module_loaded is False
        assert parse_rocminfo("").module_loaded is None

    @given(st.integers(0, len(ROCMINFO)))
    def test_cut_anywhere(self, end: int) -> None:
        info = parse_rocminfo(ROCMINFO[:end])
        assert len(info.agents) <= 2
        assert info.complete == (end >= ROCMINFO.index("*** Done ***") + 12)

    @given(st.lists(st.sampled_from(ROCMINFO.splitlines()) | st.text(max_size=40), max_size=60).map("\n".join))
    def test_lines_in_any_order(self, text: str) -> None:
        parse_rocminfo(text)

    def test_endless_agents(self) -> None:
        assert len(parse_rocminfo("Agent 1\n" * 100_000).agents) == 1024

    def test_collected(self, machine: MachineBuilder, collect: Callable[[str], Collected]) -> None:
        machine.command(["rocminfo"], ROCMINFO)
        facts = collect("rocminfo")
        assert facts["rocminfo.status"] == "ok"
        assert facts["rocminfo.gfx_targets"] == ["gfx942"]
        assert facts["rocminfo.module_version"] == "6.14.14"
        assert facts["rocminfo.agents"][1]["pools"][1]["flags"] == "EXTENDED FINE GRAINED"

    @pytest.mark.parametrize(
        ("more", "status"),
        [
            ({"ending": Ending.TIMEOUT, "exit_code": None}, "timeout"),
            ({"exit_code": 1, "stderr": "Unable to open /dev/kfd read-write: Permission denied\n"}, "denied"),
            (
                {"exit_code": 1, "stdout": 'bob is not member of "render" group, the default DRM access group.'},
                "denied",
            ),
            ({"exit_code": 1, "stderr": "hsa api call failure at: rocminfo.cc:1306"}, "error"),
            ({"ending": Ending.SIGNALLED, "exit_code": None, "signal": 11}, "error"),
            ({"exit_code": 0}, "error"),
            ({"ending": Ending.NOT_EXECUTABLE, "exit_code": None}, "error"),
        ],
    )
    def test_bad_endings(
        self, machine: MachineBuilder, collect: Callable[[str], Collected], more: dict[str, Any], status: str
    ) -> None:
        machine.command(["rocminfo"], more.pop("stdout", ""), **more)
        facts = collect("rocminfo")
        assert facts["rocminfo.status"] == status
        assert facts["rocminfo.message"]
        assert status in facts.gaps["rocminfo.agents"].reason

    def test_absent(self, collect: Callable[[str], Collected]) -> None:
        assert collect("rocminfo")["rocminfo.status"] == "absent"


AMD_SMI_STATIC = [
    {
        "gpu": 1,
        "asic": {"market_name": "AMD Instinct MI300X", "target_graphics_version": "gfx942", "num_compute_units": 304},
        "bus": {"bdf": "0000:26:00.0"},
        "vram": {"type": "HBM", "size": {"value": 196592, "unit": "MB"}},
        "partition": {"compute_partition": "SPX", "memory_partition": "NPS1"},
        "driver": {"name": "amdgpu", "version": "6.14.14"},
    },
    {
        "gpu": 0,
        "asic": {"market_name": "AMD Instinct MI300X", "device_id": "0x74a1"},
        "bus": {"bdf": "0000:05:00.0"},
        "vram": "N/A",
    },
]
AMD_SMI_METRIC = [
    {
        "gpu": 0,
        "usage": {"gfx_activity": {"value": 97, "unit": "%"}},
        "power": {"socket_power": {"value": 612, "unit": "W"}},
        "temperature": {"edge": "N/A", "hotspot": {"value": 71, "unit": "C"}},
    }
]
ROCM_SMI = {
    "card0": {
        "Device Name": "Radeon RX 7900 XTX",
        "Card Series": "Radeon RX 7900 XTX",
        "Device ID": "0x744c",
        "GFX Version": "gfx1100",
        "Node ID": "1",
        "Unique ID": "0x3d4595974090853c",
        "GPU use (%)": "12",
        "VRAM Total Memory (B)": "25753026560",
        "Average Graphics Package Power (W)": "17.0",
        "PCI Bus": "0000:0C:00.0",
        "Memory Activity": "N/A",
    },
    "system": {"Driver version": "6.14.14"},
}


class TestSmi:
    @pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"gpu_data": rows}], ids=["list", "gpu_data"])
    def test_amd_smi(self, wrap: Callable[[Any], Any]) -> None:
        cards = amd_smi_cards(wrap(AMD_SMI_STATIC), wrap(AMD_SMI_METRIC))
        assert [card["index"] for card in cards] == [0, 1]
        assert cards[0]["slot"] == "0000:05:00.0"
        assert (cards[0]["busy_percent"], cards[0]["power_watts"], cards[0]["hotspot_c"]) == (97, 612, 71)
        assert "temperature_c" not in cards[0]
        assert cards[1]["vram_total_bytes"] == 196592 << 20
        assert (cards[1]["gfx"], cards[1]["compute_partition"]) == ("gfx942", "SPX")

    def test_rocm_smi(self) -> None:
        cards, driver = rocm_smi_cards(ROCM_SMI)
        assert driver == "6.14.14"
        assert cards == [
            {
                "index": 0,
                "tool": "rocm-smi",
                "name": "Radeon RX 7900 XTX",
                "series": "Radeon RX 7900 XTX",
                "device_id": "0x744c",
                "gfx": "gfx1100",
                "node": 1,
                "busy_percent": 12,
                "vram_total_bytes": 25753026560,
                "power_watts": 17.0,
                "slot": "0000:0c:00.0",
            }
        ]

    def test_json_among_warnings(self) -> None:
        assert decode("WARNING: AMD GPU device(s) is/are in a low-power state.\n\n[1, 2]\n\nbye\n", "x") == [1, 2]
        assert decode('WARN: [x] odd\n{"a": 1}', "x") == {"a": 1}

    @pytest.mark.parametrize("text", ["", "no json", "[1, 2", "{" * 100_000, "[" * 100_000, '{"a": }'])
    def test_no_json(self, text: str) -> None:
        with pytest.raises(DataError, match="expected JSON"):
            decode(text, "rocm-smi")

    json_values = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
        max_leaves=20,
    )

    @given(json_values)
    def test_any_json_is_survived(self, value: Any) -> None:
        amd_smi_cards(value, [value], {"gpu_data": value}, [{"gpu": 0, "vram": value, "asic": value}])
        rocm_smi_cards(value)
        rocm_smi_cards({"card0": value, "card1": {"Node ID": value, "PCI Bus": value}, "system": value})

    @given(st.text(max_size=300))
    def test_any_text_is_json_or_an_error(self, text: str) -> None:
        try:
            decode(text, "x")
        except DataError:
            return

    def test_collected_from_both(self, machine: MachineBuilder, collect: Callable[[str], Collected]) -> None:
        machine.command(["amd-smi", "static", "--json"], json.dumps(AMD_SMI_STATIC))
        machine.command(["amd-smi", "metric", "--json"], json.dumps(AMD_SMI_METRIC))
        machine.command(["rocm-smi", "--showallinfo", "--json"], json.dumps(ROCM_SMI))
        facts = collect("smi")
        assert facts["amd_smi.status"] == facts["rocm_smi.status"] == "ok"
        assert len(facts["smi.cards"]) == 2
        assert facts["rocm_smi.driver_version"] == "6.14.14"

    def test_amd_smi_hangs_and_rocm_smi_answers(
        self, machine: MachineBuilder, collect: Callable[[str], Collected]
    ) -> None:
        machine.command(["amd-smi", "static", "--json"], ending=Ending.TIMEOUT, exit_code=None, time_ms=8000.0)
        machine.command(["rocm-smi", "--showallinfo", "--json"], json.dumps(ROCM_SMI))
        facts = collect("smi")
        assert facts["amd_smi.status"] == "timeout"
        assert facts["amd_smi.message"] == "no answer within 8 s"
        assert facts["smi.cards"][0]["tool"] == "rocm-smi"

    def test_neither(self, collect: Callable[[str], Collected]) -> None:
        facts = collect("smi")
        assert facts["amd_smi.status"] == facts["rocm_smi.status"] == "absent"
        assert "absent" in facts.gaps["smi.cards"].reason

    def test_success_without_json_is_an_error(
        self, machine: MachineBuilder, collect: Callable[[str], Collected]
    ) -> None:
        machine.command(["amd-smi", "static", "--json"], "Traceback\n")
        facts = collect("smi")
        assert facts["amd_smi.status"] == "error"
        assert "JSON" in facts["amd_smi.message"]


def test_unkillable_tool_is_named() -> None:
    result = CommandResult(("amd-smi",), Ending.TIMEOUT, time_ms=8000, unkillable=True)
    assert tool_status(result) == (
        "timeout",
        "no answer within 8 s; it could not be killed: it waits inside the kernel",
    )
