"""Products that cuBLASLt computes, planned once: what its heuristics take for two matrices, ready to be called.

Numbers stand for the names of ``cublasLt.h``. Sums are fp32, those of parts of K too, and the same at each call: torch
may be told to allow others, and has them by default.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import weakref
from typing import Any, NamedTuple

import torch

from rocmend.kernels import native
from rocmend.kernels.captured import LibraryCall, provides

LOG = logging.getLogger("rocmend.kernels")
TYPES = {torch.float16: 2, torch.bfloat16: 14}
MOST_WORKSPACE_BYTES = 32 << 20
"""As much as torch gives cuBLAS on Hopper."""
_FLOAT, _SUMS_IN_FLOAT = 0, 68
_TURN_FIRST = 3
_WORKSPACE, _REDUCTIONS, _ALIGNMENTS = 1, 3, (5, 6, 7, 8)
_IN_FLOAT_APART = 2
"""Parts of a sum are fp32, and none is added where another is written."""
_ALIGNED_BYTES = 16
_RESULT_BYTES, _ALGORITHM_BYTES = 96, 64


class Refused(Exception):  # noqa: N818  no error: torch multiplies then
    """The library is not there, or has no algorithm for a product."""


@provides("matmul")
def matmul(  # noqa: PLR0913, PLR0917  a product has so many numbers
    index: int, dtype: torch.dtype, rows: int, columns: int, depth: int, transpose: bool
) -> LibraryCall | None:
    """Return the call of ``x @ w.T``, or ``x @ w``, of contiguous matrices, given w, x and the output; see ``plan``."""
    if dtype not in TYPES:
        return None
    try:
        found = plan(index, dtype, rows, columns, depth, transpose=transpose)
    except Refused:
        return None
    return LibraryCall(found.work, (), found.workspace)


class ProductPlan(NamedTuple):
    """What computes a product.

    Args:
        work: An object of the C module, called with a stream and the addresses of w, x, the output and the workspace.
        workspace: Bytes of the workspace; there is none where it is 0.
    """

    work: Any
    workspace: int


@functools.lru_cache(maxsize=1024)
def plan(  # noqa: PLR0913  a product has so many numbers
    index: int, dtype: torch.dtype, rows: int, columns: int, depth: int, *, transpose: bool
) -> ProductPlan:
    """Return the plan of ``x @ w.T``, or ``x @ w``, of contiguous matrices on a device.

    Args:
        index: Of the device.
        dtype: float16 or bfloat16, of all three.
        rows: Of x and the output.
        columns: Of the output.
        depth: Of the sum.
        transpose: w is ``[columns, depth]``, else ``[depth, columns]``.

    Raises:
        Refused: There is none.
    """
    if native.module() is None:
        raise Refused("no C module")
    library = _library(index)
    product = library.made("cublasLtMatmulDescCreate", _SUMS_IN_FLOAT, _FLOAT)
    # To the library matrices are columns after columns: it computes the output's transpose, w first.
    library.set("cublasLtMatmulDescSetAttribute", product, _TURN_FIRST, ctypes.c_int(int(transpose)))
    first = (depth, columns) if transpose else (columns, depth)
    layouts = [
        library.made("cublasLtMatrixLayoutCreate", TYPES[dtype], *map(ctypes.c_uint64, sizes), ctypes.c_int64(sizes[0]))
        for sizes in (first, (depth, rows), (columns, rows))
    ]
    wishes = library.made("cublasLtMatmulPreferenceCreate")
    told = [(_WORKSPACE, ctypes.c_uint64(MOST_WORKSPACE_BYTES)), (_REDUCTIONS, ctypes.c_uint32(_IN_FLOAT_APART))]
    for attribute, value in [*told, *[(one, ctypes.c_uint32(_ALIGNED_BYTES)) for one in _ALIGNMENTS]]:
        library.set("cublasLtMatmulPreferenceSetAttribute", wishes, attribute, value)
    result, count = ctypes.create_string_buffer(_RESULT_BYTES), ctypes.c_int()
    library.call(
        "cublasLtMatmulAlgoGetHeuristic", library.handle, product, *layouts, layouts[2], wishes, 1, result,
        ctypes.byref(count),
    )  # fmt: skip
    library.call("cublasLtMatmulPreferenceDestroy", wishes)
    algorithm = result.raw[:_ALGORITHM_BYTES]
    workspace, state = (int.from_bytes(result.raw[at : at + size], "little") for at, size in ((64, 8), (72, 4)))
    if not count.value or state or workspace > MOST_WORKSPACE_BYTES:
        raise Refused("no algorithm")
    kept = _Kept(library, product, layouts)
    work = native.module().Product(
        library.multiply, library.handle.value or 0, product.value or 0, tuple([one.value or 0 for one in layouts]),
        algorithm, workspace, kept,
    )  # fmt: skip
    return ProductPlan(work, workspace)


class _Kept:
    """Owns what a plan is made of.

    Args:
        library: Made it.
        product: The operation.
        layouts: Of the matrices.
    """

    def __init__(self, library: _Library, product: ctypes.c_void_p, layouts: list[ctypes.c_void_p]) -> None:
        self._library = library
        frees = [("cublasLtMatmulDescDestroy", product), *[("cublasLtMatrixLayoutDestroy", one) for one in layouts]]
        for name, one in frees:
            weakref.finalize(self, library.function(name), one).atexit = False


class _Library:
    """The library, with a handle for the current device.

    Raises:
        Refused: It is not there, or has no handle.
    """

    def __init__(self) -> None:
        version = (torch.version.cuda or "0").split(".")[0]
        try:
            self._found = ctypes.CDLL(f"libcublasLt.so.{version}")  # torch has loaded it
            self.multiply = ctypes.cast(self._found.cublasLtMatmul, ctypes.c_void_p).value or 0
            self.handle = self.made("cublasLtCreate")
        except (OSError, AttributeError) as error:
            raise Refused(str(error)) from error

    def call(self, name: str, *args: Any) -> None:
        """Call a function.

        Raises:
            Refused: It returns another status than success.
        """
        status = getattr(self._found, name)(*args)
        if status:
            raise Refused(f"{name}: status {status}")

    def made(self, name: str, *args: Any) -> ctypes.c_void_p:
        """Return what a function makes, which it writes to its first argument."""
        found = ctypes.c_void_p()
        self.call(name, ctypes.byref(found), *args)
        return found

    def set(self, name: str, where: ctypes.c_void_p, attribute: int, value: Any) -> None:
        """Set an attribute."""
        self.call(name, where, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def function(self, name: str) -> Any:
        """Return a function."""
        return getattr(self._found, name)


@functools.cache
def _libraries(index: int) -> _Library | Refused:
    try:
        with torch.cuda.device(index), native.relaxed():
            return _Library()
    except Refused as reason:
        LOG.debug("cuBLAS is called by torch: %s", reason)
        return reason


def _library(index: int) -> _Library:
    found = _libraries(index)
    if isinstance(found, Refused):
        raise found
    return found
