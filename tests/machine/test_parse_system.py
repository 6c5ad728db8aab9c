"""Parsers of what Linux says of itself: right on real shapes, total on any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.machine.parse.sysfs import (
    find_marketing_name,
    firmware_name,
    parse_firmware_info,
    parse_levels,
    parse_link_speed,
)
from rocmend.machine.parse.system import (
    parse_cmdline,
    parse_cpuinfo,
    parse_int,
    parse_meminfo,
    parse_modprobe,
    parse_os_release,
    parse_properties,
    parse_release,
)


@pytest.mark.parametrize(
    ("release", "version", "abi", "flavour"),
    [
        ("6.17.0-7-generic", "6.17.0", 7, "generic"),
        ("6.14.0-1018-oem", "6.14.0", 1018, "oem"),
        ("6.6.87.2-microsoft-standard-WSL2", "6.6.87.2", None, "microsoft-standard-WSL2"),
        ("6.18.3-arch1-1", "6.18.3", None, "arch1-1"),
        ("6.16.0-1-mainline", "6.16.0", 1, "mainline"),
        ("5.14.0-570.el9.x86_64", "5.14.0", 570, "el9.x86_64"),
        ("6.12.48+deb13-amd64", "6.12.48", None, "deb13-amd64"),
        ("6.19.0-rc3", "6.19.0", None, "rc3"),
        ("7.0", "7.0", None, ""),
        ("6.8.12", "6.8.12", None, ""),
    ],
)
def test_releases(release: str, version: str, abi: int | None, flavour: str) -> None:
    parsed = parse_release(release)
    assert parsed is not None
    assert (parsed.version, parsed.abi, parsed.flavour) == (version, abi, flavour)


def test_no_release() -> None:
    assert parse_release("") is None
    assert parse_release("unknown") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("quiet splash", {"quiet": None, "splash": None}),
        ("a=1 a=2 b=", {"a": "2", "b": ""}),
        ("amdgpu.cwsr-enable=0", {"amdgpu.cwsr_enable": "0"}),
        ("transparent-hugepage=never", {"transparent-hugepage": "never"}),
        ('dyndbg="file drivers/usb/* +p" x', {"dyndbg": "file drivers/usb/* +p", "x": None}),
        ('"dyndbg=module amdgpu +p" x', {"dyndbg": "module amdgpu +p", "x": None}),
        ("ro -- --init-argument single", {"ro": None}),
        ("x=a=b", {"x": "a=b"}),
        ("=lonely", {}),
        ("", {}),
        ('open="never closed here', {"open": '"never closed here'}),
        ("  spaced\t\tout \n", {"spaced": None, "out": None}),
    ],
)
def test_command_lines(line: str, expected: dict[str, str | None]) -> None:
    assert parse_cmdline(line) == expected


def test_os_release() -> None:
    text = '# comment\nID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME=\'Some "quoted" Linux\'\nBAD\nlower=x\nOPEN="x\n'
    assert parse_os_release(text) == {
        "ID": "ubuntu",
        "VERSION_ID": "24.04",
        "PRETTY_NAME": 'Some "quoted" Linux',
        "OPEN": "x",
    }


def test_meminfo() -> None:
    text = "MemTotal:       131072000 kB\nHugePages_Total:       4\nActive(anon):  12 kB\nbroken kB\nMemFree: x kB\n"
    assert parse_meminfo(text) == {"MemTotal": 131072000 * 1024, "HugePages_Total": 4, "Active(anon)": 12 * 1024}


def test_cpuinfo() -> None:
    core = "processor\t: {}\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD RYZEN AI MAX+ 395\nflags\t\t: fpu sse {}\n\n"
    cpu = parse_cpuinfo("".join(core.format(number, "") for number in range(32)))
    assert (cpu.model, cpu.vendor, cpu.count, cpu.hypervisor) == ("AMD RYZEN AI MAX+ 395", "AuthenticAMD", 32, False)
    assert parse_cpuinfo(core.format(0, "hypervisor lahf_lm")).hypervisor
    arm = parse_cpuinfo("processor : 0\nFeatures : fp asimd hypervisor\n")
    assert (arm.model, arm.vendor, arm.count, arm.hypervisor) == ("", "", 1, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("12", 12), ("-1\n", -1), ("0x1f", 31), (None, None), ("", None), ("1.5", None), ("९", None), ("9" * 30, None)],
)
def test_numbers(text: str | None, expected: int | None) -> None:
    assert parse_int(text) == expected


def test_properties() -> None:
    assert parse_properties("simd_count 80\nunique_id 11420932837461522459\nname x\n\nlone\n") == {
        "simd_count": 80,
        "unique_id": 11420932837461522459,
    }


def test_modprobe() -> None:
    text = (
        "# options amdgpu off=1\n"
        "options amdgpu gttsize=98304 \\\n  vm-fragment-size=9\n"
        'options ttm pages_limit=27648000 dyndbg="+p q"\n'
        "options amdgpu\n"
        "blacklist nouveau\nblacklist amd-gpu\ninstall x /bin/true\n"
    )
    options, blacklisted = parse_modprobe(text)
    assert options == {
        "amdgpu.gttsize": "98304",
        "amdgpu.vm_fragment_size": "9",
        "ttm.pages_limit": "27648000",
        "ttm.dyndbg": "+p q",
    }
    assert blacklisted == {"nouveau", "amd_gpu"}


@pytest.mark.parametrize(
    ("text", "current", "highest"),
    [
        ("0: 600Mhz *\n1: 1100Mhz \n2: 2900Mhz \n", 600, 2900),
        ("S: 19Mhz *\n0: 500Mhz \n1: 2371Mhz \n", 19, 2371),
        ("0: 96Mhz\n1: 1249Mhz\n", None, 1249),
        ("", None, None),
        ("nonsense", None, None),
    ],
)
def test_clock_levels(text: str, current: int | None, highest: int | None) -> None:
    levels = parse_levels(text)
    assert (levels.current_mhz, levels.max_mhz) == (current, highest)


def test_firmware_info() -> None:
    text = (
        "VCE feature version: 0, firmware version: 0x00000000\n"
        "ME feature version: 35, firmware version: 0x0000001d\n"
        "RLC SRLC feature version: 0, firmware version: 0x00000001\n"
        "SMC feature version: 0, program: 4, firmware version: 0x0b5d0a00 (93.10.0)\n"
        "SDMA0 feature version: 60, firmware version: 0x0000000e\n"
        "TA RAS feature version: 0x00000000, firmware version: 0x1b00013e\n"
        "MES_KIQ feature version: 6, firmware version: 0x0000006f\n"
        "MES feature version: 1, firmware version: 0x00000080\n"
        "VBIOS version: 113-STRXLGEN-001\n"
    )
    assert parse_firmware_info(text) == {
        "me": 0x1D,
        "rlc_srlc": 1,
        "smc": 0x0B5D0A00,
        "sdma0": 0xE,
        "ta_ras": 0x1B00013E,
        "mes_kiq": 0x6F,
        "mes": 0x80,
    }


def test_names_in_fw_version() -> None:
    names = ["mes_fw_version", "mes_kiq_fw_version", "sdma_fw_version", "sdma2_fw_version", "ucode"]
    assert [firmware_name(name) for name in names] == ["mes", "mes_kiq", "sdma0", "sdma1", None]


def test_link_speed() -> None:
    assert parse_link_speed("16.0 GT/s PCIe\n") == "16.0 GT/s"
    assert parse_link_speed("2.5 GT/s") == "2.5 GT/s"
    assert parse_link_speed("Unknown") is None


def test_marketing_names() -> None:
    table = "# List of AMDGPU IDs\n1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n1586,\tC1,\tRadeon 8060S Graphics\n"
    assert find_marketing_name(table, 0x744C, 0xC8) == "AMD Radeon RX 7900 XTX"
    assert find_marketing_name(table, 0x744C, 0xCC) is None
    assert find_marketing_name("", 0, 0) is None


@given(st.text(max_size=500))
def test_parsers_are_total(text: str) -> None:
    parse_release(text)
    parse_cmdline(text)
    parse_os_release(text)
    parse_meminfo(text)
    parse_cpuinfo(text)
    parse_int(text)
    parse_properties(text)
    parse_modprobe(text)
    parse_levels(text)
    parse_firmware_info(text)
    parse_link_speed(text)
    find_marketing_name(text, 0x744C, 0xC8)


words = st.text(st.characters(codec="ascii", exclude_characters='"= -', exclude_categories=["C", "Z"]), min_size=1)


@given(st.dictionaries(words.filter(lambda word: word != "--"), st.none() | words | st.just("two words"), max_size=6))
def test_command_lines_round_trip(params: dict[str, str | None]) -> None:
    line = " ".join(
        name if value is None else f'{name}="{value}"' if " " in value else f"{name}={value}"
        for name, value in params.items()
    )
    assert parse_cmdline(line) == params
