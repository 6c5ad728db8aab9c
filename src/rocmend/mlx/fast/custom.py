"""Kernels from source text of Metal or CUDA: they can be named, so that programs import, but not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

__all__ = ["cuda_kernel", "metal_kernel", "precompiled_cuda_kernel"]

_MATH_MODES = ("safe", "relaxed", "fast")


class _Kernel:
    """A kernel that cannot run here; calling it says why."""

    __slots__ = ("language", "name")

    def __init__(self, name: str, language: str) -> None:
        self.name = name
        self.language = language

    def __repr__(self) -> str:
        return f"<{self.language} kernel {self.name!r}>"

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            f"[{self.language.lower()}_kernel] {self.name!r} is source text in {self.language}, which is not compiled "
            "here: this implementation runs on torch and Triton. Use the plain operations in its place."
        )


def metal_kernel(
    name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str = "",
    ensure_row_contiguous: bool = True, atomic_outputs: bool = False, compile_options: Any = None,
) -> Any:  # fmt: skip
    """Name a kernel in Metal. It cannot be called: there is no Metal here.

    Args:
        name: the kernel's name.
        input_names: names of the inputs.
        output_names: names of the outputs.
        source: body of the function.
        header: what stands before it.
        ensure_row_contiguous: whether inputs are made contiguous.
        atomic_outputs: whether outputs are atomic.
        compile_options: ``{"math_mode": "safe" | "relaxed" | "fast"}``, or None.

    Returns:
        An object whose call raises NotImplementedError.

    Raises:
        ValueError: options that there are not.
    """
    del input_names, output_names, source, header, ensure_row_contiguous, atomic_outputs
    for option, value in dict(compile_options or {}).items():
        if option != "math_mode":
            raise ValueError(f"[metal_kernel] Unknown compile option {option!r}: there is math_mode.")
        if value not in _MATH_MODES:
            raise ValueError(f"[metal_kernel] Invalid math_mode {value!r}: there are {', '.join(_MATH_MODES)}.")
    return _Kernel(name, "Metal")


def cuda_kernel(
    name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str = "",
    ensure_row_contiguous: bool = True, shared_memory: int = 0,
) -> Any:  # fmt: skip
    """Name a kernel in CUDA. It cannot be called: source text in CUDA is not compiled here.

    Args:
        name: the kernel's name.
        input_names: names of the inputs.
        output_names: names of the outputs.
        source: body of the function.
        header: what stands before it.
        ensure_row_contiguous: whether inputs are made contiguous.
        shared_memory: bytes.

    Returns:
        An object whose call raises NotImplementedError.
    """
    del input_names, output_names, source, header, ensure_row_contiguous, shared_memory
    return _Kernel(name, "CUDA")


def precompiled_cuda_kernel(
    *, name: str, compiled_source: bytes, inputs: Sequence[Any], output_shapes: Sequence[Any],
    output_dtypes: Sequence[Any], scalars: Sequence[Any], grid: tuple[int, int, int],
    threadgroup: tuple[int, int, int], shared_memory: int = 0, init_value: float | None = None,
    ensure_row_contiguous: bool = False, stream: Any = None,
) -> list[Any]:  # fmt: skip
    """Run a kernel of PTX or a cubin: not possible here.

    Args:
        name: the kernel's name.
        compiled_source: its code.
        inputs: its inputs.
        output_shapes: shapes of its outputs.
        output_dtypes: their types.
        scalars: its numbers.
        grid: threads.
        threadgroup: threads of a block.
        shared_memory: bytes.
        init_value: what outputs are filled with.
        ensure_row_contiguous: whether inputs are made contiguous.
        stream: where it is computed.

    Raises:
        NotImplementedError: always.
    """
    del compiled_source, inputs, output_shapes, output_dtypes, scalars, grid, threadgroup
    del shared_memory, init_value, ensure_row_contiguous, stream
    raise NotImplementedError(
        f"[precompiled_cuda_kernel] {name!r} is code for NVIDIA GPUs, which AMD GPUs cannot run; it is not loaded "
        "here. Use the plain operations in its place."
    )
