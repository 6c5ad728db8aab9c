"""Loading the operations: a name has one definition."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize(("name", "first"), [("exp", "rocmend.mlx.ops.exponential"), ("getitem", "the registry")])
def test_a_name_that_two_modules_define_is_an_error(tmp_path: Path, name: str, first: str) -> None:
    (tmp_path / "zz_twice.py").write_text(f"__all__ = [{name!r}]\n{name} = abs\n", encoding="utf-8")
    code = f"from rocmend.mlx import ops; ops.__path__.append({str(tmp_path)!r}); import rocmend.mlx.core"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"ImportError: mlx function {name} is defined in {first} and in rocmend.mlx.ops.zz_twice."
