"""Runs programs that come on stdin as JSON lines and answers on stdout with pickled outcomes.

``python worker.py ours`` on rocmend's ``mlx.core``, ``python worker.py theirs`` on the one that is installed.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
from typing import Any


def main() -> None:
    """Answer until the input ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not disturb the answers
    if sys.argv[1] == "ours":
        import torch

        from rocmend.mlx import activate

        torch.set_num_threads(1)
        activate()
    import mlx.core as mx
    from language import run_program

    core: Any = mx
    for line in sys.stdin:
        asked = json.loads(line)
        core.random.seed(0)
        data = pickle.dumps([run_program(core, program, eager=asked["eager"]) for program in asked["programs"]])
        out.write(struct.pack("<Q", len(data)) + data)
        out.flush()


if __name__ == "__main__":
    main()
