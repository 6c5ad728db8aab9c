"""Replay of captured calls in C, on NVIDIA with a C compiler: the same allocations and launches without Python's steps.

The source in this folder is compiled on first use, as Triton compiles its launchers, and kept in the user's cache
folder. It launches through CUDA's driver. On AMD GPUs, without a compiler or Python's headers, for kernels that need
more than a plain launch, or with ``ROCMEND_KERNELS_NATIVE=0``, the function of ``replay.generate`` does the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from rocmend.core.extension import BuildError, built, loaded

__all__ = ["Driver", "driver", "module", "relaxed"]

LOG = logging.getLogger("rocmend.kernels")
NAME = "rocmend_kernels_replay"
VARIABLE = "ROCMEND_KERNELS_NATIVE"
GRAPHS = (
    "cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphLaunch", "cuGraphDestroy", "cuGraphExecDestroy", "cuStreamIsCapturing", "cuStreamGetPriority",
    "cuGraphAddDependencies_v2", "cuThreadExchangeStreamCaptureMode", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
    "cuGraphGetNodes", "cuGraphNodeGetType", "cuStreamCreate", "cuStreamDestroy_v2",
)  # fmt: skip
"""In the order of ``graph.c``."""
_RELAXED = 2


class Driver(NamedTuple):
    """Addresses of functions of CUDA's driver.

    Args:
        launch: ``cuLaunchKernelEx``.
        context: ``cuCtxGetCurrent``, or 0 to skip the check.
        name: ``cuGetErrorString``, or 0.
        sizes: ``cuFuncGetParamInfo``, or None to skip the check.
        graphs: The functions of ``GRAPHS``, or none.
    """

    launch: int
    context: int
    name: int
    sizes: Any
    graphs: tuple[int, ...] = ()


@functools.cache
def module() -> Any:
    """Return the compiled module, or None; the log has the reason, at level DEBUG."""
    if os.environ.get(VARIABLE, "") == "0":
        LOG.debug("captured calls replayed in Python: switched off by %s=0", VARIABLE)
        return None
    try:
        return loaded(NAME, built(NAME, Path(__file__).parent, "module.c", "kernels"))
    except (BuildError, ImportError, OSError) as error:
        LOG.debug("captured calls replayed in Python: %s", error)
        return None


@functools.cache
def driver() -> Driver | None:
    """Return CUDA's driver; None if torch does not use it, or it cannot describe kernels' parameters (< 12.4)."""
    if not torch.version.cuda or not torch.cuda.is_available():
        return None
    try:
        library = ctypes.CDLL("libcuda.so.1")
        sizes = library.cuFuncGetParamInfo
        launch, context, name = (
            _address(library, one) for one in ("cuLaunchKernelEx", "cuCtxGetCurrent", "cuGetErrorString")
        )
    except (OSError, AttributeError) as error:
        LOG.debug("captured calls replayed in Python: %s", error)
        return None
    sizes.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)
    try:
        blocking = os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in {"", "0"}  # it is documented for launches
        graphs = () if blocking else tuple([_address(library, one) for one in GRAPHS])
    except AttributeError as error:
        LOG.debug("captured calls replayed without graphs: %s", error)
        graphs = ()
    return Driver(launch, context, name, sizes, graphs)


@contextlib.contextmanager
def relaxed() -> Iterator[None]:
    """Allow calls inside while another thread captures a graph; they must not wait for the GPU."""
    functions = driver()
    if functions is None or not functions.graphs:
        yield
        return
    exchange = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(
        functions.graphs[GRAPHS.index("cuThreadExchangeStreamCaptureMode")]
    )
    mode = ctypes.c_int(_RELAXED)
    exchange(ctypes.byref(mode))
    try:
        yield
    finally:
        exchange(ctypes.byref(mode))


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
