"""Which implementation is taken, and that it is said."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rocmend.core.errors import UsageError
from rocmend.kernels import caches, select
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.problems import given, parse
from rocmend.kernels.target import CPU, Target, by_name
from rocmend.kernels.tuning import user


class Problem(NamedTuple):
    dtype: str
    rows: int
    causal: bool = False
    scale: float = 1.0


def _no_small(problem: Problem, target: Target) -> str | None:
    return f"fewer than 16 rows on {target.name}" if problem.rows < 16 else None


def fast() -> str:
    return "fast"


def plain() -> str:
    return "plain"


OP = Op(
    name="example",
    summary="",
    functions={},
    reference="",
    problem=Problem,
    implementations=(
        Implementation("library", "vendor", f"{__name__}:fast", _no_small, note="measured"),
        Implementation("tiles", "triton", f"{__name__}:fast"),
        Implementation("torch", "reference", f"{__name__}:plain"),
    ),
    dtypes=("float32",),
    domain="",
    cost=lambda p: Cost(p.rows, p.rows),
    tolerance={"float32": Tolerance()},
    cases="",
    shape_class=lambda p: "large" if p.rows > 100 else "small",
)
GFX = by_name("gfx1151")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path))
    user.forget()
    yield
    user.forget()


def test_the_first_that_is_fit_is_taken() -> None:
    choice = select.select(OP, Problem("float32", 64), GFX)
    assert (choice.implementation, choice.reason, choice.rejected) == ("library", "measured", ())


def test_each_that_is_not_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmend.kernels.executor.triton_unavailable", lambda _target: "no triton")
    choice = select.select(OP, Problem("float32", 1), GFX)
    assert choice.tier == "reference"
    assert [one.reason for one in choice.rejected] == ["fewer than 16 rows on gfx1151", "no triton"]


def test_a_tier_or_a_name_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmend.kernels.executor.triton_unavailable", lambda _target: None)
    assert select.select(OP, Problem("float32", 64), GFX, "triton").implementation == "tiles"
    assert select.select(OP, Problem("float32", 64), GFX, "torch").tier == "reference"
    with pytest.raises(select.UnsupportedError, match="fewer than 16 rows"):
        select.select(OP, Problem("float32", 1), GFX, "vendor")


def test_a_name_holds_for_the_ops_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmend.kernels.executor.triton_unavailable", lambda _target: None)
    # An implementation of quantized_projections, which calls other ops.
    assert select.select(OP, Problem("float32", 64), GFX, "apart").implementation == "library"
    with pytest.raises(select.UnsupportedError, match="nowhere was requested"):
        select.select(OP, Problem("float32", 64), GFX, "nowhere")


def test_what_was_measured_to_be_fastest_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmend.kernels.executor.triton_unavailable", lambda _target: None)
    user.keep_choice("example", "small", "gfx1151", "tiles", times_us={})
    assert select.select(OP, Problem("float32", 64), GFX).reason == "measured to be the fastest on this machine"
    assert select.select(OP, Problem("float32", 640), GFX).implementation == "library"
    assert select.select(OP, Problem("float32", 64), by_name("gfx1100")).implementation == "library"
    assert select.select(OP, Problem("float32", 64), GFX, "vendor").implementation == "library"


def test_preferences_nest_and_end() -> None:
    assert select.preferred() == ()
    with select.prefer("vendor"):
        with select.prefer("reference"):
            assert select.preferred() == ("reference",)
        assert select.preferred() == ("vendor",)
    assert select.preferred() == ()


def test_a_gpu_that_falls_to_the_reference_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    choice = select.Choice("example", "torch", "reference", "", (select.Rejected("tiles", "triton", "because"),))
    select._told.discard(("example", "tiles: because"))
    with caplog.at_level(logging.WARNING, "rocmend.kernels"):
        select._tell(choice)
        select._tell(choice)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "because" in caplog.text


def test_choices_are_cached_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(caches, "MAX_ENTRIES", 3)
    device = torch.device("cpu")
    for rows in range(16, 30):
        assert select.implementation(OP, device, Problem("float32", rows)) is fast
        assert len(select._selected) <= 3
    with select.prefer("reference"):
        assert select.implementation(OP, device, Problem("float32", 16)) is plain
    assert select.implementation(OP, device, Problem("float32", 16)) is fast


def test_problems_of_a_command_line() -> None:
    assert parse(OP, ["dtype=float32", "rows=3", "causal=true", "scale=0.5"]) == Problem("float32", 3, True, 0.5)
    assert parse(OP, ["dtype=float32", "rows=3"]) == Problem("float32", 3)
    assert given(OP, ["rows=3"]) == {"rows": 3}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dtype=float32"], "lacks rows"),
        (["rows=many", "dtype=float32"], "rows must be an integer, got 'many'"),
        (["width=3"], "no field of example is called 'width'"),
        (["rows"], "is not FIELD=VALUE"),
        (["causal=perhaps"], "must be true or false, got 'perhaps'"),
    ],
)
def test_wrong_problems_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(OP, words)


def test_targets() -> None:
    assert GFX.lookup[0] == "gfx1151"
    assert GFX.lookup[-2:] == ("amd", "any")
    assert (GFX.wave_size, GFX.generation, by_name("gfx942").wave_size) == (32, 11, 64)
    assert by_name("sm_90").lookup == ("sm90", "sm9x", "nvidia", "any")
    assert (by_name("sm90").generation, by_name("gfx90a").generation, CPU.generation) == (90, 9, 0)
    assert by_name("gfx90a:sramecc+:xnack-").name == "gfx90a"
    assert by_name("gfx1151", compute_units=40) != GFX
    with pytest.raises(UsageError, match="no target"):
        by_name("gfx0")
