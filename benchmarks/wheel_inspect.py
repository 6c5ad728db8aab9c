"""How fast a large wheel is inspected, against ``unzip -p WHEEL > /dev/null``, and in how much memory.

Targets, on a 500 MB wheel: at least half the speed of ``unzip -p``, and less than 300 MB peak resident memory.

    python benchmarks/wheel_inspect.py [--wheel FILE] [--size-mb 500] [--runs 5] [--json]

Without ``--wheel``, one of the size asked for is made: HIP libraries with compressed and with plain fat binaries, host
libraries put together from pages of this machine's own ones (so that they deflate as real ones do), and Python files.
Each run is a whole process, start-up included; the two programs run in turns, so that both meet the same machine.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

SPEED_TARGET = 0.5
MEMORY_TARGET_MB = 300.0
MIB = 1 << 20
PAGE = 4096
TARGETS = ("gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
NUMBERS = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx1030": 0x36, "gfx1100": 0x41, "gfx1151": 0x4A, "gfx1201": 0x4E}
INSPECT = """
import sys
from pathlib import Path
from rocmend.codeobject.inspect import inspect_path

inspect_path(sys.argv[1])
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
"""Prints its own peak: what wait4 says would count the memory of the process that started it."""


def real_pages(limit_bytes: int = 64 * MIB) -> list[bytes]:
    """Return pages of shared libraries of this machine."""
    pages: list[bytes] = []
    folders = [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib"), Path(sys.prefix) / "lib"]
    for path in (path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.so*"))):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            pages += [data[at : at + PAGE] for at in range(0, len(data) - PAGE, PAGE)]
        if len(pages) * PAGE >= limit_bytes:
            break
    return pages


def code_object(target: str, body: bytes) -> bytes:
    """Return an AMDGPU ELF header with some bytes behind it."""
    ident = b"\x7fELF\x02\x01\x01\x40\x03" + bytes(7)
    return ident + struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 64, 64, NUMBERS[target], 64, 56, 0, 64, 0, 0) + body


def bundle(bodies: list[bytes]) -> bytes:
    """Return an offload bundle with a code object for each target."""
    names = [b"hipv4-amdgcn-amd-amdhsa--" + target.encode() for target in TARGETS]
    objects = [code_object(target, body) for target, body in zip(TARGETS, bodies, strict=True)]
    at, table = PAGE, b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
    for name, data in zip(names, objects, strict=True):
        table += struct.pack("<QQQ", at, len(data), len(name)) + name
        at += len(data) + (-len(data) % PAGE)
    return table.ljust(PAGE, b"\0") + b"".join(data + bytes(-len(data) % PAGE) for data in objects)


def library(fatbins: Iterator[bytes], host: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a host library: host pages, then ``.hip_fatbin``, then the section headers."""
    sizes = [PAGE, 0]
    body: list[bytes] = []
    for index, parts in enumerate((host, fatbins)):
        for part in parts:
            data = part + bytes(-len(part) % PAGE)
            sizes[index] += len(data)
            body.append(data)
    names = b"\0.rodata\0.hip_fatbin\0.shstrtab\0"
    end = sum(sizes)
    header_at = end + len(names) + (-len(names) % 8)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, header_at, 0, 64, 56, 0, 64, 4, 3)
    yield header.ljust(PAGE, b"\0")
    yield from body
    yield names.ljust(header_at - end, b"\0") + bytes(64)
    for name, flags, at, size in ((1, 2, PAGE, sizes[0] - PAGE), (9, 2, sizes[0], sizes[1]), (21, 0, end, len(names))):
        yield struct.pack("<IIQQQQIIQQ", name, 1, flags, at, at, size, 0, 0, 1, 0)


def make_wheel(path: Path, size_mb: int) -> None:
    """Write a wheel of about that many megabytes (1e6 bytes)."""
    import zstandard

    choice = random.Random(20261121)  # noqa: S311  the same wheel on every machine, nothing secret
    pages = real_pages()
    press = zstandard.ZstdCompressor(level=3)

    def host(count: int) -> Iterator[bytes]:
        return (choice.choice(pages) for _ in range(count))

    def plain(count: int) -> Iterator[bytes]:
        return (bundle([b"".join(host(64)) for _ in TARGETS]) for _ in range(count))

    def compressed(count: int) -> Iterator[bytes]:
        for made in plain(count):
            payload = press.compress(made)
            yield b"CCOB" + struct.pack("<HHQQQ", 3, 1, 32 + len(payload), len(made), 0) + payload

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6, allowZip64=True) as archive:
        number = 0
        while path.stat().st_size < size_mb * 1_000_000:
            parts = (plain(8), host(4000)) if number % 3 == 0 else (compressed(24), host(4000))
            with archive.open(f"bench/lib/libbench_{number}.so", "w", force_zip64=True) as member:
                for data in library(*parts):
                    member.write(data)
            for module in range(20):
                text = "".join(f"def f{line}(x):\n    return x * {choice.random()}\n" for line in range(100))
                archive.writestr(f"bench/part{number}/m{module}.py", text)
            number += 1
        archive.writestr("bench-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: bench\nVersion: 1.0+rocm7.1\n\n")


def run(command: list[str], *, read: bool = False) -> tuple[float, str]:
    """Return wall seconds of a command and, where asked for, what it printed."""
    start = time.perf_counter()
    output = subprocess.PIPE if read else subprocess.DEVNULL
    done = subprocess.run(command, stdout=output, stdin=subprocess.DEVNULL, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    return wall, done.stdout or ""


def measure(wheel: Path, runs: int) -> dict[str, object]:
    """Run both programs in turns."""
    with zipfile.ZipFile(wheel) as archive:
        inflated = sum(member.file_size for member in archive.infolist())
    unzip, inspect = ["unzip", "-p", str(wheel)], [sys.executable, "-c", INSPECT, str(wheel)]
    run(inspect)  # bytecode and the page cache
    theirs, ours, memory = [], [], []
    for _ in range(runs):
        theirs.append(run(unzip)[0])
        wall, printed = run(inspect, read=True)
        ours.append(wall)
        memory.append(int(printed) * 1024 / 1e6)
    ratio = statistics.median(theirs) / statistics.median(ours)
    return {
        "wheel": wheel.name,
        "wheel_bytes": wheel.stat().st_size,
        "inflated_bytes": inflated,
        "runs": runs,
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "unzip_s": [round(wall, 3) for wall in theirs],
        "inspect_s": [round(wall, 3) for wall in ours],
        "speed_against_unzip": round(ratio, 3),
        "peak_memory_mb": round(max(memory), 1),
        "targets": {"speed_against_unzip": SPEED_TARGET, "peak_memory_mb": MEMORY_TARGET_MB},
        "pass": ratio >= SPEED_TARGET and max(memory) < MEMORY_TARGET_MB,
    }


def main() -> int:
    """Measure and print; exit 1 where a target is missed, 2 where it cannot be measured."""
    parser = argparse.ArgumentParser(description="Inspects a large wheel against unzip -p.")
    parser.add_argument("--wheel", type=Path, help="a wheel to take instead of making one")
    parser.add_argument("--size-mb", type=int, default=500)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if shutil.which("unzip") is None:
        sys.stderr.write("unzip is not installed: there is nothing to compare with\n")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        wheel = options.wheel
        if wheel is None:
            wheel = Path(folder) / "bench-1.0-py3-none-any.whl"
            wheel.touch()
            sys.stderr.write(f"making a wheel of {options.size_mb} MB …\n")
            make_wheel(wheel, options.size_mb)
        result = measure(wheel, options.runs)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"wheel       {result['wheel']}: {int(str(result['wheel_bytes'])) / 1e6:.0f} MB")
        print(f"unzip -p    {result['unzip_s']} s")
        print(f"inspect     {result['inspect_s']} s")
        print(f"speed       {result['speed_against_unzip']} of unzip's (target: at least {SPEED_TARGET})")
        print(f"memory      {result['peak_memory_mb']} MB peak (target: less than {MEMORY_TARGET_MB:.0f})")
        print("pass" if result["pass"] else "FAIL")
    return 0 if result["pass"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
