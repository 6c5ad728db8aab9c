"""The hardware collectors on small machines in the kernel's own formats."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rocmend.core.supervise import Ending
from rocmend.machine.collectors.access import gpu_groups
from rocmend.machine.collectors.dmesg import JOURNAL
from rocmend.machine.collectors.previous_boot import JOURNAL as PREVIOUS
from rocmend.machine.live import LiveRoot
from rocmend.machine.parse.kernel_log import CLASSES

from .conftest import Collected, MachineBuilder, run_collector

Collect = Callable[[str], Collected]


class TestOsAndKernel:
    def test_ubuntu(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file(
            "/etc/os-release",
            'ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22.1"\nPRETTY_NAME="Linux Mint 22.1"\n',
        )
        facts = collect("os")
        assert [facts[f"os.{key}"] for key in ("id", "like", "version", "name", "codename")] == [
            "linuxmint",
            ["ubuntu", "debian"],
            "22.1",
            "Linux Mint 22.1",
            None,
        ]

    def test_rolling_distribution_in_usr_lib(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file("/usr/lib/os-release", "ID=arch\nNAME=Arch\n")
        facts = collect("os")
        assert facts["os.version"] is None
        assert facts["os.name"] == "Arch"
        assert facts.fact("os.id").source == "/usr/lib/os-release"

    @pytest.mark.parametrize("booted", [True, False])
    def test_ostree(self, machine: MachineBuilder, collect: Collect, booted: bool) -> None:
        machine.file("/etc/os-release", "ID=bazzite\nID_LIKE=fedora\n")
        if booted:
            machine.file("/run/ostree-booted", "")
        assert collect("os")["os.ostree"] is booted

    def test_nothing(self, collect: Collect) -> None:
        assert not collect("os").facts

    def test_kernel(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file("/proc/sys/kernel/osrelease", "6.14.0-1018-oem\n")
        machine.file("/proc/cmdline", 'quiet amdgpu.cwsr-enable=0 dyndbg="a b"\n')
        machine.file("/proc/sys/kernel/numa_balancing", "1\n")
        for number in range(2):
            machine.file(f"/sys/devices/system/node/node{number}/cpulist", "0\n")
        machine.file("/sys/devices/system/node/online", "0-1\n")
        machine.file("/sys/class/iommu/ivhd0/x", "")
        for number in range(3):
            machine.file(f"/sys/kernel/iommu_groups/{number}/type", "DMA\n")
        facts = collect("kernel")
        assert facts["kernel.version"] == "6.14.0"
        assert facts["kernel.abi"] == 1018
        assert facts["kernel.flavour"] == "oem"
        assert facts["kernel.params"] == {"quiet": None, "amdgpu.cwsr_enable": "0", "dyndbg": "a b"}
        assert (facts["numa.balancing"], facts["numa.nodes"]) == (1, 2)
        assert (facts["iommu.devices"], facts["iommu.groups"]) == (["ivhd0"], 3)

    def test_kernel_without_numa(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.file("/proc/sys/kernel/osrelease", "6.14.0\n")
        facts = collect("kernel")
        assert facts["numa.balancing"] is None
        assert facts["numa.nodes"] == 1
        assert "kernel.cmdline" not in facts.facts


class TestHost:
    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({}, ("bare", None, None)),
            ({"/proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2"}, ("wsl2", None, None)),
            ({"/proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft"}, ("wsl1", None, None)),
            ({"/dev/dxg": ""}, ("wsl2", None, None)),
            ({"/.dockerenv": ""}, ("container", "docker", None)),
            ({"/run/.containerenv": "engine=podman"}, ("container", "podman", None)),
            ({"/run/.toolboxenv": "", "/run/.containerenv": ""}, ("container", "toolbox", None)),
            ({"/run/systemd/container": "lxc\n"}, ("container", "lxc", None)),
            ({"/run/systemd/container": "wsl\n"}, ("bare", None, None)),
            ({"/.singularity.d/env/x": ""}, ("container", "apptainer", None)),
            ({"/proc/1/cgroup": "0::/kubepods.slice/kubepods-pod1\n"}, ("container", "kubernetes", None)),
            ({"/proc/1/cgroup": "12:pids:/docker/0123\n"}, ("container", "docker", None)),
            ({"/proc/1/cgroup": "0::/init.scope\n"}, ("bare", None, None)),
            ({"/proc/cpuinfo": "flags : fpu hypervisor\n"}, ("vm", None, "unknown")),
            (
                {"/proc/cpuinfo": "flags : fpu hypervisor\n", "/sys/class/dmi/id/sys_vendor": "QEMU\n"},
                ("vm", None, "kvm"),
            ),
            (
                {"/proc/cpuinfo": "flags : hypervisor\n", "/sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n"},
                ("vm", None, "hyper-v"),
            ),
            ({"/sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n"}, ("bare", None, None)),  # a Surface
            ({"/proc/cpuinfo": "flags : hypervisor\n", "/.dockerenv": ""}, ("container", "docker", "unknown")),
        ],
    )
    def test_kinds(
        self,
        machine: MachineBuilder,
        collect: Collect,
        files: dict[str, str],
        expected: tuple[str, str | None, str | None],
    ) -> None:
        for path, text in files.items():
            machine.file(path, text)
        facts = collect("host")
        assert (facts["host.kind"], facts["host.container"], facts["host.hypervisor"]) == expected
        assert all(fact.source for fact in facts.facts.values())

    def test_firmware_of_the_computer(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.files(
            "/sys/class/dmi/id", {"sys_vendor": "Framework", "product_name": "Desktop", "bios_version": "03.04"}
        )
        facts = collect("host")
        assert (facts["host.vendor"], facts["host.product"]) == ("Framework", "Desktop")
        assert (facts["host.bios_version"], facts["host.bios_date"]) == ("03.04", None)


def test_memory(machine: MachineBuilder, collect: Collect) -> None:
    machine.file("/proc/cpuinfo", "processor : 0\nvendor_id : AuthenticAMD\nmodel name : X\n\nprocessor : 1\n")
    machine.file("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\nSwapTotal: 0 kB\n")
    machine.file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    facts = collect("memory")
    assert (facts["cpu.model"], facts["cpu.vendor"], facts["cpu.count"]) == ("X", "AuthenticAMD", 2)
    assert facts["memory.total_bytes"] == 1_024_000
    assert facts["memory.swap_total_bytes"] == 0
    assert facts["memory.transparent_hugepages"] == "madvise"


class TestAccess:
    def test_allowed(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.user(1000, "render", "video")
        machine.stat("/dev/kfd", "char", 0o660, group="render", gid=992, writable=True)
        for minor in (128, 129):
            machine.stat(f"/dev/dri/renderD{minor}", "char", 0o660, group="render", writable=True)
        machine.stat("/dev/dri/card1", "char", 0o660, group="video")
        facts = collect("access")
        assert facts["kfd.present"]
        assert facts["kfd.writable"]
        assert facts["kfd.group"] == "render"
        assert facts["dri.render_nodes"] == ["/dev/dri/renderD128", "/dev/dri/renderD129"]
        assert facts["dri.accessible"] is True
        assert facts["user.groups"] == ["render", "video"]

    def test_refused(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.stat("/dev/kfd", "char", 0o660, gid=109, readable=False)
        machine.stat("/dev/dri/renderD128", "char", 0o660, group="render", readable=False)
        facts = collect("access")
        assert (facts["kfd.readable"], facts["kfd.writable"], facts["kfd.group"]) == (False, False, "109")
        assert facts.fact("kfd.group").raw == "0660 0:109"
        assert facts["dri.accessible"] is False
        assert facts["dri.inaccessible"] == ["/dev/dri/renderD128"]

    def test_groups_that_a_new_login_would_bring(self, machine: MachineBuilder, collect: Collect) -> None:
        assert "no measurement" in collect("access").gaps["user.configured_groups"].reason
        machine.measurements["configured-groups|/etc/group"] = ["render"]
        assert collect("access")["user.configured_groups"] == ["render"]
        text = "root:x:0:\nrender:x:992:bob,alice\nvideo:x:44:al\nrenderer:x:1:alice\nbroken\nsudo:x:27:alice\n"
        assert gpu_groups(text, "alice", 1000) == ["render"]
        assert gpu_groups(text, "carol", 44) == ["video"]
        assert run_collector("access", LiveRoot())["user.configured_groups"] is not None

    def test_nothing_there(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.tree.denied["/dev/dri"] = "permission denied."
        facts = collect("access")
        assert facts["kfd.present"] is False
        assert facts["kfd.group"] is None
        assert facts.gaps["dri.accessible"].reason == "permission denied."


class TestKernelLog:
    def test_dmesg(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.command(["dmesg"], "[ 5.0] amdgpu: MODE2 reset\n[ 6.5] amdgpu: MODE2 reset\n")
        facts = collect("dmesg")
        assert facts["dmesg.readable"] is True
        assert facts["dmesg.reset_mode2"] == 2
        assert facts["dmesg.mes_hang"] == 0
        assert facts["dmesg.classes"] == {"reset_mode2": 2}
        assert facts["dmesg.times"] == {"reset_mode2": {"first": "5.0", "last": "6.5"}}
        assert facts.fact("dmesg.reset_mode2").raw == "[ 5.0] amdgpu: MODE2 reset"

    def test_journal_where_dmesg_is_refused(self, machine: MachineBuilder, collect: Collect) -> None:
        refused = "dmesg: read kernel buffer failed: Operation not permitted\n"
        machine.command(["dmesg"], exit_code=1, stderr=refused)
        machine.command(JOURNAL, "[    6.5] host kernel: amdgpu: MODE1 reset\n")
        facts = collect("dmesg")
        assert facts["dmesg.reset_mode1"] == 1
        assert facts.fact("dmesg.reset_mode1").source.startswith("journalctl")

    def test_log_file_as_last_resort(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.command(JOURNAL, "-- No entries --\n")
        earlier = "Nov  1 10:00:00 h kernel: Linux version 6\nNov  1 10:00:09 h kernel: amdgpu: MODE1 reset\n"
        later = "Nov  2 10:00:00 h kernel: Linux version 6\nNov  2 10:00:09 h kernel: amdgpu: BACO reset\n"
        machine.file("/var/log/kern.log", earlier + later)
        facts = collect("dmesg")
        assert facts["dmesg.reset_other"] == 1
        assert facts["dmesg.reset_mode1"] == 0
        assert facts.fact("dmesg.classes").source == "/var/log/kern.log"

    def test_nothing_may_be_read(self, machine: MachineBuilder, collect: Collect) -> None:
        machine.command(["dmesg"], exit_code=1, stderr="dmesg: read kernel buffer failed: Operation not permitted\n")
        machine.command(JOURNAL, ending=Ending.TIMEOUT, exit_code=None)
        machine.tree.denied["/var/log/kern.log"] = "permission denied."
        facts = collect("dmesg")
        assert facts["dmesg.readable"] is False
        assert facts.gaps["dmesg.mes_hang"].reason == "the kernel log cannot be read without root"
        assert {key for key in facts.gaps if key.startswith("dmesg.")} >= {f"dmesg.{item.id}" for item in CLASSES}

    def test_previous_boot(self, machine: MachineBuilder, collect: Collect) -> None:
        assert "no journal" in collect("previous_boot").gaps["previous_boot.classes"].reason
        machine.file("/var/log/journal/x/system.journal", "")
        assert "not-found" in collect("previous_boot").gaps["previous_boot.classes"].reason
        machine.command(PREVIOUS, "2026-01-01T00:00:00+0100 h kernel: amdgpu: MES failed to respond to msg=SUSPEND\n")
        facts = collect("previous_boot")
        assert facts["previous_boot.classes"] == {"mes_hang": 1}
        assert "SUSPEND" in facts.fact("previous_boot.classes").raw
