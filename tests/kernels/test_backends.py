"""Kernels for GPUs of one kind: found by folder, and never loaded for another kind."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("triton")

from rocmend.kernels import backends, registry
from rocmend.kernels.tuning import records

HOPPER = Path(backends.__file__).parent / "hopper"
OPS = sorted(path.parent.name for path in HOPPER.glob("*/tuning.toml"))
CHOOSE = """
import sys
from rocmend.kernels.ops.matmul.quantized_matmul import OP, Problem
from rocmend.kernels.select import select
from rocmend.kernels.target import by_name
problem = Problem("bfloat16", "affine", 4, 64, True, 1, 8, 14336, 4096)
kernels = [select(OP, problem, by_name(name)).implementation for name in ("gfx1151", "gfx942", "cpu")]
print(*kernels, any("backends.hopper" in name for name in sys.modules))
select(OP, problem, by_name("sm90"))
print(any("backends.hopper" in name for name in sys.modules))
"""


def test_an_amd_gpu_loads_nothing_of_hopper() -> None:
    done = subprocess.run([sys.executable, "-c", CHOOSE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["groups", "kept", "tiles", "False", "True"]


@pytest.mark.parametrize("op", OPS)
def test_a_folder_is_named_like_an_op_and_its_records_are_for_its_vendor(op: str) -> None:
    assert registry.get(op).name == op
    own = tomllib.loads((HOPPER / op / "tuning.toml").read_text(encoding="utf-8"))["record"]
    assert {row.get("target") for row in own} <= {"sm9x", "sm90", "nvidia"}
    assert {row["kernel"] for row in own} <= {record.kernel for record in records(op)}
