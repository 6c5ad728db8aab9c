"""A host's rocmend that speaks the messages of ``bench exclusive`` and fails as ``FAULT`` says.

It writes the command lines that it was given to ``TOLD``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

FAULT = os.environ.get("FAULT", "")


def archive(figure_s: float) -> bytes:
    """Return an archive with one measurement, as a host would send it."""
    import msgspec

    from rocmend.bench.records import Measured, evidence_of
    from rocmend.bench.session import Prepared, Subject
    from rocmend.bench.stats import summarize
    from rocmend.bench.suites.gemm_cases import Shape, case_of
    from rocmend.core.verdict import Verdict
    from rocmend.machine.facts import Machine
    from rocmend.store.encoding import encode_evidence, machine_hash
    from rocmend.store.exchange import FOLDER, Manifest, archived

    blocks = tuple((figure_s * (1 + 0.001 * n),) * 3 for n in range(6))
    subject = Subject("gfx1151", "cuda:0", "Radeon 8060S", {"torch": "2.11"})
    prepared = Prepared(Verdict.PASS, "", 0.25, subject=subject)
    case = case_of(Shape(4096, 4096, 4096, "nn", 1), "float16")
    measured = Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), "2026-01-01", 1.0)
    evidence = evidence_of(measured, "bench-gemm-20260101-000000-abcd")
    machine = Machine("a host", "2026-01-01", {}, {})
    evidence = msgspec.structs.replace(evidence, machine=machine_hash(machine))
    line = {"id": "0123456789", "evidence": json.loads(encode_evidence(evidence))}
    files = {
        "evidence.jsonl": json.dumps(line).encode() + b"\n",
        f"machines/{machine_hash(machine)}.json": msgspec.json.encode(machine),
    }
    return archived(Manifest(FOLDER, "0.1.0", "2026-01-01", {}), files)


def main() -> int:
    from rocmend import __version__
    from rocmend.bench.fleet.messages import (
        PROTOCOL,
        Busy,
        Doing,
        Ended,
        Health,
        Hello,
        Message,
        Ran,
        line_of,
        parts_of,
    )

    def say(message: Message) -> None:
        sys.stdout.write(f"{line_of(message)}\n")
        sys.stdout.flush()

    say(Hello(PROTOCOL, __version__, ("",)))
    if FAULT == "busy":
        say(Busy("another rocmend measures on this machine: bench nn, by ann"))
        say(Ended())
        return 1
    before = ("kernel log: the GPU was reset",) if FAULT == "unhealthy before" else ()
    say(Health("before", problems=before))
    if before:
        say(Ended())
        return 1
    sys.stdout.write("a line of somebody else\n")
    say(Doing("1 of 2, gemm/a"))
    if FAULT in {"hangs", "interrupted"}:
        subprocess.run(["sleep", "3600"], check=False)
    if FAULT == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    say(Ran(figures=1, expected=1, notes=("runs on its battery",)))
    for part in parts_of(archive(1.0 if FAULT else 2.0), ""):
        say(part)
    after = ("kernel log: ring gfx timeout",) if FAULT == "unhealthy after" else ()
    say(Health("after", problems=after))
    say(Ended())
    return int(bool(after))


if __name__ == "__main__":
    with Path(os.environ["TOLD"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(sys.argv[1:]) + "\n")
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write("rocmend 0.0.1\n" if FAULT == "old" else "rocmend 0.1.0\n")
        sys.exit(0)
    sys.exit(main())
