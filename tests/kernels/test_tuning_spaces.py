"""Search spaces and where records come from: what ``tuning.toml`` of every op must declare."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest

pytest.importorskip("triton")

from rocmend.core.errors import UnitError
from rocmend.kernels import executor, registry, select
from rocmend.kernels.compiled.record import META, compiled_cases
from rocmend.kernels.executor import Launch, Recorder
from rocmend.kernels.op import Op, resolve
from rocmend.kernels.suite.case import Case, Maker
from rocmend.kernels.target import Target, by_name
from rocmend.kernels.tuning import Asked, Config, forced, observed, records
from rocmend.kernels.tuning.config import AMD_OPTIONS, COMMON_OPTIONS, NVIDIA_OPTIONS
from rocmend.kernels.tuning.expression import ExpressionError, evaluate
from rocmend.kernels.tuning.lookup import provenance_problem
from rocmend.kernels.tuning.space import (
    Space,
    candidates,
    option_candidates,
    space_for,
    spaces,
    unfit,
)

RDNA, CDNA = by_name("gfx1151", compute_units=40), by_name("gfx942", compute_units=304)
OPS = [op.name for op in registry.ops()]
MOST = 256
"""Candidates of a kernel: more would not be tried by anybody."""


def _launches(op: Op, case: Case, target: Target) -> tuple[list[Asked], list[Launch]]:
    function = resolve(op.functions[case.function] if case.function else next(iter(op.functions.values())))
    call = case.make(Maker(META, 0))
    recorder = Recorder(target)
    with observed() as asked, executor.using(recorder), select.prefer("triton"):
        function(*call.args, **call.kwargs)
    return asked, recorder.launches


@functools.cache
def _looked_up(name: str, target: Target) -> dict[tuple[str, str, str], tuple[Case, Asked]]:
    """Return each record that launches of an op's cases go by, with the first such case."""
    op = registry.get(name)
    found: dict[tuple[str, str, str], tuple[Case, Asked]] = {}
    for case in compiled_cases(op):
        try:
            asked, launches = _launches(op, case, target)
        except select.UnsupportedError:
            continue
        used = {id(launch.config) for launch in launches}
        for one in asked:
            if id(one.config) in used:
                found.setdefault((one.op, one.kernel, one.shape_class), (case, one))
    return found


@pytest.mark.parametrize("target", [RDNA, CDNA], ids=lambda one: one.name)
@pytest.mark.parametrize("name", OPS)
def test_every_kernel_has_a_space_and_takes_every_candidate(name: str, target: Target) -> None:
    """Host code runs with each candidate, and each constant of it is one that a kernel has."""
    op, done = registry.get(name), []
    for (owner, kernel, kind), (case, asked) in _looked_up(name, target).items():
        space = space_for(owner, kernel, kind, target)
        assert space is not None, f"{owner}/tuning.toml declares no [[space]] for the kernel {kernel}"
        if space in done:
            continue
        done.append(space)
        current = asked.config.items()
        tried = candidates(space, current, target, "3.9.0").configs
        assert tried[0] == current
        assert 2 <= len(tried) + len(option_candidates(space, current, target, "3.9.0").configs) - 1 <= MOST
        mine = {parameter for one in records(owner) if one.kernel == kernel for parameter in one.config.items()}
        for config in tried[1:]:
            forced_config = Config(config)
            with forced(owner, kernel, forced_config):
                _, launches = _launches(op, case, target)
            taken = {
                parameter
                for one in launches
                if one.config is forced_config
                for parameter in inspect.signature(one.kernel.fn).parameters
            }
            unknown = [
                each for each in config if each not in mine | taken | AMD_OPTIONS | NVIDIA_OPTIONS | COMMON_OPTIONS
            ]
            assert not unknown, f"{owner} {kernel}: neither the kernel nor a record knows {unknown}"
            lost = [each for each in forced_config.constants if taken and each not in taken]
            assert not lost, f"{owner} {kernel}: the kernel has no parameter {lost}"


