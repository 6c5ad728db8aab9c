"""What a file says of its project: the libraries and builds that it names."""

from __future__ import annotations

import re
from typing import NamedTuple

from rocmend.port.records import Language

__all__ = ["traits"]


class _Trait(NamedTuple):
    """What a file has where it holds the bytes, and the expression matches."""

    needle: bytes
    pattern: re.Pattern[bytes]


def _imported(name: bytes) -> _Trait:
    return _Trait(name, re.compile(rb"^[ \t]*(?:import|from) " + name + rb"\b", re.MULTILINE))


_ROCM = re.compile(rb"\bversion\.hip\b|\b(?:is|IS)_(?:rocm|ROCM)\b|\bROCM_HOME\b")
_EXTENSION = re.compile(rb"\bCUDAExtension\b|\bload_inline[ \t]*\(|\bcpp_extension\b")
_GRAPHS = re.compile(rb"\bCUDAGraph\b|\bcuda\.graph\b|\bmake_graphed_callables\b")
_HIP = re.compile(rb"\bUSE_ROCM\b|\b__HIP_PLATFORM_AMD__\b|\b__HIPCC__\b|hip/hip_runtime\.h")
_NVCC = re.compile(rb"CUDA|nvcc|\.cu\b", re.IGNORECASE)
_BUILDS_CUDA = re.compile(
    rb"\bCUDAExtension[ \t]*\(|(?:=|else|return)[ \t]*(?:\w+\.)*CUDAExtension\b|\bload_inline[ \t]*\("
    rb"|\bcpp_extension\.load[ \t]*\(|\bcpp_extension[ \t]+import[^\n]*\bload\b"
)
_RUNS_ITSELF = re.compile(rb"[\"']nvcc[ \t]|\[\s{0,20}[\"']nvcc[\"']\s{0,20},")

_OF: dict[Language, tuple[tuple[str, _Trait], ...]] = {
    Language.PYTHON: (
        ("triton", _imported(b"triton")),
        ("flash-attn", _imported(b"flash_attn")),
        ("xformers", _imported(b"xformers")),
        ("transformer-engine", _imported(b"transformer_engine")),
        ("apex", _imported(b"apex")),
        ("tensorrt", _imported(b"tensorrt")),
        ("nvml", _imported(b"pynvml")),
        ("jax", _imported(b"jax")),
        ("torch", _imported(b"torch")),
        ("extension", _Trait(b"ext", _EXTENSION)),
        ("extension", _Trait(b"load_inline", _EXTENSION)),
        ("torch-build", _Trait(b"cpp_extension", _BUILDS_CUDA)),
        ("torch-build", _Trait(b"CUDAExtension", _BUILDS_CUDA)),
        ("nvcc", _Trait(b"nvcc", _RUNS_ITSELF)),
        ("nvcc", _Trait(b"RawModule", re.compile(rb"\bRawModule[ \t]*\("))),
        ("compile", _Trait(b"torch.compile", re.compile(rb"\btorch\.compile\b"))),
        ("compile", _Trait(b"_inductor", re.compile(rb"\b_inductor\b"))),
        ("compile", _Trait(b"_dynamo", re.compile(rb"\b_dynamo\b"))),
        ("graphs", _Trait(b"raph", _GRAPHS)),
        (
            "main",
            _Trait(b"__main__", re.compile(rb"^if[ \t]+\(?__name__[ \t]*==[ \t]*[\"']__main__[\"']", re.MULTILINE)),
        ),
        ("rocm", _Trait(b"hip", _ROCM)),
        ("rocm", _Trait(b"rocm", _ROCM)),
        ("rocm", _Trait(b"ROCM", _ROCM)),
    ),
    Language.CUDA: (
        ("cutlass", _Trait(b"cut", re.compile(rb"#[ \t]*include[ \t]*[<\"](?:cutlass|cute)/"))),
        ("nccl", _Trait(b"nccl.h", re.compile(rb"#[ \t]*include[ \t]*[<\"]nccl\.h"))),
        ("main", _Trait(b"main", re.compile(rb"^[ \t]*(?:int|auto)[ \t]+main[ \t]*\(", re.MULTILINE))),
        ("rocm", _Trait(b"USE_ROCM", _HIP)),
        ("rocm", _Trait(b"__HIP", _HIP)),
        ("rocm", _Trait(b"hip/", _HIP)),
        (
            "names-apart",
            _Trait(
                b"cub", re.compile(rb"\busing[ \t]+namespace[ \t]+cub\b|\bnamespace[ \t]+\w+[ \t]*=[ \t]*(?:::)?cub\b")
            ),
        ),
    ),
    Language.TEXT: (("cuda", _Trait(b"", _NVCC)), ("nvcc", _Trait(b"nvcc", re.compile(rb"\bnvcc[ \t]+[-\w./$\"]")))),
}


def traits(language: Language, data: bytes) -> tuple[str, ...]:
    """Return what a file of a language has."""
    found = (name for name, one in _OF[language] if one.needle in data and one.pattern.search(data))
    return tuple(dict.fromkeys(found))
