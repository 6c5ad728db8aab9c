from __future__ import annotations

import subprocess
import sys

import pytest

from rocmend.core.errors import UsageError
from rocmend.probe.docs import probe_rows
from rocmend.probe.registry import SILENCE_S, probes, problems, select

WANTED = {
    "activations", "allocation", "attention", "autocast", "compile", "convolution", "copies", "distributed",
    "elementwise",
    "embedding", "fft", "graphs", "indexing", "linalg", "matmul", "networks", "normalization", "pooling", "random",
    "recurrent", "reductions", "sorting", "training", "triton",
}  # fmt: skip


def test_the_catalogue_loads_whole_and_covers_every_family() -> None:
    assert problems() == []
    assert {probe.family for probe in probes()} >= WANTED
    assert len(probes()) >= 60


def test_listing_needs_no_torch() -> None:
    code = "import sys; from rocmend.probe.docs import probe_rows; probe_rows(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_childs_side_needs_nothing_but_the_standard_library_and_torch() -> None:
    code = "import sys; import rocmend.probe.child, rocmend.runner.child; sys.exit('msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("probe", probes(), ids=lambda probe: str(probe.id))
def test_a_probe_is_described_well(probe: object) -> None:
    from rocmend.probe.registry import Probe

    assert isinstance(probe, Probe)
    assert probe.id == probe.id.lower()
    assert " " not in probe.id
    assert probe.dtypes
    assert probe.title
    assert not probe.title.endswith(".")
    assert probe.allowance in SILENCE_S
    assert set(probe.needs) <= {"cuda", "two-devices", "triton", "compile"}
    phases = {"import", "context", "setup", "compile", "first-run", "steady", "compare", "tidying"}
    assert set(probe.silence_s()) == phases


def test_slow_first_runs_are_those_that_the_supervisor_knows() -> None:
    import tomllib

    from rocmend.runner.phases import SLOW_FILE

    assert {probe.slow for probe in probes() if probe.slow} <= set(tomllib.loads(SLOW_FILE.read_text()))


def test_rows_are_the_catalogue() -> None:
    rows = probe_rows()
    assert [row.id for row in rows] == [probe.id for probe in probes()]
    assert rows[0].tolerance


def test_the_smoke_selection_is_small_and_in_one_dtype_each() -> None:
    chosen = select(["smoke"])
    assert 5 <= len(chosen) <= 20
    assert all(dtype == probe.dtypes[0] for probe, dtype in chosen)


@pytest.mark.parametrize(
    ("pattern", "dtypes", "wanted"),
    [
        (
            "conv2d-forward",
            [],
            {("conv2d-forward", "float32"), ("conv2d-forward", "float16"), ("conv2d-forward", "bfloat16")},
        ),
        ("conv2d-forward", ["bf16"], {("conv2d-forward", "bfloat16")}),
        ("conv2d-forward:half", [], {("conv2d-forward", "float16")}),
        ("conv3d-*", ["float16"], {("conv3d-forward", "float16")}),
    ],
)
def test_selecting(pattern: str, dtypes: list[str], wanted: set[tuple[str, str]]) -> None:
    assert {(probe.id, dtype) for probe, dtype in select([pattern], dtypes)} == wanted


def test_families_and_tags_are_selections_too() -> None:
    assert {probe.family for probe, _ in select(["attention"])} >= {"attention"}
    assert {probe.family for probe, _ in select(["resnet"])} == {"networks", "normalization"}


@pytest.mark.parametrize(
    ("patterns", "dtypes"), [(["no-such"], []), ([], ["float7"]), (["one-hot"], ["float32"]), (["add:int8"], [])]
)
def test_a_selection_that_fits_nothing_is_an_error(patterns: list[str], dtypes: list[str]) -> None:
    with pytest.raises(UsageError):
        select(patterns, dtypes)
