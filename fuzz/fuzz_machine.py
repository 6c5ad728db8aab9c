"""Feeds mutated text to every parser of logs, tools and system files, and to the redaction of captures.

Needs atheris, which is no dependency of the project (it has wheels for CPython on Linux only)::

    python -m venv fuzz-env && fuzz-env/bin/pip install -e . atheris
    fuzz-env/bin/python fuzz/fuzz_machine.py -max_total_time=600 -rss_limit_mb=512 corpus/

The first byte of an input says which parser the rest goes to; the corpus folder is filled with small valid texts where
it is empty. Anything but ``DataError`` is a finding, and so is an input that breaks what is promised of a parser (a
trimmed log has the same classes, a redacted text is stable) or that takes longer than libFuzzer's ``-timeout``.
"""

# ruff: noqa: INP001  a script, not part of a package

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import atheris
import msgspec

with atheris.instrument_imports(include=["rocmend"]):
    from rocmend.core.errors import DataError
    from rocmend.core.redact import Redactor
    from rocmend.machine.layout import Tree
    from rocmend.machine.parse import kernel_log, sysfs, system
    from rocmend.machine.parse.assignments import parse_assignments
    from rocmend.machine.parse.packages import parse_dpkg_status, parse_rpm_list
    from rocmend.machine.parse.pyvenv import parse_pyvenv
    from rocmend.machine.parse.rocminfo import parse_rocminfo
    from rocmend.machine.parse.smi import amd_smi_cards, decode, rocm_smi_cards


class BrokenPromiseError(Exception):
    """A parser returned something that it promises not to."""


def log(text: str) -> None:
    """The kernel log."""
    whole = {name: seen.count for name, seen in kernel_log.classify(text).items()}
    kept = {name: seen.count for name, seen in kernel_log.classify(kernel_log.relevant_lines(text)).items()}
    if whole != kept:
        raise BrokenPromiseError(f"trimming changed {whole} to {kept}")
    kernel_log.last_boot(text)


def linux(text: str) -> None:
    """Small files of /proc, /etc and sysfs."""
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


def agents(text: str) -> None:
    """The output of rocminfo, whose result must be JSON."""
    msgspec.json.encode(parse_rocminfo(text))


def management(text: str) -> None:
    """JSON of amd-smi and rocm-smi."""
    data = decode(text, "smi")
    msgspec.json.encode([amd_smi_cards(data, data), rocm_smi_cards(data)])


def packages(text: str) -> None:
    """Databases of packages and configuration of Python environments."""
    parse_dpkg_status(text.encode(errors="replace"))
    parse_rpm_list(text)
    parse_assignments(text)
    parse_pyvenv(text)


def private(text: str) -> None:
    """Redaction, which must be stable."""
    redactor = Redactor(hosts=["thunderbird.lan"], users=["alice"])
    once = redactor.text(text)
    if redactor.text(text) != once:
        raise BrokenPromiseError(f"redaction is not consistent: {once!r}")
    if redactor.text(once) != once:
        raise BrokenPromiseError(f"redaction is not stable: {once!r} to {redactor.text(once)!r}")


def tree(text: str) -> None:
    """A capture's description of its tree."""
    with suppress(msgspec.MsgspecError):
        msgspec.json.decode(text.encode(errors="replace"), type=Tree)


PARSERS: tuple[Callable[[str], None], ...] = (log, linux, agents, management, packages, private, tree)

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
    (5, "/home/alice 3c:7c:3f:1a:2b:3c 192.168.1.20 fe80::1 alice@example.com 1b4e28ba-2fa1-11d2-883f-0016d3cca427"),
    (6, '{"stats": {"/dev/kfd": {"kind": "char", "mode": 432}}, "links": {"/a": "b"}}'),
)


def one_input(data: bytes) -> None:
    """Give one input to the parser that its first byte names."""
    if data:
        with suppress(DataError):
            PARSERS[data[0] % len(PARSERS)](data[1:].decode(errors="replace"))


def main() -> None:
    """Make the corpus where it is empty, then fuzz."""
    folders = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")]
    if folders:
        folders[0].mkdir(parents=True, exist_ok=True)
        if not any(folders[0].iterdir()):
            for number, (parser, text) in enumerate(SEEDS):
                (folders[0] / f"seed-{number:02}").write_bytes(bytes([parser]) + text.encode())
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
