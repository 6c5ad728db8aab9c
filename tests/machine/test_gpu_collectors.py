"""The collectors of GPUs on small machines in the kernel's own formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Collected, MachineBuilder

Collect = Callable[[str], Collected]
RELEASE = "6.17.0-7-generic"


class TestAmdgpu:
    def loaded(self, machine: MachineBuilder) -> None:
        machine.file("/proc/sys/kernel/osrelease", f"{RELEASE}\n")
        machine.files("/sys/module/amdgpu/parameters", {"cwsr_enable": "1", "gttsize": "-1"})

    def test_in_tree(self, machine: MachineBuilder, collect: Collect) -> None:
        self.loaded(machine)
        machine.files("/sys/module/ttm/parameters", {"pages_limit": 27648000, "page_pool_size": 27648000})
        facts = collect("amdgpu")
        assert (facts["amdgpu.loaded"], facts["amdgpu.origin"], facts["amdgpu.version"]) == (True, "in-tree", None)
        assert facts["amdgpu.params"] == {"cwsr_enable": "1", "gttsize": "-1"}
        assert (facts["ttm.module"], facts["ttm.pages_limit"]) == ("ttm", 27648000)
        assert facts["ttm.limit_bytes"] == 27648000 * 4096
        assert facts["amdgpu.dkms_version"] is None

    def test_dkms(self, machine: MachineBuilder, collect: Collect) -> None:
        self.loaded(machine)
        machine.file("/sys/module/amdgpu/version", "6.14.14\n")
        machine.file(f"/lib/modules/{RELEASE}/updates/dkms/amdgpu.ko.zst", "")
        machine.file("/var/lib/dkms/amdgpu/6.9.0-1.24.04/6.8.0-50-generic/x86_64/log", "")
        machine.file(f"/var/lib/dkms/amdgpu/6.14.14-2193512.24.04/{RELEASE}/x86_64/log", "")
        machine.files("/sys/module/amdttm/parameters", {"pages_limit": 100})
        machine.files("/sys/module/ttm/parameters", {"pages_limit": 200})
        facts = collect("amdgpu")
        assert (facts["amdgpu.origin"], facts["amdgpu.version"]) == ("dkms", "6.14.14")
        assert facts["amdgpu.dkms_version"] == "6.14.14-2193512.24.04"
        assert facts["amdgpu.dkms_built"] is True
        assert (facts["ttm.module"], facts["ttm.pages_limit"]) == ("amdttm", 100)

    def test_dkms_on_disk_while_the_kernels_own_runs(self, machine: MachineBuilder, collect: Collect) -> None:
        self.loaded(machine)
        machine.file(f"/lib/modules/{RELEASE}/updates/dkms/amdgpu.ko", "")
        facts = collect("amdgpu")
        assert (facts["amdgpu.origin"], facts["amdgpu.dkms_built"]) == ("in-tree", True)

    @pytest.mark.parametrize(
        ("path", "origin"),
        [
            ("updates/dkms/amdgpu.ko.xz", "dkms"),
            ("extra/amdgpu.ko.xz", "dkms"),
            ("kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst", "in-tree"),
            ("modules.dep", "absent"),
        ],
    )
    def test_not_loaded(self, machine: MachineBuilder, collect: Collect, path: str, origin: str) -> None:
        machine.file("/proc/sys/kernel/osrelease", f"{RELEASE}\n")
        machine.file(f"/lib/modules/{RELEASE}/{path}", "")
        facts = collect("amdgpu")
        assert (facts["amdgpu.loaded"], facts["amdgpu.origin"]) == (False, origin)

    def test_container_without_modules(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file("/proc/sys/kernel/osrelease", f"{RELEASE}\n")
        assert collect("amdgpu")["amdgpu.origin"] == "unknown"

    def test_page_size_of_other_architectures(self, machine: MachineBuilder, collect: Collect) -> None:
        self.loaded(machine)
        machine.files("/sys/module/ttm/parameters", {"pages_limit": 10})
        machine.file("/proc/sys/kernel/arch", "aarch64\n")
        machine.command(["getconf", "PAGE_SIZE"], "65536\n")
        assert collect("amdgpu")["ttm.limit_bytes"] == 655360

    def test_modprobe(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file("/etc/modprobe.d/amdgpu.conf", "options amdgpu gttsize=98304\nblacklist amdgpu\n")
        machine.file("/usr/lib/modprobe.d/amdgpu.conf", "options amdgpu gttsize=1\n")  # the one in /etc counts
        machine.file("/usr/lib/modprobe.d/other.conf", "options ttm pages_limit=5\noptions snd_hda x=1\n")
        machine.file("/etc/modprobe.d/README", "options amdgpu bad=1\n")
        facts = collect("amdgpu")
        assert facts["modprobe.options"] == {"amdgpu.gttsize": "98304", "ttm.pages_limit": "5"}
        assert facts["amdgpu.blacklisted"] is True

    def test_blacklisted_on_the_command_line(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file("/proc/cmdline", "quiet modprobe.blacklist=nouveau,amdgpu\n")
        facts = collect("amdgpu")
        assert facts["amdgpu.blacklisted"] is True
        assert facts.fact("amdgpu.blacklisted").source == "/proc/cmdline"

    def test_parameters_for_root_only_are_left_out(self, machine: MachineBuilder, collect: Collect) -> None:
        self.loaded(machine)
        machine.tree.denied["/sys/module/amdgpu/parameters/secret"] = "permission denied."
        assert "secret" not in collect("amdgpu")["amdgpu.params"]


NODES = "/sys/class/kfd/kfd/topology/nodes"
HALO = """\
cpu_cores_count 0
simd_count 80
mem_banks_count 1
max_waves_per_simd 16
lds_size_in_kb 64
wave_front_size 32
array_count 4
simd_per_cu 2
gfx_target_version 110501
vendor_id 4098
device_id 5510
location_id 50432
domain 0
drm_render_minor 128
num_sdma_engines 1
num_cp_queues 8
max_engine_clk_fcompute 2900
fw_version 32
capability 671588992
sdma_fw_version 17
unique_id 0
num_xcc 1
"""


def processor_node(machine: MachineBuilder, number: int = 0) -> None:
    machine.file(f"{NODES}/{number}/properties", "cpu_cores_count 32\nsimd_count 0\ndrm_render_minor 0\n")
    machine.file(f"{NODES}/{number}/gpu_id", "0\n")


def halo(machine: MachineBuilder, more: str = "") -> None:
    processor_node(machine)
    machine.file(f"{NODES}/1/properties", HALO + more)
    machine.file(
        f"{NODES}/1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68719476736\nwidth 256\nmem_clk_max 1000\n"
    )
    machine.file(f"{NODES}/1/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\nflags 13\n")
    machine.files(
        "/sys/bus/pci/devices/0000:c5:00.0",
        {
            "class": "0x038000",
            "vendor": "0x1002",
            "device": "0x1586",
            "revision": "0xC1",
            "mem_info_vram_total": 536870912,
            "mem_info_gtt_total": 66571993088,
            "gpu_busy_percent": 3,
            "pp_dpm_sclk": "0: 600Mhz *\n1: 1100Mhz\n2: 2900Mhz",
            "pp_dpm_mclk": "0: 400Mhz\n1: 1000Mhz *",
            "current_link_speed": "16.0 GT/s PCIe",
            "current_link_width": 16,
            "vbios_version": "113-STRXLGEN-001",
            "power_dpm_force_performance_level": "auto",
            "hwmon/hwmon4/power1_average": 12034000,
            "hwmon/hwmon4/temp1_input": 41000,
            "fw_version/mes_fw_version": "0x00000083",
            "fw_version/mes_kiq_fw_version": "0x0000006f",
            "fw_version/vce_fw_version": "0x00000000",
            "numa_node": -1,
        },
    )


class TestOneGpu:
    def test_kfd(self, machine: MachineBuilder, collect: Collect) -> None:
        halo(machine, "cwsr_size 13942784\nctl_stack_size 16384\n")
        facts = collect("kfd")
        expected: dict[str, Any] = {
            "source_node": 1,
            "gfx_target": "gfx1151",
            "gfx_target_version": 110501,
            "compute_units": 40,
            "simd_count": 80,
            "wavefront_size": 32,
            "lds_bytes": 65536,
            "max_clock_mhz": 2900,
            "cwsr_size_bytes": 13942784,
            "ctl_stack_size_bytes": 16384,
            "pci_slot": "0000:c5:00.0",
            "render_minor": 128,
            "unique_id_present": False,
            "is_apu": True,
            "partition": 0,
            "partitions": 1,
            "kfd_memory_bytes": 68719476736,
            "memory_width_bits": 256,
            "atomics": None,
            "num_xcc": 1,
        }
        assert {name: facts[f"gpu.0.{name}"] for name in expected} == expected
        assert not facts.gaps
        assert "gpu.1.source_node" not in facts.facts

    def test_properties_that_an_older_driver_lacks(self, machine: MachineBuilder, collect: Collect) -> None:
        halo(machine)
        facts = collect("kfd")
        assert facts["gpu.0.cwsr_size_bytes"] is None
        machine.file(f"{NODES}/1/properties", "simd_count 80\nsimd_per_cu 0\ngfx_target_version 110501\n")
        facts = collect("kfd")
        assert "does not state it" in facts.gaps["gpu.0.compute_units"].reason
        assert facts["gpu.0.gfx_target"] == "gfx1151"

    @pytest.mark.parametrize(
        ("version", "name"),
        [
            (90010, "gfx90a"),
            (90402, "gfx942"),
            (90012, "gfx90c"),
            (100306, "gfx1036"),
            (120001, "gfx1201"),
            (90500, "gfx950"),
        ],
    )
    def test_gfx_names(self, machine: MachineBuilder, collect: Collect, version: int, name: str) -> None:
        machine.file(f"{NODES}/1/properties", f"simd_count 8\nsimd_per_cu 4\ngfx_target_version {version}\n")
        assert collect("kfd")["gpu.0.gfx_target"] == name

    def test_atomics_of_a_card(self, machine: MachineBuilder, collect: Collect) -> None:
        processor_node(machine)
        card = HALO.replace("110501", "110000").replace("5510", str(0x744C))
        machine.file(f"{NODES}/1/properties", card)
        for flags, expected in ((1, True), (13, False), (5, False)):
            machine.file(f"{NODES}/1/io_links/0/properties", f"type 2\nnode_to 0\nflags {flags}\n")
            assert collect("kfd")["gpu.0.atomics"] is expected
        assert collect("kfd")["gpu.0.is_apu"] is False

    def test_drm(self, machine: MachineBuilder, collect: Collect) -> None:
        halo(machine)
        machine.file("/usr/share/libdrm/amdgpu.ids", "1586,\tC1,\tRadeon 8060S Graphics\n")
        facts = collect("drm")
        expected = {
            "name": "Radeon 8060S Graphics",
            "pci_device_id": "0x1586",
            "pci_revision": "0xc1",
            "vram_total_bytes": 536870912,
            "vram_used_bytes": None,
            "gtt_total_bytes": 66571993088,
            "busy_percent": 3,
            "sclk_mhz": 600,
            "sclk_max_mhz": 2900,
            "mclk_mhz": 1000,
            "power_watts": 12.0,
            "temperature_c": 41.0,
            "performance_level": "auto",
            "vbios": "113-STRXLGEN-001",
            "link_speed": "16.0 GT/s",
            "link_width": 16,
            "compute_partition": None,
            "numa_node": -1,
            "boot_vga": None,
        }
        assert {name: facts[f"gpu.0.{name}"] for name in expected} == expected

    def test_name_falls_back_to_the_product_table(self, machine: MachineBuilder, collect: Collect) -> None:
        halo(machine)
        facts = collect("drm")
        assert facts["gpu.0.name"] == "AMD Radeon 8060S"
        assert facts.fact("gpu.0.name").source == "the product table"
        machine.file("/sys/bus/pci/devices/0000:c5:00.0/product_name", "AMD Instinct Something\n")
        assert collect("drm")["gpu.0.name"] == "AMD Instinct Something"

    def test_a_sleeping_gpu_refuses(self, machine: MachineBuilder, collect: Collect) -> None:
        halo(machine)
        path = "/sys/bus/pci/devices/0000:c5:00.0/gpu_busy_percent"
        (machine.directory / "root" / path[1:]).unlink()
        machine.tree.denied[path] = "permission denied."
        facts = collect("drm")
        assert facts.gaps["gpu.0.busy_percent"].reason == "permission denied."

    def test_device_found_through_the_render_node(self, machine: MachineBuilder, collect: Collect) -> None:
        processor_node(machine)
        machine.file(f"{NODES}/1/properties", HALO)
        machine.file("/sys/class/drm/renderD128/device/mem_info_vram_total", "1024\n")
        assert collect("drm")["gpu.0.vram_total_bytes"] == 1024

    def test_invisible_device(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file(f"{NODES}/1/properties", HALO)
        facts = collect("drm")
        assert "not visible" in facts.gaps["gpu.0.vram_total_bytes"].reason

    def test_firmware_from_sysfs(self, machine: MachineBuilder, collect: Collect) -> None:
        halo(machine)
        facts = collect("firmware")
        assert facts["gpu.0.mes_version"] == 0x83
        assert facts["gpu.0.firmware"] == {"mes": 0x83, "mes_kiq": 0x6F}

    def test_firmware_from_debugfs(self, machine: MachineBuilder, collect: Collect) -> None:
        processor_node(machine)
        machine.file(f"{NODES}/1/properties", HALO)
        text = "MES feature version: 1, firmware version: 0x00001080\nMEC feature version: 35, firmware version: 0x1d\n"
        machine.file("/sys/kernel/debug/dri/0/amdgpu_firmware_info", text)
        machine.file("/sys/kernel/debug/dri/0/name", "amdgpu dev=0000:c5:00.0 unique=0000:c5:00.0\n")
        machine.file("/sys/kernel/debug/dri/1/amdgpu_firmware_info", "MES feature version: 1, firmware version: 0x99\n")
        machine.file("/sys/kernel/debug/dri/1/name", "amdgpu dev=0000:03:00.0 unique=0000:03:00.0\n")
        facts = collect("firmware")
        assert facts["gpu.0.mes_version"] == 0x80  # the low 12 bits
        assert facts["gpu.0.firmware"] == {"mes": 0x1080, "mec": 0x1D}
        assert facts.fact("gpu.0.mes_version").source == "/sys/kernel/debug/dri/0/amdgpu_firmware_info"

    def test_firmware_refused(self, machine: MachineBuilder, collect: Collect) -> None:
        processor_node(machine)
        machine.file(f"{NODES}/1/properties", HALO)
        machine.tree.denied["/sys/kernel/debug/dri/128/amdgpu_firmware_info"] = "permission denied."
        facts = collect("firmware")
        assert facts.gaps["gpu.0.mes_version"].reason == "permission denied."

    def test_gpus_before_gfx11_have_no_mes(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file(f"{NODES}/1/properties", HALO.replace("110501", "100300"))
        machine.file("/sys/bus/pci/devices/0000:c5:00.0/fw_version/mec_fw_version", "0x00000077\n")
        facts = collect("firmware")
        assert facts["gpu.0.mes_version"] is None
        machine.file(f"{NODES}/1/properties", HALO)  # gfx1151 on a kernel that does not list MES
        facts = collect("firmware")
        assert "does not show it" in facts.gaps["gpu.0.mes_version"].reason

    def test_firmware_package(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file(
            "/var/lib/dpkg/status",
            "Package: linux-firmware\nStatus: install ok installed\nVersion: 20240318.git3b128b60-0ubuntu2.21\n",
        )
        facts = collect("firmware")
        assert facts["firmware.package"] == "linux-firmware"
        assert facts["firmware.package_version"] == "20240318.git3b128b60-0ubuntu2.21"

    def test_pci(self, machine: MachineBuilder, collect: Collect) -> None:
        halo(machine)
        machine.tree.links["/sys/bus/pci/devices/0000:c5:00.0/driver"] = "../../../../bus/pci/drivers/amdgpu"
        machine.files(
            "/sys/bus/pci/devices/0000:01:00.0", {"class": "0x030000", "vendor": "0x10de", "device": "0x2684"}
        )
        machine.files("/sys/bus/pci/devices/0000:02:00.0", {"class": "0x020000", "vendor": "0x8086", "device": "0x1"})
        machine.files(
            "/sys/bus/pci/devices/0000:05:00.0", {"class": "0x120000", "vendor": "0x1002", "device": "0x74a1"}
        )
        facts = collect("pci")
        assert [device["slot"] for device in facts["pci.amd_gpus"]] == ["0000:05:00.0", "0000:c5:00.0"]
        assert facts["pci.amd_gpus"][1] == {
            "slot": "0000:c5:00.0",
            "vendor": "0x1002",
            "device": "0x1586",
            "revision": "0xc1",
            "driver": "amdgpu",
            "gfx": "gfx1151",
            "name": "Radeon 8060S",
        }
        assert facts["pci.amd_gpus"][0]["gfx"] == "gfx942"
        assert facts["pci.amd_gpus"][0]["driver"] is None
        assert facts["pci.nvidia_gpus"][0]["name"] is None
        assert facts["pci.intel_gpus"] == []

    def test_no_kfd(self, collect: Collect) -> None:
        facts = collect("kfd")
        assert facts["kfd.topology"] is False
        assert facts["kfd.nodes_hidden"] == []


class TestManyGpus:
    """Eight MI300X, each split into eight partitions (CPX): 64 KFD nodes after two processors, on eight slots."""

    @pytest.fixture
    def node(self, machine: MachineBuilder) -> MachineBuilder:
        processor_node(machine, 0)
        processor_node(machine, 1)
        number = 2
        for card, bus in enumerate((0x05, 0x26, 0x46, 0x65, 0x85, 0xA6, 0xC6, 0xE5)):
            for part in range(8):
                location = part << 28 | bus << 8
                machine.file(
                    f"{NODES}/{number}/properties",
                    "cpu_cores_count 0\nsimd_count 152\nsimd_per_cu 4\nwave_front_size 64\ngfx_target_version 90402\n"
                    f"vendor_id 4098\ndevice_id 29857\nlocation_id {location}\ndomain 0\nnum_xcc 1\n"
                    f"drm_render_minor {128 + card * 8 + part}\nunique_id {1000 + number}\n",
                )
                machine.file(f"{NODES}/{number}/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 25769803776\n")
                number += 1
            slot = f"/sys/bus/pci/devices/0000:{bus:02x}:00.0"
            machine.files(
                slot,
                {
                    "class": "0x120000",
                    "vendor": "0x1002",
                    "device": "0x74a1",
                    "revision": "0x00",
                    "mem_info_vram_total": 206141652992,
                    "current_compute_partition": "CPX",
                    "current_memory_partition": "NPS4",
                },
            )
        return machine

    def test_indices_follow_the_nodes(self, node: MachineBuilder, collect: Collect) -> None:
        facts = collect("kfd")
        assert [facts[f"gpu.{index}.source_node"] for index in range(64)] == list(range(2, 66))
        assert "gpu.64.source_node" not in facts.facts
        assert [facts[f"gpu.{index}.partition"] for index in range(16)] == [*range(8), *range(8)]
        assert {facts[f"gpu.{index}.partitions"] for index in range(64)} == {8}
        assert facts["gpu.15.pci_slot"] == "0000:26:00.0"
        assert facts["gpu.15.render_minor"] == 143
        assert facts["gpu.0.compute_units"] == 38
        assert facts["gpu.0.kfd_memory_bytes"] == 25769803776
        assert facts["gpu.0.is_apu"] is False
        assert node.directory.exists()

    def test_devices_are_shared_by_their_partitions(self, node: MachineBuilder, collect: Collect) -> None:
        drm = collect("drm")
        assert {drm[f"gpu.{index}.compute_partition"] for index in range(64)} == {"CPX"}
        assert drm["gpu.63.vram_total_bytes"] == 206141652992
        assert drm["gpu.63.name"] == "AMD Instinct MI300X"
        assert len(collect("pci")["pci.amd_gpus"]) == 8
        assert node.directory.exists()

    def test_nodes_hidden_from_a_container(self, node: MachineBuilder, collect: Collect) -> None:
        for number in range(2, 60):
            (node.directory / "root" / f"{NODES[1:]}/{number}/properties").unlink()
            node.tree.denied[f"{NODES}/{number}/properties"] = "permission denied."
        facts = collect("kfd")
        assert facts["kfd.nodes_hidden"] == list(range(2, 60))
        assert facts["gpu.0.source_node"] == 60
        assert "node 2: permission denied" in facts.fact("kfd.nodes_hidden").raw

    def test_refused_topology(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.tree.denied[NODES] = "permission denied."
        for name in ("kfd", "drm", "firmware"):
            assert collect(name).gaps["gpu.*"].reason == "permission denied."
