"""How long ``rocmend doctor`` takes on a captured machine, as a whole process, and how much memory.

Targets: at most 0.35 s wall (median) and 80 MB peak resident memory, with torch never imported.

    python benchmarks/doctor.py [--machine DIR] [--runs N] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

WALL_LIMIT_S = 0.35
MEMORY_LIMIT_MB = 80.0


def run_once(command: list[str]) -> tuple[float, float, int]:
    """Return wall seconds, peak resident megabytes (1e6) of the largest process, and the exit code."""
    start = time.perf_counter()
    with Path(os.devnull).open("wb") as nowhere:
        child = subprocess.Popen(command, stdout=nowhere, stderr=nowhere, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - start, usage.ru_maxrss * 1024 / 1e6, child.returncode


def imports_torch(command: list[str]) -> bool:
    """Whether the process imports torch."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command[1:]], capture_output=True, text=True, check=False
    )
    return any(line.rpartition("|")[2].strip() == "torch" for line in done.stderr.splitlines())


def main() -> int:
    """Measure and print; exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    default = Path(__file__).parent.parent / "src" / "rocmend" / "examples" / "machines" / "strix-halo"
    parser.add_argument("--machine", type=Path, default=default)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    command = [sys.executable, "-m", "rocmend", "doctor", "--machine", str(options.machine)]
    run_once(command)  # the first run compiles bytecode
    runs = [run_once(command) for _ in range(options.runs)]
    if any(code not in {0, 1} for _, _, code in runs):
        sys.stderr.write(f"{' '.join(command)} failed\n")
        return 2
    wall = [wall for wall, _, _ in runs]
    result = {
        "command": "rocmend doctor --machine " + options.machine.name,
        "runs": options.runs,
        "wall_s": {"min": min(wall), "median": statistics.median(wall), "max": max(wall), "limit": WALL_LIMIT_S},
        "peak_memory_mb": {"max": max(memory for _, memory, _ in runs), "limit": MEMORY_LIMIT_MB},
        "imports_torch": imports_torch(command),
    }
    met = (
        result["wall_s"]["median"] <= WALL_LIMIT_S
        and result["peak_memory_mb"]["max"] <= MEMORY_LIMIT_MB
        and not result["imports_torch"]
    )
    result["met"] = met
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"{result['command']}, {options.runs} runs")
        print(f"  wall    {min(wall):.3f} / {statistics.median(wall):.3f} / {max(wall):.3f} s (limit {WALL_LIMIT_S} s)")
        print(f"  memory  {max(memory for _, memory, _ in runs):.1f} MB (limit {MEMORY_LIMIT_MB:.0f} MB)")
        print(f"  torch   {'imported' if result['imports_torch'] else 'not imported'}")
        print("  met" if met else "  NOT met")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
