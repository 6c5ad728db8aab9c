"""How long ``rocmend port`` takes to analyse a tree: first with nothing known, then unchanged; and how much memory.

Targets on two cores: 1,000,000 lines in at most 300 s, the second run in at most 10 s; a single file in at most 0.5 s
as a whole process.

    python benchmarks/port_analyse.py TREE [--file FILE] [--jobs N] [--json]

Memory is the largest process's peak; there is one that leads, and one a job that reads. On a machine that is busy with
other things, the CPU's seconds say more than the wall's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROGRAM = """
import json, resource, sys, time
start = time.perf_counter()
from pathlib import Path
from rocmend.port.analyse import analyse
found = analyse(Path(sys.argv[1]), jobs=int(sys.argv[2]) or None)
own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "wall_s": time.perf_counter() - start,
    "lines": found.lines,
    "files": sum(found.looked_at.values()),
    "from_cache": found.from_cache,
    "issues": len(found.issues),
    "skipped": {file.path: file.skipped for file in found.files if file.skipped},
    "cpu_s": own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime,
    "leader_mb": own.ru_maxrss * 1024 / 1e6,
    "reader_mb": others.ru_maxrss * 1024 / 1e6,
}))
"""
FIRST_LIMIT_S = 300.0
SECOND_LIMIT_S = 10.0
FILE_LIMIT_S = 0.5


def analysed(path: Path, jobs: int, cache: str) -> dict[str, Any]:
    """Analyse a tree in a process of its own and return what it says of itself."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(jobs)],
        env={**os.environ, "XDG_CACHE_HOME": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> int:
    """Measure and print; exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--file", type=Path, help="a single file to time too")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        runs = {"first": analysed(options.tree, options.jobs, cache)}
        runs["second"] = analysed(options.tree, options.jobs, cache)
        if options.file:
            runs["file"] = analysed(options.file, options.jobs, cache)
    lines = runs["first"]["lines"]
    limits = {"first": FIRST_LIMIT_S * max(1.0, lines / 1e6), "second": SECOND_LIMIT_S, "file": FILE_LIMIT_S}
    if options.json:
        print(json.dumps(runs, indent=1))
    else:
        for name, run in runs.items():
            print(
                f"{name}: {run['wall_s']:.2f} s (limit {limits[name]:g} s; {run['cpu_s']:.2f} s of CPU), "
                f"{run['lines']:,} lines in {run['files']:,} files, {run['from_cache']:,} known, "
                f"{run['issues']:,} issues, {len(run['skipped'])} skipped, "
                f"peak {run['leader_mb']:.0f} MB (leader) and {run['reader_mb']:.0f} MB (reader)"
            )
    return int(any(run["wall_s"] > limits[name] for name, run in runs.items()))


if __name__ == "__main__":
    sys.exit(main())
