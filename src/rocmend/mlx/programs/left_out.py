"""What ``rocmend.mlx.core`` does not do of MLX, and why. The page *MLX coverage* is made of these tables.

A name that is missing altogether, or whose call raises ``NotImplementedError``, stands in ``LEFT_OUT``; one whose
signature differs, in ``DIFFERENT``. The test of the surface fails for anything that stands in neither, and for anything
here that is there after all. ``BEHAVES`` holds what is called as in MLX and does something else.
"""

from __future__ import annotations

__all__ = ["BEHAVES", "DIFFERENT", "GPU_TESTS", "LEFT_OUT", "TESTS", "known_tests"]

_NO_METAL = "There is no Metal to record. `torch.profiler` records what torch does, `rocprofv3` what an AMD GPU does."

LEFT_OUT: dict[str, str] = {
    "fast.metal_kernel": "Source text in Metal is not compiled. A kernel can be named; calling it raises.",
    "fast.cuda_kernel": "Source text in CUDA is not compiled. A kernel can be named; calling it raises.",
    "fast.precompiled_cuda_kernel": "Code for NVIDIA GPUs is not loaded: AMD GPUs cannot run it.",
    "metal.start_capture": _NO_METAL,
    "metal.stop_capture": _NO_METAL,
}

DIFFERENT: dict[str, str] = {}

BEHAVES: dict[str, str] = {
    "array": (
        "`memoryview(x)` needs recording in C, or Python 3.12: a class written in Python cannot lend its memory as a "
        "buffer before. `numpy.asarray(x)` and DLPack work everywhere. Memory of other libraries is copied: an array's "
        "values never change."
    ),
    "async_eval": "On the CPU the arrays are computed when it returns. On a GPU it returns while the GPU computes.",
    "compile": (
        "With `shapeless=True` a traced body is recorded again for other shapes of the same numbers of axes. "
        "Operations that cannot say their shape for other inputs raise ValueError; which they are is not the same as "
        "in MLX. `expand_dims`, `squeeze`, `flatten` and `broadcast_arrays` in such a body keep shapes of the first "
        "call. The result of a compiled function does not lie in its argument's buffer."
    ),
    "cuda.is_available": "Returns False, also on an NVIDIA GPU: torch computes. `is_available(gpu)` tells.",
    "distributed.init": (
        "Speaks through `torch.distributed`: `ring` is gloo, `nccl` is RCCL on ROCm, `mpi` needs a torch that was "
        "built with it, and `jaccl` is never there. `send` and `recv` go over gloo, on GPUs too. Of processes that "
        "`torchrun` starts on one host, each calls its own GPU `Device(gpu, 0)`."
    ),
    "export_function": (
        "The format of the file is rocmend's: MLX cannot read it. An operation that depends on a value of a type which "
        "the format does not have raises NotImplementedError."
    ),
    "exporter": "Writes the format of `export_function`.",
    "get_active_memory": (
        "On a GPU, what torch's allocator has given out. On the CPU all tensors that torch has there are counted when "
        "it is called, those that the program made itself included."
    ),
    "get_peak_memory": (
        "On the CPU, the most that was counted when `get_active_memory` was called or an evaluation had ended: no true "
        "peak, since values in the middle of an evaluation are not in it."
    ),
    "import_function": "Reads what `export_function` of rocmend wrote. Files that MLX exported raise RuntimeError.",
    "load": "Of GGUF's block formats, Q4_0, Q4_1, Q8_0, Q4_K, Q5_K and Q6_K are read; a tensor in another one raises.",
    "metal.is_available": "Returns False.",
    "new_stream": (
        "All streams of a GPU are one stream of torch's. Work on two of them is done in the order of its dependencies "
        "and never at the same time."
    ),
    "set_memory_limit": (
        "A guideline: above it, unused memory is given back after each evaluation; no evaluation fails for it. By "
        "default it is the memory of the device, where MLX takes a part of it."
    ),
    "set_wired_limit": "The limit is remembered and has no effect.",
}
"""Names that are called as in MLX and do something else, and what."""

