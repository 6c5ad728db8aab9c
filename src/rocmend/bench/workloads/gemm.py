"""Matrix products of ``[m, k]`` and ``[k, n]``, one or a batch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from rocmend.bench.workload import Workload
from rocmend.bench.workloads.guarded import Guarded
from rocmend.bench.workloads.product_check import Checked, Precision, check
from rocmend.runner.torch_device import UnsupportedError, gfx_target, synchronize

if TYPE_CHECKING:
    import torch

COLD = 512 << 20
"""Bytes of operands and results from which on no cache of a GPU serves them."""
_COLD_CPU = 64 << 20
_MOST_SETS = 64
_MOST_SETS_CPU = 8
_PRECISIONS = {
    "float64": Precision(2.0**-52),
    "float32": Precision(2.0**-23),
    "tf32": Precision(2.0**-23, 2.0**-10),
    "float16": Precision(2.0**-10),
    "bfloat16": Precision(2.0**-7),
    "float8": Precision(2.0**-7),  # the result is bfloat16
    "int8": Precision(0.0, exact=True),
}
_BLAS = {"hipblas": "cublas", "hipblaslt": "cublaslt"}
"""The names that all releases of torch know."""
_FP8_TARGETS = ("gfx95", "gfx12", "sm_89", "sm_9", "sm_10", "sm_12", "cpu")
_FNUZ_TARGETS = ("gfx94",)
_TF32_TARGETS = ("gfx94", "sm_8", "sm_9", "sm_10", "sm_12")
_INT8_LEAST_ROWS = 17
_SQUARE, _SQUARE_EXACT = 4096, 2048
"""Rows and columns of the product that shows how fast arithmetic gets."""


class _Set(NamedTuple):
    """Operands and where their product goes."""

    left: torch.Tensor
    right: torch.Tensor
    out: Guarded


class Product(Workload):
    """A product of several sets of operands in turn, so that caches serve them as little as in a model."""

    def __init__(
        self, sets: list[_Set], precision: Precision, multiply: Callable[..., Any], device: torch.device, *, tune: bool
    ) -> None:
        self._sets, self._precision, self._multiply = sets, precision, multiply
        self.fastest: dict[str, float] = {}
        self._device, self._tune, self._turn = device, tune, 0
        self._checked = Checked("", 0.0, "")
        self.slow = "tunableop" if tune else ""

    def run(self) -> Any:
        """Multiply the next set.

        Raises:
            UnsupportedError: The library says that it has no kernel for it.
        """
        self._turn = (self._turn + 1) % len(self._sets)
        left, right, out = self._sets[self._turn]
        try:
            return self._multiply(left, right, out.tensor)
        except RuntimeError as error:
            if "STATUS_NOT_SUPPORTED" in str(error):
                raise UnsupportedError(str(error).splitlines()[0]) from error
            raise

    def wrong(self) -> str:
        """Multiply the first set into memory full of NaN, and compare.

        Raises:
            UnsupportedError: TF32 is asked for, and the product is as exact as float32.
        """
        left, right, out = self._sets[0]
        if self._tune:
            import torch

            torch.cuda.tunable.tuning_enable(False)  # what was tuned stays in use
        out.poison()
        self._multiply(left, right, out.tensor)
        if found := out.wrong():
            return found
        self._checked = check(left, right, out.tensor, self._precision)
        single = _PRECISIONS["float32"]
        if self._precision == _PRECISIONS["tf32"] and not check(left, right, out.tensor, single).reason:
            raise UnsupportedError("torch multiplies in float32 here although TF32 is allowed")
        return self._checked.reason

    def detail(self) -> dict[str, Any]:
        """Return how exact it was, what was compared, and which library and solution torch chose."""
        first = self._sets[0]
        size = sum(part.numel() * part.element_size() for part in (first.left, first.right, first.out.tensor))
        found: dict[str, Any] = {
            "error_of_allowed": self._checked.worst,
            "compared": self._checked.compared,
            "sets": len(self._sets),
            "cold": size * len(self._sets) >= (COLD if self._device.type == "cuda" else _COLD_CPU),
        }
        if self._device.type == "cuda":
            import torch

            found |= bandwidth(self._device) | self.fastest
            found["blas"] = str(torch.backends.cuda.preferred_blas_library()).rpartition(".")[2]
            results: Any = torch.cuda.tunable.get_results() if self._tune else ()
            if tuned := list(results):
                found["tuned"] = [str(part) for part in tuned[-1]]
        return found


def make(parameters: dict[str, Any], device: torch.device) -> Product:
    """Make a product of random operands.

    Args:
        parameters: ``m``, ``n``, ``k``, ``batch``, ``dtype``, ``layout`` (``t`` where an operand is transposed) and
            ``pad`` (elements between the rows of an operand). As options of a setting ``blas`` (``hipblas``,
            ``hipblaslt``) and ``tune``, with ``tuning_file``.
        device: Where it runs.
    """
    import torch

    dtype, layout = str(parameters["dtype"]), str(parameters["layout"])
    m, n, k, batch = (int(parameters[name]) for name in ("m", "n", "k", "batch"))
    tune, fastest = bool(parameters.get("tune")), dict[str, float]()
    _use(parameters, device)
    multiply = _multiplication(dtype, device, (m, n, k), batch, layout)
    if device.type == "cuda":  # before the case's own memory is counted
        bandwidth(device)
        fastest = {} if tune else fastest_product(dtype, device)  # it would be tuned, too
    operand, result = _dtypes(dtype, device)
    size = batch * ((m * k + k * n) * operand.itemsize + m * n * result.itemsize)
    generator = torch.Generator(device).manual_seed(7)

    def draw(rows: int, columns: int, *, transposed: bool) -> torch.Tensor:
        if transposed:
            return draw(columns, rows, transposed=False).transpose(-1, -2)
        pad = int(parameters.get("pad", 0))
        shape = (batch, rows, columns + pad) if batch > 1 else (rows, columns + pad)
        return _random(shape, operand, device, generator)[..., :columns]

    sets = []
    for _ in range(_count(size, device)):
        left = draw(m, k, transposed=layout[0] == "t")
        right = draw(k, n, transposed=layout[1] == "t")
        sets.append(_Set(left, right, Guarded((batch, m, n) if batch > 1 else (m, n), result, device)))
    product = Product(sets, _PRECISIONS[dtype], multiply, device, tune=tune)
    product.fastest = fastest
    return product


def _random(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator | None = None
) -> torch.Tensor:
    import torch

    if dtype == torch.int8:
        return torch.randint(-128, 128, shape, generator=generator, device=device, dtype=dtype)
    return torch.randn(shape, generator=generator, device=device).to(dtype)


def _count(size: int, device: torch.device) -> int:
    """Return how many sets are too much for caches, as far as memory allows."""
    if device.type != "cuda":
        return min(_MOST_SETS_CPU, -(-_COLD_CPU // size))
    import torch

    free = torch.cuda.mem_get_info(device)[0]
    return max(1, min(_MOST_SETS, -(-COLD // size), free // 8 // size))  # processes of other settings hold as much


def _use(parameters: dict[str, Any], device: torch.device) -> None:
    """Set what cases of one process differ in, and what a setting asks of torch."""
    import torch

    os.environ["HIPBLASLT_ALLOW_TF32"] = "1"  # releases of 2025 ask for it as well, some the first time alone
    torch.backends.cuda.matmul.allow_tf32 = parameters["dtype"] == "tf32"
    if device.type != "cuda":
        return
    if blas := parameters.get("blas"):
        torch.backends.cuda.preferred_blas_library(_BLAS[blas])  # some releases ignore a variable that is 0
    if parameters.get("tune"):
        torch.cuda.tunable.set_filename(str(parameters["tuning_file"]))
        torch.cuda.tunable.enable(True)
        torch.cuda.tunable.tuning_enable(True)


def _dtypes(dtype: str, device: torch.device) -> tuple[torch.dtype, torch.dtype]:
    """Return the dtype of operands and of the result."""
    import torch

    if dtype == "float8":
        fnuz = gfx_target(device).startswith(_FNUZ_TARGETS)
        return torch.float8_e4m3fnuz if fnuz else torch.float8_e4m3fn, torch.bfloat16
    if dtype == "int8":
        return torch.int8, torch.int32
    kept: torch.dtype = getattr(torch, "float32" if dtype == "tf32" else dtype)
    return kept, kept


def _multiplication(
    dtype: str, device: torch.device, shape: tuple[int, int, int], batch: int, layout: str
) -> Callable[..., Any]:
    """Return what multiplies.

    Raises:
        UnsupportedError: Torch or the device has no such product.
    """
    import torch

    m, n, k = shape
    target, on_gpu = gfx_target(device), device.type == "cuda"
    if dtype == "tf32":
        if not target.startswith(_TF32_TARGETS):
            raise UnsupportedError(
                f"{target} has no matrix unit for TF32 (xf32): gfx942 and NVIDIA GPUs from sm_80 on do"
            )
    elif dtype == "float8":
        if not target.startswith((*_FP8_TARGETS, *_FNUZ_TARGETS)):
            raise UnsupportedError(f"{target} has no matrix unit for fp8: gfx942, gfx950 and gfx12 do")
        if batch > 1 or layout != "nt" or n % 16 or k % 16:
            raise UnsupportedError("torch._scaled_mm multiplies in layout nt, no batches, N and K divisible by 16")
        one = torch.ones((), device=device)
        return lambda left, right, out: torch._scaled_mm(  # noqa: SLF001  torch has no other name for it
            left, right, one, one, out_dtype=torch.bfloat16, out=out
        )
    elif dtype == "int8":
        if batch > 1 or (on_gpu and (m < _INT8_LEAST_ROWS or n % 8 or k % 8)):
            raise UnsupportedError("torch._int_mm multiplies no batches, M of 17 or more, N and K divisible by 8")
        return lambda left, right, out: torch._int_mm(left, right, out=out)  # noqa: SLF001  as above
    return lambda left, right, out: torch.matmul(left, right, out=out)


_bandwidths: dict[str, dict[str, float]] = {}
_fastest: dict[tuple[str, str], dict[str, float]] = {}


def fastest_product(dtype: str, device: torch.device) -> dict[str, float]:
    """Return the TFLOPS of a large square product, measured once in a process; empty where it can't be."""
    import torch

    key = str(device), dtype
    if key not in _fastest:
        size = _SQUARE_EXACT if dtype in {"float64", "float32"} else _SQUARE
        try:
            operand, result = _dtypes(dtype, device)
            multiply = _multiplication(dtype, device, (size, size, size), 1, "nt")
            left, right = (_random((size, size), operand, device) for _ in range(2))
            out = torch.empty((size, size), dtype=result, device=device)
            seconds = _least_s(lambda: multiply(left, right.t(), out), device)
            _fastest[key] = {"square": float(size), "square_tflops": 2 * size**3 / seconds / 1e12}
            del left, right, out
        except (RuntimeError, UnsupportedError):  # no memory is left for it, or the library has no kernel
            _fastest[key] = {}
        torch.cuda.empty_cache()
    return _fastest[key]


def bandwidth(device: torch.device) -> dict[str, float]:
    """Return how fast memory is copied and read in GB/s, measured once in a process; empty where it can't be."""
    import torch

    key = str(device)
    if key not in _bandwidths:
        try:
            _bandwidths[key] = _bandwidth(device)
        except RuntimeError:  # no memory is left for it
            _bandwidths[key] = {}
        torch.cuda.empty_cache()  # processes of other settings need it
    return _bandwidths[key]


def _bandwidth(device: torch.device) -> dict[str, float]:
    import torch

    count = COLD // 4
    source = torch.ones(count, device=device)
    copied = torch.empty_like(source)
    size = 4 * count / 1e9

    def copy() -> None:
        copied.copy_(source)

    def read() -> None:
        source.sum()

    return {"copy_gb_s": 2 * size / _least_s(copy, device), "read_gb_s": size / _least_s(read, device)}


def _least_s(run: Callable[[], Any], device: torch.device) -> float:
    """Return the seconds of the fastest of some runs of milliseconds each."""
    times = []
    for _ in range(6):
        synchronize(device)
        begin = time.perf_counter()
        for _ in range(4):
            run()
        synchronize(device)
        times.append((time.perf_counter() - begin) / 4)
    return min(times)
