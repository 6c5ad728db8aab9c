"""gather_qmm's kernels for very few rows as a whole: their PTX, executed on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton.experimental.gluon")

from tests.kernels.ptx.launched import called

from rocmend.kernels import allocate, backends, gather_qmm, gather_qmm_swiglu
from rocmend.kernels.common.formats import format_of
from rocmend.kernels.compiled.pool import Worker
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.ops.moe.gather_qmm import reference
from rocmend.kernels.ops.moe.gather_qmm.cases import matrices
from rocmend.kernels.suite import Maker
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced
from rocmend.kernels.tuning.record import triton_version

pytestmark = [pytest.mark.cpu, pytest.mark.slow]
H200 = by_name("sm90", compute_units=132)
FORMATS = (("affine", 4, 64), ("affine", 4, 128), ("affine", 8, 64), ("mxfp4", 4, 32))


def _compare(
    worker: Worker,
    form: tuple[str, int, int],
    shape: tuple[int, int],
    *,
    gated: bool = False,
    **record: Any,
) -> None:
    """Compare 2 rows of x, of 2 experts each of a shape, with the reference."""
    of = format_of("gather_qmm", *form)
    m = Maker(torch.device("cpu"), 7)
    x, chosen = m.normal(2, 1, 1, shape[1], dtype="bfloat16"), torch.tensor([[2, 0], [1, 2]], dtype=torch.int32)
    weights = [matrices(m, of, "bfloat16", (3, *shape)) for _ in range(2 if gated else 1)]
    named = {"rhs_indices": chosen, "group_size": of.group_size, "bits": of.bits, "mode": of.mode}
    config = Config({"SETS": 1, "num_warps": 4, "launch_pdl": True, **record})
    function, truth = (gather_qmm_swiglu, reference.gather_qmm_swiglu) if gated else (gather_qmm, reference.gather_qmm)
    given = weights if gated else weights[0]
    with forced("gather_qmm", "moe_gemv", config), allocate.poisoned():
        out, kernels = called(worker, H200, function, x, *given, **named)
    assert kernels == ["moe_gemv_kernel"]
    wide = [tuple(one.double() if one.is_floating_point() else one for one in part) for part in weights]
    wanted = truth(x.double(), *(wide if gated else wide[0]), **named)
    near = 2e-6 * float(wanted.abs().max())
    torch.testing.assert_close(out.double(), wanted, rtol=2.0**-8, atol=near)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    one = Worker(Toolchain(triton_version()), tmp_path_factory.mktemp("worker"))
    yield one
    one.close()


@pytest.fixture(autouse=True)
def any_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the kernel with the Triton at hand."""
    monkeypatch.setattr(backends, "MEASURED", True)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_it_gives_what_the_reference_gives(worker: Worker, form: tuple[str, int, int], gated: bool) -> None:
    _compare(worker, form, (32, 512), gated=gated, PARTS=1)


@pytest.mark.parametrize("form", FORMATS, ids=str)
@pytest.mark.parametrize(("shape", "cut"), [((48, 640), (1, 1)), ((32, 1152), (2, 2)), ((16, 128), (1, 4))])
def test_columns_that_do_not_come_out_even(
    worker: Worker, form: tuple[str, int, int], shape: tuple[int, int], cut: tuple[int, int]
) -> None:
    _compare(worker, form, shape, SETS=cut[0], PARTS=cut[1])


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(
    ("shape", "cut"),
    [
        ((48, 2880), (1, 3)),
        ((32, 2880), (2, 2)),
        ((16, 1216), (1, 3)),
        ((32, 832), (2, 2)),
        ((48, 576), (1, 1)),
        ((16, 64), (1, 1)),
    ],
)
def test_mxfp4_takes_halves_of_128_columns(
    worker: Worker, shape: tuple[int, int], cut: tuple[int, int], gated: bool
) -> None:
    _compare(worker, ("mxfp4", 4, 32), shape, gated=gated, SETS=cut[0], PARTS=cut[1])
