from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = [pytest.mark.cpu, pytest.mark.slow]

# In a child, as a probe runs: multiprocessing keeps a resource tracker running in the process that spawns.
REDUCED = """
import torch
from rocmend.probe.catalogue._all_reduce import reduced

parts = torch.randn(2, 1001)
held = reduced(parts)
assert torch.equal(held[0], held[1])
torch.testing.assert_close(held[0], parts.sum(0))
"""


def test_two_processes_hold_the_sum() -> None:
    done = subprocess.run([sys.executable, "-c", REDUCED], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
