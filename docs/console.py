"""The output of commands that stands in the documentation: checked by a test, written anew by this script.

A block is checked where the line before it is ``<!-- output of the program -->``: a ```` ```console ```` block of one
command (``$ …``) and what it prints. ``python docs/console.py --write`` runs the commands and puts in what they print.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "docs/index.md", "docs/tutorials/*.md", "docs/how-to/*.md")
BLOCK = re.compile(
    r"(<!-- output of the program -->\n```console\n\$ )([^\n]+)\n(.*?)(?=^```$)", re.MULTILINE | re.DOTALL
)


def pages() -> list[Path]:
    """Return the pages that may show output."""
    return [page for pattern in PAGES for page in sorted(ROOT.glob(pattern))]


def output(command: str) -> str:
    """Return what a command prints on a terminal of 80 columns, in an empty folder, with a clean environment."""
    with tempfile.TemporaryDirectory() as folder:
        env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "HOME": folder,
            "ROCMEND_HOME": f"{folder}/.rocmend",
            "COLUMNS": "80",
            "LANG": "C.UTF-8",
        }
        ran = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
        )
    return "".join(f"{line.rstrip()}\n" for line in ran.stdout.splitlines())


def main(*, write: bool) -> int:
    """Return 1 where a page shows what the program does not print, after mending it with ``write``."""
    stale = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        fresh = BLOCK.sub(lambda match: f"{match[1]}{match[2]}\n{output(match[2])}", text)
        if fresh != text:
            stale.append(page)
            if write:
                page.write_text(fresh, encoding="utf-8")
    for page in stale:
        print(f"{page.relative_to(ROOT)}: {'written' if write else 'shows what the program does not print'}")
    return bool(stale) and not write


if __name__ == "__main__":
    sys.exit(main(write="--write" in sys.argv[1:]))
