"""The marks of torch.compile, found in what the real one logs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from rocmend.core.verdict import Verdict
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Limits

PROGRAM = "import torch; print(torch.compile(lambda x: (x.sin() + x.cos()).sum(-1))(torch.randn(64, 64)).shape)"


@pytest.mark.cpu
@pytest.mark.slow
def test_torch_compile_goes_through_dynamo_aot_and_inductor(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if shutil.which("g++") is None:
        pytest.skip("inductor compiles with g++, which is not here")
    env: dict[str, str | None] = {
        "TORCH_LOGS": "+dynamo,+inductor,aot",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path),
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
    }
    limits = Limits(total_s=300, silence_s=120)
    result = run_attempt(
        AttemptSpec("compile", Command((sys.executable, "-c", PROGRAM)), env=env, phases="triton", limits=limits)
    )
    names = [span.name for span in result.timeline]
    assert result.verdict is Verdict.PASS
    assert names[:4] == ["start", "dynamo", "aot", "inductor"]
