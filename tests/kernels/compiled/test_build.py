"""Real compilations, each in a worker: what is measured and what is found wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from packaging.specifiers import SpecifierSet

pytest.importorskip("triton")

from tests.kernels.compiled.specs import HERE, dot, sample

from rocmend.kernels import target as targets
from rocmend.kernels.compiled.build import Compiled
from rocmend.kernels.compiled.checks import judge
from rocmend.kernels.compiled.measure import Measured
from rocmend.kernels.compiled.occupancy import occupancy, register_occupancy
from rocmend.kernels.compiled.pool import Worker, WorkerEndedError
from rocmend.kernels.compiled.spec import Spec
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.compiled.toolchains import serves
from rocmend.kernels.tuning.record import triton_version

pytestmark = [pytest.mark.cpu, pytest.mark.slow]

TRITON = triton_version()
MATRIX_TARGETS = {"gfx1100": "v_wmma", "gfx1151": "v_wmma", "gfx1201": "v_wmma", "gfx90a": "v_mfma", "gfx942": "v_mfma"}
Compile = Callable[[Spec], Measured]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    one = Worker(Toolchain(TRITON), tmp_path_factory.mktemp("worker"), [HERE])
    yield one
    one.close()


@pytest.fixture
def measured(worker: Worker) -> Compile:
    def compile_spec(spec: Spec) -> Measured:
        rule = serves(spec.target)
        if not SpecifierSet(rule.versions).contains(TRITON, prereleases=True):
            pytest.skip(f"Triton {TRITON} does not compile for {spec.target}: {rule.why}")
        answer = worker.ask({"do": "compile", "spec": spec}, 120)
        assert "ok" in answer, answer
        return msgspec.convert(answer["ok"], Measured)

    return compile_spec


def _checks(measured: Measured, target: str) -> set[str]:
    return {finding.check for finding in judge(measured, targets.by_name(target))}


@pytest.mark.parametrize(("target", "instruction"), MATRIX_TARGETS.items())
def test_a_product_has_matrix_instructions(measured: Compile, target: str, instruction: str) -> None:
    found = measured(dot(target, TRITON))
    assert found.asked == {"f16": 1}
    assert found.matrix
    assert all(name.startswith(instruction) for name in found.matrix)
    assert found.load_bits == 128
    assert found.lds_bytes > 0
    assert found.code_bytes > 0
    assert _checks(found, target) == set()


def test_occupancy_is_llvms(measured: Compile) -> None:
    for target in ("gfx1100", "gfx906", "gfx942"):
        for size, warps in ((32, 1), (64, 2), (64, 8), (128, 4)):
            found = measured(dot(target, TRITON, size=size, warps=warps))
            wave_size = targets.by_name(target).wave_size
            own = register_occupancy(target, wave_size=wave_size, vgprs=found.vgprs, sgprs=found.sgprs)
            assert own == found.llvm_occupancy
            assert found.occupancy == occupancy(target, own, waves=warps, lds_bytes=found.lds_bytes) <= own


def test_spills_and_scratch_are_found(measured: Compile) -> None:
    found = measured(dot("gfx1100", TRITON, kind="fp32", warps=1))
    assert found.vgpr_spills > 0
    assert found.scratch_bytes > 0
    assert {"spill", "scratch"} <= _checks(found, "gfx1100")


def test_reduced_precision_of_fp32_is_found(measured: Compile) -> None:
    reduced = measured(dot("gfx942", TRITON, kind="fp32", precision="tf32"))
    assert any("xf32" in name for name in reduced.matrix)
    assert "xf32" in _checks(reduced, "gfx942")
    full = measured(dot("gfx942", TRITON, kind="fp32"))
    assert full.matrix
    assert _checks(full, "gfx942") == set()


def test_a_target_without_a_matrix_unit_lacks_nothing(measured: Compile) -> None:
    found = measured(dot("gfx906", TRITON, size=32))
    assert found.matrix == {}
    assert found.dots
    assert "no-matrix" not in _checks(found, "gfx906")


def test_gluon_is_compiled_as_such(measured: Compile) -> None:
    # Triton's own code generator does not know how many wavefronts a reduction's tensor is shared by.
    found = measured(sample("sample_gluon:sum_kernel", "sm90", {"source": "*fp32", "out": "*fp32"}, TRITON, BLOCK=256))
    assert 0 < found.vgprs <= 255
    assert _checks(found, "sm90") == set()


def test_nvidia_is_measured_too(measured: Compile) -> None:
    found = measured(dot("sm90", TRITON))
    assert found.matrix
    assert 0 < found.vgprs <= 255
    assert found.vgpr_spills == found.scratch_bytes == 0
    assert _checks(found, "sm90") == set()


def test_the_code_is_the_same_every_time(tmp_path: Path) -> None:
    made = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        worker = Worker(Toolchain(TRITON), folder, [HERE])
        answer = worker.ask({"do": "compile", "spec": dot("gfx1100", TRITON), "whole": True}, 120)
        worker.close()
        made.append(msgspec.convert(answer["ok"], Compiled, strict=False))
    assert made[0].code == made[1].code


def test_the_layout_of_the_arguments_is_told(worker: Worker) -> None:
    spec = sample(
        "copy_kernel",
        "gfx1151",
        {"source": "*fp16", "out": "*fp16", "n": "i32", "scale": "fp32"},
        TRITON,
        nothing=None,
        BLOCK=1024,
    )
    compiled = msgspec.convert(worker.ask({"do": "compile", "spec": spec, "whole": True}, 120)["ok"], Compiled)
    assert [(one.offset, one.size, one.kind) for one in compiled.arguments[:4]] == [
        (0, 8, "global_buffer"),
        (8, 8, "global_buffer"),
        (16, 4, "by_value"),
        (20, 4, "by_value"),
    ]
    assert compiled.kernarg_bytes >= 24
    assert compiled.code.startswith(b"\x7fELF")


def test_a_kernel_that_cannot_be_compiled_says_why(worker: Worker) -> None:
    answer = worker.ask(
        {"do": "compile", "spec": sample("wrong_kernel", "gfx1100", {"out": "*i32"}, TRITON, BLOCK=4)}, 60
    )
    assert "this kernel cannot be compiled" in answer["error"]


def test_a_worker_that_dies_is_told_apart_from_one_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "abort_kernels.py").write_text(
        "import os, time, sys\n"
        "def __getattr__(name):\n"
        "    if name == 'hang':\n        time.sleep(60)\n"
        "    if name == 'die':\n        print('LLVM ERROR: Cannot select: x', file=sys.stderr, flush=True)\n"
        "        os.abort()\n"
        "    raise AttributeError(name)\n"
    )
    spec: dict[str, Any] = msgspec.to_builtins(dot("gfx1100", TRITON))
    worker = Worker(Toolchain(TRITON), tmp_path, [tmp_path])
    with pytest.raises(WorkerEndedError, match=r"SIGABRT.*Cannot select") as died:
        worker.ask({"do": "compile", "spec": spec | {"kernel": "abort_kernels:die"}}, 60)
    assert not died.value.timed_out
    worker = Worker(Toolchain(TRITON), tmp_path, [tmp_path])
    with pytest.raises(WorkerEndedError, match="no end after 5 s") as hung:
        worker.ask({"do": "compile", "spec": spec | {"kernel": "abort_kernels:hang"}}, 5)
    assert hung.value.timed_out
