"""The copy of a torch extension in which names are translated."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.port.verify.job import Job
from rocmend.port.verify.translated import TORCH, translated

from .conftest import ORIGINAL, PORT, Ported


@pytest.fixture
def torch(tmp_path: Path) -> Path:
    """A torch for the CPU alone, as far as its headers go."""
    include = tmp_path / "torch/include"
    for name in ("c10/cuda/CUDAStream.h", "ATen/cuda/CUDAContext.h", "ATen/cuda/DeviceUtils.cuh", "c10/core/Stream.h"):
        (include / name).parent.mkdir(parents=True, exist_ok=True)
        (include / name).write_text("#include <cuda_runtime_api.h>\ncudaStream_t stream();\n")
    (tmp_path / "torch/version.py").write_text("hip: Optional[str] = None\n")
    return include


def test_names_are_translated_in_the_project_and_in_torchs_headers_for_cuda(ported: Ported, torch: Path) -> None:
    source = PORT + b"cudaError_t f(cudaStream_t s) { return cudaStreamSynchronize(s); } // cudaStream_t\n"
    source += b"using Sum = cub::BlockReduce<int, 64>; using Two = cub::DoubleBuffer<int>;\n"
    with Job(ported({"src/a.cu": ORIGINAL}, {"src/a.cu": source, "src/own.txt": b"cudaStream_t\n"})) as job:
        place = translated(job, [torch])
        text = (place / "src/a.cu").read_text()
        assert "hipError_t f(hipStream_t s) { return hipStreamSynchronize(s); } // cudaStream_t" in text
        assert "using Sum = hipcub::BlockReduce<int, 64>; using Two = cub::DoubleBuffer<int>;" in text, (
            "as hipify has it"
        )
        assert (place / "src/own.txt").read_bytes() == b"cudaStream_t\n"
        assert "hipStream_t stream();" in (place / TORCH / "c10/cuda/CUDAStream.h").read_text()
        assert "<hip/hip_runtime.h>" in (place / TORCH / "ATen/cuda/CUDAContext.h").read_text()
        assert (place / TORCH / "c10/cuda/impl/cuda_cmake_macros.h").is_file()
        assert "AT_ROCM_ENABLED() 1" in (place / TORCH / "ATen/cuda/CUDAConfig.h").read_text()
        assert "<ATen/cuda/DeviceUtils.cuh>" in (place / TORCH / "ATen/hip/DeviceUtils.cuh").read_text()
        assert not (place / TORCH / "c10/core").exists()
        assert translated(job, [torch]) == place, "the same sources have the same place"
        assert job.read("src/a.cu") == source, "the project itself is not written"


def test_another_source_has_another_place(ported: Ported, torch: Path) -> None:
    root = ported({"a.cu": ORIGINAL}, {"a.cu": PORT})
    with Job(root) as job:
        first = translated(job, [torch])
    (root / "a.cu").write_bytes(PORT + b"\n")
    with Job(root) as job:
        assert translated(job, [torch]) != first


def test_a_torch_for_rocm_has_its_headers_already(ported: Ported, torch: Path) -> None:
    (torch.parent / "version.py").write_text("hip: Optional[str] = '7.1.25424'\n")
    with Job(ported({"a.cu": ORIGINAL}, {"a.cu": PORT})) as job:
        assert not (translated(job, [torch]) / TORCH).exists()
        assert not (translated(job, []) / TORCH).exists()