_KERNELS = "Calls a kernel whose source text is in Metal."

_LM_KERNELS = "Calls a kernel of mlx-lm's in Metal, which is not there without: fails with MLX on a CPU too."

TESTS: dict[str, str] = {
    "test_array.py::TestArray::test_from_dlpack_cpu_strided": (
        "Asks that an array taken through DLPack lies as it lay in the other library's memory; here it is a copy "
        "without gaps."
    ),
    "test_compile.py::TestCompile::test_compile_donates_input_buffer": (
        "Asks that the result of a compiled function lies in its argument's buffer."
    ),
    "test_export_import.py::TestExportImport::test_export_custom_metal_kernel_with_math_mode": _KERNELS,
    "test_export_import.py::TestExportImport::test_export_custom_metal_kernel_without_evaluation": _KERNELS,
    "test_fast_sdpa.py::TestFastSDPA::test_sdpa_sliced": (
        "Fails in some runs: its values are random, and it holds results to 0.001 of a reference that rounds scores to "
        "float16; here they stay in float32, and results are nearer to what is exact."
    ),
    "test_models.py::TestModels::test_bitnet": _KERNELS,
    "test_models.py::TestModels::test_gated_delta": _LM_KERNELS,
    "test_models.py::TestModels::test_gated_delta_masked": _LM_KERNELS,
    "test_models.py::TestModels::test_quantized_sdpa_gqa_batched_mask": (
        "Unpacks the state of a quantized cache as two values, where mlx-lm 0.32.2 gives more: the test is of another "
        "version, and fails with MLX too."
    ),
}
"""Tests of MLX's and mlx-lm's own suites that do not pass here, ``FILE::CLASS::TEST``, and why."""

_DOUBLE = "Asks that float64 is refused on a GPU; here it is computed there, as torch can."

_CUDA_KERNELS = (
    "Calls a kernel whose source text is in Metal or CUDA, and defines it only where MLX's Metal or CUDA is."
)

_IN_PLACE = (
    "Asks that the peak of memory does not grow, as MLX writes results over inputs that nothing else sees; here each "
    "operation's result has memory of its own, which torch's allocator counts."
)

GPU_TESTS: dict[str, str] = {
    "test_array.py::TestArray::test_memoryless_copy": (
        "Asks for a NumPy array in the memory of an array that was broadcast, with a stride of 0; memory of a GPU is "
        "copied, without such strides."
    ),
    "test_array.py::TestInequality::test_dlx_device_type": (
        "Asks for DLPack's number of a CPU or of Metal (1, 8); this GPU's is CUDA's or ROCm's (2, 10)."
    ),
    "test_eval.py::TestEval::test_donation_for_noops": _IN_PLACE,
    "test_load.py::TestLoad::test_load_donation": _IN_PLACE,
    "test_memory.py::TestMemory::test_memory_info": (
        "Asks that a cache limit of 0 leaves no memory unused; torch's allocator takes memory by blocks of 2 MiB and "
        "more, and keeps one as long as a part of it is in use."
    ),
    "test_export_import.py::TestExportImport::test_export_import_custom_kernel": _CUDA_KERNELS,
} | {
    f"test_double.py::TestDouble::{name}": _DOUBLE
    for name in (
        "test_binary_ops", "test_gemm", "test_get_and_set_item", "test_reductions", "test_unary_ops", "test_where",
    )
} | {
    f"test_fast.py::TestFast::test_custom_kernel_{name}": _CUDA_KERNELS
    for name in ("args", "attributes", "basic", "helper", "strides")
}  # fmt: skip
"""Those that do not pass on a GPU besides, and why."""


def known_tests(device: str) -> dict[str, str]:
    """Return the tests that are known not to pass on a device, ``cpu`` or ``gpu``, each with its reason."""
    return TESTS | GPU_TESTS if device == "gpu" else TESTS
