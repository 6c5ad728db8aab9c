"""Fuzzes one target in this process: ``python -m fuzz.child TARGET CORPUS [libFuzzer's options]``."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

from fuzz.target import load


def main() -> None:
    """Fill the corpus where it is empty, then fuzz until the number of inputs is reached or something is found."""
    name, corpus, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["rocmend"]):
        target = load(name)
    folder = Path(corpus)
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        for number, data in enumerate(target.seeds()):
            (folder / f"seed-{number:03}").write_bytes(data)
    limits = (
        f"-max_len={target.max_bytes}",
        f"-rss_limit_mb={target.memory_limit_mb}",
        f"-timeout={target.time_limit_s}",
    )
    atheris.Setup([sys.argv[0], *limits, *options, str(folder)], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
