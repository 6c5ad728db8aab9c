"""MLX beside ours, by itself: what is asked of it, and what its child process does."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from benchmarks.kernels import bench as benching
from benchmarks.kernels import isolated, mlx_child, twins
from benchmarks.kernels.bench import Bench

from rocmend.kernels.suite import Call

pytestmark = pytest.mark.cpu

SAID = {"us": 7.0, "low_us": 6.0, "high_us": 8.0, "samples": 3, "method": "eval", "version": "0", "device": "gpu"}


def _bench(**settings: Any) -> Bench:
    given: dict[str, Any] = {"op": "rms_norm", "make": lambda _: Call(()), "dtype": "float32", "bytes": 2304.0}
    return Bench(**{**given, **settings})


def test_twins_are_called_once_by_many_and_timed_by_one_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def benches(_topic: str, *, tiny: bool = False) -> Iterator[Bench]:
        del tiny
        yield from (_bench(name=f"later-{at}", rank=2, mlx=("m:f", {"at": at})) for at in range(3))
        yield _bench(name="none")
        yield from (_bench(name=f"first-{at}", mlx=("m:f", {"at": at})) for at in range(12))

    asked: dict[str, list[tuple[str, ...]]] = {"--once": [], "timed": []}

    def mlx_told(some: Any, _site: str, plan: Any, _limit: float, options: Any) -> dict[str, Any]:
        assert plan.env["MLX_PTX_CACHE_DIR"] == str(tmp_path / "cache")
        assert plan.env["CUDA_VISIBLE_DEVICES"] in {"2", "3"}
        asked["--once" if "--once" in options else "timed"].append(tuple(one["key"] for one in some))
        return {one["key"]: SAID for one in some}

    monkeypatch.setattr(benching, "benches", benches)
    monkeypatch.setattr(isolated, "mlx_told", mlx_told)
    out = tmp_path / "twins.json"
    given = ["--site", "folder", "--topics", "norms", "--gpus", "2,3", "--jobs", "4", "--out", str(out)]
    assert twins.main([*given, "--cache", str(tmp_path / "cache")]) == 0
    keys = {f"rms_norm/{kind}-{at}" for kind, count in (("first", 12), ("later", 3)) for at in range(count)}
    for times in asked.values():
        assert sorted(key for part in times for key in part) == sorted(keys)
    assert len(asked["--once"]) == 4
    assert {key.split("-")[0] for key in asked["timed"][0] if len(asked["timed"][0]) == 12} <= {"rms_norm/first"}
    assert set(json.loads(out.read_text())["found"]) == keys


def test_mlx_s_child_calls_once_or_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made: list[int] = []

    def thunks(sets: int) -> list[Any]:
        made.append(sets)
        return [lambda: "value"] * sets

    mlx, core, twin = (types.ModuleType(name) for name in ("mlx", "mlx.core", "a_twin"))
    core.eval, core.synchronize, core.clear_cache = (lambda *_: None), (lambda: None), (lambda: None)  # type: ignore[attr-defined]
    core.default_device, mlx.core, twin.thunks = (lambda: "gpu"), core, thunks  # type: ignore[attr-defined]
    for module in (mlx, core, twin):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    path = tmp_path / "requests.json"
    wanted = [{"key": "a", "target": "a_twin:thunks", "arguments": {}, "sets": 3}]
    path.write_text(json.dumps([*wanted, {"key": "b", "target": "a_twin:none", "arguments": {}, "sets": 3}]))
    for options in (["--once"], ["--each", "60"]):
        mlx_child.main([str(path), *options])
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    found = [one["found"] for one in told if "found" in one]
    assert made == [1, 3]
    assert found[0]["called"]
    assert found[2]["us"] >= 0
    assert [("error" in one) for one in found] == [False, True, False, True]
    assert told[-1] == {"end": True}
