"""Headers that a HIP source may ask for and that may not be here: what they belong to and how to get them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["DECLARED", "HEADERS_VARIABLE", "STAND_INS", "STAND_IN_SAYS", "how_to_get", "is_of_nvidia"]

STAND_INS = Path(__file__).parent / "include"
"""rocmend's own headers, found last: those of HIP that triton's wheel leaves out, and of ROCm's libraries."""

DECLARED = ("hipblas/", "hipblaslt/", "hipcub/", "hiprand/hiprand.h", "hipsparse/", "hipsolver/")
"""Where those lie that declare a library's host calls and implement none of them."""

STAND_IN_SAYS = "rocmend stand-in: "
"""How the warning begins by which each of them makes itself known, whatever becomes of the source."""

HEADERS_VARIABLE = "ROCMEND_HIP_HEADERS"
"""Folders of further headers, separated as in PATH; searched after those of the toolchain."""


_PIP = 'pip install --index-url https://stable.repo.amd.com/rocm/whl-next/ "rocm[libraries,devel]" && rocm-sdk init'


class _Library(NamedTuple):
    """Headers of one library.

    Args:
        beginnings: How their names begin.
        library: What it is called.
        package: The package of ROCm's own repositories (Debian and Ubuntu) that has them.
        header_only: Its headers alone are enough to compile with.
    """

    beginnings: tuple[str, ...]
    library: str
    package: str
    header_only: bool = False


_LIBRARIES = (
    _Library(("hipcub/",), "hipCUB", "hipcub-dev and rocprim-dev", header_only=True),
    _Library(("rocprim/",), "rocPRIM", "rocprim-dev", header_only=True),
    _Library(("rocthrust/", "thrust/"), "rocThrust", "rocthrust-dev and rocprim-dev", header_only=True),
    _Library(("rocwmma/",), "rocWMMA", "rocwmma-dev", header_only=True),
    _Library(("ck/", "ck_tile/"), "Composable Kernel", "composablekernel-dev", header_only=True),
    _Library(("hiprand/", "hiprand"), "hipRAND", "hiprand-dev and rocrand-dev", header_only=True),
    _Library(("rocrand/",), "rocRAND", "rocrand-dev", header_only=True),
    _Library(("hipblaslt/",), "hipBLASLt", "hipblaslt-dev"),
    _Library(("hipblas/", "hipblas"), "hipBLAS", "hipblas-dev"),
    _Library(("rocblas/",), "rocBLAS", "rocblas-dev"),
    _Library(("hipsparse/", "hipsparse"), "hipSPARSE", "hipsparse-dev"),
    _Library(("hipsolver/",), "hipSOLVER", "hipsolver-dev"),
    _Library(("hipfft/", "hipfft"), "hipFFT", "hipfft-dev"),
    _Library(("miopen/",), "MIOpen", "miopen-hip-dev"),
    _Library(("rccl/", "rccl.h"), "RCCL", "rccl-dev"),
    _Library(("roctracer/", "roctx.h"), "roctracer", "roctracer-dev"),
    _Library(("hip/",), "the HIP runtime", "hip-dev", header_only=True),
)

_NVIDIA = (
    "cub/", "cuda", "cooperative_groups", "device_launch_parameters.h", "device_functions.h", "nv/", "mma.h", "nvml.h",
    "nvToolsExt", "nvtx3/", "nvrtc.h", "cublas", "cudnn", "cufft", "curand", "cusparse", "cusolver", "cutlass/",
    "cute/", "helper_cuda.h", "sm_",
)  # fmt: skip
_OTHERS = {
    ("torch/", "ATen/", "c10/"): "install torch in the environment that rocmend runs in, or name its folder include",
    ("THC/", "TH/"): "PyTorch no longer has it, on CUDA neither: THC/THCAtomics.cuh became ATen/cuda/Atomic.cuh",
    ("Python.h",): "install Python's headers (python3-dev)",
    ("pybind11/",): "pip install pybind11, or install torch, which brings it",
}


def how_to_get(header: str) -> str:
    """Say what a header that was not found belongs to and how to get it, in one sentence.

    Args:
        header: As the source names it: ``hipcub/hipcub.hpp``.
    """
    for library in _LIBRARIES:
        if header.startswith(library.beginnings):
            enough = " (its headers alone are enough, unpacked into a folder)" if library.header_only else ""
            return (
                f"{header} belongs to {library.library}: install {library.package} from ROCm's repository, or "
                f"without root `{_PIP}`{enough}; then name the folder that holds it in {HEADERS_VARIABLE}."
            )
    if is_of_nvidia(header):
        return f"{header} is NVIDIA's: the ROCm side must not ask for it."
    for beginnings, what in _OTHERS.items():
        if header.startswith(beginnings):
            return f"{header}: {what}."
    return f"{header} is not found: name its folder with an include folder."


def is_of_nvidia(header: str) -> bool:
    """Tell whether a header is part of CUDA or of NVIDIA's libraries: no ROCm will ever have it."""
    return header.startswith(_NVIDIA)