@pytest.mark.parametrize("name", OPS)
def test_a_space_belongs_to_a_kernel_that_has_records(name: str) -> None:
    known = {one.kernel for one in records(name)}
    assert {one.kernel for one in spaces(name)} <= known


@pytest.mark.parametrize("name", OPS)
def test_every_record_for_amd_says_where_it_comes_from(name: str) -> None:
    assert [problem for one in records(name) if (problem := provenance_problem(name, one))] == []


def _names(found: Any) -> set[str]:
    return {name for config in found.configs for name in config}


def test_settings_are_those_of_the_target_and_of_the_triton() -> None:
    space = Space("k", "*", "any", {}, "matrix")
    current = {"BLOCK_M": 64, "num_warps": 4}
    new, old = (option_candidates(space, current, RDNA, version) for version in ("3.9.0", "3.6.0"))
    assert {"waves_per_eu", "wgp_cu_mode", "llvm_fn_attrs"} <= _names(new)
    assert not {"kpack", "matrix_instr_nonkdim", "schedule_hint"} & _names(new)
    assert "needs <3.8" in new.dropped["schedule_hint=attention"]
    assert "schedule_hint" in _names(old)
    assert not {"wgp_cu_mode", "llvm_fn_attrs"} & _names(old)
    cdna = option_candidates(space, current, CDNA, "3.9.0")
    assert {"kpack", "matrix_instr_nonkdim"} <= _names(cdna)
    assert option_candidates(space, current, by_name("sm90"), "3.9.0").configs == (current,)
    assert "kpack=2" in option_candidates(space, current, by_name("gfx950"), "3.9.0").dropped


def test_no_candidate_leaves_all_settings_at_their_defaults_twice() -> None:
    found = option_candidates(Space("k", "*", "any", {}, "matrix"), {"num_warps": 4}, RDNA, "3.9.0").configs
    assert {"num_warps": 4, "waves_per_eu": 0, "wgp_cu_mode": "wgp", "llvm_fn_attrs": ""} not in found
    assert len(found) == 4 * 2 * 2


def test_what_cannot_run_is_dropped_with_its_reason() -> None:
    params: dict[str, Any] = {"BLOCK": (48, 64, 512), "num_warps": (4, 32)}
    space = Space("k", "*", "any", params, need=(("BLOCK < 512", "it is too much"),), lds="BLOCK * 512")
    wave32 = candidates(space, {"BLOCK": 64, "num_warps": 4}, RDNA, "3.9.0")
    assert [config["BLOCK"] for config in wave32.configs] == [64, 64]
    assert "power of two" in wave32.dropped["BLOCK=48 num_warps=4"]
    assert "it is too much" in wave32.dropped["BLOCK=512 num_warps=4"]
    assert "2048" not in unfit(space, {"BLOCK": 64, "num_warps": 16}, CDNA)
    assert "1024 threads" in unfit(space, {"BLOCK": 64, "num_warps": 32}, CDNA)
    assert "LDS" in unfit(space._replace(lds="BLOCK * 2048"), {"BLOCK": 64, "num_warps": 4}, RDNA)
    with pytest.raises(UnitError, match="HEIGHT has no value"):
        unfit(space._replace(lds="HEIGHT"), {"BLOCK": 64}, RDNA)


@pytest.mark.parametrize(
    ("text", "value"),
    [("BLOCK * 2 + 1", 129), ("ceil(K / BLOCK)", 3), ("not BLOCK > K and K == 130", True), ("min(K, 7) % 4", 3)],
)
def test_expressions(text: str, value: object) -> None:
    assert evaluate(text, {"BLOCK": 64, "K": 130}) == value


@pytest.mark.parametrize(
    "text", ["__import__('os')", "BLOCK.real", "[1]", "'a' * 9", "1 /", "2 ** 99", "1 / 0", "(lambda: 1)()"]
)
def test_expressions_hold_nothing_but_arithmetic(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {"BLOCK": 64})
