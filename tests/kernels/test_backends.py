"""Kernels for GPUs of one kind: found by folder, and never loaded for another kind."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("triton")

from rocmend.cli.views.kernels import explain_document
from rocmend.kernels import backends, registry
from rocmend.kernels.explain import explain
from rocmend.kernels.target import by_name
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

EXPLAIN = """
import sys
sys.modules["torch"] = sys.modules["triton"] = None
from rocmend.cli.views.kernels import explain_document
from rocmend.kernels import backends, registry
from rocmend.kernels.explain import explain
from rocmend.kernels.target import by_name
from rocmend.kernels.explain import explain
from rocmend.kernels.target import by_name
backends.MEASURED = False
for name, values in (
    ("quantized_matmul", ("bfloat16", "affine", 4, 64, True, 1, 1, 4096, 4096)),
    ("gather_qmm", ("bfloat16", "affine", 4, 64, True, False, 4096, 1, 768, 2048, 32)),
    ("quantized_attention", ("float32", 1, 8, 8, 1, 64, 64, 64, 4, 64)),
):
    op = registry.get(name)
    print(explain(op, op.problem(*values), by_name(sys.argv[1]), here=False).chosen)
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


def test_explain_names_what_computes_tensors_at_odd_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    op = registry.get("quantized_matmul")
    problem = op.problem("bfloat16", "affine", 4, 64, True, 1, 8, 14336, 4096)
    found = explain(op, problem, by_name("sm90"), here=False)
    assert (found.chosen, found.odd_addresses) == ("skinny_gemm_persistent", "lanes")
    assert {record.kernel for record in found.records} == {"skinny_gemm_persistent"}
    assert "odd addresses" in explain_document(found).summary
    assert explain(op, problem, by_name("gfx1151"), here=False).odd_addresses == ""


@pytest.mark.parametrize("target", ["sm90", "gfx1151"])
def test_explain_needs_neither_torch_nor_triton(target: str) -> None:
    done = subprocess.run([sys.executable, "-c", EXPLAIN, target], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gemv", "grouped" if target == "gfx1151" else "tiles", "split_vector"]
