"""Every parser of logs, tools' output and system files; the first byte of an input says which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from fuzz.target import BrokenPromiseError, Target, choice
from rocmend.core.errors import DataError
from rocmend.machine.parse import kernel_log, sysfs, system
from rocmend.machine.parse.assignments import parse_assignments
from rocmend.machine.parse.packages import parse_dpkg_status, parse_rpm_list
from rocmend.machine.parse.pyvenv import parse_pyvenv
from rocmend.machine.parse.rocminfo import parse_rocminfo
from rocmend.machine.parse.smi import amd_smi_cards, decode, rocm_smi_cards


def log(data: bytes) -> None:
    """The kernel log."""
    text = data.decode(errors="replace")
    whole = {name: seen.count for name, seen in kernel_log.classify(text).items()}
    kept = {name: seen.count for name, seen in kernel_log.classify(kernel_log.relevant_lines(text)).items()}
    if whole != kept:
        raise BrokenPromiseError(f"trimming changed {whole} to {kept}")
    kernel_log.last_boot(text)


def linux(data: bytes) -> None:
    """Small files of /proc, /etc and sysfs."""
    text = data.decode(errors="replace")
    system.parse_release(text)
    system.parse_cmdline(text)
    system.parse_os_release(text)
    system.parse_meminfo(text)
    system.parse_cpuinfo(text)
    system.parse_properties(text)
    system.parse_modprobe(text)
    sysfs.parse_levels(text)
    sysfs.parse_firmware_info(text)
    sysfs.parse_link_speed(text)
    sysfs.find_marketing_name(text, 0x1586, 0xC1)


def agents(data: bytes) -> None:
    """The output of rocminfo, whose result must be JSON."""
    text = data.decode(errors="replace")
    msgspec.json.encode(parse_rocminfo(text))


def management(data: bytes) -> None:
    """JSON of amd-smi and rocm-smi."""
    text = data.decode(errors="replace")
    data = decode(text, "smi")
    msgspec.json.encode([amd_smi_cards(data, data), rocm_smi_cards(data)])


def packages(data: bytes) -> None:
    """Databases of packages and configuration of Python environments."""
    text = data.decode(errors="replace")
    parse_dpkg_status(text.encode(errors="replace"))
    parse_rpm_list(text)
    parse_assignments(text)
    parse_pyvenv(text)


SEEDS = (
    (
        0,
        "[ 5.0] amdgpu: MES failed to respond to msg=SUSPEND\n[ 6.0] Out of memory: Killed process 1\n",
    ),
    (0, "Nov 05 08:56:22 host kernel: [drm:x [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=1, emitted seq=3\n"),
    (1, "6.14.0-1018-oem"),
    (1, 'quiet amdgpu.cwsr-enable=0 dyndbg="a b" -- init\n'),
    (1, 'ID=ubuntu\nVERSION_ID="24.04"\n'),
    (1, "options amdgpu gttsize=1 \\\n x=2\nblacklist amdgpu\n"),
    (1, "0: 600Mhz *\n1: 2900Mhz\nMES feature version: 1, firmware version: 0x00000080\n"),
    (
        2,
        "Runtime Version: 1.18\nAgent 1\n  Name: gfx1151\n  Node: 1\n    Pool 1\n      Segment: GLOBAL; FLAGS: X\n",
    ),
    (3, 'WARNING: x\n{"gpu_data": [{"gpu": 0, "vram": {"size": {"value": 16368, "unit": "MB"}}}]}\n'),
    (3, '{"card0": {"GPU use (%)": "12", "PCI Bus": "0000:0C:00.0"}, "system": {"Driver version": "6.14"}}'),
    (4, "Package: rocm-core\nStatus: install ok installed\nVersion: 7.1.0\n\nhome = /usr/bin\nhip = '7.1.25424'\n"),
)


def seeds() -> Iterator[bytes]:
    """Yield small valid texts."""
    return (bytes([parser]) + text.encode() for parser, text in SEEDS)


_parsers = choice((log, linux, agents, management, packages))


def run(data: bytes) -> None:
    """Give one input to the parser that its first byte names."""
    with suppress(DataError):
        _parsers(data)


TARGET = Target(run, seeds)
