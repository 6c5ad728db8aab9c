"""The model on real kernels: compiled in workers, estimated for GPUs that are not here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core.errors import UsageError
from rocmend.kernels.compiled.pool import Worker
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.model.estimate import Estimate
from rocmend.kernels.model.hardware import hardware, hardware_name
from rocmend.kernels.model.rank import Ranked
from rocmend.kernels.tuning.propose import better, spread
from rocmend.kernels.tuning.record import triton_version

slow = [pytest.mark.cpu, pytest.mark.slow]
Estimates = Callable[..., list[Estimate]]


@pytest.fixture(scope="module")
def estimates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estimates]:
    worker = Worker(Toolchain(triton_version()), tmp_path_factory.mktemp("worker"))

    def ask(op: str, kernel: str, case: str, config: dict[str, Any], target: str = "gfx1151") -> list[Estimate]:
        request = {"do": "estimate", "op": op, "kernel": kernel, "class": "*", "cases": [case], "config": config}
        answer = worker.ask({**request, "target": target, "product": None}, 120)
        assert "ok" in answer, answer
        return [msgspec.convert(one, Estimate) for one in answer["ok"]]

    yield ask
    worker.close()


DECODE = {"BLOCK_N": 32, "num_warps": 4, "num_stages": 1, "programs_per_unit": 4, "least_blocks": 2, "most_rows": 16}
STREAM = {"fill": 16, "num_warps": 1, "num_stages": 1}


class TestCompiled:
    pytestmark = slow

    @pytest.mark.parametrize("target", ["gfx1151", "gfx1201", "gfx942"])
    def test_a_product_with_few_rows_is_bound_by_memory_and_not_below_the_floor(
        self, estimates: Estimates, target: str
    ) -> None:
        found = estimates("quantized_matmul", "stream", "bfloat16-b4g64-1x4096-4096", STREAM, target)
        main = max(found, key=lambda one: one.bytes)
        floor_us = main.bytes / hardware(target).bandwidth_gb_s / 1e3
        assert 4096 * 4096 // 2 < main.bytes < 1.2 * 4096 * 4096 * 4.5 / 8
        assert main.time_us > floor_us
        assert main.guessed == 0
        if target != "gfx942":
            assert main.bound == "memory"

    def test_decode_reads_the_cache_once(self, estimates: Estimates) -> None:
        found = estimates("attention_decode", "split", "bfloat16-32k-d128", DECODE)
        main = max(found, key=lambda one: one.bytes)
        assert main.bytes == pytest.approx(2 * 8 * 32768 * 128 * 2, rel=0.01)
        assert main.bound == "memory"

    def test_a_larger_gpu_has_less_to_do_for_each_unit(self, estimates: Estimates) -> None:
        case, config = "float32-1x300x32x64-state", {"BLOCK_V": 8, "num_warps": 1}
        (small,) = estimates("wkv7", "recurrent", case, config)
        (large,) = estimates("wkv7", "recurrent", case, config, "gfx1100")
        assert large.units_us["vector"] < small.units_us["vector"]
        assert large.units_us["memory"] < small.units_us["memory"]

    def test_twice_the_bytes_take_twice_the_memory_time(self, estimates: Estimates) -> None:
        config = {"tile": 2048, "num_warps": 4}
        (half,), (whole,) = (
            estimates("softmax", "held", f"{dtype}-8192x4096-axis--1", config) for dtype in ("bfloat16", "float32")
        )
        assert whole.bytes == 2 * half.bytes
        assert whole.units_us["memory"] == pytest.approx(2 * half.units_us["memory"])
        assert whole.time_us > half.time_us

    def test_spills_are_seen(self, estimates: Estimates) -> None:
        found = estimates(
            "softmax", "held", "float32-3x4096-axis--1", {"tile": 4096, "num_warps": 1, "waves_per_eu": 16}
        )
        assert found[0].spills > 0


def _estimate(**values: Any) -> Estimate:
    units = {"memory": values.get("time_us", 1.0)}
    about = {"kernel": "k", "time_us": 1.0, "bound": "memory", "bytes": 1.0, "workgroups": 1, "occupancy": 1}
    return Estimate(**{**about, "units_us": units, "spills": 0, "guessed": 0, **values})


def _ranked(name: int, time_us: float, *, spills: int = 0, error: str = "") -> Ranked:
    launches = () if error else (_estimate(time_us=time_us, spills=spills),)
    return Ranked({"BLOCK": name}, time_us, "memory", spills, error, launches)


def test_a_candidate_with_spills_is_never_the_best() -> None:
    some = [_ranked(1, 1.0, spills=3), _ranked(2, 9.0), _ranked(3, 0.0, error="no end"), _ranked(4, 5.0)]
    assert [one.config["BLOCK"] for one in sorted(some, key=lambda one: one.order)] == [4, 2, 1, 3]


def test_only_a_clear_gain_is_proposed() -> None:
    assert not better(_ranked(1, 9.6), _ranked(2, 10.0))
    assert better(_ranked(1, 9.0), _ranked(2, 10.0))
    assert better(_ranked(1, 50.0), _ranked(2, 10.0, spills=9))
    assert better(_ranked(1, 50.0), _ranked(2, 0.0, error="no end"))
    assert not better(_ranked(1, 1.0, spills=9), _ranked(2, 10.0))
    assert not better(_ranked(1, 0.0, error="crash"), _ranked(2, 10.0, spills=9))


def test_candidates_are_tried_in_an_order_that_favours_none() -> None:
    configs: list[dict[str, Any]] = [{"BLOCK": size, "num_warps": warps} for size in (1, 2, 4) for warps in (1, 2, 4)]
    tried = spread(configs)
    assert tried[0] == configs[0]
    assert tried != configs
    assert sorted(map(str, tried)) == sorted(map(str, configs))


def test_the_product_is_the_one_named_or_the_widest_known() -> None:
    assert hardware("gfx1100").product == "Radeon RX 7900 XTX"
    assert hardware("gfx1100", "7900 XT").bandwidth_gb_s > 0
    assert hardware_name("gfx1100", "AMD Radeon RX 7900 XT") == "Radeon RX 7900 XT"
    assert hardware_name("gfx1100", "AMD Radeon Graphics") is None
    with pytest.raises(UsageError, match="no product of gfx1103"):
        hardware("gfx1103")
