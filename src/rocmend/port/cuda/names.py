"""The names of CUDA's API and what HIP calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

__all__ = ["REGULAR", "Header", "ambiguous", "header_of", "headers", "hip_names", "no_counterpart", "regular"]

REGULAR = (
    ("cublasLt", "hipblasLt"),
    ("CUBLASLT_", "HIPBLASLT_"),
    ("cublas", "hipblas"),
    ("CUBLAS_", "HIPBLAS_"),
    ("cufft", "hipfft"),
    ("CUFFT_", "HIPFFT_"),
    ("curand", "hiprand"),
    ("CURAND_", "HIPRAND_"),
    ("cusparse", "hipsparse"),
    ("CUSPARSE_", "HIPSPARSE_"),
    ("cusolver", "hipsolver"),
    ("CUSOLVER_", "HIPSOLVER_"),
    ("nvrtc", "hiprtc"),
    ("NVRTC_", "HIPRTC_"),
    ("cuda", "hip"),
    ("CUDA_R_", "HIP_R_"),
    ("CUDA_C_", "HIP_C_"),
    ("CUDA_", "HIP_"),
    ("cu", "hip"),
    ("CU_", "HIP_"),
    ("CUDART_", "HIP_"),
    ("__nv_bfloat", "__hip_bfloat"),
    ("__nv_fp8", "__hip_fp8"),
    ("__NV_", "__HIP_"),
)
"""Prefixes of CUDA names and of their HIP forms; the first that fits counts."""


class Header(NamedTuple):
    """What stands for a CUDA header.

    Attributes:
        hip: The HIP header; empty where hip/hip_runtime.h has what it holds, or where nothing stands for it.
        device: Only the HIP compiler can read it.
        advice: What to do where nothing stands for it.
    """

    hip: str = ""
    device: bool = False
    advice: str = ""


def _lines(name: str) -> list[str]:
    text = resources.files("rocmend.port.data").joinpath(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def regular(name: str) -> str:
    """Return the HIP form of a CUDA name by its prefix; the name itself where no prefix fits."""
    for cuda, hip in REGULAR:
        if name.startswith(cuda):
            return hip + name[len(cuda) :]
    return name


@cache
def hip_names() -> Mapping[bytes, bytes]:
    """Return the HIP name of every CUDA name that has one."""
    found: dict[bytes, bytes] = {}
    for line in _lines("names.txt"):
        name, _, other = line.partition(" ")
        found[name.encode()] = (other or regular(name)).encode()
    return found


@cache
def no_counterpart() -> frozenset[bytes]:
    """Return the CUDA names that HIP and the ROCm libraries have nothing for."""
    return frozenset(line.encode() for line in _lines("no_counterpart.txt"))


@cache
def headers() -> Mapping[str, Header]:
    """Return what stands for each CUDA header; a key that ends in ``/`` stands for a folder."""
    found: dict[str, Header] = {}
    for line in _lines("headers.txt"):
        name, _, other = line.partition(" ")
        if other.startswith("!"):
            found[name] = Header(advice=other[1:].strip())
        else:
            found[name] = Header("" if other == "-" else other.lstrip("@"), other.startswith("@"))
    return found


_OF_CUDA = re.compile(r"cu|nv|nccl|mma\.h|npp|optix|Nv|cooperative_groups|sm_|device_launch_parameters")


def ambiguous(included: bytes) -> bool:
    """Return whether a header of CUDA has a name that a project may well have given a header of its own."""
    return header_of(included) is not None and not _OF_CUDA.search(included.decode("utf-8", "replace"))


def header_of(included: bytes) -> Header | None:
    """Return what stands for an included header (with or without brackets or quotes); None where it is none of CUDA."""
    name = included.decode("utf-8", "replace").strip('<>"')
    known = headers()
    if name in known:
        return known[name]
    folder = name.partition("/")[0] + "/"
    return known.get(folder) if "/" in name else None
