"""What a project is made of: its sources, builds, containers, workflows and the libraries that they name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from rocmend.port.build.kinds import Kind, for_rocm, kind_of
from rocmend.port.classify import kind, uses_cuda
from rocmend.port.records import Language
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.walk import FoundFile

__all__ = ["Survey", "survey"]

_VENDORED = re.compile(
    r"(?:^|.*/)(?:third[_-]?party|3rd[_-]?party|vendor(?:ed)?|extern(?:al|als)?|submodules)(?=/)", re.IGNORECASE
)
_ENDS_CUDA = (".cu", ".cuh")

_PYTHON_TRAITS: dict[str, re.Pattern[bytes]] = {
    "triton": re.compile(rb"^[ \t]*(?:import triton\b|from triton\b)", re.MULTILINE),
    "extension": re.compile(rb"\bCUDAExtension\b|\bload_inline\s*\(|\bcpp_extension\b"),
    "compile": re.compile(rb"\btorch\.compile\b|\b_inductor\b|\b_dynamo\b"),
    "graphs": re.compile(rb"\bCUDAGraph\b|\bcuda\.graph\b|\bmake_graphed_callables\b"),
    "flash-attn": re.compile(rb"^[ \t]*(?:import flash_attn\b|from flash_attn\b)", re.MULTILINE),
    "xformers": re.compile(rb"^[ \t]*(?:import xformers\b|from xformers\b)", re.MULTILINE),
    "transformer-engine": re.compile(
        rb"^[ \t]*(?:import transformer_engine\b|from transformer_engine\b)", re.MULTILINE
    ),
    "apex": re.compile(rb"^[ \t]*(?:import apex\b|from apex\b)", re.MULTILINE),
    "tensorrt": re.compile(rb"^[ \t]*(?:import tensorrt\b|from tensorrt\b)", re.MULTILINE),
    "nvml": re.compile(rb"^[ \t]*(?:import pynvml\b|from pynvml\b)", re.MULTILINE),
    "jax": re.compile(rb"^[ \t]*(?:import jax\b|from jax\b)", re.MULTILINE),
    "torch": re.compile(rb"^[ \t]*(?:import torch\b|from torch\b)", re.MULTILINE),
    "main": re.compile(rb"^if[ \t]+\(?__name__[ \t]*==[ \t]*[\"']__main__[\"']", re.MULTILINE),
    "rocm": re.compile(rb"\bversion\.hip\b|\bis_rocm\b|\bIS_ROCM\b|\bROCM_HOME\b"),
}
_CUDA_TRAITS: dict[str, re.Pattern[bytes]] = {
    "cutlass": re.compile(rb"#[ \t]*include[ \t]*[<\"](?:cutlass|cute)/"),
    "nccl": re.compile(rb"#[ \t]*include[ \t]*[<\"]nccl\.h"),
    "main": re.compile(rb"^[ \t]*(?:int|auto)[ \t]+main[ \t]*\(", re.MULTILINE),
    "rocm": re.compile(rb"\bUSE_ROCM\b|\b__HIP_PLATFORM_AMD__\b|\b__HIPCC__\b|hip/hip_runtime\.h"),
}
_BUILDS_CUDA = re.compile(rb"\bCUDA\b|\bnvcc\b|\bcuda\b", re.IGNORECASE)


class Survey:
    """What a project is made of.

    Attributes:
        cuda: CUDA sources (``.cu``, ``.cuh``), and other C++ that uses CUDA.
        kernels: Of them, those that nvcc compiles.
        python: Python files.
        by_trait: Files by what they use: ``triton``, ``extension``, ``compile``, ``graphs``, ``cutlass`` …
        by_kind: Build, container and workflow files.
        cmake: CMake files that build CUDA.
        make: Makefiles that build CUDA.
        vendored: Folders of others' code, and how many sources they hold.
        own_rocm: The project's own files for ROCm, by their names.
    """

    def __init__(self) -> None:
        self.cuda: list[str] = []
        self.kernels: list[str] = []
        self.python: list[str] = []
        self.by_trait: dict[str, list[str]] = defaultdict(list)
        self.by_kind: dict[Kind, list[str]] = defaultdict(list)
        self.cmake: list[str] = []
        self.make: list[str] = []
        self.vendored: dict[str, int] = {}
        self.own_rocm: list[str] = []

    def uses(self, *traits: str) -> list[str]:
        """Return the files that have one of these traits, by path."""
        return sorted({path for trait in traits for path in self.by_trait.get(trait, ())})

    def add(self, root: Path, path: str, max_bytes: int) -> None:
        """Look at a file."""
        text = kind_of(path)
        if text is not None:
            self.by_kind[text].append(path)
        kinds = kind(path)
        own = for_rocm(PurePosixPath(path).name)
        if own:
            self.own_rocm.append(path)
        if kinds is not None and not {Language.PYTHON, Language.CUDA} & {*kinds}:
            if text in {Kind.CMAKE, Kind.MAKE} and _holds(root / path, max_bytes, _BUILDS_CUDA):
                (self.cmake if text is Kind.CMAKE else self.make).append(path)
            return
        try:
            data, _ = read_steady(root / path, max_bytes)
        except NotReadError:
            return
        if kinds and kinds[0] is Language.PYTHON:
            self.python.append(path)
            self._traits(path, data, _PYTHON_TRAITS)
        elif kinds or uses_cuda(data):
            self.cuda.append(path)
            if path.lower().endswith(_ENDS_CUDA):
                self.kernels.append(path)
            self._traits(path, data, _CUDA_TRAITS)
        else:
            return
        vendored = _VENDORED.match(path)
        if vendored:
            self.vendored[vendored.group()] = self.vendored.get(vendored.group(), 0) + 1

    def _traits(self, path: str, data: bytes, traits: dict[str, re.Pattern[bytes]]) -> None:
        for name, pattern in traits.items():
            if pattern.search(data):
                self.by_trait[name].append(path)


def _holds(path: Path, max_bytes: int, pattern: re.Pattern[bytes]) -> bool:
    try:
        return pattern.search(read_steady(path, max_bytes)[0]) is not None
    except NotReadError:
        return False


def survey(root: Path, files: Iterable[FoundFile], max_bytes: int) -> Survey:
    """Return what a project is made of.

    Args:
        root: Its folder.
        files: Those that rules may read.
        max_bytes: Larger files are not looked into.
    """
    found = Survey()
    for file in files:
        found.add(root, file.path, max_bytes)
    return found
