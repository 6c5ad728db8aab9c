"""Gives mutated inputs to every reader of what a stranger may have written.

    python -m fuzz                              20,000 inputs to each target
    python -m fuzz --inputs 1000000 --random    a night's run, other inputs each time
    python -m fuzz redaction --inputs 100000    one target
    python -m fuzz redaction --input FILE       one input again

Needs atheris (``pip install '.[fuzz]'``; Linux and CPython only). Each target runs in a process of its own. What
reached new code is kept in the corpus, from which the next run goes on; an input that failed is kept in the folder of
findings.
Exit code 1: something was found.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fuzz.target import load, names

ROOT = Path(__file__).resolve().parent.parent
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)|^Done (\d+) in|^#(\d+)\s", re.MULTILINE)
_SEED = 1
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108  files of inputs need no disk


def fuzz(name: str, asked: argparse.Namespace) -> bool:
    """Fuzz one target; return whether nothing was found."""
    findings = asked.findings / name
    findings.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fuzz.child", name, str(asked.corpus / name), f"-runs={asked.inputs}"]
    command += [f"-artifact_prefix={findings}/", "-print_final_stats=1", "-verbosity=1"]
    command += [] if asked.random else [f"-seed={_SEED}"]
    begin = time.monotonic()
    with tempfile.TemporaryFile() as log:
        # A store of its own: no target may touch the evidence of who fuzzes.
        with tempfile.TemporaryDirectory(prefix="rocmend-fuzz-", dir=MEMORY) as home:
            child = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | {"ROCMEND_HOME": home, "TMPDIR": home},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = child.wait(timeout=asked.time_limit)
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        log.seek(0)
        text = log.read().decode(errors="replace")
    took_s = time.monotonic() - begin
    executed = max((int(next(filter(None, found))) for found in _EXECUTED.findall(text)), default=0)
    fine = code == 0 and executed >= asked.inputs
    word = "passed" if fine else "ended early" if code in {0, -1} else "FAILED"
    print(f"{name:12} {word}: {executed:,} inputs in {took_s:.0f} s", flush=True)
    if not fine:
        print("\n".join(f"  {line}" for line in text.splitlines()[-40:]), flush=True)
        print(f"  inputs that failed are in {findings}; again: python -m fuzz {name} --input FILE", flush=True)
    return fine


def main() -> int:
    """Fuzz what the command line names."""
    known = names()
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"which of {', '.join(known)}; all by default")
    parser.add_argument("--inputs", type=int, default=20_000, help="how many to each target (default: %(default)s)")
    parser.add_argument("--random", action="store_true", help="other inputs each time, not the same ones")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets at the same time")
    parser.add_argument("--corpus", type=Path, default=ROOT / "fuzz" / "corpus", help="what is kept between runs")
    parser.add_argument("--findings", type=Path, default=ROOT / "fuzz" / "findings", help="inputs that failed")
    parser.add_argument("--time-limit", type=float, help="seconds that a target may take (default: no limit)")
    parser.add_argument("--input", type=Path, help="run one target on this file, without a fuzzer")
    asked = parser.parse_args()
    unknown = sorted(set(asked.targets) - set(known))
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(known)}")
    if asked.input is not None:
        if len(asked.targets) != 1:
            parser.error("--input needs one target")
        load(asked.targets[0]).run(asked.input.read_bytes())
        print("nothing was raised")
        return 0
    if importlib.util.find_spec("atheris") is None:
        parser.error("atheris is not installed: pip install '.[fuzz]'")
    asked.corpus, asked.findings = asked.corpus.resolve(), asked.findings.resolve()
    with ThreadPoolExecutor(max(1, asked.jobs)) as pool:
        return 0 if all(list(pool.map(lambda name: fuzz(name, asked), asked.targets or known))) else 1


if __name__ == "__main__":
    sys.exit(main())
