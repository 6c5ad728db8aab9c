"""Which Vulkan drivers the loader finds, and which of AMD's comes first."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError
from rocmend.core.supervise import CommandResult, Ending
from rocmend.machine.facts import FactSink
from rocmend.machine.parse.vulkan import classify_library, parse_icd, parse_layers, parse_summary
from rocmend.machine.root import Root

MakeRoot = Callable[..., Any]
Collect = Callable[[str, Root], FactSink]


def icd(library: str, version: str = "1.4.305", **more: str) -> str:
    return json.dumps({"ICD": {"api_version": version, "library_path": library} | more, "file_format_version": "1.0.1"})


RADV = {"/usr/share/vulkan/icd.d/radeon_icd.x86_64.json": icd("/usr/lib/x86_64-linux-gnu/libvulkan_radeon.so")}
AMDVLK = {"/etc/vulkan/icd.d/amd_icd64.json": icd("/usr/lib/x86_64-linux-gnu/amdvlk64.so")}
LAYER = {
    "/etc/vulkan/implicit_layer.d/amd_icd64.json": json.dumps(
        {
            "layer": {
                "name": "VK_LAYER_AMD_switchable_graphics_64",
                "library_path": "/usr/lib/x86_64-linux-gnu/amdvlk64.so",
                "disable_environment": {"DISABLE_LAYER_AMD_SWITCHABLE_GRAPHICS_1": "1"},
            }
        }
    )
}
LAVAPIPE = {"/usr/share/vulkan/icd.d/lvp_icd.x86_64.json": icd("libvulkan_lvp.so")}
NARROW = {"/usr/share/vulkan/icd.d/radeon_icd.i686.json": icd("/usr/lib/i386-linux-gnu/libvulkan_radeon.so")}


def values(sink: FactSink) -> dict[str, Any]:
    return {key: fact.value for key, fact in sink.facts.items()}


def test_radv_alone(fake_root: MakeRoot, collect: Collect) -> None:
    facts = values(collect("vulkan", fake_root(RADV | LAVAPIPE | NARROW)))
    assert facts["vulkan.drivers"] == ["lavapipe", "radv"]
    assert facts["vulkan.amd_drivers"] == ["radv"]
    assert (facts["vulkan.selected"], facts["vulkan.selected_by"]) == ("radv", "only one")
    assert all(item["bits"] == 64 for item in facts["vulkan.icds"])
    assert facts["vulkan.switchable_layer"] is None


@pytest.mark.parametrize(
    ("files", "env", "driver", "by"),
    [
        (RADV | AMDVLK | LAYER, {}, "amdvlk", "VK_LAYER_AMD_switchable_graphics"),
        (RADV | AMDVLK | LAYER, {"AMD_VULKAN_ICD": "RADV"}, "radv", "AMD_VULKAN_ICD"),
        (RADV | AMDVLK | LAYER, {"AMD_VULKAN_ICD": "amdvlk"}, "amdvlk", "AMD_VULKAN_ICD"),
        (RADV | AMDVLK, {"AMD_VULKAN_ICD": "RADV"}, "amdvlk", "order"),  # nothing reads the variable
        (RADV | AMDVLK | LAYER, {"DISABLE_LAYER_AMD_SWITCHABLE_GRAPHICS_1": "1"}, "amdvlk", "order"),
        (RADV | AMDVLK | LAYER, {"VK_LOADER_LAYERS_DISABLE": "*AMD*"}, "amdvlk", "order"),
        (RADV | AMDVLK | LAYER, {"VK_DRIVER_FILES": next(iter(RADV))}, "radv", "VK_DRIVER_FILES"),
        (RADV | AMDVLK | LAYER, {"VK_ICD_FILENAMES": "/usr/share/vulkan/icd.d"}, "radv", "VK_ICD_FILENAMES"),
        (
            RADV | AMDVLK,
            {"VK_DRIVER_FILES": next(iter(AMDVLK)), "VK_ICD_FILENAMES": next(iter(RADV))},
            "amdvlk",
            "VK_DRIVER_FILES",
        ),
        (RADV | AMDVLK, {"VK_ADD_DRIVER_FILES": next(iter(RADV))}, "radv", "order"),
        (RADV | AMDVLK, {"VK_LOADER_DRIVERS_SELECT": "radeon*"}, "radv", "VK_LOADER_DRIVERS_SELECT"),
        (RADV | AMDVLK, {"VK_LOADER_DRIVERS_DISABLE": "*amd_icd*"}, "radv", "only one"),
        (LAVAPIPE, {}, None, "no AMD driver"),
        ({}, {}, None, "no AMD driver"),
    ],
)
def test_selection(
    files: dict[str, str], env: dict[str, str], driver: str | None, by: str, *, fake_root: MakeRoot, collect: Collect
) -> None:
    facts = values(collect("vulkan", fake_root(files, env=env)))
    assert (facts["vulkan.selected"], facts["vulkan.selected_by"]) == (driver, by)


def test_search_order_follows_the_loader(fake_root: MakeRoot, collect: Collect) -> None:
    files = {
        "/home/u/.config/vulkan/icd.d/a.json": icd("libvulkan_radeon.so"),
        "/usr/local/share/vulkan/icd.d/b.json": icd("amdvlk64.so"),
        "/home/u/.local/share/vulkan/icd.d/c.json": icd("libvulkan_lvp.so"),
        "/elsewhere/vulkan/icd.d/d.json": icd("libvulkan_intel.so"),
    }
    facts = values(collect("vulkan", fake_root(files, env={"HOME": "/home/u"})))
    assert [item["name"] for item in facts["vulkan.icds"]] == ["a", "c", "b"]
    moved = values(collect("vulkan", fake_root(files, env={"HOME": "/home/u", "XDG_DATA_DIRS": "/elsewhere"})))
    assert [item["name"] for item in moved["vulkan.icds"]] == ["a", "c", "d"]


def test_unusable_manifests_are_listed(fake_root: MakeRoot, collect: Collect) -> None:
    files = RADV | {"/etc/vulkan/icd.d/bad.json": "{", "/etc/vulkan/icd.d/empty.json": '{"ICD": {}}'}
    facts = values(collect("vulkan", fake_root(files, env={"VK_ADD_DRIVER_FILES": "/gone.json"})))
    assert [item["file"] for item in facts["vulkan.problems"]] == [
        "/gone.json",
        "/etc/vulkan/icd.d/bad.json",
        "/etc/vulkan/icd.d/empty.json",
    ]


def test_versions_from_packages(fake_root: MakeRoot, collect: Collect) -> None:
    status = "Package: mesa-vulkan-drivers\nStatus: install ok installed\nVersion: 25.2.3-1ubuntu1\n"
    facts = values(collect("vulkan", fake_root(RADV | {"/var/lib/dpkg/status": status})))
    assert (facts["vulkan.mesa_version"], facts["vulkan.amdvlk_version"]) == ("25.2.3", None)


def test_closed_driver_is_told_from_the_open_one() -> None:
    assert classify_library("/opt/amdgpu-pro/lib/x86_64-linux-gnu/amdvlk64.so") == "amdgpu-pro"
    assert classify_library("libGLX_nvidia.so.0") == "nvidia"
    assert classify_library("libvulkan_freedreno.so") == "other"


SUMMARY = """
Devices:
========
GPU0:
\tapiVersion         = 1.4.305
\tdeviceType         = PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU
\tdeviceName         = Radeon 8060S Graphics (RADV GFX1151)
\tdriverName         = radv
\tdriverInfo         = Mesa 25.2.3
GPU1:
\tdeviceName         = llvmpipe (LLVM 20.1.8, 256 bits)
\tdeviceType         = PHYSICAL_DEVICE_TYPE_CPU
"""


def test_vulkaninfo(fake_root: MakeRoot, collect: Collect) -> None:
    argv = ("vulkaninfo", "--summary")
    good = CommandResult(argv, Ending.EXITED, exit_code=0, stdout=SUMMARY)
    facts = values(collect("vulkaninfo", fake_root({}, commands={argv: good})))
    assert facts["vulkaninfo.status"] == "ok"
    assert facts["vulkaninfo.devices"][0]["driver_info"] == "Mesa 25.2.3"
    assert facts["vulkaninfo.devices"][1]["type"] == "cpu"
    slow = collect("vulkaninfo", fake_root({}, commands={argv: CommandResult(argv, Ending.TIMEOUT)}))
    assert slow.facts["vulkaninfo.status"].value == "timeout"
    assert "timeout" in slow.gaps["vulkaninfo.devices"].reason
    assert collect("vulkaninfo", fake_root({})).facts["vulkaninfo.status"].value == "absent"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["ICD", "layer", "layers", "name", "library_path", "library_arch", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(JSON.map(json.dumps) | st.text(max_size=200))
def test_manifest_parsers_are_total(text: str) -> None:
    for parse in (parse_icd, parse_layers):
        with contextlib.suppress(DataError):
            assert parse(text, "/etc/vulkan/x.json") is not None


@given(st.text(max_size=400))
def test_summary_parser_is_total(text: str) -> None:
    assert all(device.name is not None for device in parse_summary("GPU0:\n" + text))
