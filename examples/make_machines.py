"""Write ``src/rocmend/examples/machines`` from ``examples/specs``.

Run as ``python -m examples.make_machines`` in the repository.
The machines are made up: their formats are those of Linux and ROCm, their values are ours.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from examples.machinery.gpu import add_gpus
from examples.machinery.software import add_software
from examples.machinery.spec import Spec, load
from examples.machinery.system import add_system
from examples.machinery.tools import add_tools
from examples.machinery.writer import Capture

HERE = Path(__file__).parent
SPECS = HERE / "specs"
MACHINES = HERE.parent / "src" / "rocmend" / "examples" / "machines"


def make(spec: Spec, into: Path) -> Path:
    """Write one machine's capture folder below ``into`` and return it."""
    capture = Capture(spec.name, spec.captured_at)
    add_system(spec, capture)
    add_gpus(spec, capture)
    add_software(spec, capture)
    add_tools(spec, capture)
    directory = into / spec.name
    capture.write(directory)
    (directory / "README.md").write_text(f"# {spec.name}\n\n{spec.story.strip()}\n", encoding="utf-8")
    return directory


def main() -> int:
    """Write every machine, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="machines to write; all of them where none is named")
    parser.add_argument("--into", type=Path, default=MACHINES, help="folder to write to")
    arguments = parser.parse_args()
    paths = sorted(SPECS.glob("*.toml"))
    for path in paths:
        if not arguments.names or path.stem in arguments.names:
            sys.stdout.write(f"{make(load(path), arguments.into)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
