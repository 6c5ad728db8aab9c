"""A stand-in for a program that loads a model: it hangs where its settings say, as some do on some GPUs.

* With its copy engine on (``FAKE_COPY_ENGINE`` unset or 1) it never comes out of ``upload``.
* With it off, it never comes out of ``reserve`` unless graphs are off, too (``FAKE_GRAPHS=0``).
* ``FAKE_TARGET`` and ``--attention`` change nothing but what it prints.
"""

from __future__ import annotations

import argparse
import os
import sys
import time


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def hang() -> None:
    """Wait for something that never comes."""
    while True:
        time.sleep(3600)


def main() -> None:
    """Load, upload, reserve, generate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--attention", choices=("flash", "plain"), default="flash")
    arguments = parser.parse_args()
    say(f"loading model for target {os.environ.get('FAKE_TARGET', 'native')}")
    say("uploading tensors")
    if os.environ.get("FAKE_COPY_ENGINE", "1") != "0":
        hang()
    say(f"reserving graph with {arguments.attention} attention")
    if os.environ.get("FAKE_GRAPHS", "1") != "0":
        hang()
    say("generating")
    say("answer: 42")
    say("speed: 61.5 tokens per second")


if __name__ == "__main__":
    main()
