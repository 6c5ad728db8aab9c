"""Products that cuBLASLt computes in captured calls: what it is asked for, compared with torch."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.kernels.native_driver import driving
from tests.kernels.native_libraries import address, halves_at

from rocmend import kernels
from rocmend.kernels import captured, executor, native
from rocmend.kernels.common.formats import as_int32, format_of
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.native import cublas
from rocmend.kernels.ops.matmul.quantized_matmul import Problem, dequantized
from rocmend.kernels.plan_cache import cached

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(native.module() is None, reason="no C compiler here")]
POINTER, NUMBER, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
CALLS = 4
"""As it is written, recorded, and from the record twice."""


class _Layout(NamedTuple):
    kind: int
    rows: int
    columns: int
    step: int


class _Cublas:
    """Stands for cuBLASLt, and computes: of matrices column after column, as it is told where and how they lie."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}
        self.wishes: dict[int, int] = {}
        self.freed: list[int] = []
        self.workspace, self.count, self.calls = 0, 1, 0
        kind = ctypes.CFUNCTYPE(NUMBER, *[POINTER] * 14, SIZE, POINTER)
        self.cublasLtMatmul = kind(self._multiply)
        address(self.cublasLtMatmul)

    def _new(self, out: Any, what: Any) -> int:
        out._obj.value = 1000 + len(self.made)
        self.made[1000 + len(self.made)] = what
        return 0

    def cublasLtCreate(self, out: Any) -> int:  # noqa: N802  its name
        return self._new(out, "handle")

    def cublasLtMatmulDescCreate(self, out: Any, sums: int, scale: int) -> int:  # noqa: N802
        return self._new(out, {"sums": sums, "scale": scale})

    def cublasLtMatmulDescSetAttribute(self, where: Any, name: int, value: Any, size: Any) -> int:  # noqa: N802
        assert size.value == 4
        self.made[where.value][name] = value._obj.value
        return 0

    def cublasLtMatrixLayoutCreate(self, out: Any, kind: int, rows: Any, columns: Any, step: Any) -> int:  # noqa: N802
        return self._new(out, _Layout(kind, rows.value, columns.value, step.value))

    def cublasLtMatmulPreferenceCreate(self, out: Any) -> int:  # noqa: N802
        return self._new(out, "wishes")

    def cublasLtMatmulPreferenceSetAttribute(self, where: Any, name: int, value: Any, size: Any) -> int:  # noqa: N802
        assert self.made[where.value] == "wishes"
        assert size.value == (8 if name == 1 else 4)
        self.wishes[name] = value._obj.value
        return 0

    def cublasLtMatmulPreferenceDestroy(self, one: Any) -> int:  # noqa: N802
        self.freed.append(one.value)
        return 0

    cublasLtMatmulDescDestroy = cublasLtMatrixLayoutDestroy = cublasLtMatmulPreferenceDestroy  # noqa: N815

    def cublasLtMatmulAlgoGetHeuristic(self, *args: Any) -> int:  # noqa: N802
        result, count = args[-2:]
        result[:64], result[64:72] = bytes(range(64)), self.workspace.to_bytes(8, "little")
        count._obj.value = self.count
        return 0

    def _multiply(self, *args: Any) -> int:
        (_, product, _, first, by_first, second, by_second, _, _, _, out, by_out, algorithm, room, size, _) = args
        assert ctypes.string_at(algorithm, 64) == bytes(range(64))
        assert (size, room is None) == (self.workspace, not self.workspace)
        told = self.made[product]
        assert (told["sums"], told["scale"]) == (68, 0)
        left, right, result = (
            self._matrix(place, self.made[layout])
            for place, layout in ((first, by_first), (second, by_second), (out, by_out))
        )
        result.copy_((left.t() if told[3] else left).double() @ right.double())
        self.calls += 1
        return 0

    @staticmethod
    def _matrix(place: int, layout: _Layout) -> Any:
        dtype = {2: torch.float16, 14: torch.bfloat16}[layout.kind]
        flat = halves_at(place, layout.step * layout.columns, dtype)
        return flat.as_strided((layout.rows, layout.columns), (1, layout.step))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Cublas]:
    made = _Cublas()
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: made)
    monkeypatch.setattr(captured, "capturing_device", lambda: None if executor.switch.active is None else 0)
    for one in (cublas.plan, cublas._libraries):
        one.cache_clear()
    for _ in driving(monkeypatch):
        yield made
    for one in (cublas.plan, cublas._libraries):
        one.cache_clear()


class _Product:
    """A product that is made again and again."""

    def __init__(self, *, transpose: bool = True, dtype: Any = torch.float16, columns: int = 32) -> None:
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(2, 20, 64, generator=generator).to(dtype)
        shape = (columns, 64) if transpose else (64, columns)
        self.weights = kernels.quantize(torch.randn(shape, generator=generator).to(dtype), 32, 4)
        values = kernels.dequantize(*self.weights, 32, 4).double()
        self.wanted = self.x.double() @ (values.T if transpose else values)
        form = format_of("quantized_matmul", "affine", 4, 32)
        problem = Problem(NAMES[dtype], *form, transpose, 1, 40, columns, 64)

        @cached
        def compute(x: Any, w: Any, scales: Any, biases: Any) -> Any:
            return dequantized.run(x, as_int32(w), scales, biases, form, problem)

        self._compute = compute

    def held(self) -> None:
        """Compute it until it is replayed, compared with float64."""
        for _ in range(CALLS):
            out = self._compute((self.x, *self.weights))
            assert out.is_contiguous()
            torch.testing.assert_close(out.double(), self.wanted, rtol=1e-2, atol=2e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("workspace", [0, 4096])
def test_a_recorded_product_is_torchs(dtype: Any, transpose: bool, workspace: int, library: _Cublas) -> None:
    library.workspace = workspace
    _Product(dtype=dtype, transpose=transpose).held()
    assert library.calls == CALLS - 1
    assert library.wishes == {1: cublas.MOST_WORKSPACE_BYTES, 3: 2, 5: 16, 6: 16, 7: 16, 8: 16}


@pytest.mark.parametrize("change", [{"count": 0}, {"workspace": 1 << 40}, {"cublasLtCreate": lambda _: 1}])
def test_without_an_algorithm_torch_multiplies(change: dict[str, Any], library: _Cublas) -> None:
    vars(library).update(change)
    _Product().held()
    assert library.calls == 0


@pytest.mark.filterwarnings("ignore:invalid value")  # of what is masked, in the interpreter
@pytest.mark.parametrize("options", [{"dtype": torch.float32}, {"columns": 36}])
def test_other_products_are_torchs(options: dict[str, Any], library: _Cublas) -> None:
    _Product(**options).held()
    assert not library.made


def test_without_the_library_torch_multiplies(library: _Cublas, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_name: str) -> Any:
        raise OSError("no such file")

    monkeypatch.setattr(ctypes, "CDLL", none)
    _Product().held()
    assert not library.made


def test_what_a_plan_is_made_of_is_freed_with_it(library: _Cublas) -> None:
    found = cublas.plan(0, torch.float16, 8, 8, 8, transpose=True)
    before = list(library.freed)
    assert [library.made[one] for one in before] == ["wishes"]
    cublas.plan.cache_clear()
    del found
    assert len(library.freed) == len(before) + 4
