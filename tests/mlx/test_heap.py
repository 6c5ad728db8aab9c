"""The C library's heap gives back what freed tensors leave in it."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rocmend.mlx import core as mlx_core
from rocmend.mlx.execute import heap, settings

mx: Any = mlx_core
pytestmark = pytest.mark.cpu


def _resident() -> int:
    found = re.search(r"^RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    assert found is not None
    return int(found[1]) << 10


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's heap can be trimmed")
def test_pages_behind_freed_tensors_are_given_back() -> None:
    heap.trim()
    before = _resident()
    blocks = [torch.ones(20_000) for _ in range(1000)]  # 80 kB each: from the heap, not mapped one by one
    held = blocks[::10]  # what keeps the heap's end from going back
    assert _resident() - before > 7e7
    del blocks
    heap.trim()
    assert _resident() - before < 3e7
    assert sum(float(block[0]) for block in held) == 100


@pytest.mark.parametrize("executor", ["interpreter", "plan"])
def test_the_heap_is_trimmed_once_enough_was_computed(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(heap, "_trimming", lambda: trimmed.append)
    monkeypatch.setattr(heap, "OFTEN", 1 << 20)
    monkeypatch.setattr(heap, "_since", [0])
    with settings.use(executor):
        mx.eval(mx.sin(mx.ones((100,)) * 3))
        assert not trimmed
        x = mx.ones((512, 512))
        for k in range(8):
            x = mx.sin(x) + k
        mx.eval(x, *mx.quantize(x))
    assert len(trimmed) > 4


def test_values_of_operations_with_several_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_since", [0])
    heap.passed([torch.ones(10), (torch.ones(5), (torch.ones(2, device="meta"), torch.ones(1)))])
    assert heap._since == [64]
